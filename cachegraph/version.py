"""The version of cachegraph, below everything that records it."""

__version__ = "0.1.0"
