"""The registers that every program reserves for the process that runs it."""

from __future__ import annotations

DETAILS = 4
"""The first of the registers for the details of a failing kernel; those before belong to the machine."""
DETAIL_COUNT = 3
ADDRESS_OF_DETAILS = 8
"""Holds the address of DETAILS."""
ARRAY_TYPE = 9
"""Holds the address of numpy.ndarray."""
DESCRIPTORS = {"float64": 10, "float32": 11, "int64": 12, "int32": 13, "bool": 14}
"""Hold the words by which BIND recognizes the dtypes."""
FEWEST_FOR_PARTS = 15
"""Holds the fewest elements of a call that threads share; more than any call has if there is one thread."""
FIRST_FREE = 16
"""The first register that a program may use freely."""
