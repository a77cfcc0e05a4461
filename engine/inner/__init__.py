"""Ops that hold a graph."""

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
