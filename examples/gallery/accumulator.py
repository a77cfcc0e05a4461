"""A shared variable that calls change: updates, givens, and a copy with a state of its own."""

import engine as pytensor
import engine.tensor as pt

state = pytensor.shared(0)
step = pt.iscalar("step")
accumulate = pytensor.function([step], state, updates=[(state, state + step)])
reduce = pytensor.function([step], state, updates={state: state - step})

at_first = int(state.get_value())
before_one = accumulate(1)
before_many = accumulate(300)
after_both = int(state.get_value())

state.set_value(-1)
before_three = accumulate(3)
before_two_less = reduce(2)
in_the_end = int(state.get_value())

instead = pt.scalar(dtype=state.dtype)
formula = state * 2 + step
without_state = pytensor.function([step, instead], formula, givens=[(state, instead)])
by_givens = without_state(1, 3)
not_touched = int(state.get_value())

other_state = pytensor.shared(10)
accumulate_other = accumulate.copy(swap={state: other_state})
before_other = accumulate_other(100)
other_after = int(other_state.get_value())
first_after = int(state.get_value())
