"""User functions on arrays, compiled by numba and called from Python; numba's results are kept in the store.

They may allocate, raise and call numba's runtime, so they are no kernels. A call gets C-contiguous
copies of the inputs, which it may keep or overwrite: a node has one signature. If numba does not
compile the function, `perform` computes.
"""

# mypy: disable-error-code="no-untyped-call"
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numba
import numpy as np
from numba.core.errors import NumbaError

from cachegraph.cache import default_cache
from cachegraph.errors import Unfingerprintable
from cachegraph.fingerprint.encoding import encode
from cachegraph.logger import logger
from cachegraph.numba_cache import StoredOverloads, keep_overloads
from engine.codegen.numba.functions import dispatcher_like
from engine.graph.apply import Apply
from engine.graph.reference import own_result, run_node
from engine.graph.user_ops import DESCRIBED
from engine.scalar.embedded import numba_function_of

Call = Callable[[Sequence[Any]], list[Any]]


def compiled_call(node: Apply) -> Call:
    """Return a function from the inputs of `node` to its outputs: what its Op gives numba, or else `perform`.

    Raises TypeError if what the Op gives is no function.
    """
    function = numba_function_of(node.op, node)
    return _by_python(node) if function is None else _CompiledCall(node, stored_dispatcher(function))


def stored_dispatcher(function: Any) -> Any:
    """Return a dispatcher of `function`, whose overloads are kept in the store if it can be described.

    A dispatcher is not changed but copied, because it may be used elsewhere and keep its overloads
    elsewhere. A plain function gets numpy's rules for division by 0.
    """
    dispatcher = dispatcher_like(function)
    try:
        if hasattr(dispatcher, "targetoptions"):  # with NUMBA_DISABLE_JIT it is the function itself
            keep_overloads(dispatcher, encode(function, DESCRIBED))
    except Unfingerprintable as error:
        logger("engine").info(
            "the code that numba compiles for %s is not kept: %s", dispatcher.py_func.__qualname__, error
        )
        default_cache().note_bypass("numba", "unfingerprintable")
    return dispatcher


class _CompiledCall:
    """The compiled function of a node; numba compiles it, or finds it in the store, at the first call."""

    def __init__(self, node: Apply, dispatcher: Any) -> None:
        self._node = node
        self._dispatcher = dispatcher
        self._python: Call | None = None
        self._is_prepared = False

    def __call__(self, inputs: Sequence[Any]) -> list[Any]:
        if self._python is not None:
            return self._python(inputs)
        shown = [np.array(value, order="C") for value in inputs]
        try:
            self._prepare(shown)
            found = self._dispatcher(*shown)
        except NumbaError as error:
            self._python = _by_python(self._node)
            logger("engine").warning(
                "numba does not compile the function of %s, so Python runs it: %s", self._node.op, error
            )
            return self._python(inputs)
        except Exception as error:
            error.add_note(f"This was raised by the function that {self._node.op} has numba compile.")
            raise
        return self._taken(found)

    def _prepare(self, arguments: Sequence[Any]) -> None:
        """Find or compile the overload before the first call: one process compiles, others wait for it."""
        overloads = getattr(self._dispatcher, "_cache", None)
        if not self._is_prepared and isinstance(overloads, StoredOverloads):
            overloads.get_or_compile(self._dispatcher, tuple(map(numba.typeof, arguments)))
        self._is_prepared = True

    def _taken(self, found: Any) -> list[Any]:
        count = len(self._node.outputs)
        cells = [[value] for value in found] if count > 1 and isinstance(found, tuple) else [[found]]
        del found
        if len(cells) != count:
            found_results = f"its numba_function() returned {len(cells)} results instead of {count}"
            raise TypeError(f"Running {self._node.op}: {found_results}")
        return [own_result(self._node, position, cell) for position, cell in enumerate(cells)]


def _by_python(node: Apply) -> Call:
    return lambda inputs: run_node(node, inputs)
