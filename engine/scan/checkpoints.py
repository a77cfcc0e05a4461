"""Loops that compute steps again for gradients, under PyTensor's path."""

from engine.scanning.checkpoints import scan_checkpoints

__all__ = ["scan_checkpoints"]
