"""Ops that hold a graph."""

from engine.inner.base import HasInnerGraph
from engine.inner.composite import Composite
from engine.inner.statements import Argument, ScalarBody, Statement, scalar_statements

__all__ = ["Argument", "Composite", "HasInnerGraph", "ScalarBody", "Statement", "scalar_statements"]
