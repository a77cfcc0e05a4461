"""Draws as Ops, under PyTensor's path."""

from engine.random.op import DefaultGeneratorMakerOp, RandomVariable, RNGConsumerOp, default_rng

__all__ = ["DefaultGeneratorMakerOp", "RNGConsumerOp", "RandomVariable", "default_rng"]
