"""The Scan Op: what it computes step by step, what makes two equal, what depends on what, what it refuses."""

import pickle

import numpy as np
import pytest

import engine.tensor as pt
from cachegraph.fingerprint.encoding import encode
from engine.compiling.key import encode_graph
from engine.errors import MissingInputError
from engine.graph import FunctionGraph
from engine.graph.reference import evaluate
from engine.inner import HasInnerGraph, Scan, ScanInfo

CUMULATIVE = ScanInfo(n_seqs=1, taps=((-1,),), keeps=(None,), n_mapped=1, n_non_seqs=1)
FIBONACCI = ScanInfo(n_seqs=0, taps=((-2, -1),), keeps=(None,), n_mapped=0, n_non_seqs=0)


def cumulative(factor=2.0, info=CUMULATIVE, **options):
    """total[t] = total[t-1] + a * x[t], and the mapped a * x[t] times a factor."""
    x, total, a = pt.dscalar("x"), pt.dscalar("total"), pt.dscalar("a")
    return Scan([x, total, a], [total + a * x, factor * a * x], info, **options)


def fibonacci(info=FIBONACCI):
    before, last = pt.lscalar(), pt.lscalar()
    return Scan([before, last], [before + last], info)


def values(op, *arguments):
    variables = [pt.tensor(None, np.asarray(a).dtype, (None,) * np.ndim(a)) for a in arguments]
    return evaluate(variables, op(*variables, return_list=True), arguments)


def test_a_state_is_carried_from_step_to_step_and_a_mapped_output_is_not():
    total, mapped = values(cumulative(), 3, [1.0, 2.0, 3.0], [10.0], 5.0)
    assert total.tolist() == [10, 15, 25, 40]
    assert mapped.tolist() == [10, 20, 30]


def test_a_step_is_a_function_that_is_compiled_once():
    op = cumulative()
    total, mapped = op.fn(3.0, 10.0, 5.0)
    assert (total, mapped) == (25.0, 30.0)
    assert op.fn is cumulative().fn


def test_a_state_of_two_taps_has_two_initial_rows():
    (buffer,) = values(fibonacci(), 5, [0, 1])
    assert buffer.tolist() == [0, 1, 1, 2, 3, 5, 8]


def test_rows_have_any_number_of_dimensions():
    w, state = pt.dmatrix(), pt.dvector()
    op = Scan([state, w], [pt.tanh(pt.dot(w, state))], ScanInfo(0, ((-1,),), (None,), 0, 1))
    matrix = np.array([[1.0, 2.0], [-0.5, 0.25]])
    (buffer,) = values(op, 2, [[1.0, 2.0]], matrix)
    first = np.tanh(matrix @ [1.0, 2.0])
    np.testing.assert_allclose(buffer, [[1.0, 2.0], first, np.tanh(matrix @ first)])


@pytest.mark.parametrize(("keep", "due"), [(1, [8]), (2, [5, 8])])
def test_a_state_may_keep_only_its_last_rows(keep, due):
    (buffer,) = values(fibonacci(ScanInfo(0, ((-2, -1),), (keep,), 0, 0)), 5, [0, 1])
    assert buffer.tolist() == due


def test_no_steps_leave_the_initial_rows_and_no_row_of_a_mapped_output():
    total, mapped = values(cumulative(), 0, [1.0], [10.0], 5.0)
    assert (total.tolist(), mapped.shape) == ([10], (0,))
    x, w = pt.dvector(), pt.dmatrix()
    op = Scan([x, w], [pt.dot(w, x)], ScanInfo(1, (), (), 1, 1))
    assert values(op, 0, np.ones((0, 3)), np.ones((4, 3)))[0].shape == (0, 4)
    assert values(op, 0, np.ones((2, 3)), np.ones((4, 2)))[0].shape == (0, 0)  # which no step could use


def test_a_condition_ends_the_loop_after_the_step_that_made_it_true():
    before, last, bound = pt.lscalar(), pt.lscalar(), pt.lscalar()
    new = before + last
    info = ScanInfo(0, ((-2, -1),), (None,), 1, 1, is_while=True)
    op = Scan([before, last, bound], [new, new * 2, new > bound], info)
    for bound, due in ((4, [0, 1, 1, 2, 3, 5]), (100, [0, 1, 1, 2, 3, 5, 8, 13, 21, 34])):
        buffer, mapped = values(op, 8, [0, 1], bound)
        assert buffer.tolist() == due
        assert mapped.tolist() == [2 * n for n in due[2:]]


def test_an_output_that_is_an_input_is_copied():
    x, state = pt.dvector(), pt.dvector()
    op = Scan([x, state], [x, state, x], ScanInfo(1, ((-1,),), (None,), 2, 0))
    rows = np.array([[1.0, 2.0], [3.0, 4.0]])
    buffer, before, same = values(op, 2, rows, [[0.0, 0.5]])
    assert buffer.tolist() == [[0, 0.5], [1, 2], [3, 4]]
    assert before.tolist() == [[0, 0.5], [1, 2]]
    assert same.tolist() == rows.tolist()


def test_it_is_immutable_its_own_clone_and_equal_by_graph_and_properties():
    op = cumulative()
    assert isinstance(op, HasInnerGraph)
    assert op.clone() is op
    assert op == cumulative()
    assert hash(op) == hash(cumulative())
    keeping = ScanInfo(1, ((-1,),), (1,), 1, 1)
    different = [
        op,
        cumulative(3.0),
        cumulative(name="sum"),
        cumulative(truncate_gradient=2),
        cumulative(info=keeping),
    ]
    assert len(set(different)) == len(different)
    assert cumulative(name="sum", truncate_gradient=2).for_compilation() == op
    assert op.for_compilation() is op


def test_equal_scans_merge_into_one_node():
    from engine.rewriting import MergeOptimizer

    steps, x, a = pt.lscalar(), pt.dvector(), pt.dscalar()
    start = pt.dvector()
    outputs = [v for _ in range(2) for v in cumulative()(steps, x, start, a)]
    fgraph = FunctionGraph([steps, x, start, a], outputs)
    MergeOptimizer().rewrite(fgraph)
    assert len(fgraph.apply_nodes) == 1


def test_its_key_has_the_graph_and_its_interface_and_no_name():
    def key(op):
        steps, x, start, a = pt.lscalar(), pt.dvector(), pt.dvector(), pt.dscalar()
        fgraph = FunctionGraph([steps, x, start, a], op(steps, x, start, a))
        return encode_graph(fgraph.freeze())

    assert key(cumulative()) == key(cumulative(name="sum", truncate_gradient=3))
    keys = {key(cumulative()), key(cumulative(3.0)), key(cumulative(info=ScanInfo(1, ((-1,),), (1,), 1, 1)))}
    assert len(keys) == 3


def test_infos_are_encoded_by_all_they_say():
    infos = [
        CUMULATIVE,
        FIBONACCI,
        ScanInfo(1, ((-1,),), (1,), 1, 1),
        ScanInfo(1, ((-1,),), (None,), 1, 1, is_while=True),
        ScanInfo(1, ((-2,),), (None,), 1, 1),
        ScanInfo(1, ((-2, -1),), (None,), 1, 1),
        ScanInfo(1, ((-2,), (-1,)), (None, None), 1, 1),
    ]
    assert len({encode(info) for info in infos}) == len(infos)
    assert encode(CUMULATIVE) == encode(ScanInfo(1, ((-1,),), (None,), 1, 1, False))


def test_it_survives_pickling_as_an_equal_op_on_the_same_graph():
    op = cumulative(name="sum")
    again = pickle.loads(pickle.dumps(op))
    assert again == op
    assert again.fgraph is op.fgraph


def test_what_an_output_depends_on_goes_through_other_states():
    x, y, z, c = pt.dscalar(), pt.dscalar(), pt.dscalar(), pt.dscalar()
    # x <- x + y, y <- y + z, z <- z; mapped: c, x
    info = ScanInfo(0, ((-1,),) * 3, (None,) * 3, 2, 1)
    op = Scan([x, y, z, c], [x + y, y + z, z, c, x], info)
    rows = [pt.dvector() for _ in range(3)]
    node = op.make_node(pt.lscalar(), *rows, pt.dscalar())
    assert [[int(item) for item in row] for row in op.connection_pattern(node)] == [
        [0, 0, 0, 0, 0],  # the number of steps
        [1, 0, 0, 0, 1],
        [1, 1, 0, 0, 1],
        [1, 1, 1, 0, 1],
        [0, 0, 0, 1, 0],
    ]


def test_inner_inputs_that_nothing_reads_again_may_be_overwritten():
    info = ScanInfo(1, ((-2, -1), (-1,), (-1,), (-2,)), (1, None, 1, 1), 0, 1)
    assert info.destroyable == (4,)


def test_a_known_number_of_steps_gives_known_lengths():
    op = cumulative()
    x, start, a = pt.dvector(), pt.dvector(), pt.dscalar()
    assert [v.type.shape for v in op(3, x, start, a)] == [(4,), (3,)]
    assert [v.type.shape for v in op(pt.lscalar(), x, start, a)] == [(None,), (None,)]


def test_interfaces_that_say_nothing_are_refused():
    for taps in ((), (-1, -2), (0,), (-1, 1), (-1, -1)):
        with pytest.raises(ValueError, match="taps of state 0"):
            ScanInfo(0, (taps,), (None,), 0, 0)
    with pytest.raises(ValueError, match="from 1 to 2"):
        ScanInfo(0, ((-2,),), (3,), 0, 0)
    with pytest.raises(ValueError, match="1 states, but keeps has 0"):
        ScanInfo(0, ((-1,),), (), 0, 0)


def test_graphs_that_do_not_fit_are_refused():
    x, y, i, v = pt.dscalar("x"), pt.dscalar("y"), pt.lscalar("i"), pt.dvector("v")
    state, condition = ScanInfo(0, ((-1,),), (None,), 0, 0), ScanInfo(1, (), (), 0, 0, is_while=True)
    with pytest.raises(ValueError, match="2 inputs, 1 are needed"):
        Scan([x, y], [x + y], state)
    with pytest.raises(ValueError, match="2 outputs, 1 are needed"):
        Scan([x], [x, x], state)
    with pytest.raises(TypeError, match=r"state 0 is read as .*int64.* and computed as .*float64"):
        Scan([i], [i * 1.5], state)
    with pytest.raises(TypeError, match="must be a bool of 0 dimensions"):
        Scan([v], [v > 0], condition)
    with pytest.raises(MissingInputError, match="uses y of type"):
        Scan([x], [x + y], state)
    with pytest.raises(ValueError, match="truncate_gradient is 0"):
        Scan([x], [x], state, truncate_gradient=0)


def test_applications_that_do_not_fit_are_refused():
    op = cumulative()
    x, start, a = pt.dvector("x"), pt.dvector("start"), pt.dscalar("a")
    with pytest.raises(ValueError, match="it has 4, 2 were given"):
        op(3, x)
    with pytest.raises(TypeError, match=r"n_steps is .*float64"):
        op(3.0, x, start, a)
    with pytest.raises(ValueError, match="n_steps is -1"):
        op(-1, x, start, a)
    with pytest.raises(TypeError, match=r"sequence 0 has type .*int64"):
        op(3, pt.lvector(), start, a)
    with pytest.raises(TypeError, match="state 0 has type"):
        op(3, x, a, a)
    with pytest.raises(TypeError, match="non-sequence 0 is"):
        op(3, x, start, x)
    with pytest.raises(ValueError, match="sequence 0 has 2 rows, 3 steps"):
        op(3, np.ones(2), start, a)
    with pytest.raises(ValueError, match="1 initial rows are needed, 2 were given"):
        op(3, x, np.ones(2), a)


def test_values_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="n_steps is -2"):
        values(cumulative(), -2, [1.0], [0.0], 1.0)
    with pytest.raises(ValueError, match="sequence 0 has 1 rows, 2 steps"):
        values(cumulative(), 2, [1.0], [0.0], 1.0)
    with pytest.raises(ValueError, match="2 initial rows are needed; 3 were given"):
        values(fibonacci(), 2, [1, 2, 3])
    x, state = pt.dvector(), pt.dvector()
    op = Scan([x, state], [x, x], ScanInfo(1, ((-1,),), (None,), 1, 0))
    with pytest.raises(ValueError, match=r"step 0 gives state 0 a row of shape \(3,\)"):
        values(op, 1, np.ones((2, 3)), np.ones((1, 2)))
