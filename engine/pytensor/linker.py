"""PyTensor's linker "engine"."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pytensor.link.basic import JITLinker

from cachegraph.pytensor.code.linking import backend_thunk
from engine.pytensor.program import StagedProgram, data_places


class EngineLinker(JITLinker):
    """Links a graph to functions of the engine. What the engine has no rule for, PyTensor computes."""

    companions = ("engine.pytensor.nutpie",)
    required_rewrites = ("minimum_compile", "scan_save_mem_no_prealloc")
    incompatible_rewrites = (
        "cxx_only",
        "BlasOpt",
        "fusion",
        "inplace",
        "local_careduce_fusion",
        "local_upcast_elemwise_constant_inputs",
        "scan_reduce_trace_prealloc",
    )
    """Rewrites that the engine makes itself or has no use for, and those that only other backends
    understand.
    """

    def fgraph_convert(
        self,
        fgraph: Any,
        order: Any,
        input_storage: Sequence[Any],
        output_storage: Any,
        storage_map: Any,
        **kwargs: Any,
    ) -> Any:
        return StagedProgram(fgraph, order, data_places(input_storage))

    def jit_compile(self, fn: Any) -> Any:
        return fn

    def create_jitable_thunk(self, *arguments: Any, **named: Any) -> Any:
        """Return what PyTensor asks for. The thunk is our own: errors that come from it name their node."""
        [given], nodes, program = super().create_jitable_thunk(*arguments, **named)
        thunk = backend_thunk(program, given.inputs, given.outputs)
        thunk.__dict__.update(given.__dict__)
        return [thunk], nodes, program

    def create_thunk_inputs(self, storage_map: dict[Any, list[Any]]) -> list[list[Any]]:
        return [storage_map[variable] for variable in self.fgraph.inputs]
