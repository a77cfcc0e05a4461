"""`config`: the flags of PyTensor that decide something here. The first three act while a graph is built.

    floatX        the dtype of tensors that are made without one: `pt.vector("x")`, `pt.zeros(3)`, draws
    cast_policy   "custom", or "numpy+floatX": `arange` then has numpy's dtype, or floatX for a float64 that
                  no bound has, and a Python float alone is floatX. Python numbers take the dtype of what
                  they meet with either (NEP 50)
    warn_float64  what happens where a float64 tensor is made: "ignore", "warn" or "raise"

    optimizer_verbose         True: replacements in a graph are printed, with the rewrites that make them
    optimizer_verbose_ignore  the names of rewrites that are not printed, with commas between them

A graph holds dtypes and no flags: a function that was compiled, and one that the cache has, do not change
with them. While a thread compiles, `cast_policy` and `warn_float64` are as if they were at their defaults
for what it makes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ContextDecorator, contextmanager
from contextvars import ContextVar
from typing import Any

CHOICES = {
    "floatX": ("float64", "float32", "float16"),
    "cast_policy": ("custom", "numpy+floatX"),
    "warn_float64": ("ignore", "warn", "raise"),
    "optimizer_verbose": (False, True),
}
"""The flags with few values, and these: the default first."""
FLAGS = (*CHOICES, "optimizer_verbose_ignore")


class Config:
    """PyTensor's `config`. Raises ValueError for a value that a flag does not have, AttributeError for a flag
    that is not among FLAGS.
    """

    __slots__ = FLAGS

    floatX: str
    cast_policy: str
    warn_float64: str
    optimizer_verbose: bool
    optimizer_verbose_ignore: str

    def __init__(self) -> None:
        for name, values in CHOICES.items():
            setattr(self, name, values[0])
        self.optimizer_verbose_ignore = ""

    def __setattr__(self, name: str, value: Any) -> None:
        if name in CHOICES and value not in CHOICES[name]:
            raise ValueError(f"Setting {name} to {value!r}: it must be one of {_listed(CHOICES[name])}")
        super().__setattr__(name, value)

    def change_flags(self, **flags: Any) -> FlagContext:
        """Return a context, which is a decorator too, in which flags have other values."""
        for name in flags:
            if name not in FLAGS:
                raise AttributeError(f"Changing the flag {name}: config has {_listed(FLAGS)} only")
        return FlagContext(self, flags)

    def is_printed(self, reason: str | None, verbose: bool | None = None) -> bool:
        """Return True if a replacement is printed that `reason` makes; None means: if the flag says so."""
        if not (self.optimizer_verbose if verbose is None else verbose):
            return False
        return str(reason) not in self.optimizer_verbose_ignore.split(",")


def _listed(items: Iterable[object]) -> str:
    return ", ".join(map(str, items))


class FlagContext(ContextDecorator):
    """A context, which can be entered again, in which flags have other values."""

    def __init__(self, config: Config, flags: dict[str, Any]) -> None:
        self.config = config
        self.flags = flags
        self.former: list[dict[str, Any]] = []

    def __enter__(self) -> Config:
        former = {name: getattr(self.config, name) for name in self.flags}
        for name, value in self.flags.items():
            setattr(self.config, name, value)
        self.former.append(former)
        return self.config

    def __exit__(self, *error: object) -> None:
        for name, value in self.former.pop().items():
            setattr(self.config, name, value)


_is_compiling: ContextVar[bool] = ContextVar("is_compiling", default=False)


@contextmanager
def compiling() -> Iterator[None]:
    """Return a context in which this thread compiles: what it makes is none of a user's graph."""
    token = _is_compiling.set(True)
    try:
        yield
    finally:
        _is_compiling.reset(token)


def is_compiling() -> bool:
    """Return True if this thread compiles a function."""
    return _is_compiling.get()


config = Config()
