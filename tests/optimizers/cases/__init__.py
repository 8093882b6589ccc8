"""The table of optimizers under test: to test another one, add a row.

Each row goes through all of test_suite.py, against the numbers that its reference
computed (tests/golden/generate.py records them). A family of optimizers has a file.
"""

from optimizers.cases import lars
from optimizers.cases.case import Case, make, make_theirs

CASES = [*lars.CASES]

# One row for each optimizer, for what does not depend on a row's arguments.
OPTIMIZERS = list({case.optimizer: case for case in reversed(CASES)}.values())[::-1]

__all__ = ["CASES", "OPTIMIZERS", "Case", "make", "make_theirs"]
