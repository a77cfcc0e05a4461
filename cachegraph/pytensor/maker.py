"""PyTensor's maker of functions, with a cache in front of its rewriting."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import partial
from typing import Any

from pytensor.compile.aliasing import infer_reuse_pattern
from pytensor.compile.executor import Function
from pytensor.compile.maker import FunctionMaker
from pytensor.compile.mode import get_mode

from cachegraph.cache_info import CacheInfo
from cachegraph.pytensor.bypassing import bypass_of
from cachegraph.pytensor.lookup import Lookup
from cachegraph.pytensor.specification import Specification


class CachedMaker(FunctionMaker):
    """Makes what FunctionMaker makes of the same arguments; `cache_info` says how that came about.

    Where the cache does not help, for whatever reason, FunctionMaker does it all.
    """

    large_constants = False
    cache_info: CacheInfo

    def __init__(
        self,
        inputs: Any,
        outputs: Any,
        mode: Any = None,
        accept_inplace: bool = False,
        function_class: Any = Function,
        profile: Any = None,
        on_unused_input: str | None = None,
        fgraph: Any = None,
        name: str | None = None,
        no_fgraph_prep: bool = False,
        trust_input: bool = False,
    ) -> None:
        wanted = Specification.of(inputs, outputs)
        self.check_unused_inputs(wanted.inputs, wanted.outputs, on_unused_input)
        by_pytensor = partial(
            super().__init__,
            inputs,
            outputs,
            mode,
            accept_inplace,
            function_class,
            profile,
            "ignore",  # it was looked at above, from where a warning names the user's line
            fgraph,
            name,
            no_fgraph_prep,
            trust_input,
        )
        self._lookup: Lookup | None = Lookup(
            wanted, get_mode(mode), name, partial(self._rewritten, by_pytensor)
        )
        self.cache_info = self._lookup.info
        bypass = bypass_of(get_mode(mode), fgraph, no_fgraph_prep, profile)
        if bypass is not None:
            self._lookup.bypass(bypass)
        else:
            graph = self._lookup.find(accept_inplace, self.large_constants)
            if graph is not None:
                self.mode, self.profile, self.name = mode, profile, name
                self.accept_inplace, self.trust_input = accept_inplace, trust_input
                self.function_class = function_class
                self._adopt(graph, wanted)
        self.on_unused_input = on_unused_input

    def create(self, input_storage: Any = None, storage_map: Any = None) -> Any:
        """The function, as FunctionMaker makes it; of a stored graph that cannot be linked, PyTensor makes it anew."""
        lookup, self._lookup = self._lookup, None
        if lookup is None or lookup.rewritten:
            return super().create(input_storage, storage_map)
        try:
            return super().create(input_storage, storage_map)
        except Exception as error:
            lookup.note_failure("linking a stored graph", error)
        on_unused_input = self.on_unused_input
        lookup.do_without()
        self.on_unused_input = on_unused_input
        return super().create(input_storage, storage_map)

    def _rewritten(self, by_pytensor: Callable[[], None]) -> Any:
        by_pytensor()
        return self.fgraph

    def _adopt(self, graph: Any, wanted: Specification) -> None:
        """Hold what FunctionMaker holds once it has rewritten a graph."""
        graph.name = self.name
        graph.profile = self.profile
        self.fgraph = graph
        self.linker = _accepting(get_mode(self.mode).linker, graph, wanted)
        self.inputs = self.expanded_inputs = wanted.inputs
        self.outputs = wanted.outputs
        self.unpack_single = wanted.unpack_single
        self.return_none = wanted.return_none
        self.required = [spec.value is None for spec in wanted.inputs]


def _accepting(linker: Any, graph: Any, wanted: Specification) -> Any:
    """A copy of `linker` that links `graph`."""
    # New values of inputs are never borrowed.
    borrowed = [spec.borrow for spec in wanted.outputs] + [False] * len(wanted.update_mapping)
    disowned = [output for output, borrow in zip(graph.outputs, borrowed, strict=True) if not borrow]
    if not disowned:
        return copy.copy(linker).accept(graph)
    return copy.copy(linker).accept(graph, no_recycling=infer_reuse_pattern(graph, disowned))
