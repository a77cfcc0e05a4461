"""Tensor types by rank and kind of number, under PyTensor's names: `float_types` are of numbers alone.

`TensorLike` is the type of what becomes a tensor, for annotations.
"""

from __future__ import annotations

from collections.abc import Sequence

from numpy.typing import ArrayLike

from engine.graph.variables import Variable
from engine.tensor import makers

TensorLike = Variable | Sequence[Variable] | ArrayLike

int_types = int_scalar_types = (makers.bscalar, makers.wscalar, makers.iscalar, makers.lscalar)
float_types = float_scalar_types = (makers.fscalar, makers.dscalar)
complex_types = complex_scalar_types = (makers.cscalar, makers.zscalar)
int_vector_types = (makers.bvector, makers.wvector, makers.ivector, makers.lvector)
float_vector_types = (makers.fvector, makers.dvector)
complex_vector_types = (makers.cvector, makers.zvector)
int_matrix_types = (makers.bmatrix, makers.wmatrix, makers.imatrix, makers.lmatrix)
float_matrix_types = (makers.fmatrix, makers.dmatrix)
complex_matrix_types = (makers.cmatrix, makers.zmatrix)
