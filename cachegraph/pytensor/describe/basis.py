"""What a description was made from, and whether it is still that.

A key is made in `pytensor.function`, and numba compiles at the first call, or at a later one with arguments of other types:
with the numbers that constants have then, and with the globals and free variables that users' code has then. Stored code is
used, and code is stored, only while all that the key says is still so.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cachegraph.errors import Unfingerprintable
from cachegraph.pytensor.describe.graphs import encode_frozen
from cachegraph.pytensor.describe.held_arrays import HeldArrays
from cachegraph.pytensor.describe.host_packages import hosts_described
from cachegraph.pytensor.describe.implementations import Implementations
from cachegraph.pytensor.describe.values import Met

CHANGED = "changed-while-compiling"
"""The reason why a function is a bypass that is no longer what its key says."""


class Basis:
    """The arrays and the code that one description was made from, and what was registered to compile it by."""

    def __init__(self, met: Met) -> None:
        self.arrays = HeldArrays(met.arrays)
        self.implementations = Implementations.now()
        self._coded = tuple(met.coded)

    def __reduce__(self) -> Any:
        """Elsewhere other things are registered, and code is what the reader imports: the arrays alone are carried."""
        return _carried, (self.arrays,)

    def changed(self) -> str | None:
        """What is not as it was described, for people; None if all is."""
        if self.arrays.have_changed():
            return "the data of a constant"
        if not _is_as_written(self._coded):
            return "the code of an Op, or what that reads"
        if self.implementations.have_changed():
            return "what an Op is compiled by, or what that reads"
        return None


def _carried(arrays: HeldArrays) -> Basis:
    met = Met((), encode_frozen)
    basis = Basis(met)
    basis.arrays = arrays
    return basis


def _is_as_written(coded: Sequence[tuple[bytes, Any, Any]]) -> bool:
    if not coded:
        return True
    met = Met(hosts_described(), encode_frozen)
    try:
        return all(write(item, met) == written for written, item, write in coded)
    except Unfingerprintable:
        return False
