"""`Missing`: what stands for a name of PyTensor's that the engine does not have.

While tests are collected it can be called, indexed, subclassed and used as a decorator: a file whose
tests need one missing name keeps its other tests. While a test runs, any use raises `NotCovered`.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import FrameType, TracebackType
from typing import Any

import pytest


class NotCovered(pytest.fail.Exception):
    """A test needs a name that the engine does not have. No `except Exception` of a test catches it."""


class Phase:
    """True while a test runs."""

    running = False


class Missing:
    """A name that the engine does not have, or what came of it while tests were collected."""

    __array_ufunc__ = None

    def __init__(self, name: str) -> None:
        self.__dict__["name"] = name

    def _used(self, *_: Any, **__: Any) -> Any:
        if Phase.running:
            raise NotCovered(self.__dict__["name"])
        return self

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        self._used()
        return Missing(f"{self.__dict__['name']}.{name}")

    def __call__(self, *_: Any, **__: Any) -> Any:
        return self._used()

    def __mro_entries__(self, _: Any) -> tuple[type, ...]:
        missing = self

        class Base:
            def __new__(cls, *_: Any, **__: Any) -> Any:
                return missing._used()

        return (Base,)

    def __iter__(self) -> Iterator[Any]:
        self._used()
        return iter(())

    def __hash__(self) -> int:
        return id(self)

    def __repr__(self) -> str:
        return f"<not covered: {self.__dict__['name']}>"

    def _refused(self, *_: Any) -> bool:
        self._used()
        return False

    def _zero(self) -> int:
        self._used()
        return 0

    __bool__ = __eq__ = __ne__ = __contains__ = __instancecheck__ = __subclasscheck__ = _refused
    __len__ = __int__ = __index__ = _zero
    __setattr__ = __getitem__ = __setitem__ = __enter__ = __exit__ = __neg__ = __invert__ = _used
    __lt__ = __le__ = __gt__ = __ge__ = __or__ = __ror__ = _used
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _used
    __pow__ = __rpow__ = __matmul__ = __rmatmul__ = __and__ = __rand__ = __mod__ = __rmod__ = _used


def name_not_covered(error: BaseException, tests: str) -> str:
    """Return the name that a test failed for; empty if it failed for something else.

    It is a missing name that was used, or that one of the calls in the traceback was given; or an
    attribute of the engine's objects, or a parameter of its functions, that code below the folder `tests`
    asked for.
    """
    if isinstance(error, NotCovered):
        return str(error)
    frames = list(_frames(error.__traceback__))
    given = next((value for frame in frames for value in _missing_values(frame)), None)
    if given is not None:
        return given.__dict__["name"]
    if not frames or not frames[-1].f_code.co_filename.startswith(tests):
        return ""
    if isinstance(error, AttributeError):
        return _attribute(error)
    if isinstance(error, TypeError) and " got an unexpected keyword argument " in str(error):
        function, parameter = str(error).split(" got an unexpected keyword argument ")
        return f"{function.removesuffix('()')}({parameter.split(chr(39))[1]}=)"
    return ""


def _frames(traceback: TracebackType | None) -> Iterator[FrameType]:
    while traceback is not None:
        yield traceback.tb_frame
        traceback = traceback.tb_next


def _missing_values(frame: FrameType) -> Iterator[Missing]:
    for value in frame.f_locals.values():
        for each in value if type(value) in (list, tuple) else (value,):
            if type(each) is Missing:
                yield each


def _attribute(error: AttributeError) -> str:
    owner = error.obj if isinstance(error.obj, type) else type(error.obj)
    if error.name is None or not owner.__module__.startswith("engine"):
        return ""
    return f"{owner.__name__}.{error.name}"
