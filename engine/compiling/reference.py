"""Compiled functions made of references: of what the cache has, without their graphs."""

from __future__ import annotations

from cachegraph.caching.bundle import Bundle
from cachegraph.key import CacheKey
from engine.compiling.arguments import In
from engine.compiling.compiled import FunctionReference
from engine.compiling.executable import ArgumentConverter, Function
from engine.compiling.pickled_function import PickledProgram, origin
from engine.compiling.request import Interface
from engine.tensor.makers import tensor


def load_function_of(reference: FunctionReference, name: str) -> Function:
    """Return the function that `reference` refers to; it returns a list.

    Raises FunctionLoadError if the cache lacks a part of it.
    """
    variables = [tensor(label, dtype, shape) for label, dtype, shape in reference.inputs]
    convert = ArgumentConverter(name, variables, len(variables))
    interface = Interface(tuple(v.type for v in variables), reference.n_outputs, (), convert)
    key = CacheKey("function", (), reference.digest, reference.confirmation)
    program = PickledProgram(name, interface, key, "", origin(), reference.data, Bundle(), {})
    return Function(program.load(), [In(each) for each in variables], (), name, returns_list=True)
