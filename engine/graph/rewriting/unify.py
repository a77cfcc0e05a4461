"""Parts of patterns, under PyTensor's path."""

from engine.rewriting.unification import (
    Asterisk,
    ConstrainedVar,
    LiteralString,
    OpPattern,
    PatternNode,
    PatternVar,
    convert_strs_to_vars,
    match_pattern,
    reify_pattern,
)

__all__ = [
    "Asterisk",
    "ConstrainedVar",
    "LiteralString",
    "OpPattern",
    "PatternNode",
    "PatternVar",
    "convert_strs_to_vars",
    "match_pattern",
    "reify_pattern",
]
