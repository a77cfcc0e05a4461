"""Registration of users' rewrites, by PyTensor's names.

Here one set has the canonical, the stable and the fast forms. A rewrite that is registered for one of these
is in that set, with the name of what it is for as a tag, so that a query can leave it out.
"""

from __future__ import annotations

from typing import Any

from engine.rewriting.pipeline import optdb

_SET = "canonicalize"


def register_canonicalize(rewriter: Any, *tags: str, **options: Any) -> Any:
    """Register `rewriter` and return it; of tags alone, return a decorator that does.

    `name` is its name in place of its function's; the other `options` are those of RewriteDatabase.register,
    which says what is refused.
    """
    return _registered(("fast_compile",), rewriter, tags, options)


def register_useless(rewriter: Any, *tags: str, **options: Any) -> Any:
    """Register what removes nodes without effect: see `register_canonicalize`."""
    return _registered(("fast_compile", "useless"), rewriter, tags, options)


def register_stabilize(rewriter: Any, *tags: str, **options: Any) -> Any:
    """Register what makes results more accurate: see `register_canonicalize`."""
    return _registered(("stabilize",), rewriter, tags, options)


def register_specialize(rewriter: Any, *tags: str, **options: Any) -> Any:
    """Register what makes a function faster: see `register_canonicalize`."""
    return _registered(("specialize",), rewriter, tags, options)


def register_uncanonicalize(rewriter: Any, *tags: str, **options: Any) -> Any:
    """Register what makes a canonical form faster: see `register_canonicalize`."""
    return _registered(("uncanonicalize",), rewriter, tags, options)


def _registered(own: tuple[str, ...], rewriter: Any, tags: tuple[str, ...], options: dict[str, Any]) -> Any:
    if isinstance(rewriter, str):
        return lambda inner: _registered(own, inner, (rewriter, *tags), options)
    given = dict(options)
    name = given.pop("name", None) or rewriter.name
    optdb[_SET].register(name, rewriter, "fast_run", *own, *tags, **given)
    return rewriter
