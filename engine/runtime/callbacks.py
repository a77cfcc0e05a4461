"""Callbacks: the steps of a program that Python computes because no kernel can.

The stored program names a callback by a record (program.py, CallbackUse): a kind, a version, options
(canonical JSON) and the keys of the compiled functions that the callback calls, which are entries of
their own. User Ops are not stored: a record names them, and whoever loads the program supplies them
from the graph at hand.

Version history of the kinds
    optimize 1    a SciPy solver, on one function (engine/inner/solvers.py)
    perform 1     the perform() of a user Op (lowering/rules/callbacks.py)
    compiled 1    the numba_function() of a user Op (lowering/rules/callbacks.py)
    reference 1   the perform() of one of the engine's Ops, which the record has (lowering/rules/callbacks.py)
    varying 1     the same of one that may give another result each time
"""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from cachegraph.named_tuples import NamedTuple
from engine.runtime.program import CallbackUse, Invocation, Operand, ProgramFormatError

if TYPE_CHECKING:
    from engine.graph.apply import Apply
    from engine.graph.fgraph import FrozenFunctionGraph
    from engine.graph.op import Op

OF_USERS = ("perform", "compiled")
"""The kinds that run user code."""
MAY_VARY = (*OF_USERS, "varying")
"""The kinds that may compute another result each time."""
OF_ONE_OP = (*MAY_VARY, "reference")
"""The kinds that compute one node of a graph."""
_PICKLED = ("engine.graph", "engine.scalar", "engine.tensor", "engine.inner", "engine.random")
"""The modules that the Op in a record may name."""
_REPRESENTED = {
    "generator": ("engine.random.type", "random_generator_type"),
    "none": ("engine.tensor.none_type", "none_type_t"),
    "object": ("engine.graph.generic", "generic"),
}
"""The types of values that are no arrays, by the names that records have for them."""

Arrays = Sequence["np.ndarray[Any, Any]"]
Function = Callable[[tuple[Any, ...]], Arrays]
"""A compiled function: from one array per input, each of its input's type and C-contiguous, to its outputs.
"""
Run = Callable[[Arrays], Arrays]
"""A callback. Its inputs are read-only views of the program's memory, valid until it returns; the
program owns its outputs. Several threads may run one at the same time."""
CompileCall = Callable[["Apply"], Run]
"""Compiles the numba_function() of a node's Op."""
Registers = Sequence[int]


class Callback(NamedTuple):
    """A callback of a program under construction: its record, and the graphs of its functions."""

    kind: str
    version: int
    options: str
    graphs: tuple[FrozenFunctionGraph, ...]


def build_callback(
    use: CallbackUse, functions: Sequence[Function], ops: Mapping[str, Op], compile_call: CompileCall
) -> Run:
    """Return the callback that `use` describes, on its functions and on the user Ops `ops`, by name.

    Raises ProgramFormatError for an unknown kind or version, and for an Op that is not among `ops`.
    """
    build = _BUILDERS.get((use.kind, use.version))
    if build is None:
        raise ProgramFormatError(
            f"a callback of kind {use.kind!r}, version {use.version}, unknown to this release"
        )
    return build(json.loads(use.options), functions, ops, compile_call)


def check_site(use: CallbackUse, site: Invocation) -> None:
    """Refuse (ProgramFormatError) a site that gives an Op, or expects from it, other arrays than
    its record says."""
    if use.kind not in OF_ONE_OP:
        return
    options = json.loads(use.options)
    said = [[(dtype, len(shape)) for dtype, shape, *_ in options[name]] for name in ("inputs", "outputs")]
    if said != [[(row.dtype, len(row.dims)) for row in rows] for rows in (site.inputs, site.outputs)]:
        raise ProgramFormatError("an Op whose inputs or outputs are other arrays than its record says")


def _optimize(options: Any, functions: Sequence[Function], *_: object) -> Run:
    from engine.inner.solvers import Solver

    return Solver(functions[0], **options)


def _perform(options: Any, functions: object, ops: Mapping[str, Op], compile_call: object) -> Run:
    return _computing(_node(options, _named(options, ops)))


def _reference(options: Any, *_: object) -> Run:
    from cachegraph import pickling
    from engine.graph.op import Op

    op = pickling.loads(b64decode(options["op"]), _PICKLED)
    if not isinstance(op, Op):
        raise ProgramFormatError(f"a {type(op).__name__} in place of an Op")
    node = _node(options, op)
    compute = op.on_arrays(node) if hasattr(op, "on_arrays") else _computing(node)
    overwritten = {position for positions in op.destroy_map.values() for position in positions}
    if not overwritten:
        return compute
    return lambda arrays: compute([np.array(a) if k in overwritten else a for k, a in enumerate(arrays)])


def _compiled(options: Any, functions: object, ops: Mapping[str, Op], compile_call: CompileCall) -> Run:
    node = _node(options, _named(options, ops))
    call: Run | None = None

    def run(arrays: Arrays) -> Arrays:
        nonlocal call
        if call is None:  # numba is imported here: a function may be loaded and never called
            call = compile_call(node)
        return call(arrays)

    return run


def _computing(node: Apply) -> Run:
    """Return the function from the arrays of the inputs of `node` to those of its outputs."""
    from engine.graph.reference import run_node
    from engine.graph.represented import RepresentedType, array_of, value_of

    if not any(isinstance(v.type, RepresentedType) for v in (*node.inputs, *node.outputs)):
        return lambda arrays: run_node(node, arrays)

    def run(arrays: Arrays) -> Arrays:
        values = [value_of(v, array) for v, array in zip(node.inputs, arrays, strict=True)]
        return [array_of(v, each) for v, each in zip(node.outputs, run_node(node, values), strict=True)]

    return run


_BUILDERS: dict[tuple[str, int], Callable[[Any, Sequence[Function], Mapping[str, Op], CompileCall], Run]] = {
    ("optimize", 1): _optimize,
    ("perform", 1): _perform,
    ("compiled", 1): _compiled,
    ("reference", 1): _reference,
    ("varying", 1): _reference,
}


def _named(options: Any, ops: Mapping[str, Op]) -> Op:
    """Return the user Op that the record names."""
    op = ops.get(options["op"])
    if op is None:
        raise ProgramFormatError(f"an Op {options['op']!r}, which the function being made does not have")
    return op


def _node(options: Any, op: Op) -> Apply:
    """Return the node that the callback computes: `op` on variables of the recorded types."""
    from engine.graph.apply import Apply

    inputs, outputs = (
        [_type(*row).make_variable() for row in options[name]] for name in ("inputs", "outputs")
    )
    return Apply(op, inputs, outputs)


def _type(dtype: str, shape: Sequence[int | None], name: str | None = None) -> Any:
    """Return the type that a record describes; a `name` is that of values that are no arrays."""
    from engine.tensor.type import tensor_type

    if name is None:
        return tensor_type(dtype, tuple(shape))
    if name not in _REPRESENTED:
        raise ProgramFormatError(f"values of kind {name!r}, unknown to this release")
    module, place = _REPRESENTED[name]
    return getattr(import_module(module), place)


class BoundInvocation:
    """A callback bound to its site in a linked program: called with the registers, it returns the
    result arrays.

    Each result is C-contiguous, has the dtype, rank and known lengths that the program expects, and
    shares no memory with the inputs of the callback. Any other result of `run` raises a TypeError or
    ValueError that names the Op and the function; exceptions of `run` pass through.
    """

    def __init__(self, site: Invocation, run: Run, function: str) -> None:
        self._run = run
        self._subject = f"Calling {function}: {site.op}"
        self._inputs = [_InputView(row) for row in site.inputs]
        self._outputs = [(np.dtype(row.dtype), row.dims) for row in site.outputs]

    def __call__(self, registers: Registers) -> tuple[np.ndarray[Any, Any], ...]:
        results = self._run([view.array(registers) for view in self._inputs])
        if len(results) != len(self._outputs):
            self._refuse(
                TypeError, f"{len(self._outputs)} arrays are due, its callback returned {len(results)}"
            )
        return tuple([self._checked(k, result, registers) for k, result in enumerate(results)])

    def _checked(self, position: int, result: Any, registers: Registers) -> np.ndarray[Any, Any]:
        dtype, dims = self._outputs[position]
        lengths = tuple([None if dim is None else registers[dim] for dim in dims])
        error: type[Exception] | None = None
        if not isinstance(result, np.ndarray) or result.dtype != dtype or result.ndim != len(dims):
            error = TypeError
        elif any(due not in (None, found) for due, found in zip(lengths, result.shape, strict=True)):
            error = ValueError
        if error is not None:
            self._refuse(
                error, f"{_expected(position, dtype, lengths)}, its callback returned {_found(result)}"
            )
        # A view may lie in memory that the program reuses next.
        is_plain = type(result) is np.ndarray and result.flags.owndata and result.flags.carray
        return result if is_plain else np.array(result, dtype, order="C", subok=False)

    def _refuse(self, kind: type[Exception], found: str) -> NoReturn:
        raise kind(f"{self._subject}: {found}")


class _InputView:
    """An input of a callback: a read-only view of the program's memory at what the registers say."""

    def __init__(self, row: Operand) -> None:
        self._row = row
        self._dtype = np.dtype(row.dtype)

    def array(self, registers: Registers) -> np.ndarray[Any, Any]:
        """Return the array where it lies; one without elements lies nowhere, which numpy 2.1 refuses."""
        _, pointer, dims, strides = self._row
        size = self._dtype.itemsize
        shape = tuple([registers[dim] for dim in dims])
        if 0 in shape:
            return np.empty(shape, self._dtype)
        return np.asarray(
            _ArrayInterface(
                {
                    "version": 3,
                    "typestr": self._dtype.str,
                    "data": (registers[pointer], True),
                    "shape": shape,
                    "strides": None if strides is None else tuple([size * registers[s] for s in strides]),
                }
            )
        )


class _ArrayInterface:
    """An object with numpy's array interface (version 3)."""

    __slots__ = ("__array_interface__",)

    def __init__(self, interface: dict[str, Any]) -> None:
        self.__array_interface__ = interface


def _expected(position: int, dtype: np.dtype[Any], lengths: tuple[int | None, ...]) -> str:
    shape = ", ".join("?" if length is None else str(length) for length in lengths)
    comma = "," if len(lengths) == 1 else ""
    return f"output {position} must be an array of {dtype} with shape ({shape}{comma})"


def _found(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"one of {value.dtype} with shape {value.shape}"
    return f"a {type(value).__name__}"
