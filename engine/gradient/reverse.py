"""Reverse accumulation: gradients over the nodes that compute a cost.

A gradient has the type of its variable. An integer variable has a float64 gradient, as if the
operations on it were on real numbers; no gradient flows through an operation whose result is an
integer or a bool. The gradient for a complex variable is that for its real part plus i times that for its
imaginary part; costs are real.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, overload

from engine.errors import DisconnectedInputError, NullGradientError
from engine.gradient.accumulation import added
from engine.gradient.stable_forms import leaves_of, stable_form
from engine.gradient.user_ops import pulled_back
from engine.graph.absent_gradients import DisconnectedType, NullType, disconnected_type
from engine.graph.apply import Apply
from engine.graph.connections import connected_outputs, reached_from
from engine.graph.traversal import graph_inputs, io_toposort
from engine.graph.user_ops import is_user_op
from engine.graph.variables import Constant, Variable, note_uses
from engine.scalar.promotion import COMPLEX, DISCRETE, INEXACT
from engine.scalar.type import ScalarType
from engine.tensor.checks import specify_shape
from engine.tensor.conversion import as_tensor_variable, is_foreign, number
from engine.tensor.creation import zeros_like
from engine.tensor.elemwise import as_gradient
from engine.tensor.math import add
from engine.tensor.numbers import as_numbers
from engine.tensor.single_numbers import TensorsOfNumbers, tensor_from_scalar
from engine.tensor.type import TensorType
from engine.tensor.variable import TensorVariable

Known = Mapping[Variable, Any]


@overload
def grad(
    cost: Any,
    wrt: Variable,
    consider_constant: Iterable[Variable] | None = None,
    disconnected_inputs: str = "raise",
    add_names: bool = True,
    known_grads: Known | None = None,
    return_disconnected: str = "zero",
    null_gradients: str = "raise",
) -> TensorVariable: ...


@overload
def grad(
    cost: Any,
    wrt: Sequence[Variable],
    consider_constant: Iterable[Variable] | None = None,
    disconnected_inputs: str = "raise",
    add_names: bool = True,
    known_grads: Known | None = None,
    return_disconnected: str = "zero",
    null_gradients: str = "raise",
) -> list[TensorVariable]: ...


def grad(
    cost: Any,
    wrt: Any,
    consider_constant: Iterable[Variable] | None = None,
    disconnected_inputs: str = "raise",
    add_names: bool = True,
    known_grads: Known | None = None,
    return_disconnected: str = "zero",
    null_gradients: str = "raise",
) -> Any:
    """Return the gradient of `cost`, a 0-d real number, for `wrt`: a variable, or several (then a list).

    That of an integer or a bool is 0.

    No gradient flows through the variables `consider_constant`. `known_grads` maps variables to
    gradients that are already known; `cost` may then be None. If the cost does not depend on a
    variable, `disconnected_inputs` says what happens: "raise" (DisconnectedInputError), "warn" or
    "ignore", with zeros as the result, or with `return_disconnected` "none" None, with "disconnected" a
    variable of DisconnectedType. With `add_names` a gradient of variables with names has one. Raises
    TypeError unless `cost` is a 0-d real number, and NullGradientError for an Op without a gradient;
    `null_gradients="return"` gives a variable of NullType for each variable for which there is none.
    """
    check_choices("disconnected_inputs", disconnected_inputs, return_disconnected)
    targets = [wrt] if isinstance(wrt, Variable) else list(wrt)
    if null_gradients not in ("raise", "return"):
        raise ValueError(f'null_gradients={null_gradients!r}: it must be "raise" or "return"')
    if null_gradients == "return":
        constants = None if consider_constant is None else list(consider_constant)
        options = constants, disconnected_inputs, add_names, known_grads, return_disconnected
        found = [_or_null(lambda target: grad(cost, target, *options), target) for target in targets]
        return found[0] if isinstance(wrt, Variable) else found
    if _has_numbers((cost, *targets)):
        found = _of_numbers(cost, targets, consider_constant, disconnected_inputs, return_disconnected)
        return found[0] if isinstance(wrt, Variable) else found
    _check(cost, targets, known_grads)
    cotangents: dict[Variable, Any] = {v: _known(g, v) for v, g in (known_grads or {}).items()}
    if cost is not None:
        cotangents.setdefault(cost, _of_cost(cost, targets))
    answers = (disconnected_inputs, return_disconnected)
    found = _gradients(cotangents, targets, frozenset(known_grads or ()), consider_constant, answers)
    gradients = [_with_lengths(gradient, target) for gradient, target in zip(found, targets, strict=True)]
    if add_names and cost is not None and cost.name is not None:
        _name(gradients, cost, targets)
    return gradients[0] if isinstance(wrt, Variable) else gradients


def _or_null(take: Callable[[Variable], Any], target: Variable) -> Any:
    """Return `take(target)`, or a variable of NullType if that raises NullGradientError."""
    try:
        return take(target)
    except NullGradientError as error:
        return NullType(str(error)).make_variable()


def _of_cost(cost: Any, targets: Sequence[Any]) -> Any:
    """Return the gradient of a cost for itself; None for what changes in steps, if nobody asks for it."""
    if cost.type.dtype not in DISCRETE:
        return number(1.0, cost.type.dtype)
    return number(1.0, derivative_dtype(cost)) if cost in targets else None


def _known(gradient: Any, variable: Variable) -> Any:
    """Return a gradient that the caller gives for `variable`; None for no dependence."""
    if isinstance(gradient.type, NullType):
        raise NullGradientError(
            f"Taking a gradient: that known for {variable} is not defined; {gradient.type.why_null}", None
        )
    return None if isinstance(gradient.type, DisconnectedType) else gradient


def _with_lengths(gradient: Any, target: Any) -> Any:
    """Return `gradient` with the static lengths of `target`, which a product with an axis of unknown length
    loses."""
    if not isinstance(target.type, TensorType) or not isinstance(getattr(gradient, "type", None), TensorType):
        return gradient
    lengths = [
        due if found is None else None
        for due, found in zip(target.type.shape, gradient.type.shape, strict=True)
    ]
    return gradient if lengths.count(None) == len(lengths) else specify_shape(gradient, lengths)


def _name(gradients: Sequence[Any], cost: Variable, targets: Sequence[Variable]) -> None:
    """Name the gradients that have no name yet."""
    for gradient, target in zip(gradients, targets, strict=True):
        is_new = gradient is not None and gradient.owner is not None and gradient.name is None
        if is_new and target.name is not None:
            gradient.name = f"(d{cost.name}/d{target.name})"


def _of_numbers(cost: Any, targets: Sequence[Any], *options: Any) -> list[Any]:
    """Return the gradients of a graph of numbers: of the same graph of tensors, as numbers again."""
    constants, disconnected, returned = options
    on_tensors, *wrt = _on_tensors([cost, *targets])
    given = {"consider_constant": constants, "disconnected_inputs": disconnected}
    found = grad(on_tensors, wrt, return_disconnected=returned, **given)
    # A tensor that is a whole number changes in steps with that number, though as tensors they are one.
    steps = [
        w is on_tensors and t is not cost and t.type.dtype in DISCRETE
        for w, t in zip(wrt, targets, strict=True)
    ]
    found = [zeros_like(g) if is_step else g for g, is_step in zip(found, steps, strict=True)]
    return _as_numbers(found, targets)


def _has_numbers(variables: Iterable[Any]) -> bool:
    return any(isinstance(getattr(v, "type", None), ScalarType) for v in variables)


def _on_tensors(variables: Sequence[Any]) -> list[Any]:
    """Return `variables`, which a graph of numbers computes, as a graph of tensors computes them."""
    numbers = [v for v in graph_inputs(variables) if not isinstance(v, Constant)]
    return TensorsOfNumbers(numbers, variables, tensor_from_scalar).outputs


def _as_numbers(gradients: Sequence[Any], targets: Sequence[Any]) -> list[Any]:
    """Return `gradients`, as numbers where the target is one."""
    places = [k for k, target in enumerate(targets) if isinstance(target.type, ScalarType)]
    numbers = dict(zip(places, as_numbers([gradients[k] for k in places]), strict=True))
    return [numbers.get(k, gradient) for k, gradient in enumerate(gradients)]


def _gradients(
    cotangents: dict[Variable, Any],
    targets: Sequence[Variable],
    known: Collection[Variable],
    consider_constant: Iterable[Variable] | None,
    answers: tuple[str, str],
) -> list[Any]:
    """Return the gradient for each of `targets`, from the `cotangents` of the roots.

    `answers` are the arguments disconnected_inputs and return_disconnected.
    """
    disconnected_inputs, return_disconnected = answers
    roots = [v for v, cotangent in cotangents.items() if cotangent is not None or v not in known]
    nodes = io_toposort(set(consider_constant or ()), roots)
    note_uses(roots)
    _accumulate(nodes, targets, cotangents, known, consider_constant or ())
    gradients = [cotangents.get(target) for target in targets]
    if any(gradient is None for gradient in gradients):
        _check_connected(
            [t for t, g in zip(targets, gradients, strict=True) if g is None],
            nodes,
            roots,
            disconnected_inputs,
        )
    pairs = zip(gradients, targets, strict=True)
    return [answer(gradient, target, return_disconnected) for gradient, target in pairs]


def answer(derivative: Any, variable: Variable, return_disconnected: str) -> Any:
    """Return the derivative for `variable`; if there is none, what `return_disconnected` says."""
    if derivative is not None or return_disconnected == "zero":
        return as_derivative(derivative, variable)
    return None if return_disconnected == "none" else disconnected_type.make_variable()


def check_choices(name: str, disconnected: str, returned: str) -> None:
    """Raise ValueError for an unknown choice of what to do about a variable that is not connected.

    `name` is the name of the argument `disconnected`.
    """
    if disconnected not in ("raise", "warn", "ignore"):
        raise ValueError(f'{name}={disconnected!r}: it must be "raise", "warn" or "ignore"')
    if returned not in ("zero", "none", "disconnected"):
        raise ValueError(f'return_disconnected={returned!r}: it must be "zero", "none" or "disconnected"')


def pullback(
    f: Any,
    wrt: Any,
    cotangents: Any,
    consider_constant: Iterable[Variable] | None = None,
    disconnected_inputs: str = "raise",
    return_disconnected: str = "zero",
) -> Any:
    """Return `cotangents` times the Jacobian of `f` with respect to `wrt`, a variable or a list or
    tuple of them.

    `f` and `cotangents` are one variable each, or equally many. Everything else is as in `grad`. Raises
    ValueError if the numbers differ.
    """
    several = [_as_list(each) for each in (f, wrt, cotangents)]
    if any(map(_has_numbers, several)):
        found = _pullback_of_numbers(*several, consider_constant, disconnected_inputs, return_disconnected)
        return as_given(wrt, found)
    outputs, given = as_variables(f), as_variables(cotangents)
    if len(outputs) != len(given):
        raise ValueError(
            f"Pulling back {len(given)} cotangents through {len(outputs)} variables: give one for each"
        )
    check_choices("disconnected_inputs", disconnected_inputs, return_disconnected)
    answers = (disconnected_inputs, return_disconnected)
    found = _gradients(_summed(outputs, given), as_variables(wrt), (), consider_constant, answers)
    return as_given(wrt, found)


def _pullback_of_numbers(f: list[Any], wrt: list[Any], cotangents: list[Any], *options: Any) -> list[Any]:
    """Return the gradients of a graph of numbers, as `_of_numbers` does."""
    every = _on_tensors([*f, *wrt, *cotangents])
    first, last = len(f), len(f) + len(wrt)
    return _as_numbers(pullback(every[:first], every[first:last], every[last:], *options), wrt)


def _summed(outputs: Sequence[Variable], cotangents: Sequence[Any]) -> dict[Variable, Any]:
    """Return the cotangent of each variable, summed for a variable that occurs several times."""
    found: dict[Variable, Any] = {}
    for output, cotangent in zip(outputs, cotangents, strict=True):
        if cotangent is not None:
            found[output] = cotangent if output not in found else add(found[output], cotangent)
    return found


def Lop(  # PyTensor's name
    f: Any,
    wrt: Any,
    eval_points: Any,
    consider_constant: Iterable[Variable] | None = None,
    disconnected_inputs: str = "raise",
    return_disconnected: str = "zero",
) -> Any:
    """Return `pullback(...)`; this is its older name."""
    return pullback(f, wrt, eval_points, consider_constant, disconnected_inputs, return_disconnected)


def as_variables(given: Any) -> list[Any]:
    """Return one variable or several as a list of tensor variables."""
    return [as_tensor_variable(item) for item in _as_list(given)]


def _as_list(given: Any) -> list[Any]:
    return list(given) if isinstance(given, list | tuple) else [given]


def as_given(given: Any, found: list[Any]) -> Any:
    """Return `found` in the form of `given`: a list, a tuple or a single item."""
    return found if isinstance(given, list) else tuple(found) if isinstance(given, tuple) else found[0]


def pull_back(outputs: Sequence[Variable], cotangents: Sequence[Any], wrt: Sequence[Variable]) -> list[Any]:
    """Return the gradient for each of `wrt`, given the gradients `cotangents` for `outputs`.

    None stands for no dependence, of the cost on an output or of the outputs on a variable. A gradient
    has the dtype of its variable, or is float64. Raises NullGradientError for an Op without a gradient.
    """
    found = _summed(outputs, cotangents)
    _accumulate(io_toposort((), list(found)), wrt, found, ())
    return [None if found.get(target) is None else as_derivative(found[target], target) for target in wrt]


def _check(cost: Any, targets: Sequence[Any], known_grads: Known | None) -> None:
    if cost is None and not known_grads:
        raise ValueError("Taking a gradient: neither a cost nor known_grads were given")
    if cost is not None and not (isinstance(cost, Variable) and isinstance(cost.type, TensorType)):
        raise TypeError(
            f"Taking the gradient of {cost!r} ({type(cost).__name__}): the cost must be a tensor variable"
        )
    if cost is not None and cost.type.ndim != 0:
        raise TypeError(
            f"Taking the gradient of {cost} of type {cost.type}: the cost must be a scalar; sum it first"
        )
    if cost is not None and cost.type.dtype in COMPLEX:
        raise TypeError(f"Taking the gradient of {cost} of type {cost.type}: the cost must be real")
    for target in targets:
        # Nothing is differentiable by a value of a user's type: the cost is not connected to it.
        if not (
            isinstance(target, Variable) and (isinstance(target.type, TensorType) or is_foreign(target.type))
        ):
            raise TypeError(
                f"Taking a gradient for {target!r} ({type(target).__name__}): it must be a tensor variable"
            )


def _accumulate(
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


def _refuse_draws(nodes: Sequence[Apply], needed: Collection[Variable], roots: Collection[Variable]) -> None:
    """Raise NullGradientError if `roots` depend on draws of whole numbers by parameters that are `needed`.

    Such draws change in steps: a gradient of 0 tells nothing of how often they do.
    """
    for node in nodes:
        if not node.op.is_draw or not any(variable in needed for variable in node.inputs):
            continue
        for output in node.outputs:
            is_discrete = isinstance(output.type, TensorType) and output.type.dtype in DISCRETE
            if is_discrete and _is_connected(output, nodes, roots):
                raise NullGradientError(
                    f"Taking a gradient through {node.op}: draws of whole numbers have none by their "
                    "parameters; name those that are constants with disconnected_grad",
                    node.op,
                )


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
    _accumulate(io_toposort(leaves, [form]), wanted, found, ())
    for leaf in wanted:
        if leaf in found:
            _add(cotangents, leaf, as_derivative(found[leaf], leaf))


def _add(cotangents: dict[Variable, Any], variable: Variable, gradient: Any) -> None:
    before = cotangents.get(variable)
    if getattr(gradient.type, "dtype", None) in COMPLEX:
        gradient = as_gradient(gradient, variable.type.dtype)
    cotangents[variable] = gradient if before is None else added(before, gradient)


def _connected(node: Apply, cotangents: Sequence[Any]) -> list[bool]:
    """Return for each input if, as the Op says, an output that has a cotangent depends on it."""
    given = [cotangent is not None for cotangent in cotangents]
    return [
        any(depends and has for depends, has in zip(row, given, strict=True))
        for row in node.op.connection_pattern(node)
    ]


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


def derivative_dtype(variable: Any) -> str:
    """Return the dtype of derivatives for `variable`: its own, or float64 if that is no float."""
    dtype = getattr(variable.type, "dtype", None)
    return dtype if dtype in INEXACT else "float64"


def as_derivative(value: Any, variable: Any) -> Any:
    """Return `value` as a derivative for `variable`: cast to its dtype, or zeros for None."""
    dtype = derivative_dtype(variable)
    return zeros_like(variable, dtype) if value is None else as_gradient(value, dtype)


def _check_connected(
    targets: Sequence[Any], nodes: Sequence[Apply], roots: Collection[Variable], disconnected_inputs: str
) -> None:
    """Raise or warn if none of `roots` depends on the values of one of `targets`."""
    for target in targets:
        if disconnected_inputs == "ignore" or _is_connected(target, nodes, roots):
            continue
        message = (
            f"Taking a gradient for {target} of type {target.type}: the cost does not depend on its "
            "values; take it out "
            'of wrt, or use disconnected_inputs="ignore" for zeros'
        )
        if disconnected_inputs == "raise":
            raise DisconnectedInputError(message, target)
        warnings.warn(message, stacklevel=3)


def _is_connected(target: Variable, nodes: Sequence[Apply], roots: Collection[Variable]) -> bool:
    """Return True if one of `roots`, computed by `nodes`, depends on the values of `target`."""
    reached = reached_from(target, nodes)
    return any(root in reached for root in roots)
