"""Users' Ops from one process to the next: a hit as long as their code, and all that it reads, is the
same.
"""

from __future__ import annotations

import functools
import gc
import json
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import engine
import engine.tensor as pt
from cachegraph import pickling
from cachegraph.cache import Artifact, default_cache
from cachegraph.caching.counters import Tally
from cachegraph.key import CacheKey
from cachegraph.store.entry import Hit
from engine.compiling.key import function_key, op_key
from engine.compiling.mode import get_mode
from engine.compiling.surroundings import describe_rewrites
from engine.graph import Apply, FrozenFunctionGraph, Op
from engine.runtime.program import CallbackUse, Program, pack_program, unpack_program
from engine.scalar import ScalarOp
from engine.scalar.promotion import floating
from engine.tensor.elemwise import Elemwise
from engine.tensor.optimize import minimize

ROOT = Path(__file__).parents[2]

MODULES = {
    "steady": '''
import engine.tensor as pt
from engine.graph import Apply, Op


class Elementwise(Op):
    """What the others are built on."""

    __props__ = ()

    def make_node(self, x):
        x = pt.as_tensor_variable(x)
        return Apply(self, [x], [x.type.make_variable()])

    def perform(self, node, inputs, output_storage):
        output_storage[0][0] = self.value(inputs[0])

    def infer_shape(self, fgraph, node, input_shapes):
        return input_shapes


class Steady(Elementwise):
    def value(self, x):
        return x + 100
''',
    "body": """
from steady import Elementwise


class Body(Elementwise):
    def value(self, x):
        return x * 2
""",
    "helper": """
def twice(x):
    return x * 2
""",
    "calls": """
import helper
from steady import Elementwise


class Calls(Elementwise):
    def value(self, x):
        return helper.twice(x)
""",
    "props": """
from steady import Elementwise


class Applied(Elementwise):
    __props__ = ("function",)

    def __init__(self, function):
        self.function = function

    def value(self, x):
        return self.function(x)


applied = Applied(lambda x: x * 2)
""",
    "closures": """
import engine
import engine.tensor as pt


def times(factor):
    @engine.wrap_py(itypes=pt.dvector, otypes=[pt.dvector])
    def scaled(x):
        return x * factor

    return scaled


closed = times(2)


@engine.wrap_py(itypes=[pt.dvector, pt.dvector], otypes=pt.dvector)
def product(x, y):
    return x * y

""",
    "scalars": """
from engine.scalar import ScalarOp
from engine.scalar.promotion import floating
from engine.tensor.elemwise import Elemwise


class Number(ScalarOp):
    rule = staticmethod(floating)

    def _impl(self, a):
        return a * 2


number = Elemwise(Number())
""",
}

EDITS = {
    "body": ("x * 2", "x * 3"),
    "helper": ("x * 2", "x * 3"),
    "props": ("lambda x: x * 2", "lambda x: x * 3"),
    "closures": ("times(2)", "times(3)"),
    "scalars": ("a * 2", "a * 3"),
}
EDITED = ("body", "calls", "props", "closures", "scalars", "in a loop", "in a graph")

PROGRAM = """
import json, logging, sys
import numpy as np
import engine, engine.tensor as pt
import body, calls, closures, props, scalars, steady



class Here(steady.Elementwise):
    def value(self, x):
        log.debug("shown %s", x)
        return x * 2


log = logging.getLogger(__name__)
x = pt.vector("x")
inner = pt.vector("inner")
layer = engine.OpFromGraph([inner], [pt.exp(body.Body()(inner))])
rows = engine.scan(lambda s: body.Body()(s), outputs_info=[x], n_steps=2, return_updates=False)
functions = {
    "steady": steady.Steady()(x),
    "body": body.Body()(x),
    "calls": calls.Calls()(x),
    "props": props.applied(x),
    "closures": closures.closed(x),
    "scalars": scalars.number(x),
    "in the program": Here()(x),
    "in a loop": rows[-1],
    "in a graph": pt.log(layer(x) * layer(x)),
}
found = {}
for name, output in functions.items():
    f = engine.function([x], pt.exp(output))
    info = f.cache_info
    found[name] = [info.outcome, info.reason, np.log(f([1.0, 2.0])).tolist(), info.compilations, info.rewrites]
print(json.dumps({"functions": found, "modules": [m for m in ("numba", "cloudpickle") if m in sys.modules]}))
"""


def write(directory: Path, edits: dict[str, tuple[str, str]], before: str = "") -> None:
    """Write the modules and the program, the text `before` in front of every line that defines something."""
    directory.mkdir(exist_ok=True)
    for name, source in MODULES.items():
        old, new = edits.get(name, ("", ""))
        assert old in source
        text = source.replace(old, new) if old else source
        for start in ("class ", "def ", "import "):
            text = text.replace(f"\n{start}", f"\n{before}{start}")
        (directory / f"{name}.py").write_text(text)
    (directory / "program.py").write_text(PROGRAM)


def run(directory: Path) -> dict[str, Any]:
    """What the program says, run in a process of its own."""
    found: dict[str, Any] = json.loads(run_program(directory, "program.py"))
    return found


def run_program(directory: Path, *command: str) -> bytes:
    done = subprocess.run(
        [sys.executable, *command],
        env=os.environ | {"PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"},
        cwd=directory,
        stdout=subprocess.PIPE,
        check=True,
    )
    return done.stdout


def due(name: str, factor: float) -> list[float]:
    x = np.array([1.0, 2.0])
    powers = {"steady": x + 100, "in a loop": x * factor**2, "in a graph": 2 * factor * x}
    return powers.get(name, x * factor).tolist()


@pytest.mark.slow
def test_an_edited_op_is_a_miss_with_the_new_result_and_one_that_is_the_same_is_a_hit(tmp_path: Path) -> None:
    write(tmp_path / "first", {})
    for name, (outcome, _, value, _, _) in run(tmp_path / "first")["functions"].items():
        assert outcome == "miss", name
        assert value == pytest.approx(due(name, 2)), name

    # Comments, other lines and another directory are nothing.
    write(tmp_path / "moved", {}, before="# a comment\n\n")
    found = run(tmp_path / "moved")
    assert found["modules"] == []
    for name, (outcome, reason, value, compiled, rewritten) in found["functions"].items():
        assert (outcome, reason, compiled, rewritten) == ("hit", "", 0, 0), name
        assert value == pytest.approx(due(name, 2)), name

    write(tmp_path / "first", EDITS)
    for name, (outcome, _, value, _, _) in run(tmp_path / "first")["functions"].items():
        assert outcome == ("miss" if name in EDITED else "hit"), name
        assert value == pytest.approx(due(name, 3 if name in EDITED else 2)), name


# Functions that are sent to other processes

SEND = """
import pickle, sys
import cloudpickle
import numpy as np
import engine, engine.tensor as pt
import body, closures, helper, scalars
from steady import Elementwise

x = pt.vector("x")


class Main(Elementwise):
    def value(self, x):
        return helper.twice(x) + factor


factor = 1.0
outputs = {
    "body": body.Body()(x),
    "closures": closures.product(x, [2.0, 2.0]),
    "scalars": scalars.number(x),
    "main": Main()(x),
    "main closure": closures.times(4)(x),
}
sent = {}
for name, output in outputs.items():
    f = engine.function([x], output + 1)
    sent[name] = (cloudpickle if name.startswith("main") else pickle).dumps(f)
with open(sys.argv[1], "wb") as file:
    pickle.dump(sent, file)
"""

RECEIVE = """
import json, pickle, sys

with open(sys.argv[1], "rb") as file:
    sent = pickle.load(file)
found = {}
for name, content in sent.items():
    f = pickle.loads(content)
    try:
        value = f([1.0, 2.0]).tolist()
        f.maker.fgraph.toposort()
        found[name] = [f.cache_info.outcome, value, f.cache_info.compilations]
    except Exception as error:
        found[name] = [type(error).__name__, str(error), 0]
print(json.dumps(found))
"""


@pytest.mark.slow
def test_a_function_that_is_sent_runs_with_its_ops_elsewhere_unless_their_code_is_another_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, {})
    (tmp_path / "send.py").write_text(SEND)
    (tmp_path / "receive.py").write_text(RECEIVE)
    sent = str(tmp_path / "sent")
    run_program(tmp_path, "send.py", sent)

    due = {"body": [3.0, 5.0], "closures": [3.0, 5.0], "scalars": [3.0, 5.0]}
    due |= {"main": [4.0, 6.0], "main closure": [5.0, 9.0]}
    found = json.loads(run_program(tmp_path, "receive.py", sent))
    assert found == {name: ["hit", value, 0] for name, value in due.items()}

    monkeypatch.setenv("CACHEGRAPH_DIR", str(tmp_path / "another cache"))
    found = json.loads(run_program(tmp_path, "receive.py", sent))
    assert found == {name: ["carried", value, 0] for name, value in due.items()}

    write(tmp_path, {name: EDITS[name] for name in ("body", "helper", "scalars")})
    found = json.loads(run_program(tmp_path, "receive.py", sent))
    assert found["closures"] == ["carried", due["closures"], 0]
    assert found["main closure"] == ["carried", due["main closure"], 0]
    for name in ("body", "scalars", "main"):
        assert found[name][0] == "FunctionLoadError", name
        assert "another here" in found[name][1]


# Graphs within graphs


class Doubled(Op):
    """Twice what it is given."""

    __props__ = ()
    itypes = (pt.dvector,)
    otypes = (pt.dvector,)

    def perform(self, node: Apply, inputs: Any, output_storage: Any) -> None:
        output_storage[0][0] = inputs[0] * 2


class Negated(ScalarOp):
    rule = staticmethod(floating)

    def _impl(self, a: Any) -> Any:
        return -a


def layered(factor: float) -> tuple[list[Any], Any]:
    x, inner = pt.vector("x"), pt.vector("inner")
    layer = engine.OpFromGraph([inner], [pt.exp(Doubled()(inner) * 1 * 2 - inner)])
    return [x], pt.log(layer(x)) * factor


def test_the_optimized_form_of_a_graph_with_a_users_op_is_found_for_another_function() -> None:
    for factor, found in ((5.0, [0, 1]), (7.0, [1, 0])):
        inputs, output = layered(factor)
        f = engine.function(inputs, output)
        assert (f.cache_info.outcome, f.cache_info.found["op"]) == ("miss", found)
        np.testing.assert_allclose(f([1.0, 2.0]), np.array([3.0, 6.0]) * factor)
        assert [node.op for node in f.maker.fgraph.toposort() if isinstance(node.op, Doubled)] in (
            [],
            [Doubled()],
        )


def test_what_is_stored_holds_no_users_class_and_its_graph_can_be_looked_at() -> None:
    inputs, output = layered(3.0)
    shown = engine.dprint(engine.function(inputs, output), file="str")
    gc.collect()
    f = engine.function(inputs, output)
    assert f.cache_info.outcome == "hit"
    assert engine.dprint(f, file="str") == shown
    assert f.cache_info.rewrites == 0
    key = key_of(inputs, [output])
    entry = default_cache().lookup(key)
    assert isinstance(entry, Hit)
    blobs = [default_cache().read_blob(digest) or b"" for digest in entry.blobs.values()]
    assert len(blobs) == 1
    assert not any(b"test_users_ops" in content for content in (entry.payload, *blobs))


def key_of(inputs: list[Any], outputs: list[Any]) -> CacheKey:
    rewrites = describe_rewrites(get_mode(None).optimizer)
    graph = FrozenFunctionGraph.from_io(inputs, outputs)
    return function_key(graph, (len(outputs), ()), rewrites, ("numba",))


@pytest.mark.parametrize("op", [Doubled(), Elemwise(Negated())], ids=["on arrays", "on numbers"])
def test_the_function_that_a_solver_calls_has_the_ops_of_the_graph_around_it(op: Op) -> None:
    x, inner = pt.vector("x"), pt.vector("inner")
    layer = engine.OpFromGraph([inner], [pt.exp(op(inner) * 1 * 2) * 1])
    loop = engine.scan(lambda s: op(s) * 1, outputs_info=[x], n_steps=2, return_updates=False)[-1]
    cost = pt.sum((layer(x) - loop) ** 2 + op(x) ** 2)
    solution, _ = minimize(cost, x, jac=False, method="Nelder-Mead")
    found = []
    for outcome in ("miss", "hit"):
        f = engine.function([x], [solution, cost])
        assert f.cache_info.outcome == outcome
        found.append(f(np.array([0.3])))
    (found_first, cost_first), (found_again, cost_again) = found
    assert (found_first.tolist(), cost_first) == (found_again.tolist(), cost_again)
    assert cost_first > engine.function([x], cost, mode="NUMPY")(found_first)


# The mode verify


def test_a_hit_with_a_users_op_is_verified(monkeypatch: pytest.MonkeyPatch) -> None:
    tally = Tally()
    monkeypatch.setattr("cachegraph.caching.records.PROCESS", tally)
    inputs, output = layered(2.0)
    engine.function(inputs, output)
    monkeypatch.setenv("CACHEGRAPH_MODE", "verify")
    f = engine.function(inputs, output)
    assert (f.cache_info.outcome, f.cache_info.reason) == ("hit", "")
    assert "mismatch" not in tally.snapshot().misses
    np.testing.assert_allclose(f([1.0]), [6.0])


class Drawing(Doubled):
    """Something else in every call."""

    def perform(self, node: Apply, inputs: Any, output_storage: Any) -> None:
        output_storage[0][0] = inputs[0] + np.random.default_rng().uniform()


def test_an_op_that_never_gives_the_same_is_no_mismatch(monkeypatch: pytest.MonkeyPatch) -> None:
    x = pt.vector("x")
    monkeypatch.setenv("CACHEGRAPH_MODE", "verify")
    for outcome in ("miss", "hit", "hit"):
        f = engine.function([x], Drawing()(x) * 2)
        assert f.cache_info.outcome == outcome
        assert f([1.0]) != f([1.0])


def test_a_program_that_calls_another_op_back_is_found_by_the_mode_verify(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    x = pt.vector("x")
    outputs = [Doubled()(x), Tripled()(x)]
    engine.function([x], outputs)
    first, second = (use.options for use in stored_program(key_of([x], outputs)).callbacks)

    def swap(use: CallbackUse) -> CallbackUse:
        return use._replace(options=second if use.options == first else first)

    tamper(key_of([x], outputs), swap)
    monkeypatch.setenv("CACHEGRAPH_MODE", "verify")
    f = engine.function([x], outputs)
    assert f.cache_info.reason == "mismatch"
    assert [value.tolist() for value in f([1.0])] == [[2.0], [3.0]]


class Tripled(Doubled):
    def perform(self, node: Apply, inputs: Any, output_storage: Any) -> None:
        output_storage[0][0] = inputs[0] * 3


# What is damaged or foreign is a miss


def stored_program(key: CacheKey) -> Program:
    entry = default_cache().lookup(key)
    assert isinstance(entry, Hit)
    return unpack_program(entry.payload)


def tamper(key: CacheKey, change: Callable[[CallbackUse], CallbackUse]) -> None:
    program = stored_program(key)
    changed = program._replace(callbacks=tuple(map(change, program.callbacks)))
    assert default_cache().store(key, Artifact(pack_program(changed), {}, {"build": 1.0}))


def with_option(name: str, value: Any) -> Callable[[CallbackUse], CallbackUse]:
    def change(use: CallbackUse) -> CallbackUse:
        return use._replace(options=json.dumps(json.loads(use.options) | {name: value}))

    return change


CHANGES: list[Callable[[CallbackUse], CallbackUse]] = [
    lambda use: use._replace(version=2),
    lambda use: use._replace(kind="perform later"),
    lambda use: use._replace(options="{}"),
    lambda use: use._replace(options="nothing that is JSON"),
    lambda use: use._replace(options="[]"),
    with_option("op", "0" * 64),
    with_option("op", 0),
    with_option("op", None),
    with_option("op", []),
    with_option("op", "at hand 0"),
    with_option("inputs", [["float99", [None]]]),
    with_option("inputs", [["float64", [-1]]]),
    with_option("outputs", [["float64"]]),
    with_option("outputs", 5),
    with_option("outputs", []),
    with_option("outputs", [["float64", [None]], ["float64", [None]]]),
    with_option("inputs", []),
]


def test_a_record_that_cannot_be_a_callback_is_a_miss_with_a_reason() -> None:
    x = pt.vector("x")
    output = Doubled()(x) + 1
    assert engine.function([x], output).cache_info.outcome == "miss"
    for number, change in enumerate(CHANGES):
        assert engine.function([x], output).cache_info.outcome == "hit", number
        tamper(key_of([x], [output]), change)
        f = engine.function([x], output)
        assert (f.cache_info.outcome, f.cache_info.reason) == ("miss", "unreadable"), number
        np.testing.assert_array_equal(f([1.0]), [3.0])


@pytest.mark.parametrize("name", ["0" * 64, "at hand 0"])
def test_a_stored_graph_that_names_an_op_that_is_not_at_hand_is_not_used(name: str) -> None:
    inputs, output = layered(3.0)
    inner = output.owner.inputs[0].owner.inputs[0].owner.op.fgraph
    engine.function(inputs, output)
    key = op_key(inner, describe_rewrites(get_mode(None).optimizer), ("numba",))
    assert isinstance(default_cache().lookup(key), Hit)

    content = pickling.dumps(inner, name_of=lambda item: name if item == Doubled() else None)
    assert default_cache().store(key, Artifact(content, {}, {"build": 1.0}))
    again = engine.function(inputs, output * 2)
    assert again.cache_info.found["op"] == [0, 1]
    np.testing.assert_allclose(again([1.0]), [18.0])


# What cannot be described


class Unspecified(Doubled):
    __props__ = None


class Holding(Doubled):
    __props__ = ("held",)

    def __init__(self, held: Any) -> None:
        self.held = held


class Unknown(Tripled):
    pass


class Introducing(Doubled):
    """Its shape is computed by an Op that the graph has not."""

    def infer_shape(self, fgraph: Any, node: Apply, input_shapes: Any) -> Any:
        return [(pt.cast(Unknown()(pt.cast(pt.stack([input_shapes[0][0]]), "float64"))[0] / 3, "int64"),)]


@pytest.mark.parametrize(
    ("op", "reason"),
    [
        (Unspecified(), "__props__"),
        (Holding(sys.stdout), r"props['held']"),
        (Introducing(), "came into the graph"),
    ],
    ids=["without properties", "holding a file", "introducing"],
)
def test_what_no_key_describes_bypasses_the_cache_with_the_reason_and_runs(op: Op, reason: str) -> None:
    x, inner = pt.vector("x"), pt.vector("inner")
    layer = engine.OpFromGraph([inner], [op(inner) - 1])
    rows = engine.scan(lambda state: op(state), outputs_info=[x], n_steps=2, return_updates=False)
    inferred = op(pt.exp(x)).shape[0]
    for _ in range(2):
        f = engine.function([x], [op(x), Tripled()(x), layer(x), rows[-1], inferred])
        assert f.cache_info.outcome == "bypass"
        assert reason in f.cache_info.reason
        assert f.cache_info.key is None
        found = [value.tolist() for value in f([1.0, 2.0])]
        assert found == [[2.0, 4.0], [3.0, 6.0], [1.0, 3.0], [4.0, 8.0], 2]
        assert sum(isinstance(node.op, type(op)) for node in f.maker.fgraph.apply_nodes) >= 1


def test_a_function_that_bypassed_the_cache_takes_its_ops_with_it() -> None:
    x = pt.vector("x")
    f = engine.function([x], Unspecified()(x) + 1)
    g = pickle.loads(pickle.dumps(f))
    np.testing.assert_array_equal(g([1.0]), [3.0])
    assert (g.cache_info.outcome, g.cache_info.compilations) == ("carried", 0)


def test_two_ops_of_one_description_are_one_in_what_is_stored() -> None:
    def adding(number: float) -> Any:
        return engine.wrap_py(pt.dvector, pt.dvector)(lambda value: value + number)

    x = pt.vector("x")
    first = adding(1.0)
    for ops, outcome in (
        ((first, first), "miss"),
        ((adding(1.0), adding(1.0)), "hit"),
        ((first, adding(2.0)), "miss"),
    ):
        f = engine.function([x], ops[0](x) - ops[1](pt.exp(x)))
        assert f.cache_info.outcome == outcome
        extra = 0.0 if outcome == "hit" or ops[0] is ops[1] else -1.0
        np.testing.assert_allclose(f([1.0]), 1.0 - np.e + extra)
        engine.dprint(f, file="str")


class Applied(Op):
    """Says of itself less than what it does."""

    __props__ = ()
    itypes = (pt.dvector,)
    otypes = (pt.dvector,)

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self._function = function

    def perform(self, node: Apply, inputs: Any, output_storage: Any) -> None:
        output_storage[0][0] = self._function(inputs[0])


def test_ops_that_do_not_say_in_what_they_differ_are_not_taken_for_each_other() -> None:
    doubled, negated = Applied(lambda x: 2 * x), Applied(lambda x: -x)
    x = pt.vector("x")
    both = engine.function([x], [doubled(x), negated(x)])
    apart = [engine.function([x], [op(x)]) for op in (doubled, negated, doubled)]
    assert both.cache_info.outcome == "bypass"
    assert "private attributes alone" in both.cache_info.reason
    assert [found.tolist() for found in both(np.ones(1))] == [[2.0], [-1.0]]
    assert [f(np.ones(1))[0].tolist() for f in apart] == [[2.0], [-1.0], [2.0]]


def test_ops_that_remember_alike_are_cached() -> None:
    first, second = (Applied(np.negative) for _ in range(2))
    for op in (first, second):
        op._memo = {}  # type: ignore[attr-defined]
    x = pt.vector("x")
    f = engine.function([x], [first(x), second(pt.exp(x))])
    assert f.cache_info.outcome == "miss"
    assert [found.tolist() for found in f(np.zeros(1))] == [[0.0], [-1.0]]


class Padded(Op):
    """Zeros, of which an attribute that `__props__` does not name says how many."""

    __props__ = ()

    def make_node(self, x: Any) -> Apply:
        return Apply(self, [x], [pt.vector()])

    def infer_shape(self, fgraph: Any, node: Any, input_shapes: Any) -> Any:
        return [(self.length,)]


class PaddedBySlot(Padded):
    __slots__ = ("length",)


class PaddedByName(Padded):
    @property
    def length(self) -> int:
        return self._exact_length

    @length.setter
    def length(self, number: int) -> None:
        self._exact_length = number


@pytest.mark.parametrize("cls", [PaddedBySlot, PaddedByName])
def test_an_attribute_is_identity_wherever_an_op_keeps_it(cls: Any) -> None:
    x = pt.vector("x")
    ops = [cls(), cls(), cls()]
    for op, length in zip(ops, (5, 6, 5), strict=True):
        op.length = length
    assert ops[0] == ops[2] != ops[1]
    found = [engine.function([x], op(x).shape[0]) for op in ops]
    assert [int(f([1.0])) for f in found] == [5, 6, 5]
    assert [f.cache_info.outcome for f in found] == ["miss", "miss", "hit"]


class FromEnvironment(Padded):
    def infer_shape(self, fgraph: Any, node: Any, input_shapes: Any) -> Any:
        return [(int(os.getenv("CACHEGRAPH_TEST_LENGTH", "0")),)]


def test_lengths_that_follow_from_the_environment_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    x = pt.vector("x")
    for length in ("5", "6"):
        monkeypatch.setenv("CACHEGRAPH_TEST_LENGTH", length)
        f = engine.function([x], FromEnvironment()(x).shape[0])
        assert int(f([1.0])) == int(length)
        assert f.cache_info.outcome == "bypass"
        assert "os.getenv" in f.cache_info.reason


class Inferring(Op):
    __props__ = ()
    itypes = (pt.dvector,)
    otypes = (pt.dvector,)

    def perform(self, node: Apply, inputs: Any, output_storage: Any) -> None:
        output_storage[0][0] = np.ones(self.length())

    def infer_shape(self, fgraph: Any, node: Any, input_shapes: Any) -> Any:
        return [(self.length(),)]

    def length(self) -> int:
        raise NotImplementedError


LENGTH = 5


@functools.lru_cache
def remembered_length() -> int:
    return LENGTH


class ByRemembered(Inferring):
    def length(self) -> int:
        return remembered_length()


class ByOrder(Inferring):
    def length(self) -> int:
        return int(next(iter(self.__dict__.values())))


def test_what_a_function_remembers_of_before_is_not_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    x = pt.dvector("x")
    for length in (5, 6):
        monkeypatch.setitem(globals(), "LENGTH", length)
        f = engine.function([x], ByRemembered()(x).shape[0])
        assert (f.cache_info.outcome, int(f(np.ones(1)))) == ("miss", length)


def test_the_order_of_what_an_instance_holds_is_identity_where_code_can_tell_it() -> None:
    x = pt.dvector("x")
    for names in (("a", "b"), ("b", "a")):
        op = ByOrder()
        for name in names:
            setattr(op, name, {"a": 5, "b": 6}[name])
        f = engine.function([x], op(x).shape[0])
        assert (f.cache_info.outcome, int(f(np.ones(1)))) == ("miss", op.length())


def test_an_array_that_is_made_writable_again_is_not_the_constants() -> None:
    held = np.arange(40.0)
    held.flags.writeable = False
    x, constant = pt.dvector("x"), pt.constant(held)
    f = engine.function([x], x + constant)
    held.flags.writeable = True
    held[:] = -1.0
    np.testing.assert_array_equal(f(np.zeros(40)), np.arange(40.0))
    np.testing.assert_array_equal(constant.data, np.arange(40.0))
    with pytest.raises(ValueError, match="WRITEABLE"):
        constant.data.flags.writeable = True
