"""Lowering of an optimized graph to the table of a program and the kernels that it calls.

Each node is visited once, in an order in which a node that overwrites comes after all that read the old
elements. Its rule finds the lengths of its outputs and, if something needs their values, the kernel
that computes them. A value of which only the shape is needed is never computed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, cast

from engine.errors import InconsistencyError, UndescribedOpError
from engine.graph.apply import Apply
from engine.graph.op import Op
from engine.graph.represented import array_of_constant
from engine.graph.variables import Constant, Variable
from engine.lowering.analysis import GraphAnalysis
from engine.lowering.kernels.elementwise import copy, elementwise
from engine.lowering.kernels.nest import NestOperand
from engine.lowering.op_rule import FindRule
from engine.lowering.statements import Statement
from engine.lowering.steps import Buffer, Check, FlatOperand, FlatStore, FlatWork, Value
from engine.lowering.table import Table
from engine.runtime.callbacks import Callback
from engine.tensor.type import is_data


def _no_name(op: Op) -> str:
    raise UndescribedOpError(op)


class Lowering:
    """The state of lowering a graph: the lengths, value and register of each variable so far.

    `nodes` are in an order in which they can run.
    """

    def __init__(
        self,
        rule_of: FindRule,
        inputs: Sequence[Variable],
        nodes: Sequence[Apply],
        outputs: Sequence[Variable],
        bindable: Sequence[Constant],
        embedded: Sequence[Constant] = (),
        table: Table | None = None,
        destroyable: Collection[Variable] = (),
        name_of: Callable[[Op], str] = _no_name,
    ) -> None:
        self.rule_of = rule_of
        self.inputs = inputs
        self.nodes = nodes
        self.outputs = outputs
        self.bindable = bindable
        """The data of the graph, as its key describes it: bound when the program is loaded."""
        self.embedded = embedded
        """Large constants that the key describes by their content: stored with the program."""
        self.table = Table() if table is None else table
        self.destroyable = destroyable
        """The inputs that may be overwritten."""
        self.name_of = name_of
        """Returns the name of a user Op in what is stored."""
        self.analysis = GraphAnalysis(nodes, inputs, outputs, destroyable, rule_of)
        self.dims: dict[Variable, tuple[int, ...]] = {}
        self.values: dict[Variable, Value] = {}
        self.scalars: dict[Variable, int] = {}
        self.checked: dict[tuple[Variable, int], Value] = {}
        """For an index that was checked against a length (a register): an array with what negatives get."""
        self.data: list[tuple[int, Constant, int]] = []
        self.constants: list[tuple[int, Constant]] = []
        self.input_registers: list[int] = []
        self._roots: set[Variable] = set()
        self._kept: dict[Variable, int] = {}

    def run(self) -> list[Value]:
        """Lower every node; return the results in the order of `outputs`, each an array of its own."""
        self._kept = self.analysis.kept_arrays(self.outputs)
        for position, variable in enumerate(self.inputs):
            self._declare_input(position, variable)
        self.lower_nodes()
        claimed: set[Buffer] = set()
        return [self._result(variable, claimed) for variable in self.outputs]

    def lower_nodes(self) -> None:
        """Lower every node."""
        for node in self.analysis.nodes:
            self.analysis.rules[node].lower(self, node)
            for output in node.outputs:
                self._check_lengths(node, output)

    def _check_lengths(self, node: Apply, output: Variable) -> None:
        """Demand the lengths that the type of `output` states: kernels rely on them."""
        dims = self.dims.get(output, ())
        for dim, (register, known) in enumerate(zip(dims, _shape(output), strict=False)):
            if known is not None and self.table.number(register) != known:
                about = f"the length of the result along dim {dim} is known to be {known}"
                check = Check("rows", str(node.op), (about,))
                self.table.same(register, self.table.constant(known), check)

    def is_needed(self, variable: Variable) -> bool:
        """Return True if the value of `variable` is used, and not only its shape."""
        return self.analysis.uses.get(variable, 0) > 0

    def dims_of(self, variable: Variable) -> tuple[int, ...]:
        """Return the registers of the lengths of `variable`."""
        found = self.dims.get(variable)
        if found is None:
            assert isinstance(variable, Constant)
            found = self.dims[variable] = tuple(
                self.table.constant(n) for n in array_of_constant(variable).shape
            )
        return found

    def value_of(self, variable: Variable) -> Value:
        """Return where the value of `variable` is; a number that is only in a register is stored first."""
        found = self.values.get(variable)
        if found is not None:
            return found
        if variable in self.scalars and not isinstance(variable, Constant):
            register = self.scalars[variable]
            found = self.array(variable, (), self.table.stage((register,)))
            self.table.store(register, found)
        else:
            found = self.values[variable] = self.bind(variable)
        return found

    def scalar_of(self, variable: Variable) -> int:
        """Return the register that holds the 0-d integer `variable`."""
        found = self.scalars.get(variable)
        if found is None:
            if isinstance(variable, Constant) and not is_data(variable):
                found = self.table.constant(int(variable.data))
            else:
                found = self.table.load(self.value_of(variable), variable in self._roots)
            self.scalars[variable] = found
        return found

    def allocate(
        self, variable: Variable, reads: Sequence[Value], dims: Sequence[int], nest: Sequence[int] = ()
    ) -> Value:
        """Return a new array for `variable`, in the first stage that has `dims`, `nest` and `reads`."""
        stage = max([self.table.stage((*dims, *nest)), *(value.stage for value in reads)])
        return self.array(variable, dims, stage)

    def array(self, variable: Variable, dims: Sequence[int], stage: int) -> Value:
        """Return a new array for `variable`, written in `stage` or the first stage possible."""
        stage = max(stage, self.first_stage(variable))
        skipped = self._kept.get(variable)
        value = self.table.buffer(dtype(variable), dims, stage, result=skipped is not None)
        cast(Buffer, value.buffer).skipped = skipped or 0
        self.values[variable] = value
        return value

    def first_stage(self, variable: Variable) -> int:
        """Return the first stage in which `variable` can be computed: one for all outputs of a node."""
        return self.table.floor

    def invoke(self, node: Apply, callback: Callback, dims: Sequence[Sequence[int | None]]) -> None:
        """Have Python compute all outputs of `node`.

        `dims` has, for each output, the registers of the lengths that are known beforehand. A length
        that is None there may still be known from the output's type.
        """
        table = self.table
        outputs = [
            (
                dtype(output),
                [_static(table, n) if d is None else d for d, n in zip(known, _shape(output), strict=True)],
            )
            for output, known in zip(node.outputs, dims, strict=True)
        ]
        reads = [self.value_of(variable) for variable in node.inputs]
        first = max(map(self.first_stage, node.outputs))
        values = table.invoke(callback, reads, outputs, str(node.op), first)
        for output, value in zip(node.outputs, values, strict=True):
            self.dims[output] = value.dims
            self.values[output] = value

    def overwrite(
        self, node: Apply, base: Variable, reads: Sequence[Value], registers: Sequence[int]
    ) -> Value | None:
        """Return the array of `base` as the output of `node`; None if it must not be overwritten.

        Its stage is the first that has `registers` and `reads` and follows all that read the old
        elements.
        """
        value = self.value_of(base)
        if node not in self.analysis.overwriting or value.buffer is None:
            return None
        used = self.table.last_use(value.buffer)
        stage = max(value.stage, used, self.table.stage(registers), *(v.stage for v in reads))
        result = Value(value.pointer, value.dtype, value.dims, stage, value.strides, value.buffer)
        self.values[node.outputs[0]] = result
        return result

    def contiguous(self, value: Value, dtype: str | None = None) -> Value:
        """Return `value`, or a C-contiguous copy of it, its elements cast to `dtype` if that is another."""
        if value.strides is None and dtype in (None, value.dtype):
            return value
        result = self.table.buffer(dtype or value.dtype, value.dims, value.stage)
        self.copy(value, result)
        return result

    def copy(self, value: Value, result: Value) -> None:
        """Write the elements of `value`, cast if need be, to `result`, which is C-contiguous."""
        operand = self.operand(value, (False,) * len(value.dims))
        kernel = copy(operand)
        if value.dtype != result.dtype:
            cast_to = Statement("cast", (("input", 0),), result.dtype)
            kernel = elementwise([operand], [cast_to], [("value", 0)], len(value.dims))
        self.table.call(kernel, [value], [result], "copy", value.dims, work=self._copying(value, result))

    def _copying(self, value: Value, result: Value) -> FlatWork | None:
        """Return the work of a copy if it is one loop."""
        if result.buffer is None or not value.dims or (value.strides and len(value.dims) > 1):
            return None
        stride = value.strides[0] if value.strides else None
        operand = FlatOperand(value.pointer, value.dtype, False, stride, value.buffer)
        is_cast = value.dtype != result.dtype
        statements = (Statement("cast", (("input", 0),), result.dtype),) if is_cast else ()
        store = FlatStore(
            ("value", 0) if is_cast else ("input", 0), result.pointer, result.dtype, result.buffer
        )
        return FlatWork(self.table.product(value.dims), (operand,), statements, (store,))

    def operand(self, value: Value, broadcast: tuple[bool, ...]) -> NestOperand:
        """Return `value` as the operand of a nest that has as many dims as `broadcast`."""
        if value.strides is None:
            return NestOperand(value.dtype, broadcast)
        rank = len(broadcast)
        own = [dim for dim in range(rank - len(value.dims), rank) if not broadcast[dim]]
        units = [dim for dim in own if self.table.number(value.stride_in(dim, rank)) == 1]
        is_moved = bool(units) and own[-1] == rank - 1 and rank - 1 not in units
        return NestOperand(value.dtype, broadcast, strided=True, unit=units[0] if is_moved else None)

    def _declare_input(self, position: int, variable: Variable) -> None:
        tensor = cast(Any, variable.type)
        pointer = self.table.new(0, 1 + tensor.ndim)
        lengths = []
        for dim, length in enumerate(tensor.shape):
            register = pointer + 1 + dim
            if length is not None:
                check = Check("input-shape", "", (str(position), str(dim)))
                register = self.table.same(register, self.table.constant(length), check)
            lengths.append(register)
        self.input_registers.append(pointer)
        self.dims[variable] = tuple(lengths)
        self.values[variable] = Value(pointer, tensor.dtype, tuple(lengths), 0)
        self._roots.add(variable)

    def bind(self, constant: Variable) -> Value:
        """Return where the value of `constant` is, which is bound when the program is loaded."""
        assert isinstance(constant, Constant)
        register = self.table.new()
        if is_data(constant) and not _is_among(constant, self.embedded):
            self.data.append((register, constant, self._data_number(constant)))
        else:
            self.constants.append((register, constant))
        self._roots.add(constant)
        return Value(register, dtype(constant), self.dims_of(constant), 0)

    def _data_number(self, constant: Constant) -> int:
        for number, known in enumerate(self.bindable):
            if _is_among(constant, (known,)):
                return number
        raise InconsistencyError(
            f"Lowering a graph: the data {constant.type} is not in the graph's description; a rewrite made "
            "new data out of old, which would give a wrong result for other numbers"
        )

    def _result(self, variable: Variable, claimed: set[Buffer]) -> Value:
        """Return an array of its own for one output: the one computed into, if possible, or a copy."""
        value = self.value_of(variable)
        buffer = value.buffer
        if (
            buffer is None
            or buffer.result is None
            or buffer in claimed
            or not self._is_result(buffer, variable)
        ):
            stage = max(value.stage, self.table.stage(value.dims))
            result = self.table.buffer(value.dtype, value.dims, stage, result=True)
            self.copy(value, result)
            value, buffer = result, cast(Buffer, result.buffer)
        claimed.add(buffer)
        return value

    def _is_result(self, buffer: Buffer, variable: Variable) -> bool:
        """Return True if `variable` is all of the array in `buffer`, except for skipped rows."""
        if buffer.skipped:
            if self.analysis.skipped(variable) != buffer.skipped:
                return False
            variable = cast(Apply, variable.owner).inputs[0]
        value = self.value_of(variable)
        if value.strides is not None or value.pointer != buffer.pointer:
            return False
        return list(map(self.table.canonical, value.dims)) == list(map(self.table.canonical, buffer.dims))


def _shape(variable: Variable) -> tuple[int | None, ...]:
    return cast(tuple[int | None, ...], getattr(variable.type, "shape", ()))  # a number has none


def _static(table: Table, length: int | None) -> int | None:
    return None if length is None else table.constant(length)


def _is_among(constant: Constant, known: Sequence[Constant]) -> bool:
    """Return True if one of `known` has the same array as `constant`.

    An equal array is not enough: other data would not be equal.
    """
    return any(v.type == constant.type and v.data is constant.data for v in known)


def dtype(variable: Variable) -> str:
    """Return the dtype of a tensor variable."""
    return cast(str, cast(Any, variable.type).dtype)
