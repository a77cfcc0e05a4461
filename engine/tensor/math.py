"""Elementwise functions under PyTensor's names, and functions composed of several that do not
overflow or cancel.

Each takes tensors, arrays and numbers. `engine.scalar` defines values, dtypes and gradients of the
first kind.
"""

from __future__ import annotations

import math
from functools import reduce
from typing import TYPE_CHECKING

from engine import scalar
from engine.late_names import names_elsewhere
from engine.tensor.elemwise import elemwise

if TYPE_CHECKING:
    from typing import Any

    from engine.tensor.variable import TensorVariable

add = elemwise(scalar.add)
sub = elemwise(scalar.sub)
mul = elemwise(scalar.mul)
true_div = elemwise(scalar.true_div)
floor_div = elemwise(scalar.floor_div)
mod = elemwise(scalar.mod)
neg = elemwise(scalar.neg)
reciprocal = elemwise(scalar.reciprocal)
pow = power = elemwise(scalar.pow)
sqr = elemwise(scalar.sqr)
sqrt = elemwise(scalar.sqrt)
abs = elemwise(scalar.abs)
sign = elemwise(scalar.sign)

exp = elemwise(scalar.exp)
expm1 = elemwise(scalar.expm1)
log = elemwise(scalar.log)
log1mexp = elemwise(scalar.log1mexp)
log1p = elemwise(scalar.log1p)
sigmoid = expit = elemwise(scalar.sigmoid)
softplus = elemwise(scalar.softplus)
sin = elemwise(scalar.sin)
cos = elemwise(scalar.cos)
tanh = elemwise(scalar.tanh)
exp2 = elemwise(scalar.exp2)
log2 = elemwise(scalar.log2)
log10 = elemwise(scalar.log10)
tan = elemwise(scalar.tan)
arcsin = elemwise(scalar.arcsin)
arccos = elemwise(scalar.arccos)
arctan = elemwise(scalar.arctan)
arctan2 = elemwise(scalar.arctan2)
hypot = elemwise(scalar.hypot)
sinh = elemwise(scalar.sinh)
cosh = elemwise(scalar.cosh)
arcsinh = elemwise(scalar.arcsinh)
arccosh = elemwise(scalar.arccosh)
arctanh = elemwise(scalar.arctanh)

erf = elemwise(scalar.erf)
erfc = elemwise(scalar.erfc)
gamma = elemwise(scalar.gamma)
gammaln = elemwise(scalar.gammaln)
psi = digamma = elemwise(scalar.psi)
tri_gamma = elemwise(scalar.tri_gamma)

betainc = elemwise(scalar.betainc)
betaincinv = elemwise(scalar.betaincinv)
erfcinv = elemwise(scalar.erfcinv)
erfcx = elemwise(scalar.erfcx)
erfinv = elemwise(scalar.erfinv)
gammainc = elemwise(scalar.gammainc)
gammaincc = elemwise(scalar.gammaincc)
gammainccinv = elemwise(scalar.gammainccinv)
gammaincinv = elemwise(scalar.gammaincinv)
hyp2f1 = elemwise(scalar.hyp2f1)
i0 = elemwise(scalar.i0)
i0e = elemwise(scalar.i0e)
i1 = elemwise(scalar.i1)
i1e = elemwise(scalar.i1e)
ive = elemwise(scalar.ive)
j0 = elemwise(scalar.j0)
j1 = elemwise(scalar.j1)
jv = elemwise(scalar.jv)
kve = elemwise(scalar.kve)
ndtri_exp = elemwise(scalar.ndtri_exp)
owens_t = elemwise(scalar.owens_t)

floor = elemwise(scalar.floor)
ceil = elemwise(scalar.ceil)
trunc = elemwise(scalar.trunc)
round_half_to_even = elemwise(scalar.round)

lt = elemwise(scalar.lt)
le = elemwise(scalar.le)
gt = elemwise(scalar.gt)
ge = elemwise(scalar.ge)
eq = elemwise(scalar.eq)
neq = elemwise(scalar.neq)
isnan_ = elemwise(scalar.isnan)
isinf_ = elemwise(scalar.isinf)

and_ = elemwise(scalar.and_)
or_ = elemwise(scalar.or_)
xor = elemwise(scalar.xor)
invert = elemwise(scalar.invert)
left_shift = elemwise(scalar.left_shift)
right_shift = elemwise(scalar.right_shift)

signbit = elemwise(scalar.signbit)
copysign = elemwise(scalar.copysign)
nextafter = elemwise(scalar.nextafter)

switch = elemwise(scalar.where)
maximum = elemwise(scalar.maximum)
minimum = elemwise(scalar.minimum)
second = fill = elemwise(scalar.second)
identity = elemwise(scalar.identity)
complex = elemwise(scalar.complex)


TAIL_OF_ERFC = {"float64": 25.0, "float32": 9.0}
"""Beyond this the asymptotic series of erfc is used. erfc does not underflow before."""


def clip(x: Any, min: Any, max: Any) -> TensorVariable:
    """Return `x` limited to the range from `min` to `max`."""
    return minimum(maximum(x, min), max)


def logit(x: Any) -> TensorVariable:
    """Return `log(p / (1 - p))`, the inverse of `sigmoid`."""
    return sub(log(x), log1p(neg(x)))


def log_erfc(x: Any) -> Any:
    """Return `log(erfc(x))`, also where erfc underflows or is next to 1.

    Where it underflows, this is the asymptotic series 7.1.23 of Abramowitz and Stegun.
    """
    tail = TAIL_OF_ERFC[x.type.dtype]
    z = maximum(x, tail)
    t = reciprocal(sqr(z))
    series = mul(t, add(-1 / 2, mul(t, add(3 / 4, mul(t, add(-15 / 8, mul(t, 105 / 16)))))))
    logs = add(log(z), 0.5 * math.log(math.pi))
    far = sub(sub(log1p(series), logs), sqr(z))
    below_half = log1p(neg(erf(minimum(x, 0.5))))
    between = log(erfc(minimum(maximum(x, 0.5), tail)))
    return switch(lt(x, 0.5), below_half, switch(lt(x, tail), between, far))


def logaddexp(*xs: Any) -> TensorVariable:
    """Return the logarithm of the sum of the exponentials of the arguments, without overflow.

    It is -inf if all are -inf, and has all its digits where it is next to 0.
    """
    return reduce(_logaddexp_of_two, xs)


def _logaddexp_of_two(x: Any, y: Any) -> Any:
    is_first = ge(x, y)
    largest = switch(is_first, x, y)
    shift = switch(isinf_(largest), 0.0, largest)
    return add(largest, softplus(sub(switch(is_first, y, x), shift)))


if not TYPE_CHECKING:
    __getattr__ = names_elsewhere(__name__)
