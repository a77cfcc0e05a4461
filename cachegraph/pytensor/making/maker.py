"""PyTensor's maker of functions, with a cache in front of its rewriting and linking."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import TYPE_CHECKING, Any, ClassVar

from pytensor.compile.aliasing import infer_reuse_pattern
from pytensor.compile.executor import Function
from pytensor.compile.maker import FunctionMaker
from pytensor.compile.mode import get_mode
from pytensor.graph.basic import Variable
from pytensor.link.basic import Container

from cachegraph.caching.outcome import CacheInfo
from cachegraph.forking import momentary_lock
from cachegraph.pytensor.backends import backend_of
from cachegraph.pytensor.code.linking import (
    Cell,
    InnerFunctionNodes,
    keeping_linker,
    link,
    link_by_pytensor,
    linking_flags,
    stored_code,
)
from cachegraph.pytensor.describe.specification import Specification
from cachegraph.pytensor.errors import note_failure
from cachegraph.pytensor.making.copies import is_same_graph, mark, unmark
from cachegraph.pytensor.making.lookup import Lookup
from cachegraph.pytensor.making.outcome import bypass_of
from cachegraph.pytensor.making.uncached import UncachedMaking
from cachegraph.pytensor.stored.stored_graph import StoredGraph

if TYPE_CHECKING:
    from cachegraph.pytensor.making.pickled_maker import PickledMaker

_loading = momentary_lock()

_PICKLED = (
    *("mode", "accept_inplace", "function_class", "on_unused_input", "name", "trust_input"),
    *("unpack_single", "return_none", "required", "profile", "_flags", "_update_mapping"),
)
"""The attributes of a maker that its pickle holds as they are."""


class CachedMaker(FunctionMaker):
    """A maker of what FunctionMaker makes of the same arguments; `cache_info` says how it came about.

    If the cache does not help, for whatever reason, FunctionMaker does all of the work.
    """

    large_constants: ClassVar[bool] = False
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
        # Called from this frame: a warning then names the same line as PyTensor's would.
        self.check_unused_inputs(wanted.inputs, wanted.outputs, on_unused_input)
        self.mode, self.accept_inplace, self.function_class = mode, accept_inplace, function_class
        self.profile, self.name, self.trust_input = profile, name, trust_input
        self.on_unused_input = on_unused_input
        self._fgraph: Any = None
        self._stored: StoredGraph | None = None
        self._code: Any = None
        self._function: Any = None
        self._flags: Any = None
        self._asked: Any = None if fgraph is not None else (inputs, outputs)
        uncached = self._uncached(inputs, outputs, fgraph=fgraph, no_fgraph_prep=no_fgraph_prep)
        lookup = Lookup(wanted, get_mode(mode), name, uncached)
        self.cache_info = lookup.info
        original = self._try("recognizing a copy", lambda: self._original(wanted, fgraph, no_fgraph_prep))
        bypass = bypass_of(get_mode(mode), fgraph, no_fgraph_prep, profile)
        if original is not None:
            uncached.rewrite()  # its graph is given: nothing is rewritten
            self._take_over(uncached)
            self._try("making a copy", lambda: self._adopt_copied(original))
            return
        if bypass is not None:
            lookup.bypass(bypass)
        else:
            self._find(lookup)
            self._try("adopting what was found", lambda: self._adopt_found(lookup, uncached))
        if self._stored is None:
            lookup.do_without()
            self._take_over(uncached)

    @property
    def fgraph(self) -> Any:
        """The optimized graph; for a function from the cache it is read at the first access."""
        with _loading:
            if self._fgraph is None:
                self._fgraph = self._read_graph()
            return self._fgraph

    @fgraph.setter
    def fgraph(self, fgraph: Any) -> None:
        self._fgraph = fgraph

    def create(self, input_storage: Any = None, storage_map: Any = None) -> Any:
        """Return a function, as FunctionMaker makes it."""
        function, self._function = self._function, None
        if function is not None and input_storage is None and not storage_map:
            return function
        if self._stored is None:
            return self._create_by_linking(input_storage, storage_map)
        try:
            return self._create_on_code(input_storage, storage_map)
        except Exception as error:
            note_failure("linking a function to stored code", self.name or "it", error)
        self._do_without_code()
        return self._create_by_linking(input_storage, storage_map)

    def __getstate__(self) -> dict[str, Any]:
        state = {name: value for name, value in vars(self).items() if name not in ("_function", "_asked")}
        if self._stored is None:
            return state
        from cachegraph.pytensor.making.pickled_maker import PickledMaker  # few functions are pickled

        attributes = {name: state[name] for name in _PICKLED}
        return {
            "pickled": PickledMaker.of(attributes, self.inputs, self.outputs, self._results, self._stored)
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._function = self._fgraph = self._asked = None
        pickled: PickledMaker | None = state.get("pickled")
        if pickled is None:
            self.__dict__.update(state)
            return
        self.__dict__.update(pickled.attributes)
        self.cache_info = CacheInfo("carried", "it came in a pickle", pickled.key.hex)
        self.inputs, self.outputs, self._results = pickled.inputs, pickled.outputs, pickled.results
        self._expect_code(pickled.graph())

    def _uncached(self, inputs: Any, outputs: Any, **given: Any) -> UncachedMaking:
        """Return PyTensor's own way to make a function like this one, of `inputs` and `outputs`."""
        return UncachedMaking(
            inputs,
            outputs,
            mode=self.mode,
            accept_inplace=self.accept_inplace,
            function_class=self.function_class,
            profile=self.profile,
            on_unused_input=self.on_unused_input,
            name=self.name,
            trust_input=self.trust_input,
            **given,
        )

    def _take_over(self, uncached: UncachedMaking) -> None:
        """Hold what PyTensor's own maker holds, and its function as one of this maker's."""
        for name, value in vars(uncached.maker).items():
            setattr(self, name, value)
        self._function = uncached.function
        if self._function is not None:
            self._function.maker = self

    def _find(self, lookup: Lookup) -> None:
        """Have `lookup` find the function; if a backend's linker refuses it, `create` asks that once more."""
        mode = get_mode(self.mode)
        try:
            lookup.find(self.accept_inplace, self.large_constants or backend_of(mode.linker) is not None)
        except Exception as error:
            from cachegraph.pytensor.making.refusal import mode_instead

            if not lookup.is_rewritten or mode_instead(mode, error) is None:
                raise

    def _try(self, doing: str, step: Callable[[], Any]) -> Any:
        """Return what `step` does; if it fails, note the failure and forget what came from the cache."""
        try:
            return step()
        except Exception as error:
            note_failure(doing, self.name or "a function", error)
            self._stored = self._code = None
            return None

    def _adopt_found(self, lookup: Lookup, uncached: UncachedMaking) -> None:
        """Make functions of the graph that `lookup` has found, or had `uncached` make and stored."""
        if lookup.graph is None:
            return
        if lookup.is_rewritten:
            self._take_over(uncached)
            self._adopt_made(lookup.graph)
        else:
            self._adopt(lookup.graph, lookup.adopted)

    def _adopt(self, graph: StoredGraph, wanted: Specification) -> None:
        """Make functions on the stored code of `graph`, of which PyTensor has made none."""
        self.inputs, self.outputs, self._results = wanted.inputs, wanted.outputs, wanted.results
        self.unpack_single, self.return_none = wanted.unpack_single, wanted.return_none
        self.required = [spec.value is None for spec in wanted.inputs]
        self._update_mapping = wanted.update_mapping
        self._flags = linking_flags()
        self._expect_code(graph)

    def _expect_code(self, graph: StoredGraph) -> None:
        self.expanded_inputs = self.inputs
        self.linker = copy.copy(get_mode(self.mode).linker)
        self._code = stored_code(self.linker, graph, self._link_by_pytensor)
        self._stored = graph
        mark(self.inputs, self)

    def _adopt_made(self, graph: StoredGraph) -> None:
        """Make further functions on the code of the one that PyTensor made, whose stored form is `graph`."""
        self._results, self._update_mapping = self.fgraph.outputs, self.fgraph.update_mapping
        self._flags = linking_flags()
        self._stored, self._code = graph, self._function.vm.jit_fn
        mark(self.inputs, self)

    def _original(self, wanted: Specification, fgraph: Any, no_fgraph_prep: bool) -> Any:
        """Return the maker whose function is copied if linking `fgraph` gives the same code, else None."""
        original = unmark(wanted.inputs)
        if original is None or not no_fgraph_prep or self.profile or original._code is None:
            return None
        is_linked_alike = (
            get_mode(original.mode) is get_mode(self.mode) and original._flags == linking_flags()
        )
        return original if is_linked_alike and is_same_graph(original.fgraph, fgraph) else None

    def _adopt_copied(self, original: CachedMaker) -> None:
        """Make functions on the code of `original`, whose graph PyTensor has copied."""
        graph: Any = original._stored
        stored = StoredGraph(graph.key, graph.content, self.fgraph.inputs, graph.context, graph.basis)
        code = original._code
        if backend_of(self.linker) is not None:  # its code may have state: each function has its own
            code = self.linker.stored_code(stored)
        if code is None:
            return
        self._results, self._update_mapping = self.fgraph.outputs, self.fgraph.update_mapping
        self._flags, self._code, self._stored = original._flags, code, stored
        self.cache_info = original.cache_info.replace(reason="a copy of a function")
        mark(self.inputs, self)

    def _create_by_linking(self, input_storage: Any, storage_map: Any) -> Any:
        """Return a function that PyTensor's linker makes; numba's if the linker of another backend fails."""
        try:
            with self._linking():
                return super().create(input_storage, storage_map)
        except Exception as error:
            from cachegraph.pytensor.making.refusal import mode_instead, note_refusal

            instead = mode_instead(get_mode(self.mode), error)
            if instead is None or self._asked is None or input_storage is not None:
                raise
            refusal = note_refusal(self.linker, self.name, error)
        return self._remade(instead, refusal).create()

    @contextmanager
    def _linking(self) -> Iterator[None]:
        """Count the time of the block as spent on this function."""
        from cachegraph.waiting_line import shown_if_long  # a function that is found is not linked

        begin = perf_counter()
        with shown_if_long(f"PyTensor links {self.name or 'a function'}"):
            yield
        linking, seconds = perf_counter() - begin, self.cache_info.seconds
        more = {step: seconds.get(step, 0.0) + linking for step in ("link", "total")}
        self.cache_info = self.cache_info.replace(seconds={**seconds, **more})

    def _remade(self, mode: Any, refusal: str) -> CachedMaker:
        """Return a maker of the same function by `mode`; `refusal` is the reason."""
        inputs, outputs = self._asked
        maker = CachedMaker(
            inputs,
            outputs,
            mode,
            self.accept_inplace,
            self.function_class,
            self.profile,
            "ignore",  # unused inputs were reported when the request came in
            name=self.name,
            trust_input=self.trust_input,
        )
        maker.on_unused_input = self.on_unused_input
        found = maker.cache_info
        maker.cache_info = found.replace(reason=f"{refusal}; {found.reason}" if found.reason else refusal)
        return maker

    def _create_on_code(self, input_storage: Any, storage_map: Any) -> Any:
        stored: Any = self._stored
        if input_storage is None:
            input_storage = [getattr(spec, "value", None) for spec in self.inputs]
        cells = [_cell(value) for value in input_storage]
        if self._code is None:  # it cannot be stored, or is gone: PyTensor links the graph now
            linker = keeping_linker(self.linker, stored)
            self._code = link_by_pytensor(self.fgraph, linker, self._flags, cells)
        linked = link(
            self._code,
            lambda: self.fgraph,
            stored.sources,
            list(zip(stored.inputs, cells, strict=True)),
            self._results,
            storage_map,
            self.linker,
        )
        function = self._function_on(*linked, stored)
        function.profile = self.profile
        return function

    def _function_on(self, thunk: Any, containers: Any, results: Any, stored: StoredGraph) -> Any:
        """Return a Function that calls `thunk`; an outline stands in for a graph that was not read yet."""
        with _loading:
            is_read = self._fgraph is not None
            if not is_read:
                self._fgraph = stored.outline()
            try:
                function = self.function_class(
                    vm=thunk,
                    input_storage=containers,
                    output_storage=results,
                    outputs=self.outputs,
                    unpack_single=self.unpack_single,
                    return_none=self.return_none,
                    maker=self,
                    trust_input=self.trust_input,
                    name=self.name,
                )
            finally:
                if not is_read:
                    self._fgraph = None
        if not is_read:
            function._nodes_with_inner_function = InnerFunctionNodes(lambda: self.fgraph)
        return function

    def _link_by_pytensor(self) -> Any:
        return link_by_pytensor(self.fgraph, self.linker, self._flags)

    def _read_graph(self) -> Any:
        stored: Any = self._stored
        try:
            graph = stored.load()
            graph.update_mapping = self._update_mapping
        except Exception as error:
            if self.cache_info.outcome == "carried":  # a pickle has nothing else to make it of
                raise
            note_failure("reading the optimized graph", self.name or "it", error)
            graph = self._uncached(self.inputs, self.outputs).rewrite()
        graph.name, graph.profile = self.name, self.profile
        self._accept(graph)
        return graph

    def _accept(self, graph: Any) -> None:
        """Give `graph` to the linker, as FunctionMaker does before it links."""
        borrows = [spec.borrow for spec in self.outputs]
        borrows += [False] * (len(graph.outputs) - len(borrows))  # new values of inputs are never borrowed
        disowned = [output for output, borrow in zip(graph.outputs, borrows, strict=True) if not borrow]
        self.linker.accept(graph, no_recycling=infer_reuse_pattern(graph, disowned) if disowned else None)

    def _do_without_code(self) -> None:
        """Forget the stored code, so that PyTensor's linker makes the next function."""
        if self.cache_info.outcome == "hit" and self._fgraph is None:
            uncached = self._uncached(self.inputs, self.outputs)
            self.fgraph = uncached.rewrite()
            self.linker = uncached.maker.linker
        else:  # a pickle has nothing else to make it of
            self._accept(self.fgraph)
        self._stored = self._code = None
        self.cache_info = CacheInfo("bypass", "linking it to stored code failed", self.cache_info.key)


def _cell(value: Any) -> Cell:
    """Return the storage of an input's value: shared with the variable it belongs to, or new."""
    if isinstance(value, Variable):
        value = value.container
    return value.storage if isinstance(value, Container) else [value]
