"""The linker "engine" and the mode "ENGINE" in PyTensor's registries."""

from __future__ import annotations

import re

NAME = "ENGINE"
OLDEST = "3.3.7"
"""The oldest release of PyTensor that the rules were tested with; others have other Ops."""


def register() -> str:
    """Add the linker "engine" and the mode "ENGINE" to PyTensor's; return the mode's name.

    Afterwards `mode="ENGINE"` and `pytensor.config.mode = "ENGINE"` name it, and with
    `pytensor.config.linker = "engine"` the modes "Mode" and "FAST_RUN" are made with the engine. A second
    call changes nothing. Raises UnsupportedPyTensor for a release before 3.3.7.
    """
    check_release()
    from pytensor.compile.mode import (
        Mode,
        fast_run_linkers_to_mode,
        predefined_modes,
        register_linker,
        register_mode,
    )
    from pytensor.graph.rewriting.db import RewriteDatabaseQuery

    from engine.pytensor.cached_linker import CachedEngineLinker
    from engine.pytensor.solvers import LINKER

    if NAME not in predefined_modes:
        linker = CachedEngineLinker()
        register_linker(LINKER, linker)
        register_mode(NAME, Mode(linker, RewriteDatabaseQuery(include=["fast_run"])))
        fast_run_linkers_to_mode[LINKER] = predefined_modes[NAME]
        _accept("mode", NAME)
        _accept("linker", LINKER)
    return NAME


def check_release() -> None:
    """Raise UnsupportedPyTensor if the installed PyTensor is older than `OLDEST`."""
    import pytensor

    if _numbers(pytensor.__version__) < _numbers(OLDEST):
        from cachegraph.pytensor.errors import UnsupportedPyTensor

        raise UnsupportedPyTensor(
            f"PyTensor {pytensor.__version__}",
            f"PyTensor {OLDEST} or newer for the engine",
            "upgrade PyTensor, or use the backend 'numba'",
        )


def _numbers(version: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", version)[:3]]


def _accept(flag: str, name: str) -> None:
    """Have a flag of PyTensor's accept the name: PyTensor lists those of its own modes and linkers only."""
    from pytensor import config

    parameter = config._config_var_dict[flag]
    accept = parameter._apply
    parameter._apply = lambda value: value if value == name else accept(value)
