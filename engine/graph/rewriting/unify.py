"""Parts of patterns, under PyTensor's path."""

from engine.rewriting.patterns import LiteralString, OpPattern

__all__ = ["LiteralString", "OpPattern"]
