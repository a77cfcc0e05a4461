"""`Apply`: a node, one application of an Op to variables."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from engine.graph.variables import Variable

if TYPE_CHECKING:
    from engine.graph.op import Op


class Apply:
    """The application of `op` to `inputs`, which computes `outputs`.

    Refuses (ValueError) outputs that have an owner already.
    """

    __slots__ = ("__weakref__", "inputs", "op", "outputs")

    inputs: Sequence[Variable]
    outputs: Sequence[Variable]

    def __init__(self, op: Op, inputs: Sequence[Variable], outputs: Sequence[Variable]) -> None:
        self.op = op
        self.inputs = list(inputs)
        self.outputs = list(outputs)
        for variable in self.inputs:
            if not isinstance(variable, Variable):
                raise TypeError(f"Applying {op}: input {variable!r} is not a Variable; convert it first")
        for index, output in enumerate(self.outputs):
            if output.owner is not None:
                raise ValueError(f"Applying {op}: output {index} is already computed by {output.owner}")
            output.owner = self
            output.index = index

    @property
    def nin(self) -> int:
        """The number of inputs."""
        return len(self.inputs)

    @property
    def nout(self) -> int:
        """The number of outputs."""
        return len(self.outputs)

    @property
    def out(self) -> Variable:
        """The default output; refuses (ValueError) a node with several outputs and no default."""
        if self.op.default_output is not None:
            return self.outputs[self.op.default_output]
        if len(self.outputs) != 1:
            raise ValueError(f"{self.op} has {len(self.outputs)} outputs and no default output; choose one")
        return self.outputs[0]

    def default_output(self) -> Variable:
        """Return `out`."""
        return self.out

    def clone_with_new_inputs(self, inputs: Sequence[Variable], strict: bool = True) -> Apply:
        """Return a new node with the same Op on `inputs`, whose outputs have the names of the old.

        The outputs keep their types if the new inputs have exactly the types of the old; otherwise the Op
        makes a node for the new types. With `strict`, refuse (TypeError) an input that may hold values
        which the old one may not; without, the Op makes a node for any other input, because the types of
        outputs may depend on what is known of its value.
        """
        if len(inputs) != len(self.inputs):
            raise ValueError(
                f"Cloning {self}: {len(self.inputs)} inputs are needed, {len(inputs)} were given"
            )
        # Lists compare identical items without calling __eq__.
        have_types = [variable.type for variable in inputs] == [variable.type for variable in self.inputs]
        if have_types and (strict or all(map(operator.is_, self.inputs, inputs))):
            outputs = [output.type.make_variable(output.name) for output in self.outputs]
            return Apply(self.op, inputs, outputs)
        if strict:
            inputs = [old.type.filter_variable(new) for new, old in zip(inputs, self.inputs, strict=True)]
        node = self.op.make_node(*inputs)
        for old, new in zip(self.outputs, node.outputs, strict=False):
            new.name = new.name or old.name
        return node

    def clone(self) -> Apply:
        """Return a new node with the same Op on the same inputs."""
        return self.clone_with_new_inputs(self.inputs)

    def get_parents(self) -> list[Variable]:
        """Return the inputs, as a list."""
        return list(self.inputs)

    def dprint(self, **options: Any) -> Any:
        """Print the graph of this node; `options` are those of `engine.dprint`."""
        return import_module("engine.printing").dprint(self, **options)

    def __str__(self) -> str:
        return f"{self.op}({', '.join(str(i) if i.owner is None else '...' for i in self.inputs)})"

    __repr__ = __str__
