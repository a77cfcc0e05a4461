"""Loops in blocks: they compute what `scan` does, and their gradients keep fewer rows."""

import numpy as np
import pytest

import engine
import engine.tensor as pt
from engine.graph.reference import evaluate
from engine.graph.traversal import ancestors
from engine.inner import Scan
from engine.scanning.checkpoints import scan_checkpoints

X = np.linspace(-1, 1, 7)


def step(x, total, a):
    new = pt.tanh(total * a) + x
    return new, new**2


def loops(x, a, **options):
    given = {"fn": step, "sequences": x, "outputs_info": [a, None], "non_sequences": a}
    plain, _ = engine.scan(**given)
    blocks, _ = scan_checkpoints(**given, **options)
    return plain, blocks


@pytest.mark.parametrize(("size", "padding"), [(3, True), (7, False), (10, True)])
def test_blocks_give_the_rows_after_each_of_them(size, padding):
    x, a = pt.dvector("x"), pt.dscalar("a")
    plain, blocks = loops(x, a, save_every_N=size, padding=padding)
    gradients = [engine.grad(found[0][-1] + found[1][-1], [x, a]) for found in (plain, blocks)]
    f = engine.function([x, a], [*plain, *blocks, *gradients[0], *gradients[1]])
    total, squared, *found, of_x, of_a, of_x_in_blocks, of_a_in_blocks = f(X, 0.5)
    ends = [min(end, 7) - 1 for end in range(size, 7 + size, size)]
    np.testing.assert_allclose(found[0], total[ends])
    np.testing.assert_allclose(found[1], squared[ends])
    np.testing.assert_allclose(of_x_in_blocks, of_x)
    np.testing.assert_allclose(of_a_in_blocks, of_a)


def test_a_gradient_reads_the_ends_of_blocks_only():
    x, a = pt.dvector("x"), pt.dscalar("a")
    _, blocks = loops(x, a, save_every_N=3)
    back = engine.grad(blocks[0][-1], a)
    outer = [v.owner for v in ancestors([back]) if v.owner is not None and isinstance(v.owner.op, Scan)]
    kept = {variable for node in outer for variable in node.inputs if variable.type.ndim}
    lengths = evaluate([x, a], list(kept), [X, 0.5])
    assert all(len(found) <= 4 for found in lengths)


def test_updates_of_all_blocks_are_returned():
    count, x = engine.shared(0), pt.dvector("x")
    total, updates = scan_checkpoints(
        lambda v, old: (old + v, {count: count + 1}), x, pt.constant(0.0), save_every_N=2
    )
    assert engine.function([x], total[-1], updates=updates, mode="NUMPY")(X[:5]) == X[:5].sum()
    assert count.get_value() == 5


def test_taps_are_refused():
    with pytest.raises(RuntimeError, match="taps"):
        scan_checkpoints(lambda: None, [], {"initial": pt.dvector(), "taps": [-2]})
