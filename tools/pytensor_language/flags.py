"""`config`: PyTensor's flags as far as tests read them, at PyTensor's defaults, which are the engine's too.

The engine's own flags (`OWN`) do what they say. Python numbers have the dtype of what they meet, whatever
the `cast_policy`: so tests of "custom", which is PyTensor's default, and of "numpy+floatX" show the
difference.
"""

from __future__ import annotations

from contextlib import ContextDecorator
from importlib import import_module
from typing import Any

from missing import Missing

OWN = ("floatX", "cast_policy", "warn_float64", "optimizer_verbose", "optimizer_verbose_ignore")
"""The flags that the engine has."""

VALUES: dict[str, Any] = {
    "cxx": "",
    "device": "cpu",
    "int_division": "int",
    "linker": "numba",
    "mode": "FAST_RUN",
    "profile": False,
}
"""The values of the flags here; a flag that is changed to another is not covered."""

WITHOUT_EFFECT = frozenset(
    {
        "compiler_verbose",
        "cycle_detection",
        "exception_verbosity",
        "mode",
        "on_opt_error",
        "on_shape_error",
        "tensor__insert_inplace_optimizer_validate_nb",
        "traceback__limit",
    }
)
"""Flags that say how PyTensor compiles, reports or checks, and those that the engine has one answer to."""


def engine_config() -> Any:
    """Return the engine's own `config`, which has the flags of OWN."""
    return import_module("engine.configdefaults").config


class Flags:
    """PyTensor's `config`."""

    def __getattr__(self, name: str) -> Any:
        if name in OWN:
            return getattr(engine_config(), name)
        return VALUES[name] if name in VALUES else Missing(f"pytensor.config.{name}")

    def change_flags(self, *arguments: Any, **flags: Any) -> Any:
        """Return a context, which is a decorator too, in which flags have other values."""
        return _Changed(flags)


class _Changed(ContextDecorator):
    """A context, which can be entered again, in which flags have other values."""

    def __init__(self, flags: dict[str, Any]) -> None:
        self.flags = flags
        self.entered: list[Any] = []

    def __enter__(self) -> None:
        changed = engine_config().change_flags(
            **{name: self.flags[name] for name in OWN if name in self.flags}
        )
        changed.__enter__()
        self.entered.append(changed)
        for name, value in self.flags.items():
            if name not in (*WITHOUT_EFFECT, *OWN) and VALUES.get(name, Missing) != value:
                Missing(f"pytensor.config.{name}={value if isinstance(value, str) else '...'}")()

    def __exit__(self, *error: object) -> None:
        """Give the engine's flags their former values; no other was changed."""
        self.entered.pop().__exit__(*error)


config = Flags()
