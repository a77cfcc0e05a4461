"""Tests of graphs, types and printing that differ for a reason."""

from __future__ import annotations

from pytensor_tests.explained import ExplainedDifference

INTERNAL: tuple[ExplainedDifference, ...] = ()

EXPLAINED: tuple[ExplainedDifference, ...] = ()
