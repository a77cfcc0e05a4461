"""Rewriting of loops: unneeded parts vanish, constant parts move out, few rows are kept."""

import numpy as np
import pytest

import engine
import engine.tensor as pt
from engine.graph.reference import evaluate
from engine.inner import Scan, ScanInfo
from engine.rewriting import DEFAULT_QUERY

X, W = np.array([1.0, -0.5, 2.0, 0.25]), np.array([[0.5, -0.2], [0.1, 0.3]])


def rows(*arguments, **options):
    return engine.scan(*arguments, **options, return_updates=False)


def scans(graph):
    return [node for node in graph.fgraph.toposort() if isinstance(node.op, Scan)]


def inner_ops(node):
    return [str(inner.op) for inner in node.op.fgraph.nodes]


def two_states(x):
    """Return sums of rows, their products with earlier sums, and a mapped output."""
    return rows(lambda x_t, s, p: [s + x_t, p * s, pt.exp(x_t)], x, [0.0, 1.0, None])


def test_what_is_used_stays(rewritten):
    x = pt.dvector("x")
    (node,) = scans(rewritten(x, two_states(x)).check_values(X))
    assert (node.op.info.n_states, node.op.info.n_mapped) == (2, 1)


def test_outputs_that_nothing_uses_are_not_computed(rewritten):
    x = pt.dvector("x")
    (node,) = scans(rewritten(x, two_states(x)[2]).check_values(X))
    assert (node.op.info.n_states, node.op.info.n_mapped) == (0, 1)
    (node,) = scans(rewritten(x, two_states(x)[0]).check_values(X))
    assert (node.op.info.n_states, node.op.info.n_mapped) == (1, 0)
    (node,) = scans(rewritten(x, two_states(x)[1]).check_values(X))
    assert (node.op.info.n_states, node.op.info.keeps) == (2, (1, None))


def test_what_a_condition_needs_is_computed(rewritten):
    x = pt.dvector("x")
    found = rows(lambda x_t, s: ([s + x_t, x_t * 2], engine.until(s > 2)), x, [0.0, None])
    graph = rewritten(x, found[1]).check_values(np.ones(9))
    (node,) = scans(graph)
    assert (node.op.info.n_states, node.op.info.keeps) == (1, (1,))


def test_what_is_given_twice_is_given_once(rewritten):
    x, y, a, b, s = pt.dscalar(), pt.dscalar(), pt.dscalar(), pt.dscalar(), pt.dscalar()
    op = Scan([x, y, s, a, b], [s + x * a - y * b + x / a], ScanInfo(2, ((-1,),), (None,), 0, 2))
    u, start, c = pt.dvector(), pt.dvector(), pt.dscalar()
    graph = rewritten([u, start, c], op(u.shape[0], u, u, start, c, c)).check_values(
        X, np.ones(1), np.array(2.0)
    )
    (node,) = scans(graph)
    assert (node.op.info.n_seqs, node.op.info.n_non_seqs) == (1, 1)


def test_known_numbers_are_part_of_the_step_and_data_is_not(rewritten):
    x, a, d, s = pt.dscalar(), pt.dscalar(), pt.dvector(), pt.dscalar()
    op = Scan([x, s, a, d], [s + x * a + pt.sum(d * x)], ScanInfo(1, ((-1,),), (None,), 0, 2))
    u, start = pt.dvector(), pt.dvector()
    graph = rewritten([u, start], op(u.shape[0], u, start, 2.5, np.arange(40.0))).check_values(X, np.ones(1))
    (node,) = scans(graph)
    assert node.op.info.n_non_seqs == 1


def test_what_does_not_change_is_computed_once(rewritten):
    x, w, s = pt.dvector(), pt.dmatrix(), pt.dvector()
    op = Scan([s, w, x], [pt.dot(pt.exp(w), s) + pt.tanh(x)], ScanInfo(0, ((-1,),), (None,), 0, 2))
    start, n = pt.dmatrix(), pt.lscalar()
    graph = rewritten([n, start, w, x], op(n, start, w, x)).check_values(3, np.ones((1, 2)), W, X[:2])
    (node,) = scans(graph)
    assert sorted(inner_ops(node)) == ["Dot", "add"]
    assert {"exp", "tanh"} <= set(graph.ops)


def test_what_fills_a_shape_stays_where_it_is_used(rewritten):
    x, s = pt.dvector(), pt.dvector()
    op = Scan([s, x], [s + pt.ones_like(x)], ScanInfo(0, ((-1,),), (None,), 0, 1))
    start, n = pt.dmatrix(), pt.lscalar()
    graph = rewritten([n, start, x], op(n, start, x)).check_values(3, np.ones((1, 4)), X)
    assert scans(graph)[0].op.info.n_non_seqs <= 1
    assert "second" not in graph.ops


def test_a_loop_that_does_not_change_is_run_once(rewritten):
    y, total, s = pt.dvector("y"), pt.dscalar(), pt.dvector()
    inner = rows(lambda y_t, r: r + y_t, y, 0.0)[-1]
    op = Scan([total, y], [total * inner], ScanInfo(0, ((-1,),), (None,), 0, 1))
    graph = rewritten([s, y], op(3, s, y)).check_values(np.ones(1), X)
    assert len(scans(graph)) == 2
    assert all("Scan" not in inner_ops(node) for node in scans(graph))


def test_what_is_the_same_at_all_steps_fills_the_rows_without_a_loop(rewritten):
    x, w, n = pt.dvector("x"), pt.dmatrix("w"), pt.lscalar("n")
    found = rows(lambda x, w: pt.dot(w, x) + 1, non_sequences=[x, w], n_steps=n)
    outputs = [found, found.sum(axis=0), found.shape[0]]
    graph = rewritten([x, w, n], outputs).check_values(X[:2], W, 3).check_values(X[:2], W, 0)
    assert scans(graph) == []
    f = engine.function([x, w, n], [found[-1], found])
    with pytest.raises(ValueError, match="negative"):
        f(X[:2], W, -1)
    with pytest.raises(IndexError):
        f(X[:2], W, 0)


def test_what_is_the_same_at_all_steps_leaves_a_loop_with_other_outputs(rewritten):
    x, w = pt.dvector("x"), pt.dmatrix("w")
    found = rows(lambda x_t, s, w: [s + x_t, pt.exp(w), x_t * 2], x, [0.0, None, None], [w])
    graph = rewritten([x, w], found).check_values(X, W)
    (node,) = scans(graph)
    assert (node.op.info.n_states, node.op.info.n_mapped, node.op.info.n_non_seqs) == (1, 1, 0)


def test_a_loop_that_a_condition_ends_tells_how_often_what_is_the_same_is_repeated(rewritten):
    x, w = pt.dvector("x"), pt.dvector("w")
    found = rows(lambda x_t, w: (pt.exp(w), engine.until(x_t < 0)), x, non_sequences=[w])
    graph = rewritten([x, w], found).check_values(X, X[:3])
    assert len(scans(graph)) == 1


@pytest.mark.parametrize(
    ("read", "keep"),
    [
        (lambda s: s[-1], 1),
        (lambda s: s[-1] + s[-2], 2),
        (lambda s: s.owner.inputs[0][-2:], 2),
        (lambda s: s.owner.inputs[0][-1], 1),
        (lambda s: s[-1] * s.shape[0], 1),
        (lambda s: s[-1] + pt.zeros_like(s), 1),
        (lambda s: s[-3], None),
        (lambda s: s[0], None),
        (lambda s: s[1:][-1], None),
        (lambda s: s, None),
    ],
)
def test_of_a_state_as_many_rows_are_kept_as_are_read(rewritten, read, keep):
    start, n = pt.dvector("start"), pt.lscalar("n")
    s = rows(lambda a, b: a * b + 1, outputs_info={"initial": start, "taps": [-2, -1]}, n_steps=n)
    graph = rewritten([start, n], read(s)).check_values([0.5, 0.2], 4)
    (node,) = scans(graph)
    assert node.op.info.keeps == (keep,)


@pytest.mark.parametrize(("place", "keep"), [(-1, 1), (4, 1), (-2, 2), (3, 2), (2, None), (0, None)])
def test_of_a_known_number_of_rows_the_last_are_known_by_their_places(rewritten, place, keep):
    x = pt.tensor("x", dtype="float64", shape=(5,))
    s = rows(lambda x_t, a, b: a * b + x_t, x, {"initial": pt.ones(2), "taps": [-2, -1]})
    (node,) = scans(rewritten([x], s[place]).check_values(np.arange(5.0)))
    assert node.op.info.keeps == (keep,)


@pytest.mark.parametrize("steps", [0, 1, 2])
def test_a_row_that_is_not_there_is_an_index_error_as_before(rewritten, steps):
    start, n = pt.dvector("start"), pt.lscalar("n")
    s = rows(lambda a, b: a + b, outputs_info={"initial": start, "taps": [-2, -1]}, n_steps=n)
    for back in (1, 2):
        graph = rewritten([start, n], s[-back])
        assert scans(graph)[0].op.info.keeps == (back,)
        if steps >= back:
            graph.check_values([1.0, 1.0], steps)
        else:
            with pytest.raises(IndexError):
                graph.evaluate([1.0, 1.0], steps)


def test_a_loop_that_a_condition_ends_keeps_its_last_row(rewritten):
    x = pt.dvector("x")
    s = rows(lambda x_t, s: (s + x_t, engine.until(s > 2)), x, 0.0)
    graph = rewritten(x, s[-1]).check_values(np.ones(9))
    assert scans(graph)[0].op.info.keeps == (1,)
    with pytest.raises(IndexError):
        graph.evaluate(np.ones(0))


def test_updates_of_shared_variables_keep_one_row(rewritten):
    count = engine.shared(1.0)
    _, updates = engine.scan(lambda: {count: count * 2}, n_steps=5)
    fgraph_input = pt.dscalar()
    expression = engine.graph.clone_replace(updates[count], {count: fgraph_input})
    graph = rewritten(fgraph_input, expression).check_values(3.0)
    assert scans(graph)[0].op.info.keeps == (1,)


def test_lengths_of_outputs_need_no_loop(rewritten):
    x, w = pt.dvector("x"), pt.dmatrix("w")
    s, mapped = rows(lambda x_t, s: [pt.dot(w, s) * x_t, pt.concatenate([s, s]) + x_t], x, [w[0], None])
    lengths = [s.shape[0], s.shape[1], mapped.shape[0], s[::-1].shape[0]]
    graph = rewritten([x, w], pt.stack(lengths)).check_values(X, W)
    assert scans(graph) == []


def test_equal_loops_are_one(rewritten):
    x = pt.dvector("x")
    first, second = (rows(lambda x_t, s: s * x_t, x, 1.0) for _ in range(2))
    assert len(scans(rewritten(x, first + second).check_values(X))) == 1


def test_a_long_loop_on_known_numbers_is_not_run_while_rewriting(rewritten):
    n = 10**9
    s = rows(lambda s: s * 0.5, outputs_info=1.0, n_steps=n)[-1]
    assert len(scans(rewritten([], s))) == 1


def test_a_gradient_reads_no_rows_that_are_all_the_same(rewritten):
    x, a = pt.dvector("x"), pt.dscalar("a")
    s = rows(lambda x_t, s: a * s + x_t, x, a)
    graph = rewritten([x, a], engine.grad(pt.sum(s), [x, a])).check_values(X, 0.5)
    _, back = scans(graph)
    assert back.op.info.n_seqs == 1  # the states before each step


def test_a_gradient_that_reads_no_states_keeps_none(rewritten):
    x, a = pt.dvector("x"), pt.dscalar("a")
    s = rows(lambda x_t, s: a * s + x_t, x, a)
    graph = rewritten([x, a], engine.grad(pt.sum(s), x)).check_values(X, 0.5)
    assert len(scans(graph)) == 1
    alone = DEFAULT_QUERY.excluding("scan_merge")
    graph = rewritten([x, a], [s[-1], engine.grad(s[-1], x)], query=alone).check_values(X, 0.5)
    forward = [node for node in scans(graph) if node.op.info.n_states == 1 and node.op.info.n_mapped == 0]
    assert [node.op.info.keeps for node in forward] == [(1,)]


def test_the_first_rows_of_a_buffer_are_the_initial_ones(rewritten):
    start, n = pt.dvector("start"), pt.lscalar("n")
    s = rows(lambda a, b: a + b, outputs_info={"initial": start, "taps": [-2, -1]}, n_steps=n)
    buffer = s.owner.inputs[0]
    for found in (buffer[:2], buffer[:1], buffer[1]):
        assert scans(rewritten([start, n], found).check_values([1.0, 2.0], 3)) == []
    assert len(scans(rewritten([start, n], buffer[:3]).check_values([1.0, 2.0], 3))) == 1


def test_parts_of_what_was_changed_there_are_what_they_became(rewritten):
    x, y = pt.dvector("x"), pt.dvector("y")
    zeros = pt.zeros_like(x)
    for found, ops in [
        (x[1:].set(y)[1:], []),
        (zeros[1:].set(y)[1:], []),
        (x[2:].set(y)[:1], ["Subtensor{:b}"]),
        (x[::-1][::-1], []),
    ]:
        arguments = (X, np.array([5.0, 6, 7])) if ops == [] else (X, np.array([5.0, 6]))
        assert rewritten([x, y], found).check_values(*arguments).ops == ops
    added = rewritten([x, y], zeros[1:].inc(y)[1:])
    assert added.check_values(X, np.array([5.0, -0.0, 7]), exact=True).ops == ["add"]
    for found in (x[1:].inc(y)[1:], x[1:].set(y)[2:], x[::-1][::2]):
        assert len(rewritten([x, y], found).check_values(X, np.array([5.0, 6, 7])).ops) == 2
    assert rewritten([x], x[1:].set(3.0)[1:]).check_values(X).ops[-1] == "second"


def test_what_a_user_holds_does_not_change(rewritten):
    x, w = pt.dvector("x"), pt.dmatrix("w")
    s = rows(lambda x_t, s: pt.tanh(pt.dot(pt.exp(w), s)) * x_t, x, w[0])
    node = s.owner.inputs[0].owner
    graph, nodes = node.op.fgraph, node.op.fgraph.nodes
    rewritten([x, w], s[-1]).check_values(X, W)
    assert node.op.fgraph is graph
    assert node.op.fgraph.nodes == nodes
    rewritten([x, w], [s[-1], *engine.grad(pt.sum(s[-1]), [x, w])]).check_values(X, W)
    assert evaluate([x, w], [s], [X, W])[0].shape == (4, 2)


def test_products_of_all_rows_of_a_sequence_are_one_product(rewritten):
    x, w, h = pt.dmatrix("x"), pt.dmatrix("w"), pt.dvector("h")
    values = [np.outer(X, X[:2]), W, W[0]]
    for product in (lambda r: pt.dot(w, r), lambda r: pt.dot(r, w), lambda r: pt.dot(r, h) + r):
        s = rows(lambda r, s, product=product: s + pt.tanh(product(r)), x, h)
        graph = rewritten([x, w, h], s).check_values(*values)
        assert "Dot" not in inner_ops(*scans(graph))
    s = rows(lambda r, s: s + pt.dot(w, r), x, h, n_steps=2)
    assert "Dot" not in inner_ops(*scans(rewritten([x, w, h], s).check_values(*values)))


def test_products_of_rows_that_are_matrices_are_one_product(rewritten):
    x, w, h = pt.tensor3("x"), pt.dmatrix("w"), pt.dmatrix("h")
    values = [np.arange(24.0).reshape(4, 3, 2) / 24, W, np.ones((3, 2))]
    graph = rewritten([x, w, h], rows(lambda r, s: s * pt.dot(r, w), x, h)).check_values(*values)
    assert "Dot" not in inner_ops(*scans(graph))
    graph = rewritten([x, w, h], rows(lambda r, s: s * pt.sum(pt.dot(r, w[0])), x, h)).check_values(*values)
    assert "Dot" not in inner_ops(*scans(graph))


def test_products_that_no_step_uses_are_computed_behind_the_loop(rewritten):
    x, w, h = pt.dmatrix("x"), pt.dmatrix("w"), pt.dvector("h")
    values = [np.outer(X, X[:2]), W, W[0]]
    step = lambda r, s: [pt.tanh(s + r), pt.dot(w, pt.tanh(s + r)), pt.dot(pt.exp(s), w), pt.dot(s * r, h)]  # noqa: E731
    graph = rewritten([x, w, h], rows(step, x, [h, None, None, None])).check_values(*values)
    assert inner_ops(*scans(graph)).count("Dot") == 1  # scalars are not replaced by rows
    assert graph.ops.count("Dot") == 2
    graph = rewritten([x, w, h], rows(lambda r, s: [pt.dot(w, s), pt.dot(w, s)], x, [h, None])).check_values(
        *values
    )
    assert inner_ops(*scans(graph)) == ["Dot"]


def test_products_in_a_loop_that_a_condition_ends_read_the_rows_done(rewritten):
    x, w, h = pt.dmatrix("x"), pt.dmatrix("w"), pt.dvector("h")
    step = lambda r, s: ([s + r, pt.dot(w, s), pt.dot(w, r)], engine.until(pt.sum(s) > 3))  # noqa: E731
    graph = rewritten([x, w, h], rows(step, x, [h, None, None])).check_values(np.ones((9, 2)), W, W[0])
    assert "Dot" not in inner_ops(*scans(graph))


@pytest.mark.parametrize("steps", [0, 1, 4])
def test_a_gradient_for_a_matrix_is_one_product(rewritten, steps):
    x, w, h = pt.dmatrix("x"), pt.dmatrix("w"), pt.dvector("h")
    s = rows(lambda r, s: pt.tanh(pt.dot(w, s) + pt.dot(r, w)), x, h)
    graph = rewritten([x, w, h], engine.grad(pt.sum(s**2), [w, h]))
    graph.check_values(np.outer(X, X[:2])[:steps], W, W[0])
    _, back = scans(graph)
    assert back.op.info.n_states == 1
    assert inner_ops(back).count("Dot") == 1


def test_a_gradient_for_a_matrix_of_rows_that_are_matrices_is_one_product(rewritten):
    x, w, h = pt.tensor3("x"), pt.dmatrix("w"), pt.dmatrix("h")
    s = rows(lambda r, s: pt.tanh(pt.dot(s, w) + pt.dot(r, w.T)), x, h)
    graph = rewritten([x, w, h], engine.grad(pt.sum(s[-1] ** 2), [x, w, h]))
    graph.check_values(np.arange(24.0).reshape(4, 3, 2) / 24, W, np.ones((3, 2)) / 3)
    _, back = scans(graph)
    assert back.op.info.n_states == 1
    assert inner_ops(back).count("Dot") == 1


def test_sums_of_products_that_steps_read_stay_in_the_loop(rewritten):
    x, g = pt.dmatrix("x"), pt.dmatrix("g")
    outer = lambda r: pt.dimshuffle(r, (0, "x")) * pt.dimshuffle(r, ("x", 0))  # noqa: E731
    values = [np.outer(X, X[:2]), W]
    for step in (
        lambda r, s: s + outer(r + s[0]),
        lambda r, s: s * 0.5 + outer(r),
        lambda r, s: s + s + outer(r),
        lambda r, s: s + outer(r) + r,
    ):
        s = rows(step, x, g)[-1]
        assert len(scans(rewritten([x, g], s).check_values(*values))) == 1
    assert len(scans(rewritten([x, g], rows(lambda r, s: s + outer(r), x, g)).check_values(*values))) == 1
    assert scans(rewritten([x, g], rows(lambda r, s: outer(r) + s, x, g)[-1]).check_values(*values)) == []
    graph = rewritten([x, g], rows(lambda r, s: outer(r) + s, x, g)[-1])
    with pytest.raises(IndexError):
        graph.evaluate(np.zeros((0, 2)), W)


def test_loops_are_equal_whether_what_they_use_is_given_or_found():
    x, a, b = pt.dvector("x"), pt.dscalar("a"), pt.dscalar("b")
    ops = set()
    for given in ([a, b], [b, a], [b], []):
        found = rows(lambda x_t, s, *_: pt.exp(a) * x_t + b * s, x, 0.0, given)
        ops.add(found.owner.inputs[0].owner.op)
    assert len(ops) == 1


def test_of_mapped_outputs_the_last_row_alone_is_kept_if_only_that_is_read(rewritten):
    x, w = pt.dvector("x"), pt.dmatrix("w")
    for step in (lambda x_t, s: [s * x_t, pt.exp(s)], lambda x_t, s: [s * x_t, pt.dot(w, w[0]) * s]):
        found = rows(step, x, [1.0, None])[1][-1]
        graph = rewritten([x, w], found).check_values(X, W)
        (node,) = scans(graph)
        assert (node.op.info.keeps, node.op.info.n_mapped) == ((1, 1), 0)
        with pytest.raises(IndexError):
            graph.evaluate(X[:0], W)
    graph = rewritten([x, w], rows(lambda x_t, s: [s * x_t, x_t + w[0]], x, [1.0, None])[1][-1, 0])
    assert scans(graph.check_values(X, W))[0].op.info.n_mapped == 0


def test_a_mapped_output_whose_length_only_the_loop_tells_stays(rewritten):
    x, s = pt.lvector("x"), pt.dvector("s")
    found = rows(lambda n: pt.arange(3 + 0 * n) + s[0], x)[-1]
    (node,) = scans(rewritten([x, s], found).check_values(np.array([1, 2]), X))
    assert node.op.info.n_mapped == 1


@pytest.mark.parametrize("values", [np.ones(9), np.zeros(3), np.zeros(0)])
def test_how_many_steps_a_condition_allowed_is_asked_of_what_is_read_anyway(rewritten, values):
    x = pt.dvector("x")
    step = lambda x_t, s, r: ([s + x_t, r * 2, pt.exp(x_t)], engine.until(s > 2))  # noqa: E731
    total, power, mapped = rows(step, x, [0.0, 1.0, None])
    graph = rewritten(x, pt.sum(total) * power.shape[0] + mapped.shape[0]).check_values(values)
    (node,) = scans(graph)
    assert (node.op.info.keeps, node.op.info.n_mapped) == ((None,), 0)
    graph = rewritten(x, pt.sum(mapped) * total.shape[0] + power.shape[0]).check_values(values)
    (node,) = scans(graph)
    assert (node.op.info.keeps, node.op.info.n_mapped) == ((1,), 1)
    graph = rewritten(x, total.shape[0] + power.shape[0] + mapped.shape[0]).check_values(values)
    (node,) = scans(graph)
    assert (node.op.info.n_states, node.op.info.n_mapped) == (
        1,
        0,
    )  # the input of the condition has that length
    buffer = total.owner.inputs[0]
    graph = rewritten(x, buffer[-1] + power.shape[0] + mapped.shape[0]).check_values(values)
    (node,) = scans(graph)
    assert (node.op.info.keeps, node.op.info.n_mapped) == ((1, None), 0)


def test_a_gradient_through_a_condition_keeps_only_what_it_reads(rewritten):
    x, a = pt.dvector("x"), pt.dscalar("a")
    step = lambda x_t, s, r: ([s + x_t * a, r + 1.0, x_t * 2], engine.until(r > 2))  # noqa: E731
    total, _, _ = rows(step, x, [0.0, 1.0, None])
    graph = rewritten([x, a], engine.grad(pt.sum(total), [x, a])).check_values(X, 0.5)
    kept = [(node.op.info.keeps, node.op.info.n_mapped) for node in scans(graph)]
    assert kept[0] in (((1,), 1), ((None,), 0))


@pytest.mark.parametrize("steps", [0, 2, 4])
def test_products_are_of_the_rows_that_steps_read_and_of_no_others(rewritten, steps):
    x, y, g, n = pt.dmatrix("x"), pt.dmatrix("y"), pt.dmatrix("g"), pt.lscalar("n")
    outer = lambda a, b: pt.dimshuffle(a, (0, "x")) * pt.dimshuffle(b, ("x", 0))  # noqa: E731
    values = [np.outer(X, X[:2]), np.outer(X[::-1], X[1:3]), W, np.array(steps)]
    buffer = rows(lambda a, b, s: outer(a, b) + s, [x, y], g, n_steps=n).owner.inputs[0]
    rewritten([x, y, g, n], buffer[-1]).check_values(*values)
    mapped = rows(lambda a, s: [pt.dot(g, a), s + pt.dot(a, g)], x, [None, g[0]], n_steps=n)
    for found in mapped:
        rewritten([x, g, n], found).check_values(values[0], W, np.array(steps))


def test_a_sequence_that_is_too_short_is_refused_where_products_leave_the_loop(rewritten):
    x, g, n = pt.dmatrix("x"), pt.dmatrix("g"), pt.lscalar("n")
    outer = lambda a: pt.dimshuffle(a, (0, "x")) * pt.dimshuffle(a, ("x", 0))  # noqa: E731
    total = rows(lambda a, s: outer(a) + s, x, g, n_steps=n)[-1]
    products = rows(lambda a: pt.dot(g, a), x, n_steps=n)
    for found in (total, products):
        with pytest.raises(ValueError, match="4 rows, 5 steps"):
            rewritten([x, g, n], found).evaluate(np.outer(X, X[:2]), W, np.array(5))


def test_lengths_of_parts_of_states_need_no_loop(rewritten):
    start, n = pt.dvector("start"), pt.lscalar("n")
    s = rows(lambda a, b: a + b, outputs_info={"initial": start, "taps": [-3, -1]}, n_steps=n)
    buffer = s.owner.inputs[0]
    parts = [buffer[3:], buffer[2:-1], buffer[1:], buffer[:-2], buffer[:-3], buffer[1:][::-1]]
    graph = rewritten([start, n], pt.stack([part.shape[0] for part in parts]))
    assert scans(graph.check_values([1.0, 2.0, 3.0], 2)) == []
    graph = rewritten([start, n], pt.stack([buffer[:-4].shape[0], buffer[4:].shape[0], buffer[-2:].shape[0]]))
    for steps in (0, 1, 5):
        graph.check_values([1.0, 2.0, 3.0], steps)
    ended = rows(lambda a: (a + 1, engine.until(a > 3)), outputs_info=start[0], n_steps=n)
    graph = rewritten([start, n], pt.stack([ended.shape[0], ended.owner.inputs[0][:-1].shape[0]]))
    for steps in (0, 1, 9):
        graph.check_values([1.0, 2.0, 3.0], steps)


@pytest.mark.parametrize("known", ["steps", "rows", "nothing"])
def test_the_second_derivative_of_a_loop_of_known_length_is_rewritten(rewritten, known):
    w, x = pt.dscalar("w"), pt.tensor("x", "float64", (5,) if known == "rows" else (None,))
    options = {"n_steps": 5} if known == "steps" else {}
    states = rows(lambda r, a, w: pt.tanh(w * a + r), x, pt.constant(0.5), w, **options)
    slope = engine.grad(engine.grad(states[-1], w), w)
    outputs = [slope, states, engine.grad(pt.sum(engine.grad(states[-1], x)), x)]
    graph = rewritten([w, x], outputs, query=DEFAULT_QUERY.excluding("inplace"))
    graph.check_values(np.array(0.7), np.array([1.0, -0.5, 2.0, 0.25, 0.1]))


def test_the_second_derivative_of_a_loop_of_a_known_number_of_steps_compiles():
    w, x = pt.dscalar("w"), pt.dscalar("x")
    states = rows(lambda a, w: pt.tanh(w * a), outputs_info=x, non_sequences=w, n_steps=5)
    slope = engine.grad(engine.grad(states[-1], w), w)
    due = engine.function([w, x], slope, mode="NUMPY")(0.7, 0.3)
    np.testing.assert_allclose(engine.function([w, x], slope)(0.7, 0.3), due)
