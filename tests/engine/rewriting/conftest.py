"""Shared fixtures of rewrites' tests: rewriting by name, and comparison with the reference."""

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from engine.graph import FunctionGraph, Variable
from engine.graph.reference import evaluate
from engine.rewriting import DEFAULT_QUERY, RewriteDatabaseQuery, run_pipeline
from engine.tensor import Elemwise

TOLERANCE = {"float64": 1e-12, "float32": 1e-5}


class Rewritten:
    """A rewritten graph: its Ops, the applications of each rewrite, its values."""

    def __init__(
        self, inputs: Sequence[Variable], outputs: Sequence[Variable], query: RewriteDatabaseQuery
    ) -> None:
        self.inputs, self.outputs = inputs, outputs
        self.fgraph = FunctionGraph(inputs, outputs)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            self.applied = run_pipeline(self.fgraph, query).applied
        self.fgraph.check_integrity()
        for old, new in zip(outputs, self.fgraph.outputs, strict=True):
            assert old.type.is_super(new.type), f"{old.type} became {new.type}"

    @property
    def ops(self) -> list[str]:
        """The Ops in order of execution, elementwise ones by the name of their scalar Op."""
        return [
            n.op.scalar_op.name if isinstance(n.op, Elemwise) else str(n.op) for n in self.fgraph.toposort()
        ]

    def evaluate(self, *values: Any) -> np.ndarray:
        """Return the first output after rewriting, by the reference."""
        return evaluate(self.fgraph.inputs, self.fgraph.outputs, list(values))[0]

    def check_values(self, *values: Any, exact: bool = False) -> "Rewritten":
        """Compare with the reference on the original graph; `exact`: bit for bit, except NaNs."""
        before = evaluate(self.inputs, self.outputs, list(values))
        after = evaluate(self.fgraph.inputs, self.fgraph.outputs, list(values))
        for old, new in zip(before, after, strict=True):
            assert old.dtype == new.dtype
            assert old.shape == new.shape
            if exact:
                np.testing.assert_array_equal(old, new)
                np.testing.assert_array_equal(
                    np.signbit(old) & ~np.isnan(old), np.signbit(new) & ~np.isnan(new)
                )
            else:
                np.testing.assert_allclose(new, old, rtol=TOLERANCE.get(old.dtype.name, 0))
        return self


def rewritten(inputs: Any, outputs: Any, *, query: RewriteDatabaseQuery | None = None) -> Rewritten:
    inputs = [inputs] if isinstance(inputs, Variable) else inputs
    outputs = [outputs] if isinstance(outputs, Variable) else outputs
    return Rewritten(inputs, outputs, query or DEFAULT_QUERY.excluding("fusion", "local_second_to_alloc"))


@pytest.fixture(name="rewritten")
def rewritten_fixture():
    """Return a function that rewrites a graph, without fusion and what follows it unless a query says so."""
    return rewritten


@pytest.fixture(params=["float64", "float32"])
def dtype(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def special(dtype: str) -> np.ndarray:
    """Return numbers of all kinds: signed zeros, subnormal and huge ones, infinities, NaN."""
    info = np.finfo(dtype)
    values = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, info.smallest_subnormal, info.tiny, info.max, -info.max]
    return np.array([*values, np.inf, -np.inf, np.nan], dtype)
