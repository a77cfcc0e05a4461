"""`FunctionCall`: a call of a function, from arguments to what is returned.

The machine's code does it where it can (runtime/fast_call.py); what it leaves is done here.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import repeat
from operator import itemgetter, setitem
from typing import TYPE_CHECKING, Any
from weakref import ref

from engine.runtime.fast_call import RETURNS_DICT, RETURNS_LIST, RETURNS_ONE, Arrangement

if TYPE_CHECKING:
    from typing import Protocol

    from engine.compiling.compiled import Runner
    from engine.graph.represented import RepresentedType

    class HasStorage(Protocol):
        """An object with the value of a variable in `storage`, a list of one item."""

        storage: list[Any]


class FunctionCall:
    """A call of the function `name`, by position or by name: it takes the values of shared variables from
    `storages`, and puts the new ones there.

    Arguments that are left out have the values in `defaults`, containers by position: updates of inputs are
    put there. It returns the only output, or with
    `returns_list` a list, or with `keys` a dictionary of outputs. `represented` has the types of outputs
    whose values are no arrays, by position.
    """

    def __init__(
        self,
        runner: Runner,
        name: str,
        input_names: Sequence[str | None],
        storages: Sequence[list[Any]],
        returns_list: bool,
        keys: tuple[str, ...] | None,
        has_updates: bool,
        defaults: Mapping[int, HasStorage],
        represented: Mapping[int, RepresentedType],
    ) -> None:
        self._defaults = defaults
        self._runner = runner
        self._run = runner.run
        self._name = name
        self._input_names = input_names
        self._n_inputs = len(input_names)
        self._storages = storages
        updates = runner.updates if has_updates else ()
        self._updated = [self._storage(position) for position, _ in updates]
        self._new_values = [number for _, number in updates]
        self._outputs = runner.outputs
        self._returns_list = returns_list
        self._keys = keys
        self._represented = represented
        self._fast: Callable[[], Callable[..., Any] | None] = lambda: None

    def _storage(self, position: int) -> list[Any]:
        """Return the storage of an input or a shared variable."""
        shared = position - self._n_inputs
        return self._defaults[position].storage if shared < 0 else self._storages[shared]

    def fastest(self) -> Callable[..., Any]:
        """Return what calls the function with the least effort: a fast call if there can be one, else
        this."""
        if self._represented:
            return self.__call__
        returns = (
            RETURNS_ONE if not self._returns_list else RETURNS_LIST if self._keys is None else RETURNS_DICT
        )
        arrangement = Arrangement(
            self._n_inputs, self._storages, self._updated, self._new_values, self._outputs, returns
        )
        fast = self._runner.fast_call(arrangement, self.__call__, self._returned)
        if fast is None:
            return self.__call__
        self._fast = ref(fast)  # which has a reference to this
        return fast

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if kwargs or len(args) != self._n_inputs:
            args = self._arranged(args, kwargs)
            if (fast := self._fast()) is not None:
                return fast(*args)
        if self._storages:
            args = (*args, *_values(self._storages))
        return self._returned(self._run(args))

    def _returned(self, results: list[Any]) -> Any:
        """Store the updates among `results`, and return the outputs."""
        if self._updated:
            _store(self._updated, [results[number] for number in self._new_values])
        outputs = [results[number] for number in self._outputs]
        for position, type in self._represented.items():
            outputs[position] = type.from_array(outputs[position])
        if not self._returns_list:
            return outputs[0]
        return outputs if self._keys is None else dict(zip(self._keys, outputs, strict=True))

    def _arranged(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """Return the values of all inputs in order; refuses (TypeError) missing, unknown and repeated
        arguments."""
        if len(args) > self._n_inputs:
            raise TypeError(
                f"Calling {self._name}: it takes {self._n_inputs} arguments, {len(args)} were given"
            )
        names = self._input_names[len(args) :]
        unknown = [name for name in kwargs if name not in names or self._input_names.count(name) != 1]
        if unknown:
            raise TypeError(
                f"Calling {self._name}: there is no argument {', '.join(unknown)}, or not just one; "
                f"those left to give by name are {', '.join(map(str, names)) or 'none'}"
            )
        given = {
            k: kwargs[name] for k, name in enumerate(names, len(args)) if name is not None and name in kwargs
        }
        kept = {k: each.storage[0] for k, each in self._defaults.items()}
        values = {**{k: value for k, value in kept.items() if value is not None}, **given}
        missing = [input_label(name, k) for k, name in enumerate(names, len(args)) if k not in values]
        if missing:
            raise TypeError(f"Calling {self._name}: no value was given for {', '.join(missing)}")
        return (*args, *[values[k] for k in range(len(args), self._n_inputs)])


def input_label(name: str | None, position: int) -> str:
    """Return how messages call an input."""
    return f"{position} ({name!r})" if name else f"{position}"


_VALUE = itemgetter(0)


def _values(storages: Iterable[list[Any]]) -> Iterable[Any]:
    """Return the values in `storages`, read all at one moment if the interpreter consumes them in one
    step."""
    return map(_VALUE, storages)


def _store(storages: Iterable[list[Any]], values: Iterable[Any]) -> None:
    """Put each of `values` into its storage: all of them or, if an interrupt comes, none."""
    # A signal's handler, and another thread, runs between two instructions of Python: here there is but
    # one, a call that runs no Python.
    deque(map(setitem, storages, repeat(0), values), maxlen=0)
