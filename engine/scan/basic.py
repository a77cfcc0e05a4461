"""Loops, under PyTensor's path."""

from engine.scanning.construction import scan

__all__ = ["scan"]
