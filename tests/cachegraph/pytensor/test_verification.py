"""The mode verify rewrites what was found anew: a wrong entry is caught, replaced, and does not give a wrong result."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest

from cachegraph.cache import Artifact, default_cache
from cachegraph.pytensor import explain

VALUES = np.array([1.0, 2.0])


def make(factor: float) -> Any:
    from pytensor.compile.builders import OpFromGraph

    x = pt.vector("x")
    count = pytensor.shared(np.float64(1.0))
    inner = OpFromGraph([x], [pt.exp(x).sum()], pullback=lambda i, o, g: [g[0] * i[0]])
    return pytensor.function([x], inner(x) * factor + count, updates={count: count + 1})


@pytest.fixture
def verifying(adapter: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CACHEGRAPH_MODE", "verify")
    monkeypatch.setenv("CACHEGRAPH_VERIFY_RATE", "1")


def test_a_right_entry_is_a_hit(verifying: None, caplog: pytest.LogCaptureFixture) -> None:
    make(2.0)
    found = make(2.0)
    assert explain(found).outcome == "hit"
    assert found(VALUES) == np.exp(VALUES).sum() * 2.0 + 1.0
    assert not caplog.records


def test_a_wrong_entry_is_replaced(verifying: None, caplog: pytest.LogCaptureFixture) -> None:
    right, wrong = make(2.0), make(3.0)
    key = right.maker._stored.key
    assert default_cache().store(key, Artifact(wrong.maker._stored.content, seconds={"rewrite": 1.0}))
    found = make(2.0)
    assert (explain(found).outcome, explain(found).reason) == ("miss", "mismatch")
    assert "is not what building it gives" in caplog.text
    assert found(VALUES) == np.exp(VALUES).sum() * 2.0 + 1.0
    again = make(2.0)
    assert explain(again).outcome == "hit"
    assert again(VALUES) == found(VALUES) - 1.0
