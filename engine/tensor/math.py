"""The operations element by element, under PyTensor's names. Each takes tensors, arrays and numbers.

What each computes, in which dtype, and its gradient are beside each other in `engine.scalar`.
"""

from __future__ import annotations

from engine import scalar
from engine.tensor.elemwise import elemwise

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

floor = elemwise(scalar.floor)
ceil = elemwise(scalar.ceil)
trunc = elemwise(scalar.trunc)
round = elemwise(scalar.round)

lt = elemwise(scalar.lt)
le = elemwise(scalar.le)
gt = elemwise(scalar.gt)
ge = elemwise(scalar.ge)
eq = elemwise(scalar.eq)
neq = elemwise(scalar.neq)
isnan = elemwise(scalar.isnan)
isinf = elemwise(scalar.isinf)

and_ = elemwise(scalar.and_)
or_ = elemwise(scalar.or_)
xor = elemwise(scalar.xor)
invert = elemwise(scalar.invert)

switch = elemwise(scalar.where)
maximum = elemwise(scalar.maximum)
minimum = elemwise(scalar.minimum)
second = fill = elemwise(scalar.second)
identity = elemwise(scalar.identity)
