"""Types of generators, under PyTensor's path."""

from engine.random.type import RandomGeneratorType, RandomType, as_rng, random_generator_type

__all__ = ["RandomGeneratorType", "RandomType", "as_rng", "random_generator_type"]
