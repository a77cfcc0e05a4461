"""Errors of the engine. Each message says what was being done, to what and what was found; fields keep
the parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


class EngineError(Exception):
    """Base class of the errors that the engine raises."""


class VariableError(EngineError):
    """Base class of errors about one variable, the field `variable`."""

    def __init__(self, message: str, variable: object) -> None:
        super().__init__(message)
        self.variable = variable


class MissingInputError(VariableError, ValueError):
    """A graph needs a variable that is neither an input, a constant nor computed from them."""


class InconsistencyError(EngineError):
    """A change would leave a graph, or its features, in a state that cannot be computed."""


class UnusedInputError(VariableError):
    """An input of a function is not used by its outputs or updates."""


class DisconnectedInputError(VariableError, ValueError):
    """A gradient was asked for with respect to a variable that the cost does not depend on."""


class NullGradientError(EngineError, TypeError, ValueError):
    """A gradient was asked for through an Op that declares none. `op` is that Op.

    PyTensor's error of this meaning, NullTypeGradError, is a TypeError.
    """

    def __init__(self, message: str, op: object) -> None:
        super().__init__(message)
        self.op = op


class UnavailableGradientError(NullGradientError, NotImplementedError):
    """A gradient exists, and the engine does not have it."""


class LengthError(EngineError, AssertionError, ValueError):
    """A tensor does not have a length that it was said to have.

    PyTensor's `specify_shape` raises AssertionError; numpy, of a shape that does not fit, ValueError.
    """

    @staticmethod
    def text(found: Sequence[int | None], due: Sequence[int | None]) -> str:
        """Return which length of the shape `found` is another one than is `due`, where that is not None."""
        axis, length = next((at, n) for at, n in enumerate(due) if n not in (None, found[at]))
        what = f"dim {axis} of input has shape {found[axis]}, expected {length}"
        return f"{what}. Got shape {found}, expected {due}."


class Float64Error(EngineError, TypeError):
    """A float64 tensor was made, of `type`, where the flag warn_float64 is "raise"."""

    def __init__(self, message: str, type: object) -> None:
        super().__init__(message)
        self.type = type


class ComplexError(EngineError, TypeError, NotImplementedError):
    """An operation does not take complex numbers."""


class MaskedArrayError(EngineError, TypeError, NotImplementedError):
    """A masked array was given: its mask would be lost. `doing` says what was being done with it."""

    def __init__(self, doing: str) -> None:
        super().__init__(f"{doing}: MaskedArrays are not supported, as the mask would be lost; fill it first")
        self.doing = doing


class FunctionRefused(EngineError):
    """The numba function of an Op cannot become part of a kernel, so Python runs it.

    Fields: `op`, `signature` (the types of the arguments), `found` (the reason), `is_expected` (True if
    the author of the Op need not change it).
    """

    def __init__(self, op: Any, signature: Any, found: str, is_expected: bool) -> None:
        super().__init__(
            f"Compiling the numba function of {op} into a kernel: {found}; it is run by Python instead"
        )
        self.op = op
        self.signature = signature
        self.found = found
        self.is_expected = is_expected


class GradientError(EngineError):
    """A gradient differs from finite differences.

    Fields: `argument` (its position), `index` (of the element that differs most), `expected` (the
    finite difference), `found`.
    """

    def __init__(self, argument: int, index: tuple[int, ...], expected: float, found: float) -> None:
        super().__init__(
            f"Checking the gradient for argument {argument}: at element {index} finite differences give "
            f"{expected:.9g}, the gradient is {found:.9g}; correct the pullback of the Op, or check "
            "at a point without a kink nearby"
        )
        self.argument = argument
        self.index = index
        self.expected = expected
        self.found = found


class ArgumentError(EngineError, TypeError):
    """A value does not fit an input of a compiled function: an argument, or the value of a shared
    variable.

    Fields: `function` and `argument` (names), `expected` and `found` (descriptions of both values),
    `is_shared` (True for a shared variable).
    """

    def __init__(
        self, function: str, argument: str, expected: str, found: str, is_shared: bool = False
    ) -> None:
        super().__init__(function, argument, expected, found, is_shared)
        self.function = function
        self.argument = argument
        self.expected = expected
        self.found = found
        self.is_shared = is_shared

    def __str__(self) -> str:
        if self.is_shared:
            return (
                f"Calling {self.function}: its shared variable {self.argument} must hold {self.expected}, "
                f"but holds {self.found}. Give it its value by set_value, which converts or refuses it."
            )
        return (
            f"Calling {self.function}: argument {self.argument} must be {self.expected}, "
            f"but {self.found} came. Convert the value before the call, or declare the input with the type "
            "of the value."
        )


class NotNumbersError(EngineError, TypeError, ValueError):
    """Numbers are expected, and something else was given: a text, an object."""


class StaticShapeError(EngineError, TypeError, ValueError):
    """A static shape has an entry that is neither a length nor None."""


class RangeError(EngineError, TypeError, OverflowError):
    """A whole number is outside of the range of a dtype."""


class ArgumentRangeError(ArgumentError, OverflowError):
    """A whole number among the arguments is outside of the range of its input's dtype."""


class FunctionLoadError(EngineError):
    """A function from a pickle cannot run in this process. It is not compiled instead.

    Fields: `function` (its name), `found` (the misfit, and its reason), `advice`.
    """

    def __init__(self, function: str, found: str, advice: str) -> None:
        super().__init__(function, found, advice)
        self.function = function
        self.found = found
        self.advice = advice

    def __str__(self) -> str:
        return f"Loading the pickled function {self.function}: {self.found}; {self.advice}"


class UndescribedOpError(EngineError):
    """Rewriting added a user Op that was not in the graph that the key describes. `op` is that Op.

    The function is then built without the cache.
    """

    def __init__(self, op: object) -> None:
        super().__init__(
            f"op {op} came into the graph when it was rewritten, and the key does not describe it; let no "
            "infer_shape apply Ops that the graph does not have"
        )
        self.op = op


class LoweringError(EngineError, NotImplementedError):
    """The backend has no kernel for a node. `op` is the node's Op, `backend` the backend's name."""

    def __init__(self, op: object, backend: str, detail: str) -> None:
        super().__init__(f"Lowering {op} for the {backend} backend: {detail}.")
        self.op = op
        self.backend = backend
