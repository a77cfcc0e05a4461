"""The parts of a Scan under PyTensor's names: methods that choose them from lists of inputs and outputs.

`seqs` are sequences, `nit_sot` mapped outputs, `non_seqs` non-sequences, and states are of the kinds that
`ScanInfo.kinds` has. The four lists are those of `scan_info`: a mapped output has no outer input here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain, count, islice
from typing import Any

from cachegraph.named_tuples import NamedTuple
from engine.inner.scan_info import ScanInfo

Choose = Callable[["ScanParts", Sequence[Any]], list[Any]]


def _states(kind: str, part: Callable[[ScanInfo, Sequence[Any]], Sequence[Any]]) -> Choose:
    """Return the method that chooses from `part` of a list, an item per state, those of a `kind`."""

    def chosen(self: ScanParts, variables: Sequence[Any]) -> list[Any]:
        items = zip(self.info.kinds, part(self.info, variables), strict=True)
        return [item for found, item in items if found == kind]

    return chosen


def _taps(kind: str) -> Choose:
    """Return the method that chooses from inner inputs the rows of states of a `kind`."""
    grouped = _states(kind, lambda info, inputs: info.inner_inputs(inputs).taps)
    return lambda self, inputs: list(chain.from_iterable(grouped(self, inputs)))


def _initials(kind: str) -> Choose:
    return _states(kind, lambda info, inputs: info.outer_inputs(inputs).initials)


def _new(kind: str) -> Choose:
    return _states(kind, lambda info, outputs: info.inner_outputs(outputs).states)


def _buffers(kind: str) -> Choose:
    return _states(kind, lambda info, outputs: info.outer_outputs(outputs).buffers)


class ScanParts:
    """Mixin of Scans. Each method takes all inputs, or all outputs, of the Scan or of its step, and returns
    those of one kind; refuse (ValueError) a list of another length.
    """

    info: ScanInfo

    outer_sitsot, inner_sitsot = _initials("sit_sot"), _taps("sit_sot")
    inner_sitsot_outs, outer_sitsot_outs = _new("sit_sot"), _buffers("sit_sot")
    outer_mitsot, inner_mitsot = _initials("mit_sot"), _taps("mit_sot")
    inner_mitsot_outs, outer_mitsot_outs = _new("mit_sot"), _buffers("mit_sot")
    outer_untraced_sit_sot, inner_untraced_sit_sot = _initials("untraced_sit_sot"), _taps("untraced_sit_sot")
    inner_untraced_sit_sot_outs = _new("untraced_sit_sot")
    outer_untraced_sit_sot_outs = _buffers("untraced_sit_sot")

    def outer_seqs(self, inputs: Sequence[Any]) -> list[Any]:
        """Return the sequences."""
        return self.info.outer_inputs(inputs).sequences

    def inner_seqs(self, inputs: Sequence[Any]) -> list[Any]:
        """Return the rows of sequences that a step reads."""
        return self.info.inner_inputs(inputs).rows

    def outer_non_seqs(self, inputs: Sequence[Any]) -> list[Any]:
        """Return the non-sequences."""
        return self.info.outer_inputs(inputs).non_sequences

    def inner_non_seqs(self, inputs: Sequence[Any]) -> list[Any]:
        """Return the non-sequences as a step reads them."""
        return self.info.inner_inputs(inputs).non_sequences

    def inner_nitsot_outs(self, outputs: Sequence[Any]) -> list[Any]:
        """Return the rows of mapped outputs that a step computes."""
        return self.info.inner_outputs(outputs).mapped

    def outer_nitsot_outs(self, outputs: Sequence[Any]) -> list[Any]:
        """Return the mapped outputs."""
        return self.info.outer_outputs(outputs).mapped

    def get_oinp_iinp_iout_oout_mappings(self) -> dict[str, dict[int, Any]]:
        """Return the positions that belong together: by `inner_inp_from_outer_inp`, and so on for each pair
        of lists, a dictionary from each position in the second one to its positions in the first. Inner ones
        are lists; outer ones are one position each, or -1."""
        groups = list(_groups(self.info))
        names = _Positions._fields
        return {
            f"{to}_from_{source}": _mapping(groups, source, to)
            for source in names
            for to in names
            if to != source
        }


class _Positions(NamedTuple):
    """The positions that belong to one sequence, state, mapped output or non-sequence, or to the rest."""

    outer_inp: list[int]
    inner_inp: list[int]
    inner_out: list[int]
    outer_out: list[int]


def _groups(info: ScanInfo) -> list[_Positions]:
    """Return the groups in the order of the outer inputs; outputs come in the same order."""
    outer_inp, inner_inp, inner_out, outer_out = count(), count(), count(), count()
    found = [_Positions([next(outer_inp)], [], [], [])]
    found += [_Positions([next(outer_inp)], [next(inner_inp)], [], []) for _ in range(info.n_seqs)]
    for taps in info.taps:
        rows = list(islice(inner_inp, len(taps)))
        found.append(_Positions([next(outer_inp)], rows, [next(inner_out)], [next(outer_out)]))
    found += [_Positions([], [], [next(inner_out)], [next(outer_out)]) for _ in range(info.n_mapped)]
    found += [_Positions([next(outer_inp)], [next(inner_inp)], [], []) for _ in range(info.n_non_seqs)]
    return found + ([_Positions([], [], [next(inner_out)], [])] if info.is_while else [])


def _mapping(groups: Sequence[_Positions], source: str, to: str) -> dict[int, Any]:
    return {
        position: _told(to, getattr(group, to)) for group in groups for position in getattr(group, source)
    }


def _told(name: str, positions: list[int]) -> Any:
    return positions if name.startswith("inner") else positions[0] if positions else -1
