"""Ops that hold a graph."""

from engine.inner.base import HasInnerGraph
from engine.inner.composite import Composite
from engine.inner.from_graph import OpFromGraph
from engine.inner.scalar_loop import ScalarLoop
from engine.inner.scan import Scan
from engine.inner.scan_info import ScanInfo
from engine.inner.statements import Argument, ScalarBody, Statement, scalar_statements
from engine.inner.symbolic import SymbolicOp

__all__ = [
    "Argument",
    "Composite",
    "HasInnerGraph",
    "OpFromGraph",
    "ScalarBody",
    "ScalarLoop",
    "Scan",
    "ScanInfo",
    "Statement",
    "SymbolicOp",
    "scalar_statements",
]
