"""The registers that every program has: what the process that runs it fills in."""

from __future__ import annotations

DETAILS = 4
"""The first of the registers that a failing kernel writes its details to; the machine has those before."""
ADDRESS_OF_DETAILS = 8
"""Holds the address of DETAILS."""
ARRAY_TYPE = 9
"""Holds the address of numpy.ndarray."""
DESCRIPTORS = {"float64": 10, "float32": 11, "int64": 12, "int32": 13, "bool": 14}
"""Hold what arrays of each dtype are known by."""
FIRST_FREE = 16
"""The first register that a program may use as it likes."""
