"""`config`: the flags of PyTensor that decide something here. There is one, `floatX`.

It is the dtype of tensors that are made without one: `pt.vector("x")`, `pt.zeros(3)`, draws. A graph holds
dtypes and no flags: a function that was compiled, and one that the cache has, do not change with it.
"""

from __future__ import annotations

from contextlib import ContextDecorator
from typing import Any

FLOATS = ("float16", "float32", "float64")


class Config:
    """PyTensor's `config`. Raises ValueError for a dtype that is no float, AttributeError for other flags."""

    __slots__ = ("_float_x",)

    def __init__(self) -> None:
        self._float_x = "float64"

    @property
    def floatX(self) -> str:
        """The dtype of tensors that are made without one."""
        return self._float_x

    @floatX.setter
    def floatX(self, dtype: str) -> None:
        if dtype not in FLOATS:
            raise ValueError(f"Setting floatX to {dtype!r}: it must be one of {', '.join(FLOATS)}")
        self._float_x = dtype

    def change_flags(self, **flags: Any) -> ContextDecorator:
        """Return a context, which is a decorator too, in which flags have other values."""
        for name in flags:
            if not hasattr(self, name) or name.startswith("_"):
                raise AttributeError(f"Changing the flag {name}: config has floatX only")
        return _FlagContext(self, flags)


class _FlagContext(ContextDecorator):
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


config = Config()
