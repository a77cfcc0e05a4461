"""The plain values of rewriters: two rewriters that may do different things have different ones."""

from __future__ import annotations

import marshal
from typing import Any

import pytensor.scalar as ps
import pytensor.tensor as pt
import pytest
from pytensor.compile.mode import optdb
from pytensor.graph.rewriting.basic import (
    EquilibriumGraphRewriter,
    FromFunctionNodeRewriter,
    PatternNodeRewriter,
    SequentialNodeRewriter,
    WalkingGraphRewriter,
    in2out,
    node_rewriter,
)
from pytensor.tensor.elemwise import Elemwise
from pytensor.tensor.rewriting import math

from cachegraph.errors import Unfingerprintable
from cachegraph.pytensor.describe import rewriters
from cachegraph.pytensor.describe.graphs import encoding_context
from tests.cachegraph.pytensor.describing import key_of


def written(rewriter: Any) -> bytes:
    """Return what a fresh process would write."""
    rewriters._known.clear()
    return marshal.dumps(rewriters.PlainRewriters(encoding_context()).plain(rewriter), 2)


@node_rewriter([Elemwise])
def local_nothing(fgraph: Any, node: Any) -> Any:
    """Do nothing."""
    return None


def pattern(out: Any, **options: Any) -> PatternNodeRewriter:
    return PatternNodeRewriter((pt.log, (pt.exp, "x")), out, **options)


def test_each_part_of_a_rewriter_counts() -> None:
    class Inplace(Elemwise):
        pass

    found = [
        pattern("x"),
        pattern((pt.exp, "x")),
        pattern((pt.exp, 1)),
        pattern((pt.exp, 1.0)),
        pattern((pt.exp, -0.0)),
        pattern((pt.exp, 0.0)),
        pattern((Elemwise(ps.exp, {0: 0}), "x")),
        pattern((Inplace(ps.exp), "x")),
        pattern("x", allow_multiple_clients=True),
        pattern("x", get_nodes=lambda fgraph, node: []),
        pattern("x", get_nodes=lambda fgraph, node: [node]),
        local_nothing,
        math.local_exp_log,
        math.local_sumsqr2dot,
        in2out(math.local_exp_log),
        in2out(math.local_exp_log, ignore_newtrees=True),
        WalkingGraphRewriter(math.local_exp_log, order="out_to_in"),
        SequentialNodeRewriter(math.local_exp_log),
        SequentialNodeRewriter(math.local_exp_log, math.local_sumsqr2dot),
        SequentialNodeRewriter(math.local_sumsqr2dot, math.local_exp_log),
        EquilibriumGraphRewriter([math.local_exp_log], max_use_ratio=10),
        EquilibriumGraphRewriter([math.local_exp_log], max_use_ratio=10.0),
        EquilibriumGraphRewriter([math.local_exp_log], max_use_ratio=True),
    ]
    first: dict[bytes, int] = {}
    for number, rewriter in enumerate(found):
        assert first.setdefault(written(rewriter), number) == number
    assert [written(rewriter) for rewriter in found] == [written(rewriter) for rewriter in found]
    assert written(pattern((pt.exp, "x"))) == written(pattern((pt.exp, "x")))


def test_a_name_stands_only_for_the_rewriter_that_the_module_holds_under_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    own = math.local_exp_log
    by_name = written(own)
    same_function = FromFunctionNodeRewriter(own.fn, own.tracks())
    assert written(same_function) != by_name
    monkeypatch.setattr(math, "local_exp_log", same_function)
    assert written(own) != by_name
    monkeypatch.undo()
    monkeypatch.setattr(own, "fn", local_nothing.fn)
    assert written(own) not in (by_name, written(local_nothing))


def test_a_rewriter_in_the_place_of_pytensors_changes_the_key() -> None:
    x = pt.vector("x")
    database = optdb["stabilize"]
    name = next(n for n in sorted(database._names) if type(database[n]) is PatternNodeRewriter)
    items = database.__db__[name]
    (own,) = items
    before = key_of([x], x + 1)
    another = PatternNodeRewriter((pt.log, (pt.exp, "x")), "x", name=name)
    items.remove(own)
    items.add(another)
    try:
        assert key_of([x], x + 1) != before
    finally:
        items.remove(another)
        items.add(own)
    assert key_of([x], x + 1) == before


def test_a_rewriter_that_contains_itself_is_refused() -> None:
    endless = SequentialNodeRewriter(math.local_exp_log)
    endless.rewrites = (endless,)
    with pytest.raises(Unfingerprintable, match="contains itself"):
        written(endless)


def test_code_of_others_is_counted_and_read_again() -> None:
    context = encoding_context()
    plain = rewriters.PlainRewriters(context)
    plain.plain(in2out(math.local_exp_log))
    assert (context.code, context.foreign, context.rewriters) == (0, 0, [])
    rewriter = in2out(local_nothing)
    plain.plain(rewriter)
    assert context.code > 0
    assert context.foreign > 0
    assert context.rewriters == [rewriter]
    assert rewriter not in rewriters._known
