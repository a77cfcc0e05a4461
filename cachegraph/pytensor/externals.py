"""What a stored graph names beside the classes of PyTensor and PyMC: a few functions, and the classes of its user's Ops.

A pickle of a graph refers to them by number, so that what an entry can reach is decided here, and by the graph in hand,
not by the entry.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

_FUNCTIONS = (
    ("pytensor.scalar.basic", "upcast_out"),
    ("pytensor.scalar.basic", "upcast_out_nobool"),
    ("pytensor.scalar.basic", "upcast_out_min8"),
    ("pytensor.scalar.basic", "upgrade_to_float"),
    ("pytensor.scalar.basic", "upgrade_to_float64"),
    ("pytensor.scalar.basic", "same_out"),
    ("pytensor.scalar.basic", "same_out_nobool"),
    ("pytensor.scalar.basic", "same_out_min8"),
    ("pytensor.scalar.basic", "upcast_out_no_complex"),
    ("pytensor.scalar.basic", "same_out_float_only"),
    ("pytensor.scalar.basic", "int_out"),
    ("pytensor.scalar.basic", "float_out"),
    ("pytensor.scalar.basic", "upgrade_to_float_no_complex"),
    ("pytensor.scalar.basic", "same_out_nocomplex"),
    ("pytensor.scalar.basic", "real_out"),
)
"""The functions that Ops of PyTensor hold in their properties: they give the types of scalar results.

Their order is part of the format of optimized.py: new ones are added at the end."""


class LostGradient:
    """Stands where an OpFromGraph of a stored graph had functions or graphs of its user for its gradient.

    Whoever asks for that gradient is told (NotImplementedError); the compiled function needs none.
    """

    def __call__(self, *arguments: object) -> Any:
        """Refuse."""
        raise NotImplementedError(
            "taking a gradient through the optimized graph of a function that came from the cache: what its Op was "
            "given for its gradient is not kept; differentiate the graph that the function was made of"
        )


LOST = LostGradient()


def external_objects(classes: Sequence[type]) -> list[object]:
    """LOST, the functions, then `classes`; in the place of a function that this PyTensor lacks there is a tuple of its names."""
    return [LOST, *(_function(module, name) for module, name in _FUNCTIONS), *classes]


def _function(module: str, name: str) -> Any:
    return getattr(sys.modules.get(module), name, (module, name))
