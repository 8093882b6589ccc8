"""Update rules: a file an algorithm, named after it."""

from contrib_opt.optimizers import matrix_functions, sign_decay

__all__ = ["matrix_functions", "sign_decay"]
