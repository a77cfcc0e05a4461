"""What is pickled comes back; what names anything untrusted is refused before anything of it runs."""

from __future__ import annotations

import decimal
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import engine.tensor as pt
from cachegraph import pickling
from cachegraph.errors import CachegraphError
from cachegraph.pickling import InvalidPickle, UntrustedPickle
from engine.graph import FrozenFunctionGraph


class Reduced:
    """Pickles as a call of `function` with `arguments`."""

    def __init__(self, function: Any, *arguments: Any) -> None:
        self.call = (function, arguments)

    def __reduce__(self) -> Any:
        return self.call


def naming(module: str, name: str) -> bytes:
    """A pickle of what that name imports."""
    pieces = (b"\x8c" + bytes((len(word),)) + word.encode() for word in (module, name))
    return b"\x80\x05" + b"".join(pieces) + b"\x93."


PLAIN = [
    None,
    True,
    -(2**100),
    0.5,
    1 + 2j,
    "text",
    b"bytes",
    (1, [2, {"three": {4}}]),
    frozenset({1, 2}),
    slice(1, None, 2),
    range(3),
    bytearray(b"abc"),
]


@pytest.mark.parametrize("value", PLAIN, ids=repr)
def test_plain_values_come_back(value: Any) -> None:
    found = pickling.loads(pickling.dumps(value), ())
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6.0).reshape(2, 3),
        np.arange(6.0).reshape(2, 3).T,
        np.array(2.5, "f4"),
        np.zeros((0, 3), bool),
        np.arange(5, dtype=">i4"),
        np.arange(10)[::3],
        np.array([np.nan, -0.0, np.inf]),
    ],
)
def test_arrays_come_back(array: np.ndarray) -> None:
    found = pickling.loads(pickling.dumps(array), ())
    assert (found.dtype, found.shape) == (array.dtype, array.shape)
    assert found.tobytes() == array.tobytes()


def test_numbers_and_dtypes_of_numpy_come_back() -> None:
    value = [np.float32(0.1), np.int64(3), np.dtype("float32"), np.bool_(True)]
    assert pickling.loads(pickling.dumps(value), ()) == value


def test_classes_of_a_trusted_package_come_back() -> None:
    x = pt.vector("x")
    graph = FrozenFunctionGraph.from_io([x], [pt.sum(pt.exp(x)) * np.arange(3.0)])
    assert pickling.loads(pickling.dumps(graph), ("engine",)) == graph
    with pytest.raises(UntrustedPickle) as caught:
        pickling.loads(pickling.dumps(graph), ("cachegraph",))
    assert caught.value.module.startswith("engine.")


@pytest.mark.parametrize(
    "value",
    [
        Reduced(os.system, "touch hostile"),
        Reduced(eval, "open('hostile', 'w')"),
        Reduced(exec, "open('hostile', 'w')"),
        Reduced(open, "hostile", "w"),
        Reduced(subprocess.Popen, ["touch", "hostile"]),
        Reduced(getattr, "text", "upper"),
        Reduced(__import__, "os"),
        Reduced(np.save, "hostile.npy", 1),
        Reduced(np.fromfile, __file__),
        Reduced(pickle.loads, pickle.dumps(Reduced(os.makedirs, "hostile"))),
        decimal.Decimal("1.5"),
        Path("a"),
        os.system,
        print,
    ],
    ids=lambda value: getattr(getattr(value, "call", [value])[0], "__name__", type(value).__name__),
)
def test_anything_else_is_refused_and_does_not_run(
    value: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UntrustedPickle):
        pickling.loads(pickling.dumps(value), ("engine", "cachegraph"))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("engine.compiling.surroundings", "os.system"),
        ("engine.compiling.surroundings", "os.path.abspath"),
        ("engine.compiling.surroundings", "os"),
        ("engine.compiling.surroundings", "Path"),
        ("engine.compiling.lookup", "perf_counter"),
        ("engine.compiling.inner_graphs", "pickling"),
        ("engine.runtime.machine", "process_machine"),
        ("engine.functions", "function"),
        ("engineering", "anything"),
        ("numpy", "load"),
        ("numpy._core.multiarray", "fromfile"),
        ("builtins", "getattr"),
        ("builtins", "type"),
        ("__main__", "anything"),
        ("cachegraph.pickling", "pickle.loads"),
    ],
)
def test_what_a_trusted_module_imported_is_not_trusted(module: str, name: str) -> None:
    with pytest.raises(UntrustedPickle) as caught:
        pickling.loads(naming(module, name), ("engine",))
    assert (caught.value.module, caught.value.name, caught.value.trusted) == (module, name, ("engine",))
    with pytest.raises(InvalidPickle, match="not written"):
        pickling.loads(f"c{module}\n{name}\n.".encode(), ("engine",))


def test_the_error_says_what_was_found_and_what_is_trusted() -> None:
    with pytest.raises(CachegraphError, match=r"posix\.system.*only classes of engine, cachegraph"):
        pickling.loads(pickling.dumps(os.system), ("engine", "cachegraph"))


def test_a_refused_module_is_not_imported() -> None:
    module = "this"
    assert module not in sys.modules
    with pytest.raises(UntrustedPickle):
        pickling.loads(naming(module, "s"), ("engine",))
    assert module not in sys.modules


# Objects left out


def test_external_objects_are_left_out_and_put_in_again() -> None:
    large, other = np.arange(10_000.0), np.arange(10_000.0)
    content = pickling.dumps({"a": large, "b": [other, large]}, [large, other])
    assert len(content) < 200
    first, second = object(), object()
    found = pickling.loads(content, (), [first, second])
    assert found["a"] is first
    assert found["b"][0] is second
    assert found["b"][1] is first


def test_only_the_very_object_is_left_out() -> None:
    array = np.arange(3.0)
    np.testing.assert_array_equal(
        pickling.loads(pickling.dumps(array.copy(), [array]), (), ["another"]), array
    )


@pytest.mark.parametrize("present", [[], ["one"]])
def test_an_external_object_that_there_is_not_is_an_error(present: list[Any]) -> None:
    array = np.arange(3.0)
    content = pickling.dumps([array], [object(), array])
    with pytest.raises(pickle.UnpicklingError, match="external object 1"):
        pickling.loads(content, (), present)


@pytest.mark.parametrize(
    ("named", "words"),
    [
        (b"\x8c\x04name", "external object 'name'"),
        (b"J\xff\xff\xff\xff", "external object -1"),
        (b"]", "external object"),
    ],
)
def test_an_external_object_is_named_by_a_number_that_there_is(named: bytes, words: str) -> None:
    with pytest.raises(InvalidPickle, match=words):
        pickling.loads(b"\x80\x05" + named + b"Q.", (), ["one"])


@pytest.mark.parametrize("length", range(0, 60, 7))
def test_a_pickle_cut_short_is_an_error(length: int) -> None:
    content = pickling.dumps(["some text", 1.5, (1, 2)] * 3)
    assert length < len(content)
    with pytest.raises((pickle.UnpicklingError, EOFError)):
        pickling.loads(content[:length], ())
