"""The linker "engine" and the mode "ENGINE" in PyTensor's registries."""

from __future__ import annotations

from typing import Any

NAME = "ENGINE"


def register() -> Any:
    """Add the linker "engine" and the mode "ENGINE" to PyTensor's; return the mode.

    Afterwards `mode="ENGINE"` and `pytensor.config.mode = "ENGINE"` name it. A second call changes nothing.
    """
    from pytensor.compile.mode import Mode, predefined_modes, register_linker, register_mode
    from pytensor.graph.rewriting.db import RewriteDatabaseQuery

    from engine.pytensor.linker import EngineLinker

    if NAME not in predefined_modes:
        linker = EngineLinker()
        register_linker("engine", linker)
        register_mode(NAME, Mode(linker, RewriteDatabaseQuery(include=["fast_run"])))
        _accept_name()
    return predefined_modes[NAME]


def _accept_name() -> None:
    """Have `pytensor.config.mode` accept the name: PyTensor lists those of its own modes only."""
    from pytensor import config

    parameter = config._config_var_dict["mode"]
    accept = parameter._apply
    parameter._apply = lambda value: value if value == NAME else accept(value)
