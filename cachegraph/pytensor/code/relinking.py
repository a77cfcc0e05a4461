"""The code of a graph by PyTensor's own linker, for what was not stored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pytensor.configdefaults import config
from pytensor.link.utils import map_storage

from cachegraph.pytensor.code.op_code import kept_op_code
from cachegraph.pytensor.describe.flags import IN_KEY

_OF_REWRITING = frozenset(name for name in IN_KEY if name in {"cxx", "mode"} or name.startswith("optimizer"))


def linking_flags() -> dict[str, Any]:
    """The flags of PyTensor that linking may depend on, with their values now."""
    return {name: getattr(config, name) for name in IN_KEY if name not in _OF_REWRITING and name != "linker"}


def link_by_pytensor(graph: Any, linker: Any, flags: Mapping[str, Any]) -> Any:
    """PyTensor's dispatcher of `graph`, made under `flags`, those in force when its function was made."""
    changed = {name: value for name, value in flags.items() if getattr(config, name) != value}
    nodes = linker.schedule(graph)
    inputs, outputs, storage_map = map_storage(graph, nodes)
    with kept_op_code(), config.change_flags(traceback__limit=config.traceback__compile_limit, **changed):
        converted = linker.fgraph_convert(
            graph, order=nodes, input_storage=inputs, output_storage=outputs, storage_map=storage_map
        )
        return linker.jit_compile(converted)
