"""Optimizers from outside TensorFlow: SciPy's, and those that users connect.

The problem, with f the loss, x all optimized variables in one vector, and lists of
constraints h and g:

    minimize f(x)   so that   h_i(x) = 0,   g_j(x) >= 0,   low <= x <= high

The optimizer runs in Python and asks for values and gradients; it never sees
TensorFlow. x is float64 whatever the variables are, since SciPy's methods compute in
float64; a value is rounded to its variable's type where the variable takes it. The
order in x is that of `var_list`, each variable flattened row by row.

An evaluation brings the loss, all constraints and all of their gradients in one vector,
and what was computed at x is kept until the optimizer moves on: a constraint at the
same x costs nothing. It takes two runs of the session however many variables there are,
one of which takes x as a whole and assigns its parts; one run if there are a few ref
variables, whose values it feeds; in eager mode one call of one `tf.function`.

Source: `tf.contrib.opt.ExternalOptimizerInterface` and `ScipyOptimizerInterface` of
TensorFlow 1.15; `scipy.optimize.minimize`.

Deviations from TensorFlow 1.15, each a case in which it failed, or an addition:
- Resource variables are optimized; 1.15 fed their value to the loss in vain, and left
  them as they were.
- Variables of several float types may be mixed. Integer and bool variables are left
  alone, and so is a variable that nothing depends on; the former raised TypeError.
- Gradients are float64 vectors. SciPy 1.17 refuses others in SLSQP and TNC.
- The methods that use no gradient (Nelder-Mead, Powell, COBYLA) do not compute it.
- A callable loss is taken, in graphs and in eager mode.
- None, "no bound", may stand within a list of bounds.
- What is wrong with an argument is said by the constructor, before any work is done.
"""

from contrib_opt.external.interface import ExternalOptimizerInterface
from contrib_opt.external.scipy import ScipyOptimizerInterface

__all__ = ["ExternalOptimizerInterface", "ScipyOptimizerInterface"]
