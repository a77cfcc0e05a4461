"""The key contains what decides how a graph is compiled: mode, rewrites, registrations, flags, code."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.assumptions import core
from pytensor.compile.builders import OpFromGraph
from pytensor.compile.mode import Mode, get_mode, optdb
from pytensor.configdefaults import config
from pytensor.configparser import IntParam
from pytensor.graph.rewriting.basic import (
    FromFunctionNodeRewriter,
    PatternNodeRewriter,
    in2out,
    node_rewriter,
)
from pytensor.graph.rewriting.db import RewriteDatabaseQuery
from pytensor.link.numba.linker import NumbaLinker
from pytensor.tensor.elemwise import Elemwise
from pytensor.tensor.extra_ops import CumOp

from cachegraph.errors import Unfingerprintable
from cachegraph.pytensor.describe.flags import IN_KEY
from cachegraph.pytensor.describe.key import describe_inner
from tests.cachegraph.pytensor.describing import described, key_of, registered_rewrite

ROOT = Path(__file__).parents[3]
x = pt.vector("x")
OTHERS = {
    "floatX": "float32", "cast_policy": "numpy+floatX", "cycle_detection": "fast", "on_opt_error": "raise",
    "on_shape_error": "raise", "optdb__max_use_ratio": 5.0, "optdb__position_cutoff": 49.0,
    "tensor__insert_inplace_optimizer_validate_nb": 3, "tensor__cmp_sloppy": 1, "scan__allow_gc": True,
    "scan__allow_output_prealloc": False, "cxx": "", "lib__amdlibm": True, "numba__fastmath": False, "warn_float64": "warn",
    "mode": "NUMBA", "linker": "numba", "optimizer": "fast_compile", "optimizer_excluding": "fusion",
    "optimizer_including": "fusion", "optimizer_requiring": "fusion",
}  # fmt: skip


def registered(factor: str, hash_seed: str = "0") -> dict[str, str]:
    done = subprocess.run(
        [sys.executable, "-m", "tests.cachegraph.pytensor.registering_process", factor],
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict[str, str] = json.loads(done.stdout)
    return found


def test_whatever_is_registered_is_noticed_and_its_code_is_in_the_key() -> None:
    keys = registered("2")
    assert keys["numba's dispatch loaded"] == keys["an assumption"]
    assert keys["a package loaded"] == keys["a rewrite of the name of PyTensor's own"]
    assert len(set(keys.values())) == len(keys) - 2
    assert registered("2", "17") == keys
    edited = registered("3")
    assert [name for name in keys if keys[name] == edited[name]] == ["nothing"]


def test_a_mode_is_what_it_asks_for_and_not_an_object() -> None:
    query = {"include": ["fast_run", "numba"], "exclude": ["inplace"]}
    first, second = (Mode(NumbaLinker(), RewriteDatabaseQuery(**query)) for _ in range(2))
    assert key_of([x], x + 1, mode=first) == key_of([x], x + 1, mode=second)


def test_each_part_of_a_query_is_in_the_key() -> None:
    def asking(**how: Any) -> str:
        return key_of(
            [x], x + 1, mode=Mode(NumbaLinker(), RewriteDatabaseQuery(**{"include": ["fast_run"], **how}))
        )

    @node_rewriter([Elemwise])
    def local_extra(fgraph: Any, node: Any) -> Any:
        return None

    keys = {
        asking(),
        asking(include=["fast_run", "fast_compile"]),
        asking(exclude=["fusion"]),
        asking(require=["inplace"]),
        asking(position_cutoff=2.0),
        asking(subquery={"canonicalize": RewriteDatabaseQuery(include=["merge"])}),
        asking(extra_rewrites=[(local_extra, 1.5)]),
        asking(extra_rewrites=[(local_extra, 2.5)]),
        key_of([x], x + 1, mode=get_mode("NUMBA").including("shape_unsafe")),
    }
    assert len(keys) == 9


def test_another_kind_of_mode_or_linker_is_refused() -> None:
    class OwnMode(Mode):
        pass

    class OwnLinker(NumbaLinker):
        pass

    scheduled = NumbaLinker()
    scheduled._scheduler = list
    for mode in (OwnMode("numba"), Mode(OwnLinker(), "fast_run"), Mode(scheduled, "fast_run")):
        with pytest.raises(Unfingerprintable, match="only"):
            described([x], x + 1, mode=mode)


def test_the_values_to_try_are_those_of_all_flags() -> None:
    assert OTHERS.keys() == IN_KEY.keys()


@pytest.mark.parametrize("flag", sorted(OTHERS))
def test_a_flag_that_decides_is_in_the_key(flag: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = key_of([x], x + 1)
    # As the environment would: some flags must not be changed later.
    monkeypatch.setattr(config._config_var_dict[flag], "val", OTHERS[flag])
    assert key_of([x], x + 1) != plain


def test_a_flag_that_decides_nothing_is_not_in_the_key() -> None:
    plain = key_of([x], x + 1)
    with config.change_flags(
        compiler_verbose=True, exception_verbosity="high", on_unused_input="ignore", allow_gc=False
    ):
        assert key_of([x], x + 1) == plain


def test_a_flag_that_nobody_declared_is_in_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """A later release of PyTensor may have one."""
    plain = key_of([x], x + 1)
    monkeypatch.setitem(config._config_var_dict, "unheard_of", IntParam(1))
    monkeypatch.setattr(type(config), "unheard_of", 1, raising=False)
    one = key_of([x], x + 1)
    monkeypatch.setattr(type(config), "unheard_of", 2)
    assert len({plain, one, key_of([x], x + 1)}) == 3
    monkeypatch.setattr(type(config), "unheard_of", object())
    with pytest.raises(Unfingerprintable, match="object"):
        described([x], x + 1)


def test_where_others_may_teach_what_nobody_reads_nothing_is_described(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(core, "SHAPE_INFER_REGISTRY", {}, raising=False)
    with pytest.raises(Unfingerprintable, match="SHAPE_INFER_REGISTRY"):
        described([x], x + 1)


def test_nothing_is_described_where_numba_must_not_compile(monkeypatch: pytest.MonkeyPatch) -> None:
    numba = pytest.importorskip("numba")
    monkeypatch.setattr(numba.core.config, "DISABLE_JIT", 1)
    with pytest.raises(Unfingerprintable, match="NUMBA_DISABLE_JIT"):
        described([x], x + 1)


def test_compiling_changes_no_key() -> None:
    from tests.cachegraph.pytensor.models import MODELS

    for name, make in MODELS.items():
        inputs, outputs = make()
        before = key_of(inputs, outputs)
        pytensor.function(inputs, outputs, mode="NUMBA", on_unused_input="ignore")
        assert key_of(inputs, outputs) == before, name
        assert key_of(*make()) == before, name


def test_an_inner_graph_is_its_op_and_the_types_that_it_is_given() -> None:
    from pytensor.compile.builders import OpFromGraph

    mode = get_mode("NUMBA")
    op = OpFromGraph([x], [pt.exp(x) * 2])
    another = OpFromGraph([x], [pt.exp(x) * 3])
    plain = describe_inner(op, op(x).owner, mode).key
    assert plain.level == "op"
    assert describe_inner(OpFromGraph([x], [pt.exp(x) * 2]), op(pt.vector("y")).owner, mode).key == plain
    assert describe_inner(another, another(x).owner, mode).key != plain
    assert describe_inner(op, op(pt.vector("y", shape=(3,))).owner, mode).key != plain
    assert describe_inner(op, op(x).owner, mode.excluding("inplace")).key != plain


def test_values_are_no_part_of_the_key_of_a_function_of_shared_variables() -> None:
    first, second = (pytensor.shared(np.full(n, 1.0)) for n in (3, 4))
    assert key_of([], first * 2) == key_of([], second * 2)


@node_rewriter([Elemwise])
def by_what_is_noted(fgraph: Any, node: Any) -> Any:
    """A rewrite that reads names and tags."""
    noted = node.inputs[0].name == "beta" or hasattr(node.tag, "mine")
    return [pt.log1p(node.inputs[0])] if noted else None


def noted_keys(mode: Any) -> list[str]:
    """Return the keys of graphs that differ only in a name, or in a user tag."""
    first, second, third, named = (
        pt.vector("alpha"),
        pt.vector("beta"),
        pt.vector("alpha"),
        pt.vector("alpha"),
    )
    graphs = [([v], pt.exp(v)) for v in (first, second, third, named)]
    graphs[2][1].owner.tag.mine = True
    graphs[3][1].name = "rate"
    graphs += [([x], OpFromGraph([x], [x + 1], name=name)(x)) for name in ("layer", "other")]
    constants = [pt.constant(np.ones(3), name=name) for name in ("weights", "others")]
    graphs += [([x], x + constant) for constant in constants]
    return [key_of(inputs, output, mode=mode) for inputs, output in graphs]


def test_names_and_tags_of_ones_own_are_in_the_key_where_a_rewrite_of_ones_own_may_read_them() -> None:
    plain = noted_keys("NUMBA")
    assert len(set(plain)) == 3
    mode = get_mode("NUMBA").register((in2out(by_what_is_noted), 1.5))
    assert len(set(noted_keys(mode))) == len(plain)
    assert noted_keys(mode) == noted_keys(mode)


def test_the_names_of_ops_are_in_the_keys_of_inner_graphs_where_a_rewrite_of_ones_own_may_read_them() -> None:
    ops = [OpFromGraph([x], [OpFromGraph([x], [x + 1], name=name)(x)]) for name in ("layer", "other")]
    mode = get_mode("NUMBA").register((in2out(by_what_is_noted), 1.5))
    assert len({describe_inner(op, op(x).owner, get_mode("NUMBA")).key.hex for op in ops}) == 1
    # PyTensor takes two such Ops within Ops for one, and with them their names.
    ops = [OpFromGraph([x], [x + 1], name=name) for name in ("layer", "other")]
    assert len({describe_inner(op, op(x).owner, mode).key.hex for op in ops}) == 2


def scaled(factor: float, op: Any, **kwargs: Any) -> Any:
    """An implementation of an Op for numba."""
    return lambda value: value * factor


def test_an_implementation_that_is_a_partial_is_in_the_key() -> None:
    from pytensor.link.numba.dispatch.basic import numba_funcify

    before = numba_funcify.dispatch(CumOp)
    keys = [key_of([x], pt.cumsum(x))]
    try:
        for factor in (2.0, 3.0):
            numba_funcify.register(CumOp, partial(scaled, factor))
            keys.append(key_of([x], pt.cumsum(x)))
    finally:
        numba_funcify.register(CumOp, before)
    assert len(set(keys)) == 3
    assert key_of([x], pt.cumsum(x)) == keys[0]


def test_how_a_database_runs_its_rewrites_is_in_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = key_of([x], x + 1)
    monkeypatch.setattr(optdb["canonicalize"], "ignore_newtrees", True)
    assert key_of([x], x + 1) != plain


def test_a_rewrite_counts_if_a_part_of_it_does_not_need_ops_that_the_graph_lacks() -> None:
    import pytensor.sparse as sparse
    from pytensor.sparse import rewriting

    late = next(r for r in vars(rewriting).values() if isinstance(r, FromFunctionNodeRewriter))
    to_sparse = PatternNodeRewriter((pt.exp, "x"), (sparse.dense_from_sparse, (sparse.csr_from_dense, "x")))
    to_dense = PatternNodeRewriter((sparse.dense_from_sparse, (sparse.csr_from_dense, "x")), "x")
    keys = [key_of([x], x + 1)]
    for rewriter in (in2out(late), in2out(to_dense), in2out(by_what_is_noted, late), in2out(to_sparse)):
        with registered_rewrite("of a test", rewriter):
            keys.append(key_of([x], x + 1))
    assert keys[0] == keys[1] == keys[2]
    assert len(set(keys)) == 3


def test_what_a_tag_selects_counts_without_a_name() -> None:
    plain = key_of([x], x + 1)
    held = optdb["canonicalize"].__db__["fast_run"]
    rewriter = in2out(by_what_is_noted)
    held.add(rewriter)
    try:
        assert key_of([x], x + 1) != plain
    finally:
        held.discard(rewriter)
    assert key_of([x], x + 1) == plain


def test_the_order_of_registration_counts_in_which_pytensor_applies_rewrites() -> None:
    plain = key_of([x], x + 1)
    held = optdb["canonicalize"].__db__["fast_run"]
    first = next(iter(held))
    before = list(held)
    held.discard(first)
    held.add(first)
    try:
        assert set(held) == set(before)
        assert key_of([x], x + 1) != plain
    finally:
        held.clear()
        held.update(before)
    assert key_of([x], x + 1) == plain
