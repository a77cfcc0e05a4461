"""Mutants of Python source: each differs from the original in one place, in what it does."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator
from math import isinf

_OPERATORS: dict[type, type] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.FloorDiv, ast.FloorDiv: ast.Mod, ast.Mod: ast.Pow,
    ast.Pow: ast.Mult, ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.In: ast.NotIn, ast.Is: ast.IsNot, ast.And: ast.Or, ast.Or: ast.And, ast.USub: ast.UAdd,
    ast.BitOr: ast.BitAnd,
}  # fmt: skip
_NAMES = {
    "plus": "minus", "minus": "plus", "WIDTH": "STARRED", "STARRED": "WIDTH", "abs": "round", "len": "sum",
    "second": "starred", "starred": "second", "TABLE": "LIMITS", "LIMITS": "TABLE", "range": "enumerate", "max": "min",
    "TypeError": "RuntimeError", "print": "repr", "float": "complex",
}  # fmt: skip
_ATTRIBUTES = {
    "sin": "cos", "cos": "sin", "exp": "sinh", "sqrt": "cbrt", "cbrt": "sqrt", "erf": "erfc", "erfc": "erf", "first": "second",
    "SCALE": "STARRED", "add": "subtract", "linalg": "random", "append": "extend", "suppress": "nullcontext",
    "itemgetter": "attrgetter", "frozen": "slots",
}  # fmt: skip

Change = Callable[[], None]


def mutants(source: str) -> Iterator[tuple[str, str]]:
    """(what was changed, the source with this change), for every place where something can be changed."""
    count = len(list(_changes(ast.parse(source))))
    for number in range(count):
        tree = ast.parse(source)
        what, change = list(_changes(tree))[number]
        change()
        yield what, ast.unparse(ast.fix_missing_locations(tree))


def _changes(tree: ast.Module) -> Iterator[tuple[str, Change]]:
    ignored = {id(inner) for node in _annotations(tree) for inner in ast.walk(node)}
    for node in ast.walk(tree):
        if id(node) not in ignored:
            for label, change in _changes_of(node):
                yield f"line {getattr(node, 'lineno', '?')}: {label}", change


def _annotations(tree: ast.Module) -> Iterator[ast.AST]:
    for node in ast.walk(tree):
        found = getattr(node, "annotation", None), getattr(node, "returns", None)
        yield from (item for item in found if item is not None)
        if isinstance(node, ast.FormattedValue | ast.JoinedStr):
            # Its texts are unparsed into the string around them; what it formats is changed in its own place.
            yield from (item for item in ast.iter_child_nodes(node) if isinstance(item, ast.Constant))


def _changes_of(node: ast.AST) -> Iterator[tuple[str, Change]]:
    if isinstance(node, ast.Constant):
        for value in _other_constants(node.value):
            yield f"{node.value!r} becomes {value!r}", _set(node, "value", value)
    elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in _NAMES:
        yield f"{node.id} becomes {_NAMES[node.id]}", _set(node, "id", _NAMES[node.id])
    elif isinstance(node, ast.Attribute) and node.attr in _ATTRIBUTES:
        yield f".{node.attr} becomes .{_ATTRIBUTES[node.attr]}", _set(node, "attr", _ATTRIBUTES[node.attr])
    elif isinstance(node, ast.BinOp | ast.BoolOp | ast.UnaryOp) and type(node.op) in _OPERATORS:
        yield f"another operator than {type(node.op).__name__}", _set(node, "op", _OPERATORS[type(node.op)]())
    elif isinstance(node, ast.Compare):
        yield "another comparison", _set(node, "ops", [_OPERATORS[type(node.ops[0])](), *node.ops[1:]])
    yield from _changes_of_order(node)


def _changes_of_order(node: ast.AST) -> Iterator[tuple[str, Change]]:
    if isinstance(node, ast.If | ast.IfExp) and node.orelse:
        body, orelse = node.body, node.orelse
        yield (
            "branches in the other order",
            lambda: (setattr(node, "body", orelse), setattr(node, "orelse", body))[0],
        )
    elif isinstance(node, ast.BinOp) and ast.dump(node.left) != ast.dump(node.right):
        left, right = node.left, node.right
        yield (
            "operands in the other order",
            lambda: (setattr(node, "left", right), setattr(node, "right", left))[0],
        )
    elif isinstance(node, ast.arguments) and len(node.args) > 1 and not node.defaults:
        yield "arguments in the other order", _set(node, "args", node.args[::-1])
    elif isinstance(node, ast.keyword) and node.arg and node.arg.startswith(("k", "m", "by")):
        yield f"keyword {node.arg} has another name", _set(node, "arg", f"{node.arg}_more")
    elif isinstance(node, ast.Try) and node.handlers:
        yield "what a handler catches", _set(node.handlers[0], "type", ast.Name("OverflowError", ast.Load()))
    elif isinstance(node, ast.While | ast.For) and node.orelse:
        yield "a loop without else", _set(node, "orelse", [])
    elif isinstance(node, ast.comprehension) and node.ifs:
        yield "a comprehension without its test", _set(node, "ifs", [])


def _set(node: ast.AST, field: str, value: object) -> Change:
    return lambda: setattr(node, field, copy.deepcopy(value))


def _other_constants(value: object) -> list[object]:
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [value + 1, float(value)]
    if isinstance(value, float):
        if isinf(value):
            return []
        return [value + 0.5, *([int(value)] if value.is_integer() and value else [])]
    if isinstance(value, complex):
        return [value + 1]
    if isinstance(value, bytes):
        return [value + b"x", value.decode()]
    if isinstance(value, str) and value.startswith("text"):
        return [value + "x", value.encode()]
    return []
