"""Gradients that flow from outputs back through the nodes that compute them (reverse accumulation).

A gradient has the type of its variable. An integer variable has a float64 gradient, as if the
operations on it were on real numbers; no gradient flows through an operation whose result is an
integer or a bool. The gradient for a complex variable is that for its real part plus i times that for its
imaginary part.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from engine.errors import NullGradientError
from engine.gradient.accumulation import added
from engine.gradient.arguments import as_derivative
from engine.gradient.stable_forms import leaves_of, stable_form
from engine.gradient.user_ops import pulled_back
from engine.graph.apply import Apply
from engine.graph.connections import connected_outputs, reached_from
from engine.graph.traversal import io_toposort
from engine.graph.user_ops import is_user_op
from engine.graph.variables import Variable
from engine.scalar.promotion import COMPLEX, DISCRETE, INEXACT
from engine.tensor.elemwise import as_gradient
from engine.tensor.math import add
from engine.tensor.type import TensorType


def pull_back(outputs: Sequence[Variable], cotangents: Sequence[Any], wrt: Sequence[Variable]) -> list[Any]:
    """Return the gradient for each of `wrt`, given the gradients `cotangents` for `outputs`.

    None stands for no dependence, of the cost on an output or of the outputs on a variable. A gradient
    has the dtype of its variable, or is float64. Raises NullGradientError for an Op without a gradient.
    """
    found = summed(outputs, cotangents)
    accumulate(io_toposort((), list(found)), wrt, found, ())
    return [None if found.get(target) is None else as_derivative(found[target], target) for target in wrt]


def summed(outputs: Sequence[Variable], cotangents: Sequence[Any]) -> dict[Variable, Any]:
    """Return the cotangent of each variable, summed for a variable that occurs several times."""
    found: dict[Variable, Any] = {}
    for output, cotangent in zip(outputs, cotangents, strict=True):
        if cotangent is not None:
            found[output] = cotangent if output not in found else add(found[output], cotangent)
    return found


def accumulate(
    nodes: Sequence[Apply],
    targets: Sequence[Variable],
    cotangents: dict[Variable, Any],
    known: Collection[Variable],
    constants: Iterable[Variable] = (),
) -> None:
    """Add to `cotangents` those of all variables between `targets` and its keys, from the outputs back.

    A node that has a stable form is differentiated in that form, unless somebody asks for a variable
    that the form skips.
    """
    needed = _needed(nodes, targets)
    _refuse_draws(nodes, needed.difference(known), [v for v, g in cotangents.items() if g is not None])
    asked, present = {*targets, *known, *constants}, set(nodes)
    for node in reversed(nodes):
        form = stable_form(node)
        leaves = None if form is None else leaves_of(form, node, present, asked)
        if leaves is None:
            _accumulate_node(node, needed, cotangents, known)
        else:
            wanted = [leaf for leaf in leaves if leaf in needed and leaf not in known]
            _accumulate_form(form, leaves, wanted, node.outputs[0], cotangents)


def _needed(nodes: Sequence[Apply], targets: Sequence[Variable]) -> set[Variable]:
    """Return the variables whose gradient is needed: `targets`, and the floats computed from them."""
    needed = set(targets)
    for node in nodes:
        if any(variable in needed for variable in node.inputs):
            reached = connected_outputs(node, needed) if is_user_op(node.op) else node.outputs
            needed.update([output for output in reached if _is_float(output)])
    return needed


def _is_float(variable: Variable) -> bool:
    return getattr(variable.type, "dtype", "float64") in INEXACT


def _refuse_draws(nodes: Sequence[Apply], needed: Collection[Variable], roots: Collection[Variable]) -> None:
    """Raise NullGradientError if `roots` depend on draws of whole numbers by parameters that are `needed`.

    Such draws change in steps: a gradient of 0 tells nothing of how often they do.
    """
    for node in nodes:
        if not node.op.is_draw or not any(variable in needed for variable in node.inputs):
            continue
        for output in node.outputs:
            is_discrete = isinstance(output.type, TensorType) and output.type.dtype in DISCRETE
            if is_discrete and is_connected(output, nodes, roots):
                raise NullGradientError(
                    f"Taking a gradient through {node.op}: draws of whole numbers have none by their "
                    "parameters; name those that are constants with disconnected_grad",
                    node.op,
                )


def is_connected(target: Variable, nodes: Sequence[Apply], roots: Collection[Variable]) -> bool:
    """Return True if one of `roots`, computed by `nodes`, depends on the values of `target`."""
    reached = reached_from(target, nodes)
    return any(root in reached for root in roots)


def _accumulate_node(
    node: Apply, needed: Collection[Variable], cotangents: dict[Variable, Any], known: Collection[Variable]
) -> None:
    """Add the gradients that flow through `node` to its inputs that are `needed` and not `known`."""
    given = [cotangents.get(output) for output in node.outputs]
    wanted = [variable in needed and variable not in known for variable in node.inputs]
    if is_user_op(node.op):
        wanted = [w and c for w, c in zip(wanted, _connected(node, given), strict=True)]
    if not any(wanted) or all(cotangent is None for cotangent in given):
        return
    check_complex(node)
    found = pulled_back(node.op, node.inputs, node.outputs, given, wanted)
    for variable, is_wanted, gradient in zip(node.inputs, wanted, found, strict=True):
        if is_wanted and gradient is not None:
            _add(cotangents, variable, gradient)


def _connected(node: Apply, cotangents: Sequence[Any]) -> list[bool]:
    """Return for each input if, as the Op says, an output that has a cotangent depends on it."""
    given = [cotangent is not None for cotangent in cotangents]
    return [
        any(depends and has for depends, has in zip(row, given, strict=True))
        for row in node.op.connection_pattern(node)
    ]


def check_complex(node: Apply) -> None:
    """Raise NullGradientError for a node with complex numbers of an Op without derivatives of them."""
    if is_user_op(node.op) or node.op.differentiates_complex:
        return
    if any(getattr(v.type, "dtype", None) in COMPLEX for v in (*node.inputs, *node.outputs)):
        raise NullGradientError(
            f"Taking a gradient through {node.op}: it has none of complex numbers", node.op
        )


def _accumulate_form(
    form: Variable,
    leaves: Sequence[Variable],
    wanted: Sequence[Variable],
    output: Variable,
    cotangents: dict[Variable, Any],
) -> None:
    """Add to `cotangents` those of `wanted`, which are `leaves` of the stable `form` of `output`."""
    if output not in cotangents or not wanted:
        return
    found = {form: cotangents[output]}
    accumulate(io_toposort(leaves, [form]), wanted, found, ())
    for leaf in wanted:
        if leaf in found:
            _add(cotangents, leaf, as_derivative(found[leaf], leaf))


def _add(cotangents: dict[Variable, Any], variable: Variable, gradient: Any) -> None:
    before = cotangents.get(variable)
    if getattr(gradient.type, "dtype", None) in COMPLEX:
        gradient = as_gradient(gradient, variable.type.dtype)
    cotangents[variable] = gradient if before is None else added(before, gradient)
