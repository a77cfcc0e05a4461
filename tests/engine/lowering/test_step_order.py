"""Steps follow those whose memory they use, those that may fail keep their order, and joined ones fit in."""

from __future__ import annotations

import pytest

from engine.lowering.kernels.elementwise import copy
from engine.lowering.kernels.lapack import solve_positive
from engine.lowering.kernels.nest import NestOperand
from engine.lowering.step_order import followed_steps, ordered
from engine.lowering.steps import Buffer, Step

PLAIN, FAILING = copy(NestOperand("float64", (False,))), solve_positive("float64", True)
A, B, C = (Buffer(number, "float64", (), 0, 0) for number in range(3))


def step(reads=(), writes=(), kernel=PLAIN):
    return Step(kernel, (), 0, tuple(reads), tuple(writes), "")


def test_a_reader_follows_the_last_writer():
    assert followed_steps([step(writes=[A]), step([A], [A]), step([A], [B])]) == [set(), {0}, {1}]


def test_a_writer_follows_all_readers_of_the_old_elements():
    steps = [step(writes=[A]), step([A], [B]), step([A], [C]), step(writes=[A]), step(writes=[A])]
    assert followed_steps(steps) == [set(), {0}, {0}, {0, 1, 2}, {3}]


def test_a_step_does_not_follow_itself():
    assert followed_steps([step([A], [A])]) == [set()]


def test_steps_that_may_fail_keep_their_order():
    steps = [step(writes=[A], kernel=FAILING), step(writes=[B]), step(writes=[C], kernel=FAILING)]
    assert followed_steps(steps) == [set(), set(), {0}]


def test_a_joined_step_runs_where_its_first_member_did_if_it_can():
    steps = [step(writes=[A]), step(writes=[C]), step(writes=[B])]
    joint = step(writes=[A, B])
    assert ordered(steps, followed_steps(steps), [([steps[0], steps[2]], joint)]) == [joint, steps[1]]


def test_a_joined_step_waits_for_what_its_last_member_needs():
    steps = [step(writes=[A]), step(writes=[C]), step([C], [B])]
    joint = step([C], [A, B])
    assert ordered(steps, followed_steps(steps), [([steps[0], steps[2]], joint)]) == [steps[1], joint]


def test_groups_that_need_each_other_are_refused():
    steps = [step(writes=[A]), step([A], [B]), step([B], [C])]
    groups = [([steps[0], steps[2]], step([B], [A, C]))]
    with pytest.raises(AssertionError, match="need each other"):
        ordered(steps, followed_steps(steps), groups)
