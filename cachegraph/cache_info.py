"""How something that was compiled came about."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class CacheInfo:
    """How a function came about.

    `outcome` is "hit", "miss", "bypass", or "carried": it came in a pickle, and the cache of the process that loaded it
    had no such entry. `reason` says why it is not a hit. `key` is the function's, in hexadecimal. `found` has
    [hits, misses] for each level, the functions within it included, `seconds` what each step took, `seconds_saved` what the hits would have cost, less
    what loading them took. `rewrites` and `compilations` count what this process did.
    """

    outcome: str = "miss"
    reason: str = ""
    key: str | None = None
    found: dict[str, list[int]] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    seconds_saved: float = 0.0
    rewrites: int = 0
    compilations: int = 0
