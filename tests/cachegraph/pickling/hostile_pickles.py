"""Pickles that want something else than to be loaded, and a process that tries each.

    python hostile_pickles.py FILE      prints name -> what loading raised, as JSON; FILE is what they would make

The process has little memory, and each pickle a few seconds.
"""

from __future__ import annotations

import copyreg
import json
import os
import pickle
import resource
import signal
import struct
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

from cachegraph import pickling

MEMORY = 3 * 2**30
SECONDS = 20
TRUSTED = ("engine.graph.fgraph", "engine.scalar", "engine.tensor", "engine.inner")


def whole(*pieces: bytes) -> bytes:
    """A pickle of protocol 5 that leaves what the opcodes `pieces` make."""
    return b"\x80\x05" + b"".join(pieces) + b"."


def text(value: str) -> bytes:
    """The opcodes that put a text on the stack."""
    content = value.encode()
    return b"X" + struct.pack("<I", len(content)) + content


def number(value: int) -> bytes:
    """The opcodes that put an int on the stack."""
    content = pickle.encode_long(value)
    return b"\x8b" + struct.pack("<i", len(content)) + content


def name(module: str, qualname: str) -> bytes:
    """The opcodes that put what a name imports on the stack."""
    return text(module) + text(qualname) + b"\x93"


def group(*items: bytes) -> bytes:
    """The opcodes that put a tuple on the stack."""
    return b"(" + b"".join(items) + b"t"


def call(function: bytes, *arguments: bytes) -> bytes:
    """The opcodes that call a function and leave what it gives."""
    return function + group(*arguments) + b"R"


class _Executed:
    def __init__(self, *reduced: Any) -> None:
        self.reduced = reduced

    def __reduce__(self) -> Any:
        return self.reduced


def commands(file: str) -> Iterator[tuple[str, bytes]]:
    """Pickles that run a command, which makes `file`, in all ways."""
    command = f"touch {file}"
    code = f"open({file!r}, 'w').close()"
    for module, function in (
        ("os", "system"),
        ("posix", "system"),
        ("nt", "system"),
        ("subprocess", "getoutput"),
    ):
        yield f"{module}.{function}", whole(call(name(module, function), text(command)))
    for function in (
        "eval",
        "exec",
        "__import__",
        "open",
        "compile",
        "getattr",
        "setattr",
        "print",
        "vars",
        "map",
    ):
        yield f"builtins.{function}", whole(call(name("builtins", function), text(code)))
    yield "timeit", whole(call(name("timeit", "timeit"), text(code)))
    yield "importlib", whole(call(name("importlib", "import_module"), text("antigravity")))
    yield "runpy", whole(call(name("runpy", "run_path"), text("/etc/passwd")))
    yield "pty", whole(call(name("pty", "spawn"), text("/bin/sh")))
    getter = call(name("operator", "attrgetter"), text("system"))
    yield "attrgetter", whole(call(getter, name("os", "path")))
    yield (
        "methodcaller",
        whole(call(call(name("operator", "methodcaller"), text("system"), text(command)), text("x"))),
    )
    yield (
        "reduce of functools",
        whole(call(name("functools", "reduce"), name("os", "system"), group(text(command), text("")))),
    )
    partial = call(name("functools", "partial"), name("os", "system"))
    yield "a partial of it", whole(call(partial, text(command)))
    for dotted in ("np.core", "np.load", "os.system", "Any.__class__", "TensorType.__init__.__globals__"):
        yield f"a dotted name: {dotted}", whole(name("engine.tensor.type", dotted))
    for held in ("np", "Any", "TYPE_CHECKING", "Sequence"):
        yield f"what a trusted module imported: {held}", whole(call(name("engine.tensor.type", held)))
    for module, qualname in (
        ("engine.compiling.executable", "Function"),
        ("engine.compiling.pickled_function", "PickledProgram"),
        ("cachegraph.cache", "Cache"),
    ):
        yield f"a class outside: {qualname}", whole(name(module, qualname), b")\x81")
    yield "another package of almost that name", whole(call(name("engine.tensorflow", "run"), text(command)))
    yield "a function of numpy", whole(call(name("numpy", "load"), text("/etc/passwd")))
    yield "numpy.f2py", whole(call(name("numpy.f2py.diagnose", "run_command"), text(command)))
    yield (
        "copyreg",
        whole(
            call(
                name("copyreg", "_reconstructor"),
                name("builtins", "object"),
                name("builtins", "object"),
                b"N",
            )
        ),
    )
    yield "copyreg.__newobj__", whole(call(name("copyreg", "__newobj__"), name("os", "_wrap_close")))
    for protocol in range(6):
        executed = _Executed(os.system, (command,))
        yield f"__reduce__ in protocol {protocol}", pickle.dumps([executed], protocol)
        yield (
            f"__reduce__ in protocol {protocol}, said to be 5",
            b"\x80\x05" + pickle.dumps([executed], protocol).removeprefix(bytes((0x80, protocol))),
        )
    yield "INST", b"\x80\x05(V" + command.encode() + b"\nios\nsystem\n."
    yield "OBJ", whole(b"(" + name("os", "system") + text(command) + b"o")
    yield "GLOBAL", b"\x80\x05cos\nsystem\n(V" + command.encode() + b"\ntR."
    yield (
        "items by __reduce__",
        pickle.dumps(_Executed(list, (), None, iter([_Executed(os.system, (command,))])), 5),
    )
    yield (
        "a native function by its import path",
        whole(group(text("import"), text("posix"), text("system")) + b"Q"),
    )
    yield (
        "a call of it",
        whole(call(group(text("import"), text("posix"), text("system")) + b"Q", text(command))),
    )
    held = np.array([_Executed(os.system, (command,))], dtype=object)
    yield "an array of objects", pickle.dumps(held, 5)
    yield (
        "a scalar of objects",
        whole(
            call(
                name("numpy._core.multiarray", "scalar"),
                call(name("numpy", "dtype"), text("O"), b"\x89", b"\x88"),
                b"C\x01a",
            )
        ),
    )


def bombs() -> Iterator[tuple[str, bytes]]:
    """Pickles of a few bytes that want all memory, all time or all of the stack."""
    for code, size in (
        (b"\x8e", 8),
        (b"\x8d", 8),
        (b"\x96", 8),
        (b"\x95", 8),
        (b"B", 4),
        (b"X", 4),
        (b"\x8b", 4),
    ):
        for length in (2**60, 2**31 - 1, 2**63):
            yield (
                f"{code!r} of {length}",
                whole(code + (length % 256**size).to_bytes(size, "little") + b"abc"),
            )
    doubled = b")\x94"
    layers = b"".join(b"h" + bytes((k,)) + b"h" + bytes((k,)) + b"\x86\x94" for k in range(60))
    yield "tuples of tuples, as a key", whole(doubled, layers, b"}h\x3cK\x01s")
    yield "tuples of tuples, in a set", whole(doubled, layers, b"\x8f(h\x3c\x90")
    yield (
        "frozensets of frozensets",
        whole(
            b"(\x91\x94",
            b"".join(b"(h" + bytes((k,)) + b"h" + bytes((k,)) + b"\x85\x91\x94" for k in range(60)),
        ),
    )
    yield "a deep tuple, as a key", whole(b"}", b")" + b"\x85" * 500_000, b"K\x01s")
    deep = (_around(name("builtins", "slice"), k) for k in range(20_000))
    yield "a deep slice", whole(b"N", *deep)
    yield "deep marks", whole(b"(" * 500_000)
    yield "bytearray(n)", whole(call(name("builtins", "bytearray"), number(10**11)))
    yield (
        "set(range(n))",
        whole(call(name("builtins", "set"), call(name("builtins", "range"), number(10**11)))),
    )
    yield (
        "a call with a range of arguments",
        whole(name("builtins", "complex") + call(name("builtins", "range"), number(10**11)) + b"R"),
    )
    yield (
        "an instance with a range of arguments",
        whole(
            name("engine.scalar.arithmetic", "Add")
            + call(name("builtins", "range"), number(10**11))
            + b"\x81"
        ),
    )
    yield "a long number in decimal", b"\x80\x05L" + b"9" * 10_000_000 + b"L\n."
    array = name("numpy", "ndarray")
    huge = group(number(10**12))
    yield "ndarray(n)", whole(call(array, huge))
    yield "ndarray.__new__(n)", whole(array + group(huge) + b"\x81")
    rebuild = name("numpy._core.multiarray", "_reconstruct")
    yield "_reconstruct of n", whole(call(rebuild, array, huge, b"C\x01b"))
    dtype = call(name("numpy", "dtype"), text("f8"), b"\x89", b"\x88")
    empty = call(rebuild, array, b"K\x00\x85", b"C\x01b")
    yield (
        "an array of n without content",
        whole(empty + group(b"K\x01", huge, dtype, b"\x89", b"C\x00") + b"b"),
    )
    objects = call(name("numpy", "dtype"), text("O8"), b"\x89", b"\x88")
    yield "an array of n objects", whole(empty + group(b"K\x01", huge, objects, b"\x89", b"]") + b"b")
    content = b"B" + struct.pack("<I", 2**20) + bytes(2**20) + b"\x94"
    one = empty + group(b"K\x01", group(number(2**17)), dtype, b"\x89", b"h\x00") + b"b"
    yield "many arrays of the same content", whole(content, b"0](", *(one for _ in range(8000)), b"e")


def _around(function: bytes, memo: int) -> bytes:
    """The opcodes that put what is on the stack, the object `memo` that is remembered, into a call of `function`."""
    return b"\x940" + function + b"j" + struct.pack("<I", memo) + b"\x85R"


def memory_of_others() -> Iterator[tuple[str, bytes]]:
    """Pickles that have numpy read or write where nothing of theirs is."""
    dtype, rebuild = name("numpy", "dtype"), name("numpy._core.multiarray", "_reconstruct")
    made = call(dtype, text("V8"), b"\x89", b"\x88")
    fields = b"}" + text("a") + group(call(dtype, text("O"), b"\x89", b"\x88"), number(10**6)) + b"s"
    state = group(b"K\x03", text("|"), b"N", group(text("a")), fields, b"K\x08", b"K\x01", b"K\x00")
    yield "a field outside of its item", whole(made + state + b"b")
    plain = call(dtype, text("f8"), b"\x89", b"\x88")
    for size in (0, 1, 2**31 - 1, -5):
        state = group(b"K\x03", text("<"), b"N", b"N", b"N", number(size), number(size), b"K\x00")
        yield f"a double of {size} bytes", whole(plain + state + b"b")
        texts = call(dtype, text("U4"), b"\x89", b"\x88")
        yield f"a text of {size} bytes", whole(texts + state + b"b")
    state = group(b"K\x03", text("<"), b"N", b"N", b"N", b"J\xff\xff\xff\xff" * 2, b"K\x3f")
    yield "a double that holds objects", whole(plain + state + b"b")
    empty = call(rebuild, name("numpy", "ndarray"), b"K\x00\x85", b"C\x01b") + b"\x94"
    content = group(b"K\x01", b"K\x01\x85", plain, b"\x89", b"C\x08" + bytes(8)) + b"b"
    view = call(name("numpy._core.numeric", "_frombuffer"), b"h\x00", plain, b"K\x01\x85", text("C"))
    yield (
        "an array that changes under a view",
        whole(b"](", empty + content, view, b"h\x00" + content[:-1] + b"b", b"e"),
    )
    yield "an array that is given its content twice", whole(b"](", empty + content, b"h\x00" + content, b"e")
    yield (
        "a shape of less than nothing",
        whole(empty + group(b"K\x01", number(-1) + b"\x85", plain, b"\x89", b"C\x00") + b"b"),
    )


def mistaken() -> Iterator[tuple[str, bytes]]:
    """Pickles that are none, or say what there is not."""
    for pid in (
        0,
        7,
        -1,
        2**70,
        1.5,
        None,
        (),
        ("import",),
        ("import", "os", None),
        ("blob", "x", 1),
        ("blob", "0" * 64, True),
        "P",
        b"x",
        ("import", "engine.tensor", "exp"),
    ):
        inner = pickle.dumps(pid, 5)
        start = 11 if inner[2:3] == b"\x95" else 2
        yield f"external {pid!r}", whole(inner[start:-1] + b"Q")
    yield "external by a name of protocol 0", b"\x80\x05P0\n."
    for code in (b"\x82\x01", b"\x83\x01\x00", b"\x84\x01\x00\x00\x00", b"\x97", b"C\x01a\x97\x98", b"\x98"):
        yield f"opcode {code!r}", whole(code)
    for content in (
        b"",
        b".",
        b"\x80",
        b"\x80\x05",
        b"\x80\x05.",
        b"\x80\x06N.",
        b"\xff" * 9,
        b"\x80\x05Nabc.",
        b"\x80\x05N.N",
    ):
        yield f"bytes {content!r}", content
    state = b"}" + text("__class__") + b"K\x01s"
    for op in (
        "engine.scalar.arithmetic Add",
        "engine.tensor.elemwise Elemwise",
        "engine.inner.composite Composite",
    ):
        made = name(*op.split()) + b")\x81"
        yield f"a class in the state of {op}", whole(made + group(b"N", state) + b"b")
        yield f"a number as the state of {op}", whole(made + b"K\x07b")
        yield f"a list as the state of {op}", whole(made + b"](K\x01K\x02eb")
    yield (
        "a change of a class",
        whole(name("engine.scalar.arithmetic", "Add") + group(b"N", b"}" + text("impl") + b"Ns") + b"b"),
    )
    yield (
        "a change of a type",
        whole(
            call(name("engine.scalar.type", "scalar_type"), text("float64"))
            + b"}"
            + text("dtype")
            + text("int8")
            + b"sb"
        ),
    )
    yield (
        "a type of a dtype that there is not",
        whole(call(name("engine.tensor.type", "tensor_type"), text("os.system"), b")")),
    )
    load = name("engine.graph.fgraph", "_load_graph")
    for arguments in (
        (b"K\x01",),
        (b"K\x00", *[b"N"] * 6),
        (b"K\x00", b"]", b"]", b"]", b"]", b"](K\x00K\x00K\x00K\x00e", b"]"),
    ):
        yield (
            f"a graph of {len(arguments)} parts, {len(b''.join(arguments))} bytes",
            whole(call(load, *arguments)),
        )
    loop = b"](K\x00K\x00" + number(2**62) + b"e"
    yield (
        "a graph with a node of 2**62 inputs",
        whole(
            call(
                load,
                b"K\x00",
                b"]",
                b"]",
                b"]" + name("engine.scalar.arithmetic", "Add") + b")\x81a",
                b"]",
                loop,
                b"]",
            )
        ),
    )


def real() -> Iterator[tuple[str, bytes]]:
    """What `dumps` writes, cut short at every byte."""
    content = pickling.dumps(
        [np.arange(3.0), {"a": (1, 2.5, b"x")}, slice(1, 2), np.float32(1), np.arange(4)[::2]]
    )
    pickling.loads(content, ())
    for size in range(len(content)):
        yield f"cut short after {size} bytes", content[:size]


def all_of_them(file: str) -> Iterator[tuple[str, bytes]]:
    """Every hostile pickle, with its name."""
    yield from commands(file)
    yield from bombs()
    yield from memory_of_others()
    yield from mistaken()
    yield from real()


def tried(content: bytes) -> str:
    """What loading raises: the name of the class and the message; what it gave if nothing was raised."""
    signal.alarm(SECONDS)
    try:
        found = pickling.loads(content, TRUSTED, external=())
        return f"nothing: {type(found).__name__}"
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:200]}"
    finally:
        signal.alarm(0)


def main(file: str) -> None:
    """Try all."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    copyreg.add_extension("os", "system", 1)
    import engine.tensor  # noqa: F401  before memory is short

    found = {}
    for label, content in all_of_them(file):
        print(label, file=sys.stderr, flush=True)  # whoever finds a crash knows by whom
        found[label] = tried(content)
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1])
