"""Errors of the engine: each says what was being done, to what, what was found, and keeps it as fields."""

from __future__ import annotations

from typing import Any


class EngineError(Exception):
    """Base class of the errors that the engine raises."""


class MissingInputError(EngineError):
    """A graph needs a variable that is neither an input, a constant nor computed from them.

    `variable` is that variable.
    """

    def __init__(self, message: str, variable: object) -> None:
        super().__init__(message)
        self.variable = variable


class InconsistencyError(EngineError):
    """A change would leave a graph, or its features, in a state that cannot be computed."""


class UnusedInputError(EngineError):
    """An input of a function is not used by its outputs or updates. `variable` is that input."""

    def __init__(self, message: str, variable: object) -> None:
        super().__init__(message)
        self.variable = variable


class DisconnectedInputError(EngineError, ValueError):
    """A gradient was asked for with respect to a variable that the cost does not depend on.

    `variable` is that variable.
    """

    def __init__(self, message: str, variable: object) -> None:
        super().__init__(message)
        self.variable = variable


class NullGradientError(EngineError, ValueError):
    """A gradient was asked for through an Op that declares none. `op` is that Op."""

    def __init__(self, message: str, op: object) -> None:
        super().__init__(message)
        self.op = op


class FunctionRefused(EngineError):
    """What an Op has for numba cannot be a part of kernels. `op` has it, for arguments of `signature`;
    `found` says why not; `is_expected` if the Op need not be changed for that."""

    def __init__(self, op: Any, signature: Any, found: str, is_expected: bool) -> None:
        super().__init__(
            f"Compiling the function that {op} has for numba into a kernel: {found}; it is run by Python instead"
        )
        self.op = op
        self.signature = signature
        self.found = found
        self.is_expected = is_expected


class GradientError(EngineError):
    """A gradient is not what finite differences give.

    Fields: `argument` (its position), `index` (of the element that differs most), `expected` (the finite
    difference), `found`.
    """

    def __init__(self, argument: int, index: tuple[int, ...], expected: float, found: float) -> None:
        super().__init__(
            f"Checking the gradient for argument {argument}: at element {index} finite differences give {expected:.9g}, "
            f"the gradient is {found:.9g}; correct the pullback of the Op, or check at a point without a kink nearby"
        )
        self.argument = argument
        self.index = index
        self.expected = expected
        self.found = found


class ArgumentError(EngineError, TypeError):
    """A compiled function was called with a value that one of its inputs does not take, or a shared
    variable has one.

    Fields: `function` and `argument` (names), `expected` and `found` (what the input takes, what came),
    `is_shared` (it is a shared variable, which the function brings along).
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
                f"Calling {self.function}: its shared variable {self.argument} must hold {self.expected}, but holds "
                f"{self.found}. Give it its value by set_value, which converts or refuses it."
            )
        return (
            f"Calling {self.function}: argument {self.argument} must be {self.expected}, but {self.found} came. "
            "Convert the value before the call, or declare the input with the type of the value."
        )


class FunctionLoadError(EngineError):
    """A function that came in a pickle cannot run in this process. Nothing is compiled instead.

    Fields: `function` (its name), `found` (what does not fit, and why), `advice`.
    """

    def __init__(self, function: str, found: str, advice: str) -> None:
        super().__init__(function, found, advice)
        self.function = function
        self.found = found
        self.advice = advice

    def __str__(self) -> str:
        return f"Loading the pickled function {self.function}: {self.found}; {self.advice}"


class UndescribedOpError(EngineError):
    """A user's Op came into a graph that was not in the graph that the key describes. `op` is that Op.

    Nothing is stored then; the function is made without the cache.
    """

    def __init__(self, op: object) -> None:
        super().__init__(
            f"op {op} came into the graph when it was rewritten, and the key does not describe it; have no infer_shape "
            "apply Ops that the graph has not"
        )
        self.op = op


class LoweringError(EngineError, NotImplementedError):
    """The backend has no kernel for a node. `op` is the node's Op, `backend` the backend's name."""

    def __init__(self, op: object, backend: str, detail: str) -> None:
        super().__init__(f"Lowering {op} for the {backend} backend: {detail}.")
        self.op = op
        self.backend = backend
