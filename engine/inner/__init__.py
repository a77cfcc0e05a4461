"""Ops that hold a graph."""

from engine.inner.base import HasInnerGraph
from engine.inner.composite import Composite
from engine.inner.from_graph import OpFromGraph
from engine.inner.scalar_loop import ScalarLoop
from engine.inner.scan import Scan
from engine.inner.scan_info import ScanInfo
from engine.inner.symbolic import SymbolicOp

__all__ = [
    "Composite",
    "HasInnerGraph",
    "OpFromGraph",
    "ScalarLoop",
    "Scan",
    "ScanInfo",
    "SymbolicOp",
]
