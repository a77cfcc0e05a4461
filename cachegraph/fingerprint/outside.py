"""What code reads that is no part of it: the environment, files, clocks.

What code gives when it is run later may depend on these. Where what it gives is itself stored, no key says what that
depended on: such code is refused. Code is looked through as far as it is followed (origin.py), and by names: of all
methods that it might call, those are looked at that have the name of an attribute that some of it takes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from types import FunctionType
from typing import Any

from cachegraph.errors import Unfingerprintable
from cachegraph.fingerprint.bytecode import attributes, imports, look_up, reads
from cachegraph.fingerprint.names import is_known_by_name
from cachegraph.fingerprint.origin import origin_of

# Modules of which any function reads what lies outside; of others, which ones do.
_OUTSIDE = frozenset(
    (
        "_io", "datetime", "fileinput", "genericpath", "getpass", "glob", "http", "io", "nt", "pathlib", "platform",
        "posix", "secrets", "shutil", "socket", "subprocess", "tempfile", "time", "urllib", "uuid",
    )
)  # fmt: skip
_OUTSIDE_OF = {
    "os": frozenset(
        ("environ", "fdopen", "getcwd", "getenv", "getenvb", "listdir", "popen", "scandir", "stat", "walk")
    ),
    "numpy": frozenset(("fromfile", "genfromtxt", "load", "loadtxt", "memmap")),
    "builtins": frozenset(("input",)),
}
_WRAPPED = ("py_func", "func", "__func__", "__wrapped__", "fget")


def refuse_outside(
    functions: Iterable[Any], held: Mapping[str, object], described: Collection[str] = ()
) -> None:
    """Refuse (Unfingerprintable) `functions` that read what lies outside of code and values, or call what does.

    `held` is what the instance that they are methods of holds, by name; `described` names packages that are not followed.
    """
    walk = _Walk(described)
    for function in functions:
        walk.visit(getattr(function, "__self__", None))
        walk.visit(function)
    walk.visit_named(held)


class _Walk:
    def __init__(self, described: Collection[str]) -> None:
        self._described = described
        self._seen: dict[int, object] = {}
        self._taken: set[str] = set()
        self._classes: dict[type, None] = {}

    def visit(self, value: Any) -> None:
        """Look at what code reaches; raises Unfingerprintable if it reads what lies outside."""
        while not isinstance(value, type | FunctionType) and not self._follows(type(value)):
            inner = next((getattr(value, name) for name in _WRAPPED if hasattr(value, name)), None)
            if inner is None:
                break
            value = inner
        if id(value) in self._seen:
            return
        self._seen[id(value)] = value
        if isinstance(value, FunctionType):
            self._visit_function(value)
        elif isinstance(value, dict | list | tuple):
            for item in value.values() if isinstance(value, dict) else value:
                self.visit(item)
        else:
            self._visit_other(value)

    def visit_named(self, held: Mapping[str, object]) -> None:
        """Look at the methods of the classes met so far, and at what an instance holds, that have names that code takes."""
        known = -1
        while known != len(self._seen):
            known = len(self._seen)
            spaces = [
                held,
                *(vars(base) for cls in list(self._classes) for base in cls.__mro__ if self._follows(base)),
            ]
            for space in spaces:
                for name in (self._taken | {"__call__"}) & space.keys():
                    self.visit(space[name])

    def _visit_function(self, function: FunctionType) -> None:
        if is_known_by_name(function, self._described):
            _refuse(function.__module__, function.__qualname__)
            return
        code = function.__code__
        taken = attributes(code)
        self._taken |= taken
        try:
            for read in reads(code):
                if read.name in function.__globals__:
                    self.visit(look_up(function.__globals__, read)[0])
                elif read.name in ("open", "input"):
                    _refuse("builtins" if read.name == "input" else "io", read.name)
            for item in imports(code):
                for name in item.names or taken:
                    _refuse(item.module, name)
            for cell in function.__closure__ or ():
                self.visit(_content(cell))
        except Unfingerprintable as error:
            error.inside(f"function {function.__qualname__}")
            raise

    def _visit_other(self, value: Any) -> None:
        module = getattr(value, "__module__", None)
        if isinstance(value, type):
            _refuse(value.__module__, value.__qualname__)
        elif callable(value) and isinstance(module, str) and hasattr(value, "__qualname__"):
            _refuse(module, value.__qualname__)
        cls = value if isinstance(value, type) else type(value)
        if not self._follows(cls):
            return
        self._classes[cls] = None
        if isinstance(value, type):
            for name in ("__new__", "__init__", "__post_init__"):
                self.visit(vars(cls).get(name))

    def _follows(self, cls: type) -> bool:
        return origin_of(cls.__module__, self._described) == "followed"


def _content(cell: Any) -> object:
    try:
        return cell.cell_contents
    except ValueError:  # a cell that nothing was put into yet
        return None


def _refuse(module: str, name: str) -> None:
    package = module.partition(".")[0]
    if package in _OUTSIDE or name in _OUTSIDE_OF.get(package, ()):
        raise Unfingerprintable(
            f"code that reads what lies outside of it: {module}.{name}",
            "what it gives is stored, and no key says what it depends on; read it before, and hold it as an attribute",
        )
