"""Complex numbers: their parts, their conjugates, and complex numbers made of parts.

A cotangent of a complex number is the gradient by its real part plus i times that by its imaginary part.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from engine.scalar.op import ApplyScalarOp, ScalarOp
from engine.scalar.promotion import of_complex, of_parts, part_of_complex


class Real(ScalarOp):
    """The real part of a complex number."""

    is_holomorphic = False
    rule = staticmethod(part_of_complex)

    def _impl(self, a: Any) -> Any:
        return a.real

    def partial(self, index: int, inputs: Any, output: Any, cotangent: Any, apply: ApplyScalarOp) -> Any:
        return cotangent


class Imag(ScalarOp):
    """The imaginary part of a complex number."""

    is_holomorphic = False
    rule = staticmethod(part_of_complex)

    def _impl(self, a: Any) -> Any:
        return a.imag

    def partial(self, index: int, inputs: Any, output: Any, cotangent: Any, apply: ApplyScalarOp) -> Any:
        return apply(complex, 0, cotangent)


class Conj(ScalarOp):
    """The number with the opposite imaginary part."""

    is_holomorphic = False
    rule = staticmethod(of_complex)
    ufunc = np.conjugate

    def partial(self, index: int, inputs: Any, output: Any, cotangent: Any, apply: ApplyScalarOp) -> Any:
        return apply(conj, cotangent)


class Complex(ScalarOp):
    """The complex number of a real part `a` and an imaginary part `b`, both real numbers."""

    nin = 2
    is_holomorphic = False
    rule = staticmethod(of_parts)

    def _impl(self, a: Any, b: Any) -> Any:
        a, b = np.broadcast_arrays(a, b)
        found = np.empty(a.shape, np.result_type(a, np.complex64))
        found.real, found.imag = a, b
        return found[()]

    def partial(self, index: int, inputs: Any, output: Any, cotangent: Any, apply: ApplyScalarOp) -> Any:
        return apply(real if index == 0 else imag, cotangent)


real = Real()
imag = Imag()
conj = Conj()
complex = Complex()
