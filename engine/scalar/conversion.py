"""Operations that pass a value on: identity, second and cast."""

from __future__ import annotations

from typing import Any

import numpy as np

from engine.scalar.op import ApplyScalarOp, ScalarOp
from engine.scalar.promotion import COMPLEX, DTYPES, NoRule, Signature, last, same


class Identity(ScalarOp):
    """`a` itself."""

    rule = staticmethod(same)

    def _impl(self, a: Any) -> Any:
        return a

    def partial(self, index: int, inputs: Any, output: Any, cotangent: Any, apply: ApplyScalarOp) -> Any:
        return cotangent


class Second(ScalarOp):
    """`b` broadcast to the shape of `a`; the values of `a` are not used."""

    nin = 2
    rule = staticmethod(last)

    def _impl(self, a: Any, b: Any) -> Any:
        return np.broadcast_to(b, np.broadcast_shapes(np.shape(a), np.shape(b)))[()]

    def partial(self, index: int, inputs: Any, output: Any, cotangent: Any, apply: ApplyScalarOp) -> Any:
        return cotangent if index == 1 else None


class Cast(ScalarOp):
    """`a` as `dtype`, a name or a ScalarType. Floats are truncated to integers; the result of one out of
    range depends on the CPU.

    Raises TypeError for a complex number that is to become a real one.
    """

    __props__ = ("dtype",)

    def __init__(self, dtype: Any) -> None:
        name = getattr(dtype, "dtype", dtype)
        if name not in DTYPES:
            raise TypeError(f"Casting to dtype {dtype!r}: there are {', '.join(DTYPES)}")
        self.dtype: str = name

    def _signature(self, dtypes: tuple[str, ...]) -> Signature:
        if dtypes[0] in COMPLEX and self.dtype not in COMPLEX:
            raise NoRule(
                "would drop the imaginary part: casting from complex to real is ambiguous; consider real(), "
                "imag(), angle() or abs()"
            )
        return dtypes, self.dtype

    def _impl(self, a: Any) -> Any:
        return a.astype(self.dtype)

    def partial(self, index: int, inputs: Any, output: Any, cotangent: Any, apply: ApplyScalarOp) -> Any:
        return cotangent

    def __str__(self) -> str:
        return f"cast{{{self.dtype}}}"

    __repr__ = __str__


identity = Identity()
second = Second()
