"""All calls that are compared: arguments for every dtype that a function takes."""

from __future__ import annotations

from collections.abc import Iterator

from array_calls import arranging, creating, joining, on_dtypes
from number_calls import choosing, elementwise, statistics
from product_calls import decompositions, products, transforms

from examples import EagerCall


def all_calls() -> Iterator[EagerCall]:
    """Yield every call."""
    for calls in (
        elementwise,
        statistics,
        choosing,
        arranging,
        joining,
        creating,
        on_dtypes,
        products,
        decompositions,
        transforms,
    ):
        yield from calls()
