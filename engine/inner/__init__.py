"""Ops that hold a graph."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from engine.inner.base import HasInnerGraph
    from engine.inner.composite import Composite, ScalarLoop
    from engine.inner.from_graph import OpFromGraph, SymbolicOp
    from engine.inner.scan import Scan
    from engine.inner.scan_info import ScanInfo

__all__ = [
    "Composite",
    "HasInnerGraph",
    "OpFromGraph",
    "ScalarLoop",
    "Scan",
    "ScanInfo",
    "SymbolicOp",
]

_PLACES = {
    "Composite": "composite",
    "HasInnerGraph": "base",
    "OpFromGraph": "from_graph",
    "ScalarLoop": "composite",
    "Scan": "scan",
    "ScanInfo": "scan_info",
    "SymbolicOp": "from_graph",
}
"""Public names by the module that has them, which a model that uses none of them does not import."""


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)
