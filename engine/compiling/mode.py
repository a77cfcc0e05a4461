"""`Mode`: the rewrites that a function gets, and the backend that runs it."""

from __future__ import annotations

from typing import Any

from cachegraph.fingerprint.registry import register_record
from engine.graph.props import ByProps
from engine.graph.rewrite_query import RewriteDatabaseQuery

FAST_RUN = RewriteDatabaseQuery(include=("fast_run",))
FAST_COMPILE = RewriteDatabaseQuery(include=("fast_compile",))
NO_REWRITES = RewriteDatabaseQuery(include=())
OPT_FAST_RUN, OPT_FAST_COMPILE, OPT_NONE = FAST_RUN, FAST_COMPILE, NO_REWRITES
"""PyTensor's names."""


LINKERS = {"numba": "numba", "numpy": "numpy", "py": "numpy"} | dict.fromkeys(
    ("c", "cvm", "vm", "c|py", "cvm_nogc", "vm_nogc", "c|py_nogc"), "numba"
)
"""Backends by their names, and by those of PyTensor's linkers that compute the same."""

predefined_optimizers: dict[str | None, RewriteDatabaseQuery] = {
    "default": FAST_RUN,
    "fast_run": FAST_RUN,
    "o4": FAST_RUN,
    "o3": FAST_RUN.excluding("inplace"),
    "o2": FAST_COMPILE.including("fusion"),
    "o1": FAST_COMPILE,
    "fast_compile": FAST_COMPILE,
    "merge": RewriteDatabaseQuery(include=("merge",)),
    "None": NO_REWRITES,
    None: NO_REWRITES,
}
"""Choices of rewrites by PyTensor's names."""


class Mode(ByProps):
    """The rewrites of a function, chosen by `optimizer`, and its backend.

    `linker` is "numba" (compiled kernels) or "numpy" (the reference implementation of each Op, in
    Python); PyTensor's "py" means "numpy", and "c", "cvm", "vm" and "c|py" mean "numba". `optimizer` is a
    query, a name in predefined_optimizers, or a GraphRewriter, which no cache key describes: functions that
    it rewrites are not cached. Refuses (ValueError) others.
    """

    __props__ = ("linker", "optimizer")

    def __init__(self, linker: str = "numba", optimizer: Any = FAST_RUN) -> None:
        if linker not in LINKERS:
            raise ValueError(f"Making a Mode: linker is {linker!r}; it must be 'numba' or 'numpy'")
        if not isinstance(optimizer, RewriteDatabaseQuery) and not is_rewriter(optimizer):
            if optimizer not in predefined_optimizers:
                raise ValueError(
                    f"Making a Mode: optimizer is {optimizer!r}; it must be a query, a rewriter or one of "
                    f"{', '.join(map(repr, predefined_optimizers))}"
                )
            optimizer = predefined_optimizers[optimizer]
        self.linker = LINKERS[linker]
        self.optimizer = optimizer

    def __repr__(self) -> str:
        return f"Mode(linker={self.linker!r}, optimizer={self.optimizer!r})"

    def including(self, *tags: str) -> Mode:
        """Return this mode with the rewrites of `tags` added."""
        return Mode(self.linker, self._query().including(*tags))

    def excluding(self, *tags: str) -> Mode:
        """Return this mode without the rewrites of `tags`."""
        return Mode(self.linker, self._query().excluding(*tags))

    def requiring(self, *tags: str) -> Mode:
        """Return this mode with those of its rewrites alone that have all `tags`."""
        return Mode(self.linker, self._query().requiring(*tags))

    def _query(self) -> RewriteDatabaseQuery:
        """Return the query of this mode. Raises TypeError if it has a rewriter."""
        if not isinstance(self.optimizer, RewriteDatabaseQuery):
            raise TypeError(
                f"Changing the tags of {self!r}: its optimizer is a rewriter, which has none; make a Mode of "
                "a query"
            )
        return self.optimizer


def is_rewriter(optimizer: object) -> bool:
    """Return True for a rewriter of graphs; its module is not loaded for this."""
    return callable(getattr(optimizer, "add_requirements", None)) and callable(
        getattr(optimizer, "run", None)
    )


register_record(Mode, Mode.__props__)

MODES = {
    "FAST_RUN": Mode("numba", FAST_RUN),
    "FAST_COMPILE": Mode("numba", FAST_COMPILE),
    "NUMBA": Mode("numba", FAST_RUN),
    "NUMPY": Mode("numpy", NO_REWRITES),
    **dict.fromkeys(("C", "CVM", "VM", "C_VM"), Mode("numba", FAST_RUN)),
}
"""The modes by their names; PyTensor's for C code mean the compiled one."""


def get_mode(mode: Mode | str | None) -> Mode:
    """Return the mode of that name, in any case, or the default for None; refuses (ValueError) others."""
    if isinstance(mode, Mode):
        return mode
    found = MODES.get(mode.upper() if isinstance(mode, str) else mode or "FAST_RUN")
    if found is None:
        raise ValueError(f"Choosing a mode: found {mode!r}; it must be a Mode or one of {', '.join(MODES)}")
    return found


def get_default_mode() -> Mode:
    """Return the mode of a function that is given none."""
    return get_mode(None)
