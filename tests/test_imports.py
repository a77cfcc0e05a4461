"""Imports point one way: no cycle among modules but those listed here, each with its reason.

import-linter checks the layers, but it neither sees modules that `import_module` gets as strings nor counts
imports for annotations. Here every import counts: at the top, in functions, under TYPE_CHECKING, by string.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("cachegraph", "engine")

ALLOWED = {
    frozenset({"engine.graph.apply", "engine.graph.op", "engine.graph.types", "engine.graph.variables"}): (
        "the parts of a graph name each other in annotations: an Apply has an Op, a variable its Apply"
    ),
    frozenset({"engine.tensor.type", "engine.tensor.variable"}): (
        "a type makes its variables; a variable's attribute `type` is annotated"
    ),
    frozenset(
        {
            "engine.gradient.forward",
            "engine.gradient.backpropagation",
            "engine.gradient.stable_forms",
            "engine.gradient.stable_inverses",
            "engine.gradient.stable_logs",
            "engine.inner.derivatives",
            "engine.inner.from_graph",
            "engine.inner.special",
        }
    ): (
        "derivatives are taken of stable forms, which may hold a softmax; a softmax is an Op that holds a "
        "graph, and its derivatives are those of the graph"
    ),
}
"""The cycles that stay."""

UPWARD = {
    (
        "engine.graph.variables",
        "engine.evaluation",
    ): "a variable's `eval`, as PyTensor's, compiles and calls it",
    (
        "engine.graph",
        "engine.rewriting.pipeline",
    ): "PyTensor has `rewrite_graph` among the names of its graphs",
    (
        "engine.inner.base",
        "engine.functions",
    ): "the `fn` of an Op that holds a graph, as PyTensor's, compiles it",
    ("engine.graph.variables", "engine.printing"): "a variable's `dprint`, as PyTensor's, prints it",
    ("engine.graph.apply", "engine.printing"): "a node's `dprint` does, too",
    ("engine.graph.fgraph", "engine.printing"): "a graph's `dprint` does, too",
    (
        "engine.tensor.constant_values",
        "engine.printing",
    ): "a length that cannot be known is named as `dprint` writes it",
    ("engine.scalar.type", "engine.tensor"): "a number's `shape`, as PyTensor's, is a tensor",
    ("engine.random.type", "engine.random"): "methods of a generator in a graph are the draws",
    ("engine.shared_variables", "engine.random.shared"): "`shared` of a generator",
    (
        "engine.graph.replace",
        "engine.tensor.blockwise",
    ): "PyTensor's module of this name has `vectorize_graph`, which needs tensors",
    (
        "engine.scalar.special",
        "engine.inner.parameter_slopes",
    ): "derivatives by parameters are loops, which hold graphs",
}
"""Imports of what is above, made when a method is called; they count for no cycle."""


TABLE = "engine.paths"
"""Names the modules of all names, and imports one when somebody asks for it: it counts for no cycle either."""


def modules() -> dict[str, Path]:
    """Return the path of each module by its dotted name."""
    paths = [path for package in PACKAGES for path in (ROOT / package).rglob("*.py")]
    return {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
        for path in paths
    }


def imported_names(tree: ast.AST, known: dict[str, Path]) -> Iterator[str]:
    """Yield what `tree` imports anywhere, and the modules named by strings if it calls `import_module`."""
    by_name = any(isinstance(node, ast.Name) and node.id == "import_module" for node in ast.walk(tree))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            members = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from (member if member in known else node.module for member in members)
        elif by_name and isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


@pytest.fixture(scope="module")
def imports() -> dict[str, set[str]]:
    """Return the modules that each module imports."""
    known = modules()
    found = {
        name: {found for found in imported_names(ast.parse(path.read_text()), known) if found in known}
        - {name}
        for name, path in known.items()
    }
    for importer, above in UPWARD:
        found[importer].remove(above)
    found[TABLE].clear()
    return found


def reachable(start: str, imports: dict[str, set[str]]) -> set[str]:
    """Return the modules that `start` imports, directly or not."""
    found: set[str] = set()
    waiting = list(imports[start])
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting.extend(imports[name])
    return found


def cycles(imports: dict[str, set[str]]) -> set[frozenset[str]]:
    """Return the groups of modules that import each other, directly or not."""
    reached = {name: reachable(name, imports) for name in imports}
    return {
        frozenset(other for other in reached[name] if name in reached[other])
        for name in imports
        if name in reached[name]
    }


def test_cycles_are_those_listed(imports):
    assert cycles(imports) == set(ALLOWED)


def test_a_cycle_is_found_however_it_is_imported(tmp_path):
    known = dict.fromkeys(("p.typed", "p.lazy", "p.named", "p.member"), tmp_path)
    sources = {
        "p.typed": "if TYPE_CHECKING:\n    from p.lazy import x",
        "p.lazy": "def f():\n    import p.named",
        "p.named": "import_module('p.member')",
        "p.member": "from p import typed",
    }
    imports = {
        name: {found for found in imported_names(ast.parse(text), known) if found in known}
        for name, text in sources.items()
    }
    assert cycles(imports) == {frozenset(sources)}
