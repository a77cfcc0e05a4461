"""Gradients of a cost, a real number, and of several outputs: what users call, and its options."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, overload

from engine.errors import DisconnectedInputError, NullGradientError
from engine.gradient.arguments import answer, as_given, as_list, as_variables, check_choices, derivative_dtype
from engine.gradient.backpropagation import accumulate, is_connected, summed
from engine.graph.absent_gradients import DisconnectedType, NullType
from engine.graph.apply import Apply
from engine.graph.traversal import graph_inputs, io_toposort
from engine.graph.variables import Constant, Variable, note_uses
from engine.scalar.promotion import COMPLEX, DISCRETE
from engine.scalar.type import ScalarType
from engine.tensor.checks import specify_shape
from engine.tensor.conversion import is_foreign, number
from engine.tensor.creation import zeros_like
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
        found = _or_null(lambda some: grad(cost, some, *options), targets)
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


def _or_null(take: Callable[[list[Any]], list[Any]], targets: list[Any]) -> list[Any]:
    """Return `take(targets)`; if that raises NullGradientError, a variable of NullType for each target alone
    for which it does."""
    try:
        return take(targets)
    except NullGradientError as error:
        if len(targets) == 1:
            return [NullType(str(error)).make_variable()]
    return [found for target in targets for found in _or_null(take, [target])]


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
    accumulate(nodes, targets, cotangents, known, consider_constant or ())
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
    several = [as_list(each) for each in (f, wrt, cotangents)]
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
    found = _gradients(summed(outputs, given), as_variables(wrt), (), consider_constant, answers)
    return as_given(wrt, found)


def _pullback_of_numbers(f: list[Any], wrt: list[Any], cotangents: list[Any], *options: Any) -> list[Any]:
    """Return the gradients of a graph of numbers, as `_of_numbers` does."""
    every = _on_tensors([*f, *wrt, *cotangents])
    first, last = len(f), len(f) + len(wrt)
    return _as_numbers(pullback(every[:first], every[first:last], every[last:], *options), wrt)


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


def _check_connected(
    targets: Sequence[Any], nodes: Sequence[Apply], roots: Collection[Variable], disconnected_inputs: str
) -> None:
    """Raise or warn if none of `roots` depends on the values of one of `targets`."""
    for target in targets:
        if disconnected_inputs == "ignore" or is_connected(target, nodes, roots):
            continue
        message = (
            f"Taking a gradient for {target} of type {target.type}: the cost does not depend on its "
            "values; take it out "
            'of wrt, or use disconnected_inputs="ignore" for zeros'
        )
        if disconnected_inputs == "raise":
            raise DisconnectedInputError(message, target)
        warnings.warn(message, stacklevel=3)
