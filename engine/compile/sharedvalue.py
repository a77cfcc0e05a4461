"""Shared variables, under PyTensor's path."""

from engine.shared_variables import shared

__all__ = ["shared"]
