"""PyTensor's names for the solvers of `engine.inner.optimize`, imported when first used."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from engine.inner.optimize import minimize, minimize_scalar, root, root_scalar
    from engine.inner.optimize_ops import MinimizeOp, MinimizeScalarOp, RootOp, RootScalarOp, ScipyWrapperOp

__all__ = [
    "MinimizeOp",
    "MinimizeScalarOp",
    "RootOp",
    "RootScalarOp",
    "ScipyWrapperOp",
    "minimize",
    "minimize_scalar",
    "root",
    "root_scalar",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(
        import_module(f"engine.inner.{'optimize_ops' if name.endswith('Op') else 'optimize'}"), name
    )
