"""The registers that every program reserves for the process that runs it."""

from __future__ import annotations

from engine.runtime.kernel_interface import ITEM_SIZES

DETAILS = 4
"""The first of the registers for the details of a failing kernel; those before belong to the machine."""
DETAIL_COUNT = 3
ADDRESS_OF_DETAILS = 8
"""Holds the address of DETAILS."""
ARRAY_TYPE = 9
"""Holds the address of numpy.ndarray."""
FEWEST_FOR_PARTS = 10
"""Holds the fewest elements of a call that threads share; more than any call has if there is one thread."""
DESCRIPTORS = {dtype: 11 + number for number, dtype in enumerate(ITEM_SIZES)}
"""Hold the words by which BIND recognizes the dtypes."""
FIRST_FREE = 25
"""The first register that a program may use freely."""
