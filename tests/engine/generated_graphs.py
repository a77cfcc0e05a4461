"""Random graphs over every public operation, each with values for its inputs.

A graph grows one operation at a time. The reference computes each new variable at once, so a shape or a value that an
operation refuses is never part of a graph, and the lengths of everything are known while it grows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np
from hypothesis import assume
from hypothesis import strategies as st

import engine
import engine.tensor as pt
from engine.graph import Apply, Constant, Variable
from engine.graph.reference import evaluate
from engine.graph.traversal import ancestors, io_toposort
from tests.engine.special_values import DTYPES, SIGNED, UNSIGNED, special

FLOATS = ("float64", "float32")
INTEGERS = (*SIGNED, *UNSIGNED)
EPSILON = {"float64": 2.3e-16, "float32": 1.2e-7}

Draw = Callable[[st.SearchStrategy[Any]], Any]


@dataclass
class Graph:
    """Inputs with their values, and every variable that was made of them, each with its reference value.

    `exact` has those that no rounding separates from the inputs: only of these are discontinuous functions taken.
    """

    inputs: list[Variable] = field(default_factory=list)
    values: list[np.ndarray] = field(default_factory=list)
    made: list[Variable] = field(default_factory=list)
    known: dict[Variable, np.ndarray] = field(default_factory=dict)
    exact: set[Variable] = field(default_factory=set)

    @property
    def sinks(self) -> list[Variable]:
        """What was made and is read by nothing else."""
        read = {argument for variable in self.known if variable.owner for argument in variable.owner.inputs}
        return [variable for variable in self.made if variable not in read]

    @property
    def scale(self) -> float:
        """The largest finite number that occurs in it, at least 1."""
        found = 1.0
        for value in self.known.values():
            if value.dtype.kind == "f" and value.size:
                finite = np.abs(value[np.isfinite(value)])
                found = max(found, float(finite.max(initial=0.0)))
        return found

    def add_gradients(self) -> None:
        """Add the gradient of the sum of all floats that were made, for each input that it depends on."""
        floats = [v for v in self.made if v.type.dtype in FLOATS]
        if not floats:
            return
        cost = sum(
            (pt.sum(pt.cast(v, "float64")) for v in floats[1:]), start=pt.sum(pt.cast(floats[0], "float64"))
        )
        wanted = [v for v in self.inputs if v.type.dtype in FLOATS]
        for gradient in engine.grad(cost, wanted, disconnected_inputs="ignore"):
            self.add(gradient, False)

    def needed(self, outputs: Sequence[Variable]) -> tuple[list[Variable], list[np.ndarray]]:
        """The inputs that `outputs` need, and their values."""
        used = set(ancestors(outputs))
        pairs = [(v, a) for v, a in zip(self.inputs, self.values, strict=True) if v in used]
        return [v for v, _ in pairs], [a for _, a in pairs]

    def add_input(self, value: np.ndarray, shape: Sequence[int | None]) -> None:
        variable = pt.tensor(f"x{len(self.inputs)}", value.dtype.name, tuple(shape))
        self.inputs.append(variable)
        self.values.append(value)
        self.known[variable] = value
        self.exact.add(variable)

    def add_constant(self, value: np.ndarray) -> None:
        variable = pt.constant(value)
        self.known[variable] = variable.data
        self.exact.add(variable)

    def add(self, variable: Variable, exact: bool) -> bool:
        """Keep `variable` if the reference can compute it; whether it can."""
        if variable in self.known:
            return False
        known = list(self.known)
        try:
            (value,) = evaluate(known, [variable], list(self.known.values()))
        except (ValueError, IndexError):
            return False
        self.known[variable] = value
        self.made.append(variable)
        if exact:
            self.exact.add(variable)
        return True


def rebuilt(
    inputs: Sequence[Variable], outputs: Sequence[Variable], random: Random
) -> tuple[list[Variable], list[Variable]]:
    """The same graph, built anew: other names, the nodes made in another order, some of them made once a use."""
    copies: dict[Variable, Variable] = {v: v.type.make_variable(f"renamed_{random.random()}") for v in inputs}
    waiting = io_toposort(inputs, outputs)
    while waiting:
        ready = [node for node in waiting if all(v in copies or _is_constant(v) for v in node.inputs)]
        node = random.choice(ready)
        waiting.remove(node)
        copies.update(zip(node.outputs, _again(node, copies, random), strict=True))
    return [copies[v] for v in inputs], [_copy(v, copies) for v in outputs]


def _again(node: Apply, copies: dict[Variable, Variable], random: Random) -> Sequence[Variable]:
    arguments = []
    for variable in node.inputs:
        argument = _copy(variable, copies)
        if argument.owner is not None and random.random() < 0.3:
            owner = argument.owner
            argument = owner.clone_with_new_inputs(owner.inputs).outputs[argument.index]
        arguments.append(argument)
    return node.clone_with_new_inputs(arguments).outputs


def _is_constant(variable: Variable) -> bool:
    return isinstance(variable, Constant)


def _copy(variable: Variable, copies: dict[Variable, Variable]) -> Variable:
    """What stands for `variable`: for a constant, another one of an array that lies elsewhere."""
    if variable not in copies and isinstance(variable, Constant):
        return variable.type.make_constant(np.array(variable.data, order="F"))
    return copies[variable]


def numbers(draw: Draw, dtype: str, shape: tuple[int, ...], specials: bool) -> np.ndarray:
    """Small numbers, and with `specials` any that arithmetic may get wrong."""
    random = np.random.default_rng(draw(st.integers(0, 2**16)))
    if dtype == "bool":
        return random.random(shape) > 0.5
    if dtype in INTEGERS:
        found = random.integers(0 if dtype in UNSIGNED else -4, 5, shape).astype(dtype)
    else:
        # Halves and thirds: sums and products of these differ when rounded, and some are equal.
        found = (random.integers(-12, 13, shape) / random.choice([2, 3, 8], shape)).astype(dtype)
    if specials and found.size:
        chosen = special(dtype)
        replaced = random.random(shape) < 0.4
        found = np.where(replaced, chosen[random.integers(0, len(chosen), shape)], found)
    return found


def _pick(draw: Draw, graph: Graph, test: Callable[[Variable], bool]) -> Variable:
    """A variable of the graph that `test` accepts, late ones more often."""
    found = [variable for variable in graph.known if test(variable)]
    if not found:
        raise _Unfit
    near = draw(st.integers(0, len(found) - 1))
    return found[-1 - near]


def _dtype_in(*dtypes: str) -> Callable[[Variable], bool]:
    return lambda variable: variable.type.dtype in dtypes


def _any(variable: Variable) -> bool:
    return True


def _mate(draw: Draw, graph: Graph, first: Variable, test: Callable[[Variable], bool] = _any) -> Variable:
    """A variable that broadcasts with `first`."""
    shape, static = graph.known[first].shape, first.type.shape

    def fits(other: Variable) -> bool:
        pairs = zip(
            shape[::-1], static[::-1], graph.known[other].shape[::-1], other.type.shape[::-1], strict=False
        )
        return test(other) and all(n == m or s == 1 or t == 1 for n, s, m, t in pairs)

    return _pick(draw, graph, fits)


Step = Callable[[Draw, Graph], bool]

# What takes any number and amplifies no rounding beyond `tolerance`.
_UNARY = (pt.sin, pt.cos, pt.tanh, pt.sigmoid, pt.softplus, pt.erf, pt.arctan, pt.arcsinh)
_UNARY_EXACT = (pt.neg, pt.abs, pt.identity)
_GUARDED = (
    lambda x: pt.exp(-pt.abs(x)),
    lambda x: pt.expm1(-pt.abs(x)),
    lambda x: pt.log(1.5 + pt.abs(x)),
    lambda x: pt.log(1.0 + pt.exp(-pt.abs(x))),
    lambda x: pt.log1p(pt.abs(x)),
    lambda x: pt.gammaln(1.0 + pt.abs(x)),
    lambda x: pt.erfc(pt.abs(x)),
    lambda x: pt.sqrt(1.0 + pt.sqr(x)),
    lambda x: pt.reciprocal(1.0 + pt.abs(x)),
    lambda x: x / (1.0 + pt.sqr(x)),
    lambda x: (1.0 + pt.abs(x)) ** -1.5,
    lambda x: x**2,
    lambda x: x**3,
)
_BINARY = (pt.add, pt.sub, pt.mul, lambda x, y: x / (1.0 + pt.abs(y)))
_BINARY_EXACT = (pt.maximum, pt.minimum, pt.second)
_COMPARISONS = (pt.lt, pt.le, pt.gt, pt.ge, pt.eq, pt.neq)
_LOGICAL = (pt.and_, pt.or_, pt.xor)
# What special values may be given to, alone: these amplify.
_WILD = (pt.exp, pt.log, pt.log1p, pt.sqrt, pt.reciprocal, pt.sqr, pt.expm1)


def _unary(draw: Draw, graph: Graph) -> bool:
    x = _pick(draw, graph, _dtype_in(*FLOATS))
    return graph.add(draw(st.sampled_from(_UNARY + _GUARDED))(x), False)


def _wild(draw: Draw, graph: Graph) -> bool:
    x = _pick(draw, graph, lambda v: v in graph.exact)
    return graph.add(draw(st.sampled_from(_WILD))(x), False)


def _unary_exact(draw: Draw, graph: Graph) -> bool:
    x = _pick(draw, graph, _dtype_in(*FLOATS, *INTEGERS))
    return graph.add(draw(st.sampled_from(_UNARY_EXACT))(x), x in graph.exact)


def _binary(draw: Draw, graph: Graph) -> bool:
    x = _pick(draw, graph, _dtype_in(*FLOATS, *INTEGERS))
    y = _mate(draw, graph, x, _dtype_in(*FLOATS, *INTEGERS))
    op = draw(st.sampled_from(_BINARY))
    result = op(x, y) if draw(st.booleans()) else op(y, x)
    return graph.add(result, result.type.dtype in INTEGERS)


def _choosing(draw: Draw, graph: Graph) -> bool:
    x = _pick(draw, graph, _dtype_in(*FLOATS, *INTEGERS))
    y = _mate(draw, graph, x)
    return graph.add(draw(st.sampled_from(_BINARY_EXACT))(x, y), {x, y} <= graph.exact)


def _with_number(draw: Draw, graph: Graph) -> bool:
    x = _pick(draw, graph, _any)
    number = draw(st.sampled_from([0, 1, -1, 2, 3, 0.0, 1.0, -1.0, 0.5, 2.0]))
    op = draw(st.sampled_from([pt.add, pt.sub, pt.mul, pt.maximum, pt.minimum]))
    if x.type.dtype == "bool" and op is pt.sub and isinstance(number, bool):
        return False
    if x.type.dtype in UNSIGNED and number == -1 and isinstance(number, int):
        return False
    result = op(x, number) if draw(st.booleans()) else op(number, x)
    return graph.add(result, result.type.dtype in INTEGERS)


def _divide(draw: Draw, graph: Graph) -> bool:
    x = _pick(draw, graph, lambda v: v in graph.exact and v.type.dtype != "bool")
    y = _mate(draw, graph, x, lambda v: v in graph.exact and v.type.dtype != "bool")
    return graph.add(draw(st.sampled_from([pt.floor_div, pt.mod]))(x, y), True)


def _power(draw: Draw, graph: Graph) -> bool:
    x = _pick(draw, graph, lambda v: v in graph.exact and v.type.dtype in INTEGERS)
    y = _mate(draw, graph, x, lambda v: v in graph.exact and v.type.dtype in INTEGERS)
    result = x ** pt.abs(y)
    return graph.add(result, result.type.dtype in INTEGERS)


def _compare(draw: Draw, graph: Graph) -> bool:
    x = _pick(draw, graph, lambda v: v in graph.exact)
    y = _mate(draw, graph, x, lambda v: v in graph.exact)
    return graph.add(draw(st.sampled_from(_COMPARISONS))(x, y), True)


def _logic(draw: Draw, graph: Graph) -> bool:
    x = _pick(draw, graph, _dtype_in("bool", *INTEGERS))
    if draw(st.booleans()):
        return graph.add(pt.invert(x), True)
    y = _mate(draw, graph, x, _dtype_in("bool", *INTEGERS))
    if np.result_type(x.type.dtype, y.type.dtype).kind == "f":  # int64 and uint64 have no common integers
        return False
    return graph.add(draw(st.sampled_from(_LOGICAL))(x, y), True)


def _where(draw: Draw, graph: Graph) -> bool:
    condition = _pick(draw, graph, _dtype_in("bool"))
    x = _mate(draw, graph, condition)
    y = _mate(draw, graph, x)
    try:
        result = pt.where(condition, x, y)
    except ValueError:
        return False
    return graph.add(result, {x, y} <= graph.exact)


def _cast(draw: Draw, graph: Graph) -> bool:
    dtype = draw(st.sampled_from(DTYPES))
    loses = dtype not in FLOATS
    x = _pick(draw, graph, lambda v: not loses or (v in graph.exact and _is_safe_as(graph.known[v], dtype)))
    return graph.add(pt.cast(x, dtype), x in graph.exact and x.type.dtype not in FLOATS)


def _is_safe_as(value: np.ndarray, dtype: str) -> bool:
    """Casting what an integer does not hold is undefined."""
    if dtype == "bool" or value.dtype.kind != "f":
        return True
    held = np.iinfo(dtype)
    return bool(np.all((value >= held.min) & (value <= min(held.max, 2**31 - 2))))


def _is_moderate(value: np.ndarray) -> bool:
    """Whether no sum or product of a few such numbers overflows, in whatever order."""
    if value.dtype.kind != "f":
        return True
    return bool(np.all(~np.isfinite(value) | (np.abs(value) < 1e15)))


def _reduce(draw: Draw, graph: Graph) -> bool:
    x = _pick(draw, graph, lambda v: v.type.ndim > 0 and _is_moderate(graph.known[v]))
    axes = draw(st.lists(st.integers(0, x.type.ndim - 1), min_size=1, max_size=x.type.ndim, unique=True))
    op = draw(st.sampled_from([pt.sum, pt.mean, pt.max, pt.min]))
    keepdims = draw(st.booleans())
    result = op(x, axis=axes, keepdims=keepdims)
    return graph.add(result, (op in (pt.max, pt.min) and x in graph.exact) or result.type.dtype in INTEGERS)


def _along(draw: Draw, graph: Graph) -> bool:
    """Running sums, and positions of extremes, along an axis."""
    x = _pick(draw, graph, lambda v: v.type.ndim > 0 and _is_moderate(graph.known[v]))
    axis = draw(st.integers(0, x.type.ndim - 1))
    if draw(st.booleans()):
        return graph.add(pt.cumsum(x, axis), x.type.dtype not in FLOATS)
    if x not in graph.exact:
        return False
    return graph.add(draw(st.sampled_from([pt.argmax, pt.argmin]))(x, axis), True)


def _dimshuffle(draw: Draw, graph: Graph) -> bool:
    x = _pick(draw, graph, lambda v: v.type.ndim < 4)
    kept = [axis for axis, length in enumerate(x.type.shape) if length != 1 or draw(st.booleans())]
    order: list[Any] = list(draw(st.permutations(kept)))
    for _ in range(draw(st.integers(0, 4 - len(order)))):
        order.insert(draw(st.integers(0, len(order))), "x")
    return graph.add(pt.dimshuffle(x, order), x in graph.exact)


def _reshape(draw: Draw, graph: Graph) -> bool:
    x = _pick(draw, graph, _any)
    size = graph.known[x].size
    shape: list[Any] = draw(st.sampled_from([*_factored(size), (size,), (1, size), (size, 1)]))
    lengths = [_length(draw, graph, length) for length in shape]
    if lengths and size and draw(st.booleans()):
        lengths[draw(st.integers(0, len(lengths) - 1))] = -1
    return graph.add(pt.reshape(x, lengths), x in graph.exact)


def _factored(size: int) -> list[tuple[int, ...]]:
    return [(a, size // a) for a in (2, 3, 4) if size % a == 0] + ([()] if size == 1 else [])


def _length(draw: Draw, graph: Graph, length: int) -> Any:
    """`length` as a number, the length of something, or a value computed while the function runs."""
    choices: list[Any] = [length]
    for variable, value in graph.known.items():
        choices += [pt.shape_i(variable, axis) for axis, n in enumerate(value.shape) if n == length]
        is_length = value.shape == () and value.dtype.kind == "i" and value == length
        choices += [variable] if is_length else []
    return choices[draw(st.integers(0, len(choices) - 1))]


def _shape(draw: Draw, graph: Graph) -> bool:
    x = _pick(draw, graph, lambda v: v.type.ndim > 0)
    length = pt.shape_i(x, draw(st.integers(0, x.type.ndim - 1)))
    return graph.add(length, True) if draw(st.booleans()) else graph.add(length * 2 + 1, True)


def _is_index(graph: Graph, length: int) -> Callable[[Variable], bool]:
    def test(variable: Variable) -> bool:
        value = graph.known[variable]
        fits = value.dtype.kind == "i" and value.ndim == 1 and variable in graph.exact
        return bool(fits and np.all((value >= -length) & (value < length)))

    return test


def _gather(draw: Draw, graph: Graph) -> bool:
    x = _pick(draw, graph, lambda v: v.type.ndim > 0)
    length = graph.known[x].shape[0]
    if length and draw(st.booleans()):
        indices = draw(st.lists(st.integers(-length, length - 1), min_size=1, max_size=6))
        return graph.add(x[np.array(indices, draw(st.sampled_from(SIGNED)))], x in graph.exact)
    return graph.add(x[_pick(draw, graph, _is_index(graph, length))], x in graph.exact)


def _scatter(draw: Draw, graph: Graph) -> bool:
    x = _pick(
        draw, graph, lambda v: v.type.ndim > 0 and v.type.dtype != "bool" and _is_moderate(graph.known[v])
    )
    length = graph.known[x].shape[0]
    index = _pick(draw, graph, _is_index(graph, length))
    shape = (*graph.known[index].shape, *graph.known[x].shape[1:])
    y = _pick(
        draw,
        graph,
        lambda v: (
            v.type.dtype == x.type.dtype and graph.known[v].shape == shape and _is_moderate(graph.known[v])
        ),
    )
    try:
        base = pt.zeros_like(x) if draw(st.booleans()) else x
        result = pt.AdvancedIncSubtensor([0]).make_node(base, y, index).outputs[0]
    except (TypeError, ValueError):
        return False
    return graph.add(result, result.type.dtype in INTEGERS)


def _masked(draw: Draw, graph: Graph) -> bool:
    """What a mask over the first axes chooses, or that set or added to."""
    x = _pick(
        draw, graph, lambda v: v.type.ndim > 0 and v.type.dtype != "bool" and _is_moderate(graph.known[v])
    )
    shape = graph.known[x].shape
    mask = _pick(
        draw,
        graph,
        lambda v: v.type.dtype == "bool" and v.type.ndim > 0 and graph.known[v].shape == shape[: v.type.ndim],
    )
    part = x[mask]
    made: list[Callable[[], Any]] = [
        lambda: part,
        lambda: part.set(0),
        lambda: part.inc(part),
        lambda: mask.nonzero()[0],
    ]
    result = draw(st.sampled_from(made))()
    return graph.add(result, x in graph.exact)


def _dot(draw: Draw, graph: Graph) -> bool:
    factors = [v for v, value in graph.known.items() if v.type.ndim in (1, 2) and _is_moderate(value)]
    x = _pick(draw, graph, lambda v: v in factors)
    length = graph.known[x].shape[-1]
    y = _pick(draw, graph, lambda v: v in factors and graph.known[v].shape[0] == length)
    try:
        result = pt.dot(x, y)
    except ValueError:
        return False
    return graph.add(result, result.type.dtype not in FLOATS)


def _factor(draw: Draw, graph: Graph) -> bool:
    """Linear algebra of a positive definite matrix whose eigenvalues differ by a factor of 2 at most."""
    x = _pick(
        draw,
        graph,
        lambda v: (
            v.type.dtype in FLOATS
            and v.type.ndim == 2
            and bool(np.all(np.isfinite(graph.known[v])))
            and _is_moderate(graph.known[v])
        ),
    )
    product = pt.dot(x, x.T)
    matrix = product + pt.eye(product.shape[0], dtype=x.type.dtype) * (1.0 + pt.sum(pt.sqr(x)))
    made: list[Callable[[], Any]] = [
        lambda: pt.linalg.solve(matrix, x),
        lambda: pt.linalg.solve(matrix, x, assume_a="pos", lower=True),
        lambda: pt.linalg.solve_triangular(matrix, x, lower=True),
        lambda: pt.linalg.cholesky(matrix, draw(st.booleans())),
        lambda: pt.linalg.slogdet(matrix)[1],
    ]
    return graph.add(draw(st.sampled_from(made))(), False)


STEPS: tuple[Step, ...] = (
    _unary,
    _unary,
    _unary_exact,
    _binary,
    _binary,
    _binary,
    _choosing,
    _with_number,
    _divide,
    _power,
    _compare,
    _logic,
    _where,
    _cast,
    _reduce,
    _reduce,
    _dimshuffle,
    _dimshuffle,
    _reshape,
    _shape,
    _gather,
    _scatter,
    _dot,
    _factor,
    _masked,
    _along,
)


@st.composite
def graphs(draw: Draw, size: int = 12, specials: bool = False, longest: int = 4) -> Graph:
    """Graphs of about `size` operations; with `specials` their values include infinities and NaNs."""
    graph = Graph()
    lengths = draw(st.lists(st.integers(0, longest), min_size=1, max_size=3))
    for _ in range(draw(st.integers(2, 4))):
        _add_leaf(draw, graph, lengths, specials)
    graph.add_input(numbers(draw, draw(st.sampled_from(FLOATS)), (lengths[-1],), specials), (None,))
    if draw(st.booleans()):
        graph.add_constant(numbers(draw, draw(st.sampled_from(DTYPES)), (lengths[-1],), specials))
    if draw(st.booleans()):
        graph.add_constant(numbers(draw, draw(st.sampled_from(FLOATS)), (3, 13), specials))
    steps = (*STEPS, _wild, _wild) if specials else STEPS
    for _ in range(3 * size):
        if len(graph.made) >= size:
            break
        _try(draw(st.sampled_from(steps)), draw, graph)
    assume(graph.made)
    return graph


def _add_leaf(draw: Draw, graph: Graph, lengths: Sequence[int], specials: bool) -> None:
    dtype = draw(st.sampled_from(DTYPES))
    full = tuple(lengths[-draw(st.integers(0, len(lengths))) :]) if draw(st.booleans()) else ()
    shape = tuple([1 if draw(st.integers(0, 3)) == 0 else length for length in full])
    static = tuple(
        [n if draw(st.integers(0, 3)) == 0 or (n == 1 and draw(st.booleans())) else None for n in shape]
    )
    graph.add_input(numbers(draw, dtype, shape, specials), static)


class _Unfit(Exception):
    """No variable of the graph is what a step needs."""


def _try(step: Step, draw: Draw, graph: Graph) -> bool:
    try:
        return step(draw, graph)
    except _Unfit:
        return False
