"""Ops that hold a graph."""

from engine.inner.base import HasInnerGraph
from engine.inner.composite import Composite
from engine.inner.from_graph import OpFromGraph
from engine.inner.statements import Argument, ScalarBody, Statement, scalar_statements

__all__ = [
    "Argument",
    "Composite",
    "HasInnerGraph",
    "OpFromGraph",
    "ScalarBody",
    "Statement",
    "scalar_statements",
]
