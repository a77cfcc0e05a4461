"""Subscripts of Einstein's sums, "ij,jk->ik", and the products and sums that they stand for.

Each axis of a tensor has a label: a letter, or for those of "..." a negative number, -1 for the last of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any
from warnings import warn

from cachegraph.named_tuples import NamedTuple
from engine.tensor.checks import specify_shape
from engine.tensor.contractions import tensordot
from engine.tensor.creation import arange
from engine.tensor.elemwise import dimshuffle
from engine.tensor.math import mul
from engine.tensor.reduction import sum as sum_over
from engine.tensor.shape import shape_i, squeeze

Label = str | int
Labels = tuple[Label, ...]


class Labelled(NamedTuple):
    """A tensor with a label for each axis."""

    tensor: Any
    labels: Labels


def parsed(subscripts: str, ranks: Sequence[int]) -> tuple[list[Labels], Labels]:
    """Return the labels of tensors with `ranks` dimensions, and those of the result.

    Without "->" the result has "..." and, in order, the letters that occur once. Raises ValueError for
    subscripts that do not fit.
    """
    given, arrow, wanted = subscripts.replace(" ", "").partition("->")
    terms = given.split(",")
    if len(terms) != len(ranks):
        raise ValueError(f"Summing {subscripts!r}: it is for {len(terms)} tensors, {len(ranks)} were given")
    inputs = [_labels(subscripts, term, rank) for term, rank in zip(terms, ranks, strict=True)]
    dots = sorted({label for labels in inputs for label in labels if isinstance(label, int)})
    letters = "".join(letter for letter in given if letter.isalpha())
    if not arrow:
        return inputs, (*dots, *(letter for letter in sorted(set(letters)) if letters.count(letter) == 1))
    before, has_dots, after = wanted.partition("...")
    output: Labels = (*before, *(dots if has_dots else ()), *after)
    if len(set(output)) != len(output) or not {*before, *after} <= set(letters):
        raise ValueError(
            f"Summing {subscripts!r}: the result's subscripts must be among the tensors', each once"
        )
    return inputs, output


def _labels(subscripts: str, term: str, rank: int) -> Labels:
    before, has_dots, after = term.partition("...")
    missing = rank - len(before) - len(after)
    if not (before + after).isalpha() and before + after:
        raise ValueError(f"Summing {subscripts!r}: {term!r} must be letters, and may have one '...'")
    if missing < 0 or (missing and not has_dots):
        raise ValueError(
            f"Summing {subscripts!r}: {term!r} is for another tensor than one of {rank} dimensions"
        )
    return (*before, *range(-missing, 0), *after)


def contracted(operands: Sequence[Labelled], kept: frozenset[Label]) -> Labelled:
    """Return the product of one or two tensors, summed over the labels that are not `kept`."""
    if len(operands) == 1:
        return _summed(_with_diagonals(operands[0]), kept)
    left, right = map(_with_diagonals, operands)
    left, right = _without_ones(left, right), _without_ones(right, left)
    left, right = _summed(left, kept.union(right.labels)), _summed(right, kept.union(left.labels))
    common = [label for label in left.labels if label in right.labels]
    summed = [label for label in common if label not in kept]
    if len(common) > len(summed) or not summed:
        return _summed(_multiplied(left, right), kept)
    axes = [[each.labels.index(label) for label in summed] for each in (left, right)]
    rest = [label for each in (left, right) for label in each.labels if label not in summed]
    return Labelled(tensordot(left.tensor, right.tensor, axes), tuple(rest))


def _with_diagonals(operand: Labelled) -> Labelled:
    """Return the diagonals over the axes with one label. Different lengths raise ValueError."""
    tensor, labels = operand
    for label in dict.fromkeys(labels):
        axes = [axis for axis, each in enumerate(labels) if each == label]
        if len(axes) == 1:
            continue
        rest = [axis for axis, each in enumerate(labels) if each != label]
        first = dimshuffle(tensor, [*axes, *rest])
        length = shape_i(first, 0)
        square = specify_shape(first, [length] * len(axes) + [None] * len(rest))
        tensor = square[(arange(length),) * len(axes)]
        labels = (label, *(labels[axis] for axis in rest))
    return Labelled(tensor, labels)


def _without_ones(operand: Labelled, other: Labelled) -> Labelled:
    """Return `operand` without the axes of static length 1 whose labels `other` has at another length."""
    lengths = dict(zip(other.labels, other.tensor.type.shape, strict=True))
    ones = [
        axis
        for axis, (label, length) in enumerate(zip(operand.labels, operand.tensor.type.shape, strict=True))
        if length == 1 and lengths.get(label, 1) != 1
    ]
    if any(isinstance(operand.labels[axis], str) for axis in ones):
        warn(
            "The same einsum subscript is used for a broadcastable and non-broadcastable dimension. "
            "This can result in a suboptimal contraction path.",
            stacklevel=2,
        )
    rest = [label for axis, label in enumerate(operand.labels) if axis not in ones]
    return Labelled(squeeze(operand.tensor, ones) if ones else operand.tensor, tuple(rest))


def _summed(operand: Labelled, kept: frozenset[Label]) -> Labelled:
    axes = [axis for axis, label in enumerate(operand.labels) if label not in kept]
    rest = tuple([label for label in operand.labels if label in kept])
    return Labelled(sum_over(operand.tensor, axes) if axes else operand.tensor, rest)


def _multiplied(left: Labelled, right: Labelled) -> Labelled:
    """Return the product, with all labels of both. A sum of it is one loop, without the whole product."""
    labels = tuple(dict.fromkeys([*left.labels, *right.labels]))
    return Labelled(mul(*map(partial(_spread, labels=labels), (left, right))), labels)


def _spread(operand: Labelled, labels: Labels) -> Any:
    """Return the tensor with its axes in the order of `labels`, of length 1 for those it does not have."""
    places = {label: axis for axis, label in enumerate(operand.labels)}
    return dimshuffle(operand.tensor, [places.get(label, "x") for label in labels])


def ordered(operand: Labelled, labels: Labels) -> Any:
    """Return the tensor with its axes in the order of `labels`, which are its own."""
    return _spread(operand, labels)
