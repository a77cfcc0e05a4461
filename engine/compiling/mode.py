"""`Mode`: the rewrites that a function gets, and the backend that runs it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from engine.graph.rewrite_query import RewriteDatabaseQuery

FAST_RUN = RewriteDatabaseQuery(include=("fast_run",))
FAST_COMPILE = RewriteDatabaseQuery(include=("fast_compile",))
NO_REWRITES = RewriteDatabaseQuery(include=())


@dataclass(frozen=True)
class Mode:
    """The rewrites of a function, chosen by `optimizer`, and its backend.

    `linker` is "numba" (compiled kernels) or "numpy" (the reference implementation of each Op, in
    Python). Refuses (ValueError) another linker.
    """

    linker: str = "numba"
    optimizer: RewriteDatabaseQuery = field(default=FAST_RUN)

    def __post_init__(self) -> None:
        if self.linker not in ("numba", "numpy"):
            raise ValueError(f"Making a Mode: linker is {self.linker!r}; it must be 'numba' or 'numpy'")

    def including(self, *tags: str) -> Mode:
        """Return this mode with the rewrites of `tags` added."""
        return replace(self, optimizer=self.optimizer.including(*tags))

    def excluding(self, *tags: str) -> Mode:
        """Return this mode without the rewrites of `tags`."""
        return replace(self, optimizer=self.optimizer.excluding(*tags))


MODES = {
    "FAST_RUN": Mode("numba", FAST_RUN),
    "FAST_COMPILE": Mode("numba", FAST_COMPILE),
    "NUMBA": Mode("numba", FAST_RUN),
    "NUMPY": Mode("numpy", NO_REWRITES),
}


def get_mode(mode: Mode | str | None) -> Mode:
    """Return the mode of that name, or the default for None; refuses (ValueError) an unknown name."""
    if isinstance(mode, Mode):
        return mode
    found = MODES.get(mode or "FAST_RUN")
    if found is None:
        raise ValueError(f"Choosing a mode: found {mode!r}; it must be a Mode or one of {', '.join(MODES)}")
    return found
