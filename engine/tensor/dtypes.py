"""The dtypes of tensors, by kind, under PyTensor's names."""

from __future__ import annotations

from engine.scalar.promotion import COMPLEX, DISCRETE, DTYPES, FLOATS, INEXACT, INTEGERS, SIGNED, UNSIGNED

all_dtypes, discrete_dtypes, continuous_dtypes = list(DTYPES), list(DISCRETE), list(INEXACT)
int_dtypes, uint_dtypes, integer_dtypes = list(SIGNED), list(UNSIGNED), list(INTEGERS)
float_dtypes, complex_dtypes = list(FLOATS), list(COMPLEX)
