"""Python's cyclic garbage collector while something is compiled or loaded: it runs, but seldom.

A compile makes some hundred thousand objects, and most of them stay until it ends. At its usual thresholds
the collector looks at the new ones whenever there are 700 to 2,000 more, and at all that the process holds
whenever those have grown by a quarter. That is up to a tenth of a compile.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

SELDOM = (50_000, 20, 100)
"""The thresholds for `gc.set_threshold`. With no collection at all numba would need a fifth more memory."""


@contextmanager
def seldom_collected() -> Iterator[None]:
    """Have the collector run seldom in this process until the block ends, unless it is off or does already.

    Thresholds that somebody else sets meanwhile stay. Blocks may nest, and threads may have one each: the
    first one counts.
    """
    before = gc.get_threshold()
    if not 0 < before[0] < SELDOM[0]:
        yield
        return
    try:
        gc.set_threshold(*SELDOM)
        yield
    finally:
        if gc.get_threshold()[0] == SELDOM[0]:
            gc.set_threshold(*before)


@contextmanager
def kept_for_good() -> Iterator[None]:
    """Have the collector run seldom until the block ends, and then take what was made for old.

    For what a process makes once and keeps, such as modules: the collector looks at it when it looks at
    everything, but not twice before. All else that is young grows old with it. Where somebody has frozen
    objects (`gc.freeze`), nothing grows old.
    """
    with seldom_collected():
        yield
        if not gc.get_freeze_count():
            gc.freeze()  # only lists of objects are joined; `unfreeze` gives them to the oldest generation
            gc.unfreeze()
