"""The parts of a Scan under PyTensor's names."""

import numpy as np
import pytest

import engine
import engine.tensor as pt
from engine.inner import Scan, ScanInfo

INFO = ScanInfo(
    n_seqs=2, taps=((-3, -1), (-1,), (-1,)), keeps=(None, 1, None), n_mapped=1, n_non_seqs=2, is_while=True
)
OUTER = ["steps", "seq 0", "seq 1", "older", "last", "all", "given 0", "given 1"]
RESULTS = ["older", "last", "all", "mapped"]
INNER = ["seq 0", "seq 1", "older -3", "older -1", "last -1", "all -1", "given 0", "given 1"]


def scan_of(info):
    """Return a Scan of numbers whose inputs and outputs are as `info` says."""
    inputs = [pt.dscalar() for _ in range(info.n_inner_inputs)]
    outputs = [sum(inputs[k:], pt.constant(0.0)) for k in range(info.n_inner_outputs - info.is_while)]
    return Scan(inputs, [*outputs, *([outputs[0] > 9] if info.is_while else [])], info)


def test_states_are_counted_by_what_they_read_and_return():
    assert INFO.kinds == ("mit_sot", "untraced_sit_sot", "sit_sot")
    assert (INFO.n_mit_sot, INFO.n_untraced_sit_sot, INFO.n_sit_sot, INFO.n_nit_sot) == (1, 1, 1, 1)
    assert (INFO.n_outer_outputs, INFO.as_while) == (4, True)


def test_each_kind_is_chosen_from_the_four_lists():
    op, computed = scan_of(INFO), [*RESULTS, "stop"]
    assert (op.outer_seqs(OUTER), op.outer_non_seqs(OUTER)) == (OUTER[1:3], OUTER[6:])
    assert (op.inner_seqs(INNER), op.inner_non_seqs(INNER)) == (INNER[:2], INNER[6:])
    assert (op.inner_nitsot_outs(computed), op.outer_nitsot_outs(RESULTS)) == (["mapped"], ["mapped"])
    for name, state, taps in (
        ("mitsot", "older", ["older -3", "older -1"]),
        ("untraced_sit_sot", "last", ["last -1"]),
        ("sitsot", "all", ["all -1"]),
    ):
        assert getattr(op, f"outer_{name}")(OUTER) == [state]
        assert getattr(op, f"inner_{name}")(INNER) == taps
        assert getattr(op, f"inner_{name}_outs")(computed) == [state]
        assert getattr(op, f"outer_{name}_outs")(RESULTS) == [state]


def test_a_list_of_another_length_is_refused():
    with pytest.raises(ValueError, match="outer inputs"):
        scan_of(INFO).outer_sitsot(OUTER[1:])


def test_positions_that_belong_together_are_told_for_each_pair_of_lists():
    found = scan_of(INFO).get_oinp_iinp_iout_oout_mappings()
    assert len(found) == 12
    due = {0: [], 1: [0], 2: [1], 3: [2, 3], 4: [4], 5: [5], 6: [6], 7: [7]}
    assert found["inner_inp_from_outer_inp"] == due
    assert found["outer_inp_from_inner_inp"] == {0: 1, 1: 2, 2: 3, 3: 3, 4: 4, 5: 5, 6: 6, 7: 7}
    assert found["outer_inp_from_outer_out"] == {0: 3, 1: 4, 2: 5, 3: -1}
    assert found["inner_inp_from_inner_out"] == {0: [2, 3], 1: [4], 2: [5], 3: [], 4: []}
    assert found["outer_out_from_inner_out"] == {0: 0, 1: 1, 2: 2, 3: 3, 4: -1}


def test_the_parts_of_a_loop_are_what_it_was_made_of():
    x, w, start = pt.dvector("x"), pt.dscalar("w"), pt.dscalar("start")
    totals = engine.scan(lambda x_t, total, w: total + w * x_t, x, start, [w], return_updates=False)
    node = totals.owner.inputs[0].owner
    assert node.op.outer_non_seqs(node.inputs) == [w]
    (sequence,) = node.op.outer_seqs(node.inputs)
    np.testing.assert_array_equal(engine.function([x], sequence)([1.0, 2.0]), [1.0, 2.0])
    assert [row.type.ndim for row in node.op.inner_sitsot(node.op.inner_inputs)] == [0]
