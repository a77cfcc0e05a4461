"""Names, PyTensor's, for what each input and output of a Scan is for: a printed graph shows them.

`seqs` are sequences, `nit_sot` mapped outputs, `non_seqs` non-sequences, and states are of the kinds that
`ScanInfo.kinds` has. Each kind is numbered, and so are the taps of a state.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from cachegraph.named_tuples import NamedTuple
from engine.inner.scan import Scan


class ScanRoles(NamedTuple):
    """A name for each input and output of a Scan, and for each of the graph of its step."""

    outer_inputs: list[str]
    outer_outputs: list[str]
    inner_inputs: list[str]
    inner_outputs: list[str]


def roles_of(op: Any) -> ScanRoles | None:
    """Return the roles of the inputs and outputs of `op`; None unless it is a Scan."""
    if not isinstance(op, Scan):
        return None
    info = op.info
    states = _numbered(info.kinds)
    rows = [f"seqs-{number}" for number in range(info.n_seqs)]
    given = [f"non_seqs-{number}" for number in range(info.n_non_seqs)]
    mapped = [f"nit_sot-{number}" for number in range(info.n_mapped)]
    taps = [
        state if len(offsets) == 1 else f"{state}-{number}"
        for state, offsets in zip(states, info.taps, strict=True)
        for number in range(len(offsets))
    ]
    return ScanRoles(
        ["n_steps", *(f"outer_in_{role}" for role in (*rows, *states, *given))],
        [f"outer_out_{role}" for role in (*states, *mapped)],
        [f"inner_in_{role}" for role in (*rows, *taps, *given)],
        [*(f"inner_out_{role}" for role in (*states, *mapped)), *(["while_cond"] if info.is_while else [])],
    )


def _numbered(kinds: Sequence[str]) -> list[str]:
    """Return each kind with its number among those of its kind."""
    counts: Counter[str] = Counter()
    numbered = []
    for kind in kinds:
        numbered.append(f"{kind}-{counts[kind]}")
        counts[kind] += 1
    return numbered
