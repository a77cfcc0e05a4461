"""A process of its own: calls during which one allocation of Python's fails, or all from one on.

Results and shared variables are compared after each. Prints how many calls there were, and how many failed.
"""

from __future__ import annotations

import _testcapi
import sys

import numpy as np

import engine
import engine.tensor as pt

FIRST, COUNTS = 60, (1, 2, 3, 1000)


def main() -> int:
    x, s, total = pt.vector("x"), pt.scalar("s"), engine.shared(np.zeros(200))
    states = engine.scan(lambda a: a * 0.5, outputs_info=x, n_steps=4, return_updates=False)
    f = engine.function([x, s], [x * s, states, pt.sum(x)], updates={total: total + x})
    values, two = np.ones(200), np.array(2.0)
    f(values, two)
    calls = failed = 0
    for first in range(FIRST):
        for count in COUNTS:
            before, results = total.get_value(), None
            calls += 1
            _testcapi.set_nomemory(first, first + count)
            try:
                results = f(values, two)
            except (MemoryError, SystemError):  # numpy and Python do not always say which allocation failed
                failed += 1
            finally:
                _testcapi.remove_mem_hooks()
            np.testing.assert_array_equal(total.get_value(), before + (results is not None))
            if results is not None:
                product, rows, added = results
                assert (product == 2.0).all()
                assert rows[:, 0].tolist() == [0.5, 0.25, 0.125, 0.0625]
                assert added == 200.0
    print(f"{calls} calls, {failed} failed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
