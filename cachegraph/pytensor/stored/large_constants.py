"""Large constants as data: they become implicit inputs before rewriting, so that no rewrite reads their
numbers.

A function of other data is then the same function: its key has only the types of the data. Claims about
the data (static shapes, tags) were made for the data in hand; they are in the key (docs/decisions/0053). A
function copies its data when it is made, and is called with the copies, where numba would have frozen the
arrays: their makers may overwrite the originals.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from pytensor.compile.io import In
from pytensor.graph.basic import Apply
from pytensor.link.basic import Container
from pytensor.tensor.sharedvar import TensorSharedVariable

from cachegraph.pytensor.describe.specification import Specification
from cachegraph.pytensor.describe.tags import variable_tags

if TYPE_CHECKING:
    from cachegraph.pytensor.describe.key import GraphDescription


class DataCell(list[Any]):
    """The storage of data that is an input of a function; it refuses another value.

    PyTensor stores the arguments of a call before it checks which inputs may be given.
    """

    def __setitem__(self, position: Any, value: Any) -> None:
        if value is not self[position]:
            raise TypeError(
                "Too many parameter passed to pytensor function: a large constant cannot be given"
            )


def data_inputs(constants: Sequence[Any], keep_layout: bool) -> list[Any]:
    """Return an input per constant, which holds a copy of its value and is never overwritten.

    With `keep_layout` a copy has the layout of its original, which numba compiles for; else rows are
    contiguous.
    """
    return [_input(_shared(constant, keep_layout)) for constant in constants]


def with_data(wanted: Specification, described: GraphDescription, data: Sequence[Any]) -> Specification:
    """Return `wanted` on a copy of its graph, with the inputs `data` in place of its constants."""
    known = dict(zip(described.constants, (spec.variable for spec in data), strict=True))
    for repeat in described.repeats:
        known[repeat.constant] = data[repeat.first].variable.dimshuffle(*repeat.order)
    known.update((spec.variable, spec.variable) for spec in wanted.inputs)
    _copy_graph(wanted.results, known)
    inputs = [copy.copy(spec) for spec in wanted.inputs]
    for spec in inputs:
        if spec.update is not None:
            spec.update = known.get(spec.update, spec.update)
    outputs = [copy.copy(spec) for spec in wanted.outputs]
    for spec in outputs:
        spec.variable = known.get(spec.variable, spec.variable)
    return wanted._replace(inputs=[*inputs, *data], outputs=outputs)


def _shared(constant: Any, keep_layout: bool) -> Any:
    copied = _copy(constant.data) if keep_layout else constant.data.copy(order="C")
    cell = Container(constant.type, DataCell([copied]), strict=True, name=constant.name)
    shared = TensorSharedVariable(constant.type, None, None, container=cell, name=constant.name)
    for name, value in (variable_tags(constant) or {}).items():
        setattr(shared.tag, name, value)
    return shared


def _copy(data: Any) -> Any:
    """Return `data` in memory of its own, with the same layout as numba sees it."""
    if data.flags.c_contiguous or data.flags.f_contiguous:
        return data.copy(order="K")
    return np.repeat(data, 2, axis=-1)[..., ::2]


def _input(shared: Any) -> Any:
    return In(variable=shared, value=shared.container, mutable=False, borrow=True, shared=True)


def _copy_graph(results: Sequence[Any], known: dict[Any, Any]) -> None:
    """Add to `known` a copy of each computed variable that `results` need, computed from copies."""
    waiting = list(results)
    while waiting:
        variable = waiting[-1]
        node = variable.owner
        if variable in known or node is None:
            waiting.pop()
            continue
        missing = [v for v in node.inputs if v not in known and v.owner is not None]
        if missing:
            waiting += missing
            continue
        copied = Apply(node.op, [known.get(v, v) for v in node.inputs], [v.clone() for v in node.outputs])
        copied.tag = copy.copy(node.tag)
        known.update(zip(node.outputs, copied.outputs, strict=True))
