"""`Function`: a compiled function as users hold it. It converts arguments, holds shared variables, and
can be copied and pickled."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from inspect import signature
from types import MappingProxyType, SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from engine.compiling.compiled import CacheInfo, Compiled, FunctionReference
from engine.compiling.function_call import FunctionCall, input_label

if TYPE_CHECKING:
    from typing import Protocol

    from engine.compiling.arguments import Out
    from engine.compiling.compiled import PickledFunction, Runner
    from engine.compiling.function_call import HasStorage
    from engine.graph.fgraph import FunctionGraph
    from engine.graph.represented import RepresentedType

    class Named(Protocol):
        """An input of a function: an In, or what stands for one."""

        @property
        def name(self) -> str | None:
            """The name, for keywords and for messages."""

        @property
        def container(self) -> HasStorage | None:
            """The value for calls that give none, and for an update; None if each call must give it."""

    class Shared(Protocol):
        """A shared variable: it has its value in a container."""

        type: Any
        name: str | None
        container: HasStorage


class Function:
    """A compiled function. Call it with one value per input, by position or by name.

    `cache_info` says how it was made; `maker.fgraph` is its graph after rewriting. A pickle contains
    the values of its shared variables; the loaded function is neither rewritten nor compiled, and is
    linked when it is first used. FunctionLoadError says why it cannot be linked. Functions and shared
    variables that are pickled together still share values.

    `name` is the one it was given, or None. `trust_input` is PyTensor's, and decides nothing here: an
    argument that fits is used as it is without a cost, and one that does not is converted or refused.
    """

    # What a slot holds is called without a frame of Python in between.
    __slots__ = ("__call__", "__dict__", "__weakref__")
    __call__: Callable[..., Any]

    def __init__(
        self,
        compiled: Compiled,
        inputs: Sequence[Named],
        shared: Sequence[Shared],
        name: str | None,
        returns_list: bool,
        keys: tuple[str, ...] | None = None,
        represented: Mapping[int, RepresentedType] = MappingProxyType({}),
        trust_input: bool = False,
        variables: Sequence[Any] = (),
    ) -> None:
        self.name = name
        self.input_names = tuple(variable.name for variable in inputs)
        self._shared_names = tuple(variable.name for variable in shared)
        self._containers = tuple(variable.container for variable in shared)
        self._returns_list = returns_list
        self._keys = keys
        self._represented = dict(represented)
        self._variables = variables
        self._defaults = {k: each.container for k, each in enumerate(inputs) if each.container is not None}
        self._has_updates = True
        self.trust_input = trust_input
        self.__signature__ = _SIGNATURE
        self._pickled: PickledFunction | None = None
        self._attach(compiled)

    def _attach(self, compiled: Compiled) -> None:
        """Use `compiled` to run from now on."""
        self._maker: _Maker | None = None
        call = FunctionCall(
            compiled.runner,
            self.label,
            self.input_names,
            [container.storage for container in self._containers],
            self._returns_list,
            self._keys,
            self._has_updates,
            self._defaults,
            self._represented,
        )
        self.__call__ = call.fastest()
        self._compiled: Compiled | None = compiled  # the last: another thread that sees it sees the rest

    def _loaded(self) -> Compiled:
        """Return what runs the function; a function from a pickle is linked now, if it was not used
        before."""
        if self._compiled is None:
            self._attach(cast("PickledFunction", self._pickled).load())
        return cast(Compiled, self._compiled)

    def _load_and_call(self, *args: Any, **kwargs: Any) -> Any:
        self._loaded()
        return self.__call__(*args, **kwargs)

    @property
    def label(self) -> str:
        """How messages call the function."""
        return self.name or "function"

    def dprint(self, **options: Any) -> Any:
        """Print the graph after rewriting, and return what `dprint` does, whose `options` these are."""
        from engine.printing import dprint

        return dprint(self, **options)

    @property
    def cache_info(self) -> CacheInfo:
        """How the function was made: a hit, a miss or a bypass, with the reason and the counts."""
        return self._loaded().info

    def reference(self) -> FunctionReference | None:
        """Return what finds the function in the cache; None if it has no key, updates, or user Ops."""
        return self._loaded().reference()

    @property
    def runner(self) -> Runner:
        """Return what runs the function on one value per input and shared variable."""
        return self._loaded().runner

    @property
    def maker(self) -> _Maker:
        """The maker: `maker.fgraph` is the graph after rewriting."""
        if self._maker is None:
            names = [*self.input_names, *self._shared_names]
            self._maker = _Maker(self._loaded(), names, self._variables, self._has_updates)
        return self._maker

    @property
    def outputs(self) -> list[Out]:
        """The results, each as an Out with its variable in `maker.fgraph`."""
        from engine.compiling.arguments import Out

        found = self.maker.fgraph.outputs
        return [Out(variable) for variable in found[: len(self.runner.outputs)]]

    def _repr_html_(self) -> str:
        from engine.graph.drawing.svg import to_html

        return to_html(self)

    def _repr_svg_(self) -> str:
        from engine.graph.drawing.svg import to_svg

        return to_svg(self)

    def copy(
        self,
        share_memory: bool = False,
        swap: Mapping[Shared, Shared] | None = None,
        delete_updates: bool = False,
        name: str | None = None,
    ) -> Function:
        """Return a function with the same program and shared variables, named `name` or like this one
        with " copy".

        `swap` maps shared variables of this function to others of the same type for the copy to use
        (TypeError or ValueError for others). With `delete_updates` the copy updates nothing.
        `share_memory` has no effect: every call has memory of its own.
        """
        containers = self._swapped(swap or {})
        return self._on(containers, name or f"{self.label} copy", self._has_updates and not delete_updates)

    def _swapped(self, swap: Mapping[Shared, Shared]) -> tuple[HasStorage, ...]:
        """Return the containers of the shared variables, with those in `swap` replaced."""
        replaced = {}
        for old, new in swap.items():
            if not any(container is old.container for container in self._containers):
                raise ValueError(f"Copying {self.label}: it has no shared variable {old} to swap")
            if new.type != old.type:
                raise TypeError(
                    f"Copying {self.label}: {old} of type {old.type} cannot be swapped for {new} "
                    f"of type {new.type}"
                )
            replaced[id(old.container)] = new.container
        return tuple(replaced.get(id(container), container) for container in self._containers)

    def _on(
        self,
        containers: tuple[HasStorage, ...],
        name: str | None,
        has_updates: bool,
        defaults: dict[int, HasStorage] | None = None,
    ) -> Function:
        new = Function.__new__(Function)
        own = {
            "_defaults": self._defaults if defaults is None else defaults,
            "name": name,
            "_containers": containers,
            "_has_updates": has_updates,
            "_pickled": self._pickled,
        }
        new.__setstate__({**self._own_state(), **own})
        new._variables = self._variables
        if self._compiled is not None:
            new._attach(self._compiled)
        return new

    def __copy__(self) -> Function:
        return self.copy()

    def __deepcopy__(self, memo: dict[int, Any]) -> Function:
        containers, defaults = deepcopy((self._containers, self._defaults), memo)
        return self._on(containers, self.name, self._has_updates, defaults)

    def _own_state(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in _OWN_STATE}

    def __getstate__(self) -> dict[str, Any]:
        pickled = self._pickled if self._compiled is None else self._compiled.pickled()
        return {**self._own_state(), "_pickled": pickled}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._variables = ()
        self._maker = self._compiled = None
        self.__signature__ = _SIGNATURE
        self.__call__ = self._load_and_call

    def __repr__(self) -> str:
        outcome = "not loaded yet" if self._compiled is None else self._compiled.info.outcome
        return f"<Function {self.label}: {outcome}>"


_SIGNATURE = signature(lambda *args, **kwargs: None)
"""Said of each function, because before Python 3.13 `inspect` takes no method from a slot."""

_OWN_STATE = (
    "name",
    "input_names",
    "_shared_names",
    "_containers",
    "_returns_list",
    "_keys",
    "_represented",
    "_defaults",
    "_has_updates",
    "trust_input",
)


class _Maker(SimpleNamespace):
    """The maker of a function: `fgraph` is the graph after rewriting, read from the cache when it is
    first asked for, on the variables that the function was made of; a pickled one has none."""

    def __init__(
        self, compiled: Compiled, names: Sequence[str | None], variables: Sequence[Any], has_updates: bool
    ) -> None:
        super().__init__()
        self._compiled = compiled
        self._updated = [position for position, _ in compiled.runner.updates] if has_updates else []
        self._names = names
        self._variables = variables
        self._fgraph: FunctionGraph | None = None

    @property
    def fgraph(self) -> FunctionGraph:
        if self._fgraph is None:
            from engine.compiling.shown_copies import show_copies  # Ops, which a loaded function does without

            self._fgraph = self._on_variables(self._compiled.optimized())
            first = len(self._fgraph.outputs) - len(self._compiled.runner.updates)  # new values come last
            self._fgraph.update_mapping = dict(enumerate(self._updated, start=first))
            show_copies(self._fgraph, [self._fgraph.inputs[position] for position in self._updated])
        return self._fgraph

    def _on_variables(self, fgraph: FunctionGraph) -> FunctionGraph:
        """Return `fgraph` on the variables of the function; if there are none, with their names.

        A variable that something computes cannot be an input: a fresh one stands for it.
        """
        for variable, name in zip(fgraph.inputs, self._names, strict=True):
            variable.name = name
        if not self._variables:
            return fgraph
        pairs = zip(fgraph.inputs, self._variables, strict=True)
        inputs = [own if own.owner is None and own.type == old.type else old for old, own in pairs]
        frozen = fgraph.freeze()
        return frozen.unfreeze(inputs=inputs)


class ArgumentConverter:
    """Converts arguments to the types of their inputs.

    A refused value raises ArgumentError, which names the function and the argument, or the shared
    variable: those come after the first `n_explicit` inputs. `allow_downcast` and `strict`, those of an In or
    of all inputs, are those of `Type.filter`. `types` are those that the program has in their places.
    """

    def __init__(
        self,
        function: str,
        variables: Sequence[Any],
        n_explicit: int,
        allow_downcast: bool | None = None,
        types: Sequence[Any] | None = None,
    ) -> None:
        inputs = variables[:n_explicit]
        self.options = {
            position: {"strict": strict, "allow_downcast": downcast}
            for position, (strict, downcast) in enumerate(
                _conversion(each, allow_downcast) for each in inputs
            )
            if strict or downcast is not None
        }
        self.function = function
        self.types = [variable.type for variable in variables] if types is None else list(types)
        self.accepted = {k: v.type for k, v in enumerate(variables) if v.type is not self.types[k]}
        self.names = [variable.name for variable in variables]
        self.n_explicit = n_explicit

    def __call__(self, position: int, value: Any) -> np.ndarray[Any, Any]:
        expected = self.types[position]
        try:
            array = self._array(expected, position, value)
        except (TypeError, ValueError) as error:
            from engine.errors import ArgumentError, ArgumentRangeError

            name, is_shared = self.names[position], position >= self.n_explicit
            label = (
                _shared_label(name, position - self.n_explicit) if is_shared else input_label(name, position)
            )
            refused = ArgumentRangeError if isinstance(error, OverflowError) else ArgumentError
            accepted = str(self.accepted.get(position, expected))
            raise refused(self.function, label, accepted, _found(value), is_shared) from error
        flags = array.flags
        if (
            type(array) is np.ndarray
            and array.dtype is expected.numpy_dtype
            and flags.c_contiguous
            and flags.aligned
        ):
            return array
        # A subclass, a strided or an unaligned array, or one whose dtype has another name, is copied into a
        # plain one: what the machine reads.
        plain = np.array(array, dtype=expected.numpy_dtype, order="C", subok=False, copy=None)
        return plain if plain.flags.aligned else plain.copy()

    def _array(self, expected: Any, position: int, value: Any) -> np.ndarray[Any, Any]:
        is_represented = hasattr(expected, "to_array")
        if is_represented and expected.is_array(value):  # an earlier call left it, or converted it
            return value
        options = self.options.get(position, _AS_EVER)
        if position in self.accepted:  # a user's type says what an argument may be
            value = self.accepted[position].filter(value, **options)
        found = expected.filter(value, **options)
        return expected.to_array(found) if is_represented else found


_AS_EVER: dict[str, Any] = {}


def _conversion(given: Any, allow_downcast: bool | None) -> tuple[bool, bool | None]:
    """Return `strict` and `allow_downcast` of an input, a variable or an In."""
    own = getattr(given, "allow_downcast", None)
    return getattr(given, "strict", False), allow_downcast if own is None else own


def _shared_label(name: str | None, position: int) -> str:
    return repr(name) if name else f"number {position} (it has no name)"


def _found_array(what: str, value: np.ndarray[Any, Any]) -> str:
    return f"{what} of {value.dtype} with shape {value.shape}"


def _found(value: Any) -> str:
    from engine.tensor.type import is_masked  # tensors, which a loaded function does without

    if is_masked(value):
        found = (
            _found_array("a masked array", value)
            if isinstance(value, np.ndarray)
            else "a list with a masked array"
        )
        return f"{found} (fill it: its mask would be lost)"
    if isinstance(value, np.ndarray):
        return _found_array("an array", value)
    text = repr(value)
    return f"{text if len(text) < 60 else text[:57] + '...'} ({type(value).__name__})"
