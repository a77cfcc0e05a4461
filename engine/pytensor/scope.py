"""`Scope`: the engine's variables that stand for PyTensor's, in one graph; and what it requires."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from pytensor.graph.basic import Constant
from pytensor.tensor.type_other import NoneTypeT

import engine.tensor as pt
from engine.graph.variables import Constant as EngineConstant
from engine.inner.folding import constant_of
from engine.pytensor.representation import Untranslatable, constant, fitted
from engine.pytensor.requirement import Requirement

_REFUSED = (TypeError, ValueError, IndexError, OverflowError, NotImplementedError)
"""Exceptions that the engine's functions raise for arguments that they do not take."""


Rule = Callable[..., Any]
"""rule(scope, node, *inputs) -> the engine's variable for the node's output, or a list of several.

The inputs are the engine's variables, and None for a constant None.
"""


class Scope:
    """The variables of one graph of the engine, by PyTensor's variables that they stand for.

    `requirements` are the conditions that must hold for its results to count.
    """

    def __init__(self, rule_of: Callable[[Any], Rule | None]) -> None:
        self.values: dict[Any, Any] = {}
        self._constants: dict[int, Any] = {}
        self.requirements: list[Requirement] = []
        self.rule_of = rule_of

    def value(self, variable: Any) -> Any:
        """Return the engine's variable for `variable`. Raises Untranslatable if there is none."""
        if isinstance(variable, Constant):
            return self._constant(variable)
        found = self.values.get(variable)
        if found is None:
            raise Untranslatable(f"{variable} of type {variable.type} is not known")
        return found

    def _constant(self, variable: Any) -> Any:
        if isinstance(variable.type, NoneTypeT):
            return None
        # By identity: constants of PyTensor's that are equal may differ in the sign of a zero.
        if id(variable) not in self._constants:
            self._constants[id(variable)] = constant(variable.type, variable.data)
        return self._constants[id(variable)]

    def require(self, condition: Any, error: type[Exception], message: str) -> None:
        """Have calls of the function raise `error` with `message` where `condition`, a 0-d bool, is false."""
        self.requirements.append(Requirement(condition, error, message))

    def require_each(self, requirements: Sequence[Requirement], held: Sequence[Any]) -> None:
        """Require what each step of a loop did; `held` has the vector of its conditions for each."""
        for requirement, of_steps in zip(requirements, held, strict=True):
            self.require(pt.all(of_steps), requirement.error, requirement.message)

    def translate(self, node: Any) -> None:
        """Add the variables for the outputs of `node`.

        Raises Untranslatable, and adds none, if no rule takes it.
        """
        rule = self.rule_of(node.op)
        if rule is None:
            raise Untranslatable("there is no rule for it")
        before = len(self.requirements)
        try:
            inputs = [self.value(variable) for variable in node.inputs]
            found = rule(self, node, *inputs)
            results = found if isinstance(found, list | tuple) else [found]
            pairs = zip(node.outputs, results, strict=True)
            fit = [(output, fitted(result, output.type)) for output, result in pairs]
        except _REFUSED as error:
            del self.requirements[before:]
            raise Untranslatable(f"the engine refuses it ({error})") from error
        except Untranslatable:
            del self.requirements[before:]
            raise
        # At once: what is built on a number that is known has lengths that are known.
        if all(variable is None or isinstance(variable, EngineConstant) for variable in inputs):
            fit = [(output, constant_of(result)) for output, result in fit]
        self.values.update(fit)

    def results_of(self, node: Any, inputs: Sequence[Any]) -> list[Any]:
        """Return the engine's variables for the outputs of `node` on `inputs`.

        Raises Untranslatable as `translate` does.
        """
        self.values.update(zip(node.inputs, inputs, strict=True))
        self.translate(node)
        return [self.values[output] for output in node.outputs]

    def inner(self, inputs: Sequence[Any], values: Iterable[Any]) -> Scope:
        """Return a scope of its own, in which `values` stand for `inputs`."""
        scope = Scope(self.rule_of)
        scope.values.update(zip(inputs, values, strict=True))
        return scope

    def translate_graph(self, fgraph: Any) -> list[Any]:
        """Return the engine's variables for the outputs of a graph whose inputs are known here.

        Raises Untranslatable, which names the Op, if one node has no counterpart.
        """
        for node in fgraph.toposort():
            try:
                self.translate(node)
            except Untranslatable as reason:
                raise Untranslatable(f"{node.op} in its graph: {reason}") from reason
        return [self.value(output) for output in fgraph.outputs]


def all_of(conditions: Sequence[Any]) -> Any:
    """Return the conjunction of 0-d bools, at least one."""
    result = conditions[0]
    for condition in conditions[1:]:
        result = pt.and_(result, condition)
    return result
