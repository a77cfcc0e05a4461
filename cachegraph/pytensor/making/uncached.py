"""PyTensor's own way from a request to a function, run where the cache does not have the function."""

from __future__ import annotations

from typing import Any

from pytensor.compile.maker import FunctionMaker

from cachegraph.pytensor.code.linking import keeping_linker
from cachegraph.pytensor.describe.specification import Specification
from cachegraph.pytensor.errors import note_failure
from cachegraph.pytensor.stored.stored_graph import StoredGraph


class _RewritingMaker(FunctionMaker):
    """PyTensor's maker, whose graph is rewritten quickly."""

    @staticmethod
    def prepare_fgraph(
        inputs: Any, outputs: Any, additional_outputs: Any, fgraph: Any, mode: Any, profile: Any
    ) -> None:
        from cachegraph.pytensor.making.rewritten_graph import rewritten_quickly  # a hit rewrites nothing

        with rewritten_quickly(fgraph):
            FunctionMaker.prepare_fgraph(inputs, outputs, additional_outputs, fgraph, mode, profile)


class UncachedMaking:
    """One request to PyTensor's FunctionMaker; `maker` and `function` are what it has made, if it has.

    `options` are the maker's arguments after inputs and outputs.
    """

    def __init__(self, inputs: Any, outputs: Any, **options: Any) -> None:
        self._inputs, self._outputs, self._options = inputs, outputs, options
        self.maker: Any = None
        self.function: Any = None

    def rewrite(self, wanted: Specification | None = None) -> Any:
        """Return the optimized graph of the request, or of `wanted` instead; raises what PyTensor raises."""
        inputs, outputs = (self._inputs, self._outputs) if wanted is None else (wanted.inputs, wanted.outputs)
        # Unused inputs were reported when the request came in.
        maker = _RewritingMaker(inputs, outputs, **{**self._options, "on_unused_input": "ignore"})
        maker.on_unused_input = self._options.get("on_unused_input")
        if wanted is not None:
            maker.unpack_single, maker.return_none = wanted.unpack_single, wanted.return_none
        self.maker = maker
        return maker.fgraph

    def link(self, graph: StoredGraph) -> None:
        """Make the function, with its code stored as that of `graph`; raises what PyTensor raises."""
        maker = self.maker
        plain = maker.linker
        try:
            maker.linker = keeping_linker(plain, graph)
            self.function = maker.create()
        except Exception as error:
            maker.linker = plain
            self.function = maker.create()  # fails again unless the adapter was at fault
            note_failure("linking a function to code that is kept", maker.name or "it", error)
