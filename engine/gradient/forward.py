"""Forward accumulation: products of a Jacobian and tangents.

An Op without a `pushforward` is pulled back twice. Its pullback is linear in the cotangents u, and
the pullback of that with respect to u is the product (Townsend, "A new trick for calculating
Jacobian vector products", 2017).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

from engine.errors import DisconnectedInputError, NullGradientError
from engine.gradient.arguments import answer, as_derivative, as_given, as_variables, check_choices
from engine.gradient.backpropagation import pull_back
from engine.gradient.stable_forms import leaves_of, stable_form
from engine.gradient.user_ops import pulled_back, pushed_forward
from engine.graph.apply import Apply
from engine.graph.traversal import io_toposort
from engine.graph.variables import Variable, note_uses
from engine.scalar.promotion import COMPLEX, FLOATS, INEXACT
from engine.tensor.checks import specify_shape


def pushforward(
    f: Any,
    wrt: Any,
    tangents: Any,
    disconnected_outputs: str = "raise",
    return_disconnected: str = "zero",
    use_op_pushforward: bool = True,
) -> Any:
    """Return the Jacobian of `f` with respect to `wrt`, times `tangents`.

    `f` is a variable, or a list or tuple of them; so is the result. There is one tangent per variable
    of `wrt`, of its shape; the function checks lengths that the variable's type knows. If an output does
    not depend on `wrt`, `disconnected_outputs` says what happens, as in `grad`. Without `use_op_pushforward`
    every Op is pulled back twice. Raises ValueError for a wrong number or rank of tangents, and
    NullGradientError for an Op without a derivative.
    """
    check_choices("disconnected_outputs", disconnected_outputs, return_disconnected)
    outputs, targets, given = as_variables(f), as_variables(wrt), as_variables(tangents)
    if len(targets) != len(given):
        raise ValueError(
            f"Pushing {len(given)} tangents forward from {len(targets)} variables: give one for each"
        )
    for target, tangent in zip(targets, given, strict=True):
        if target.type.ndim != tangent.type.ndim:
            raise ValueError(
                f"Pushing {tangent.type} forward from {target.type}: both must have the same number of "
                "dimensions"
            )
    given = [specify_shape(t, target.type.shape) for t, target in zip(given, targets, strict=True)]
    if use_op_pushforward:
        found = push_forward(outputs, targets, given)
    else:
        found = by_two_pullbacks(lambda u: pull_back(outputs, u, targets), outputs, given)
    for position, output in enumerate(outputs):
        if found[position] is None:
            _check_connected(output, disconnected_outputs)
            found[position] = answer(None, output, return_disconnected)
    return as_given(f, found)


def Rop(  # PyTensor's name
    f: Any,
    wrt: Any,
    eval_points: Any,
    disconnected_outputs: str = "raise",
    return_disconnected: str = "zero",
    use_op_rop_implementation: bool = True,
) -> Any:
    """Return `pushforward(...)`; this is its older name."""
    return pushforward(
        f, wrt, eval_points, disconnected_outputs, return_disconnected, use_op_rop_implementation
    )


def push_forward(outputs: Sequence[Variable], wrt: Sequence[Variable], tangents: Sequence[Any]) -> list[Any]:
    """Return the tangent of each of `outputs`, given `tangents` of `wrt`.

    None stands for no change, of a variable of `wrt` or of an output. Integer outputs have no tangent
    either.
    """
    known: dict[Variable, Any] = {}
    for variable, tangent in zip(wrt, tangents, strict=True):
        if tangent is not None:
            known[variable] = as_derivative(tangent, variable)
    nodes = io_toposort(list(known), outputs)
    note_uses(outputs)
    present, asked = set(nodes), set(known)
    for node in nodes:
        given = [known.get(variable) for variable in node.inputs]
        if any(tangent is not None for tangent in given) and any(map(_has_tangent, node.outputs)):
            _check_real(node)
            form = stable_form(node)
            leaves = None if form is None else leaves_of(form, node, present, asked)
            found = _through(node, given) if leaves is None else _through_form(form, leaves, known)
            for output, tangent in zip(node.outputs, found, strict=True):
                if tangent is not None and _is_float(output):
                    known[output] = as_derivative(tangent, output)
    return [known.get(output) for output in outputs]


def _through_form(form: Variable, leaves: Sequence[Variable], known: dict[Variable, Any]) -> list[Any]:
    """Return the tangent of a node's only output, computed by its stable `form` from `leaves`."""
    return push_forward([form], leaves, [known.get(leaf) for leaf in leaves])


def _through(node: Apply, tangents: list[Any]) -> Sequence[Any]:
    op, inputs, outputs = node.op, node.inputs, node.outputs
    found = pushed_forward(op, inputs, outputs, tangents)
    if found is not NotImplemented:
        return found
    wanted = [tangent is not None for tangent in tangents]
    return by_two_pullbacks(lambda u: pulled_back(op, inputs, outputs, u, wanted), outputs, tangents)


def by_two_pullbacks(
    pull: Callable[[Sequence[Any]], Sequence[Any]], outputs: Sequence[Variable], tangents: Sequence[Any]
) -> list[Any]:
    """Return the tangent of each output (None: it does not change), given those of the inputs.

    `pull` returns the gradient for each input, given the cotangents of the outputs.
    """
    # Zeros instead of new variables: they stay in the graph if only their shape is used.
    cotangents: list[Any] = [as_derivative(None, output) if _is_float(output) else None for output in outputs]
    gradients = pull(cotangents)
    pairs = [(g, t) for g, t in zip(gradients, tangents, strict=True) if g is not None and t is not None]
    present = [cotangent for cotangent in cotangents if cotangent is not None]
    found = iter(pull_back([g for g, _ in pairs], [t for _, t in pairs], present))
    return [None if cotangent is None else next(found) for cotangent in cotangents]


def _check_connected(output: Variable, disconnected_outputs: str) -> None:
    message = (
        f"Pushing tangents forward to {output} of type {output.type}: it does not depend on what the "
        "tangents are for; "
        'take it out of f, or use disconnected_outputs="ignore" for zeros'
    )
    if disconnected_outputs == "raise":
        raise DisconnectedInputError(message, output)
    if disconnected_outputs == "warn":
        warnings.warn(message, stacklevel=3)


def _has_tangent(variable: Any) -> bool:
    return getattr(variable.type, "dtype", None) in INEXACT


def _check_real(node: Apply) -> None:
    """Raise NullGradientError for a node with complex numbers."""
    if any(getattr(v.type, "dtype", None) in COMPLEX for v in (*node.inputs, *node.outputs)):
        raise NullGradientError(
            f"Pushing tangents forward through {node.op}: there are none of complex numbers; pull cotangents "
            "back",
            node.op,
        )


def _is_float(variable: Any) -> bool:
    return getattr(variable.type, "dtype", None) in FLOATS
