"""Derivatives under PyTensor's names: gradients, Jacobian products, Jacobians and Hessians."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from engine.gradient.reverse import Lop, connections, grad, pull_back, pullback

if TYPE_CHECKING:
    from engine.gradient.forward import Rop, push_forward, pushforward
    from engine.gradient.jacobians import hessian, hessian_vector_product, jacobian

__all__ = [
    "Lop",
    "Rop",
    "connections",
    "grad",
    "hessian",
    "hessian_vector_product",
    "jacobian",
    "pull_back",
    "pullback",
    "push_forward",
    "pushforward",
]


_LATER = dict.fromkeys(["Rop", "push_forward", "pushforward"], "engine.gradient.forward") | dict.fromkeys(
    ["hessian", "hessian_vector_product", "jacobian"], "engine.gradient.jacobians"
)
"""Public names that few models use, by their modules. Jacobians are loops, which import `grad`."""


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_LATER[name]), name)
