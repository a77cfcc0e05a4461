"""`scan`: what a loop described by a Python function computes, against loops in numpy; what it finds and refuses."""

import numpy as np
import pytest

import engine
import engine.tensor as pt
from engine.errors import MissingInputError
from engine.graph.reference import evaluate
from engine.inner import OpFromGraph, Scan
from engine.scanning.construction import filter as rows_where

MODES = {
    "REFERENCE": "NUMPY",
    "REWRITTEN": engine.Mode("numpy", engine.Mode().optimizer),
    "COMPILED": "FAST_RUN",
    "HARDLY REWRITTEN": engine.Mode("numba", engine.compiling.mode.MODES["NUMPY"].optimizer),
}
"""The reference, before and after rewriting; compiled, and compiled as it was made."""

X = np.array([1.0, -2.0, 0.5, 3.0, 0.25])


@pytest.fixture(params=MODES)
def run(request, kernels_once):
    """The values of outputs, given variables and their values, by each backend."""

    def run(variables, outputs, *values, updates=None):
        mode = MODES[request.param]
        f = engine.function(variables, outputs, updates=updates, mode=mode, on_unused_input="ignore")
        return f(*values)

    return run


def scan_of(variable):
    """The node of the Scan that computes `variable`."""
    while not isinstance(variable.owner.op, Scan):
        variable = variable.owner.inputs[0]
    return variable.owner


def test_a_state_goes_from_step_to_step(run):
    x, start = pt.dvector("x"), pt.dscalar("start")
    totals, updates = engine.scan(lambda x_t, total: total + x_t, sequences=x, outputs_info=start)
    assert updates == {}
    np.testing.assert_allclose(run([x, start], totals, X, 10.0), 10 + np.cumsum(X))


def test_without_updates_the_outputs_come_alone(run):
    x = pt.dvector("x")
    doubled = engine.scan(lambda x_t: 2 * x_t, x, return_updates=False, allow_gc=False)
    np.testing.assert_array_equal(run([x], doubled, X), 2 * X)


def test_one_output_is_a_variable_and_a_list_if_asked_for():
    x = pt.dvector("x")
    assert isinstance(engine.scan(lambda x_t: x_t, x)[0], pt.TensorVariable)
    assert isinstance(engine.scan(lambda x_t: x_t, x, return_list=True)[0], list)
    assert len(engine.scan(lambda x_t: [x_t, x_t + 1], x)[0]) == 2


def test_several_outputs_of_all_kinds_come_in_the_order_of_the_step(run):
    x = pt.dvector("x")

    def step(x_t, total, before, last):
        return x_t * total, total + x_t, before + last, x_t + 1

    initial = [None, pt.constant(1.0), {"initial": np.array([1.0, 2.0]), "taps": [-2, -1]}, None]
    found = run([x], engine.scan(step, x, initial, return_updates=False), X)
    total, rows, due = 1.0, [1.0, 2.0], [[], [], [], []]
    for x_t in X:
        rows.append(rows[-2] + rows[-1])
        for column, value in zip(due, (x_t * total, total + x_t, rows[-1], x_t + 1), strict=True):
            column.append(value)
        total += x_t
    for column, expected in zip(found, due, strict=True):
        np.testing.assert_allclose(column, expected)


def test_taps_of_sequences_reach_back_and_ahead(run):
    x, y = pt.dvector("x"), pt.dvector("y")
    found = engine.scan(
        lambda before, ahead, x_t, y_t: before + 10 * ahead + 100 * x_t + 1000 * y_t,
        sequences=[{"input": x, "taps": [-1, 2, 0]}, y],
        return_updates=False,
    )
    due = [X[t - 1] + 10 * X[t + 2] + 100 * X[t] + 1000 * X[t - 1] for t in range(1, 3)]
    np.testing.assert_allclose(run([x, y], found, X, X), due)


def test_a_single_tap_may_be_a_number(run):
    x = pt.dvector("x")
    ahead = engine.scan(lambda x_t: x_t, {"input": x, "taps": 3}, return_updates=False)
    np.testing.assert_array_equal(run([x], ahead, X), X[3:])


def test_taps_of_states_come_in_the_order_given(run):
    start = pt.dvector("start")
    found = engine.scan(
        lambda third, first: third - 2 * first,
        outputs_info={"initial": start, "taps": [-1, -3]},
        n_steps=4,
        return_updates=False,
    )
    rows = [1.0, 2.0, 4.0]
    for _ in range(4):
        rows.append(rows[-1] - 2 * rows[-3])
    np.testing.assert_allclose(run([start], found, [1.0, 2.0, 4.0]), rows[3:])
    np.testing.assert_allclose(
        run([start], found, [1.0, 2.0, 4.0, 99.0]), rows[3:]
    )  # what is too much is not read


def test_one_tap_that_is_not_the_row_before(run):
    start = pt.dvector("start")
    found = engine.scan(
        lambda x: x + 1, outputs_info={"initial": start, "taps": [-2]}, n_steps=5, return_updates=False
    )
    assert run([start], found, [0.0, 10.0]).tolist() == [1, 11, 2, 12, 3]


def test_going_backwards_starts_at_the_end_of_the_sequences(run):
    x = pt.dvector("x")
    totals = engine.scan(lambda x_t, s: s + x_t, x, 0.0, go_backwards=True, return_updates=False)
    np.testing.assert_allclose(run([x], totals, X), np.cumsum(X[::-1]))
    some = engine.scan(lambda x_t: x_t, x, n_steps=2, go_backwards=True, return_updates=False)
    np.testing.assert_allclose(run([x], some, X), X[::-1][:2])


def test_without_a_number_of_steps_there_are_as_many_as_the_shortest_sequence_has_rows(run):
    x, y = pt.dvector("x"), pt.dvector("y")
    found = engine.scan(lambda a, b: a * b, [x, y], return_updates=False)
    np.testing.assert_array_equal(run([x, y], found, X, X[:3]), X[:3] ** 2)
    np.testing.assert_array_equal(run([x, y], found, X[:2], X), X[:2] ** 2)


def test_the_number_of_steps_may_be_a_variable_and_may_be_zero(run):
    x, w, steps = pt.dvector("x"), pt.dmatrix("w"), pt.iscalar("steps")
    found = engine.scan(
        lambda s, w: [pt.dot(w, s), pt.dot(w, w)],
        outputs_info=[x, None],
        non_sequences=w,
        n_steps=steps,
        return_updates=False,
    )
    matrix = np.array([[0.0, 1.0], [1.0, 1.0]])
    states, squares = run([x, w, steps], found, [0.0, 1.0], matrix, 3)
    assert states.tolist() == [[1, 1], [1, 2], [2, 3]]
    assert squares.tolist() == [(matrix @ matrix).tolist()] * 3
    states, squares = run([x, w, steps], found, [0.0, 1.0], matrix, 0)
    assert (states.shape, squares.shape) == ((0, 2), (0, 2, 2))
    with pytest.raises(ValueError, match="-1"):
        run([x, w, steps], found, [0.0, 1.0], matrix, -1)


def test_a_condition_ends_the_loop(run):
    limit, x = pt.dscalar("limit"), pt.dvector("x")

    def step(x_t, total):
        return [total + x_t, 2 * x_t], engine.until(total + x_t > limit)

    found = engine.scan(step, x, [0.0, None], return_updates=False)
    totals, doubled = run([x, limit], found, np.arange(1.0, 9.0), 5.0)
    assert (totals.tolist(), doubled.tolist()) == ([1, 3, 6], [2, 4, 6])
    totals, doubled = run([x, limit], found, np.arange(1.0, 4.0), 100.0)
    assert (totals.tolist(), doubled.tolist()) == ([1, 3, 6], [2, 4, 6])


def test_a_condition_may_be_a_number(run):
    x = pt.lvector("x")
    found = engine.scan(lambda x_t: (x_t, engine.until(x_t % 3)), x, return_updates=False)
    assert run([x], found, [3, 6, 0, 4, 9]).tolist() == [3, 6, 0, 4]


def test_what_the_step_uses_is_found(run):
    x, w, scale = pt.dvector("x"), pt.dvector("w"), engine.shared(3.0, "scale")
    data = pt.constant(np.arange(50.0))
    squared = pt.exp(w)

    def step(x_t, total, factor):
        return total * factor + pt.sum(squared * data[:3]) * x_t * scale + pt.sum(data)

    found = engine.scan(step, x, 0.0, [0.5], return_updates=False)
    weights = np.array([0.1, 0.2, 0.3])
    total, due = 0.0, []
    for x_t in X:
        total = total * 0.5 + np.sum(np.exp(weights) * [0, 1, 2]) * x_t * 3 + np.sum(np.arange(50.0))
        due.append(total)
    np.testing.assert_allclose(run([x, w], found, X, weights), due)


def test_what_does_not_change_is_computed_outside_of_the_loop():
    x, w = pt.dvector("x"), pt.dmatrix("w")
    found, _ = engine.scan(lambda x_t: pt.sum(pt.exp(w)) * x_t, x)
    assert {str(node.op) for node in scan_of(found).op.fgraph.nodes} == {"mul"}


def test_data_is_no_part_of_the_graph_of_a_step():
    x = pt.dvector("x")

    def op(data):
        return scan_of(engine.scan(lambda x_t: pt.sum(pt.constant(data) * x_t), x)[0]).op

    assert op(np.arange(40.0)) == op(np.ones(40))
    assert op(np.arange(4.0)) != op(np.ones(4))


def test_shared_variables_are_updated_at_each_step(run):
    x, count, total = pt.dvector("x"), engine.shared(10, "count"), engine.shared(np.zeros(2), "total")

    def step(x_t, count):
        return x_t * count, {count: count + 2, total: total + x_t}

    found, updates = engine.scan(step, x, non_sequences=[count])
    assert set(updates) == {count, total}
    np.testing.assert_allclose(run([x], found, X, updates=updates), X * [10, 12, 14, 16, 18])
    assert count.get_value() == 20
    np.testing.assert_allclose(total.get_value(), [X.sum()] * 2)
    run([x], found, X[:0], updates=updates)
    assert count.get_value() == 20


def test_a_step_may_have_nothing_but_updates(run):
    count = engine.shared(0, "count")
    outputs, updates = engine.scan(lambda: {count: count + 3}, n_steps=4)
    assert outputs is None
    run([], [], updates=updates)
    assert count.get_value() == 12
    outputs, updates = engine.scan(lambda: ([(count, count + 1)], engine.until(count >= 13)), n_steps=9)
    run([], [], updates=updates)
    assert count.get_value() == 14


def test_loops_nest(run):
    x, y = pt.dvector("x"), pt.dvector("y")

    def row(x_t):
        return engine.scan(lambda y_t, s: s + x_t * y_t, y, 0.0, return_updates=False)

    found = engine.scan(row, x, return_updates=False)
    np.testing.assert_allclose(run([x, y], found, X, X[:3]), np.cumsum(np.outer(X, X[:3]), axis=1))


def test_a_step_may_apply_an_op_that_holds_a_graph(run):
    a = pt.dscalar("a")
    op = OpFromGraph([a], [a**2 + 1])
    x = pt.dvector("x")
    found = engine.scan(lambda x_t, s: op(s) * x_t, x, 1.0, return_updates=False)
    s, due = 1.0, []
    for x_t in X:
        s = (s**2 + 1) * x_t
        due.append(s)
    np.testing.assert_allclose(run([x], found, X), due)


def test_a_known_length_is_forgotten_where_later_rows_might_have_another(run):
    w = pt.dmatrix("w")
    found = engine.scan(lambda s: pt.dot(w, s), outputs_info=np.ones(2), n_steps=3, return_updates=False)
    assert found.type.shape == (3, None)
    assert run([w], found, np.eye(2) * 2).tolist() == [[2, 2], [4, 4], [8, 8]]


@pytest.mark.parametrize("depth", [1, 2])
def test_a_loop_within_forgets_what_the_state_around_it_forgets(run, depth):
    start, factor = pt.tensor("start", shape=(1, 1)), pt.tensor("factor", shape=(None, 1))

    def damped(state, level):
        if not level:
            return pt.tanh(state) * 0.5
        rows = engine.scan(
            lambda inner: damped(inner, level - 1), outputs_info=[state], n_steps=2, return_updates=False
        )
        return rows[-1]

    def step(state, factor):
        return damped(state, depth)[:1] * factor

    found = engine.scan(step, outputs_info=[start], non_sequences=[factor], n_steps=3, return_updates=False)
    assert found.type.shape == (3, None, 1)
    values = [np.array([[0.3]]), np.array([[2.0]])]
    due, state = [], values[0]
    for _ in range(3):
        for _ in range(2**depth):
            state = np.tanh(state) * 0.5
        state = state * values[1]
        due.append(state)
    slopes = engine.grad(found[-1].sum(), [start, factor])
    rows, *slopes = run([start, factor], [found, *slopes], *values)
    np.testing.assert_allclose(rows, due, rtol=1e-14)
    for place, slope in enumerate(slopes):
        near = [[*values[:place], values[place] + h, *values[place + 1 :]] for h in (1e-6, -1e-6)]
        up, down = (run([start, factor], found[-1].sum(), *point) for point in near)
        np.testing.assert_allclose(slope, [[(up - down) / 2e-6]], rtol=1e-8)


def test_the_folds_give_last_rows(run):
    x = pt.dvector("x")
    found = [
        engine.map(lambda x_t: x_t**2, x)[0],
        engine.reduce(lambda x_t, s: s + x_t, x, 0.0)[0],
        engine.foldl(lambda x_t, s: x_t - s, x, 0.0, return_updates=False),
        engine.foldr(lambda x_t, s: x_t - s, x, 0.0, return_updates=False),
        *engine.reduce(lambda x_t, s, p: [s + x_t, p * x_t], x, [0.0, 1.0], return_updates=False),
    ]
    squares, total, left, right, total_again, product = run([x], found, X)
    np.testing.assert_allclose(squares, X**2)
    due_left = due_right = 0.0
    for x_t in X:
        due_left = x_t - due_left
    for x_t in X[::-1]:
        due_right = x_t - due_right
    np.testing.assert_allclose(
        [total, left, right, total_again, product], [X.sum(), due_left, due_right, X.sum(), np.prod(X)]
    )


def test_equal_loops_have_equal_ops_whatever_they_are_named():
    def op(name):
        x = pt.dvector(name)
        return scan_of(engine.scan(lambda x_t, s: s + x_t, x, 0.0)[0]).op

    assert op("a") == op("b")
    assert op("a").fgraph is op("b").fgraph


def test_the_step_sees_variables_named_after_what_they_are_rows_of():
    names = []

    def step(*rows):
        names.extend(row.name for row in rows)
        return rows[0]

    x, y = pt.dvector("x"), pt.dvector("y")
    engine.scan(step, {"input": x, "taps": [0, -1, 2]}, {"initial": y, "taps": [-2, -1]})
    assert names == ["x[t]", "x[t-1]", "x[t+2]", "y[t-2]", "y[t-1]"]


def test_states_that_change_their_type_are_refused_with_both_types():
    x = pt.dvector("x")
    with pytest.raises(TypeError, match=r"state 0 .*int64.* at first, and a step gives .*float64"):
        engine.scan(lambda x_t, s: s + x_t, x, 0)
    with pytest.raises(TypeError, match=r"state 1 .*one dtype and one shape"):
        engine.scan(lambda x_t, s, r: [s + x_t, r + x], x, [0.0, 1.0])
    with pytest.raises(TypeError, match=r"\(2,\).* at first, and a step gives .*\(3,\)"):
        engine.scan(lambda x_t, s: pt.constant(np.ones(3)), x, np.ones(2))


def test_updates_of_a_step_may_be_an_empty_tuple():
    x = pt.dvector("x")
    doubled = engine.scan(lambda x_t: (2 * x_t, ()), x, return_updates=False)
    np.testing.assert_array_equal(engine.function([x], doubled)([1, 2]), [2, 4])


def test_returns_of_a_step_that_say_nothing_are_refused():
    x = pt.dvector("x")
    for returned in (1.0, None, [x, 1.0], ({x: x}, x), (engine.until(x[0] > 0), x), (x, {}, {}), "x"):
        with pytest.raises(ValueError, match="Describing a step"):
            engine.scan(lambda x_t, r=returned: r, x)


def test_descriptions_that_do_not_fit_are_refused():
    x = pt.dvector("x")
    step = lambda *rows: rows[0]  # noqa: E731
    with pytest.raises(ValueError, match="how many steps"):
        engine.scan(lambda: pt.constant(1.0))
    with pytest.raises(ValueError, match=r"returns 1 outputs, outputs_info has 2"):
        engine.scan(step, x, [None, None])
    with pytest.raises(ValueError, match="no initial value; give its first 2 rows"):
        engine.scan(step, x, {"taps": [-2, -1]})
    for taps in ([0], [1], [-1, -1], []):
        with pytest.raises(ValueError, match="must be negative and differ"):
            engine.scan(step, x, {"initial": x, "taps": taps})
    with pytest.raises(ValueError, match="has tap; a dictionary may have initial, taps"):
        engine.scan(step, x, {"initial": x, "tap": [-1]})
    with pytest.raises(ValueError, match="a dictionary must have an input"):
        engine.scan(step, {"taps": [0]})
    with pytest.raises(TypeError, match="has no axis to go along"):
        engine.scan(step, pt.dscalar())
    with pytest.raises(TypeError, match="2 initial rows are needed"):
        engine.scan(step, x, {"initial": pt.dscalar(), "taps": [-2]})
    with pytest.raises(TypeError, match="must have 0 dimensions"):
        engine.until(x > 0)
    with pytest.raises(ValueError, match="n_steps is -1"):
        engine.scan(step, x, n_steps=-1)
    with pytest.raises(ValueError, match="only a shared variable can be"):
        engine.scan(lambda x_t: {x: x + 1}, x)
    with pytest.warns(FutureWarning, match="mode is not used"):
        engine.scan(step, x, mode="NUMPY")


def test_updates_that_nobody_takes_are_refused():
    count = engine.shared(0, "count")
    with pytest.raises(ValueError, match="updates count, but return_updates=False"):
        engine.scan(lambda: {count: count + 1}, n_steps=2, return_updates=False)
    with pytest.raises(ValueError, match="updates count, but return_updates=False"):
        engine.reduce(lambda x: (x, {count: count + 1}), np.ones(2), None, return_updates=False)


def test_strict_refuses_shared_variables_that_are_not_given(run):
    x, scale = pt.dvector("x"), engine.shared(3.0, "scale")
    step = lambda x_t, *rest: x_t * scale  # noqa: E731
    with pytest.raises(MissingInputError, match="uses the shared variable scale"):
        engine.scan(step, x, strict=True)
    found = engine.scan(step, x, non_sequences=scale, strict=True, return_updates=False)
    np.testing.assert_allclose(run([x], found, X), 3 * X)
    count = engine.shared(0.0, "count")
    engine.scan(lambda x_t: (x_t + count, {count: count + 1}), x, strict=True)


def test_a_sequence_that_is_too_short_for_the_steps_is_refused(run):
    x = pt.dvector("x")
    found = engine.scan(lambda x_t: x_t, x, n_steps=3, return_updates=False)
    with pytest.raises(ValueError, match=r"2.*3|3.*2"):
        run([x], found, X[:2])


def test_the_reference_computes_a_loop_on_shared_variables_without_a_function():
    scale, x = engine.shared(3.0), pt.dvector()
    found, _ = engine.scan(lambda x_t: x_t * scale, x)
    np.testing.assert_allclose(evaluate([x], [found], [X])[0], 3 * X)


def test_a_condition_from_outside_is_computed_before_the_loop():
    x, y = pt.dvector("x"), pt.dmatrix("y")
    stops = pt.sum(pt.tanh(pt.sum(y, axis=0))) > 1.0
    trace = engine.scan(
        lambda s: (s + 0.5, engine.until(stops)), outputs_info=x, n_steps=4, return_updates=False
    )
    f = engine.function([x, y], [pt.sum(trace, axis=0), pt.constant(0.0), pt.exp(pt.sum(y))])
    for value, passes in ((-1.0, 4), (2.0, 1), (-1.0, 4)):
        due = sum(np.ones(2) + 0.5 * (n + 1) for n in range(passes))
        np.testing.assert_allclose(f(np.ones(2), np.full((2, 2), value))[0], due)


@pytest.mark.parametrize("go_backwards", [False, True])
def test_rows_are_filtered_by_one_mask_or_one_for_each_sequence(go_backwards):
    v, w = pt.dvector("v"), pt.dvector("w")
    large = rows_where(lambda row: row > 0.3, v, go_backwards=go_backwards)
    ordered = rows_where(lambda a, b: a < b, [v, w], go_backwards=go_backwards)
    own = rows_where(lambda a, b: (a > 0.6, b > 0.6), (v, w), go_backwards=go_backwards)
    found = evaluate([v, w], [large, *ordered, *own], [X, X[::-1]])
    expected = [[1.0, 0.5, 3.0], [-2.0, 0.25], [3.0, 1.0], [1.0, 3.0], [3.0, 1.0]]
    assert [rows.tolist() for rows in found] == expected
    with pytest.raises(ValueError, match="gave 2 masks"):
        rows_where(lambda a, b, c: (a > 0, b > 0), [v, w, v])


def test_a_loop_has_pytensors_parameters_in_their_order_and_no_profile():
    one = pt.constant(1.0)
    options = False, None, "loop", False, None, False, True, False
    loop = engine.scan(lambda x: 2 * x, None, one, None, 3, -1, *options)
    assert [rows.eval().tolist() for rows in loop] == [[2.0, 4.0, 8.0]]
    with pytest.raises(NotImplementedError, match="there are no profiles"):
        engine.scan(lambda x: 2 * x, outputs_info=one, n_steps=3, profile=True)
