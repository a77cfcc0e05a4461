"""Derivatives under PyTensor's names: gradients, Jacobian products, Jacobians and Hessians."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from engine.errors import DisconnectedInputError, GradientError
from engine.errors import NullGradientError as NullTypeGradError
from engine.gradient.backpropagation import pull_back
from engine.gradient.reverse import Lop, grad, pullback
from engine.graph.connections import io_connection_pattern as connections

if TYPE_CHECKING:
    from engine.gradient.forward import Rop, push_forward, pushforward
    from engine.gradient.gradient_check import numeric_grad, verify_grad
    from engine.gradient.jacobians import hessian, hessian_vector_product, jacobian
    from engine.gradient.subgraphs import subgraph_grad
    from engine.graph.absent_gradients import (
        DisconnectedType,
        disconnected_type,
        grad_not_implemented,
        grad_undefined,
    )
    from engine.tensor.gradient_control import (
        DisconnectedGrad,
        GradClip,
        GradScale,
        UndefinedGrad,
        ZeroGrad,
        disconnected_grad,
        disconnected_grad_,
        grad_clip,
        grad_scale,
        undefined_grad,
        undefined_grad_,
        zero_grad,
        zero_grad_,
    )

__all__ = [
    "DisconnectedGrad",
    "DisconnectedInputError",
    "DisconnectedType",
    "GradClip",
    "GradScale",
    "GradientError",
    "Lop",
    "NullTypeGradError",
    "Rop",
    "UndefinedGrad",
    "ZeroGrad",
    "connections",
    "disconnected_grad",
    "disconnected_grad_",
    "disconnected_type",
    "grad",
    "grad_clip",
    "grad_not_implemented",
    "grad_scale",
    "grad_undefined",
    "hessian",
    "hessian_vector_product",
    "jacobian",
    "numeric_grad",
    "pull_back",
    "pullback",
    "push_forward",
    "pushforward",
    "subgraph_grad",
    "undefined_grad",
    "undefined_grad_",
    "verify_grad",
    "zero_grad",
    "zero_grad_",
]


_NAMES = {
    "engine.graph.absent_gradients": "DisconnectedType disconnected_type grad_not_implemented grad_undefined",
    "engine.gradient.forward": "Rop push_forward pushforward",
    "engine.gradient.gradient_check": "numeric_grad verify_grad",
    "engine.gradient.jacobians": "hessian hessian_vector_product jacobian",
    "engine.gradient.subgraphs": "subgraph_grad",
    "engine.tensor.gradient_control": (
        "DisconnectedGrad GradClip GradScale UndefinedGrad ZeroGrad disconnected_grad disconnected_grad_ "
        "grad_clip grad_scale undefined_grad undefined_grad_ zero_grad zero_grad_"
    ),
}
_LATER = {name: module for module, names in _NAMES.items() for name in names.split()}
"""Public names that few models use, by their modules. Jacobians are loops, which import `grad`."""


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_LATER[name]), name)
