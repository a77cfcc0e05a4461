"""CPU seconds of cold `function()` calls as graphs grow, each in a process and on a cache of its own.

    tools/bench/compile_time.py [--processes N] [--check] [CASE ...]

A small function is compiled first, so that neither imports nor the start of LLVM are counted. Prints, for
each case and size, the least CPU seconds of N processes and the kernels compiled, and how the seconds grow
from size to size. `--check` fails (exit code 1) above the bounds: seconds at one size, times the machine's
pace (pace.py), and growth by more than the sizes grow.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pace import ONE_THREAD, pace_of_imports

ROOT = Path(__file__).resolve().parents[2]
PEERS = Path(__file__).parent / "peers"


class Case(NamedTuple):
    """A family of graphs: the sizes to compile, and the bounds that `--check` holds.

    `most` bounds the seconds at some sizes; `growth` bounds how many times the seconds of the smallest size
    the largest takes.
    """

    sizes: tuple[int, ...]
    growth: float
    most: dict[int, float] = {}


CASES = {
    "scalar outputs": Case((100, 1000, 10_000), 110.0, {100: 0.1, 1000: 1.0}),
    "vector outputs": Case((100, 1000), 12.0, {100: 0.2, 1000: 2.0}),
    "chain of a vector": Case((1000, 10_000), 15.0),
    "chain of a scalar": Case((1000, 10_000), 15.0),
    "independent scalars": Case((1000, 10_000), 15.0),
    "sum of scalars": Case((1000, 10_000), 15.0),
    "layers": Case((50, 200), 1.25),
}


def main() -> int:
    """Measure, print, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("cases", nargs="*", metavar="CASE", choices=[[], *CASES], help=", ".join(CASES))
    parser.add_argument("--processes", type=int, default=3, help="of which the least counts (default: 3)")
    parser.add_argument("--check", action="store_true", help="fail above the bounds")
    arguments = parser.parse_args()
    faults = [fault for name in arguments.cases or CASES for fault in measure(name, arguments.processes)]
    print("\n".join(faults))
    return 1 if arguments.check and faults else 0


def measure(name: str, processes: int) -> list[str]:
    """Print the seconds of a case at every size; return the bounds that it breaks."""
    case, seconds, imports = CASES[name], {}, []
    for size in case.sizes:
        runs = [compiled_apart(name, size) for _ in range(processes)]
        seconds[size], kernels, _ = min(runs)
        imports += [run[2] for run in runs]
        print(f"{name:20} {size:6}: {seconds[size]:7.3f} s, {kernels:3} kernels", flush=True)
    pace = pace_of_imports(1e3 * min(imports))
    growth = seconds[case.sizes[-1]] / seconds[case.sizes[0]]
    print(f"{name:20} {case.sizes[-1] // case.sizes[0]:5} times the size: {growth:.1f} times the seconds")
    faults = [
        f"{name}: {seconds[size]:.3f} s at {size}, the bound is {bound * pace:.3f}"
        for size, bound in case.most.items()
        if seconds[size] > bound * pace
    ]
    if growth > case.growth:
        faults.append(f"{name}: the seconds grow {growth:.1f} times, the bound is {case.growth}")
    return faults


def compiled_apart(name: str, size: int) -> tuple[float, int, float]:
    """Return the CPU seconds and the compiled kernels of one case in a fresh process, and the seconds that
    its `import numpy` took.
    """
    dropped = ("CACHEGRAPH_", "PYTHONDONTWRITEBYTECODE")
    environment = {key: value for key, value in os.environ.items() if not key.startswith(dropped)}
    path = os.pathsep.join([str(ROOT), str(PEERS), str(Path(__file__).parent)])
    with tempfile.TemporaryDirectory(prefix="cachegraph-bench-") as directory:
        done = subprocess.run(
            [sys.executable, "-c", f"import compile_time; compile_time.report({name!r}, {size})"],
            env=environment | ONE_THREAD | {"PYTHONPATH": path, "CACHEGRAPH_DIR": directory},
            stdout=subprocess.PIPE,
            check=True,
        )
    seconds, kernels, imported = json.loads(done.stdout)
    return seconds, kernels, imported


def report(name: str, size: int) -> None:
    """Compile one case in this process, check its first result, and print its seconds, its kernels and the
    seconds that `import numpy` took."""
    from time import process_time

    started = process_time()
    import numpy as np

    imported = process_time() - started
    import engine
    import engine.tensor as pt

    first = pt.scalar("first")
    engine.function([first], first * 3.25)
    inputs, outputs, arguments, expected = GRAPHS[name](size)
    begin = process_time()
    f = engine.function(inputs, outputs)
    seconds = process_time() - begin
    found = f(*arguments)
    if expected is not None:
        np.testing.assert_allclose(found[-1], expected, rtol=1e-6)
    print(json.dumps([seconds, f.cache_info.compilations, imported]))


Graph = tuple[Sequence[Any], Sequence[Any], Sequence[Any], Any]
"""Inputs, outputs, arguments, and the last result (None if another program checks it)."""


def scalar_outputs(size: int) -> Graph:
    """Return `s * (j + .5)` for each j below `size`."""
    import engine.tensor as pt

    s = pt.scalar("s")
    return [s], [s * (j + 0.5) for j in range(size)], [2.0], 2.0 * (size - 0.5)


def vector_outputs(size: int) -> Graph:
    """Return `exp(x / (j + .5))` for each j below `size`."""
    import numpy as np

    import engine.tensor as pt

    x, values = pt.vector("x"), np.linspace(0, 1, 5)
    outputs = [pt.exp(x * (1 / (j + 0.5))) for j in range(size)]
    return [x], outputs, [values], np.exp(values / (size - 0.5))


def chain(rank: int) -> Callable[[int], Graph]:
    """Return the family of chains of `size` operations on one scalar or vector."""

    def build(size: int) -> Graph:
        import numpy as np

        import engine.tensor as pt

        x = pt.tensor("x", dtype="float64", shape=(None,) * rank)
        value = np.full((3,) * rank, 0.3)
        y, expected = x, value
        for _ in range(size // 2):
            y, expected = pt.sin(y + x), np.sin(expected + value)
        return [x], [y], [value], expected

    return build


def independent_scalars(size: int) -> Graph:
    """Return functions of `size` scalars, each of its own."""
    import numpy as np

    import engine.tensor as pt

    vector = pt.vector("x")
    numbers = [vector[j] for j in range(size // 2)]
    return [vector], [pt.exp(number) for number in numbers], [np.zeros(size // 2)], 1.0


def sum_of_scalars(size: int) -> Graph:
    """Return the sum of `size` scalars."""
    import engine.tensor as pt

    inputs = [pt.scalar(f"x{j}") for j in range(size)]
    total = inputs[0]
    for number in inputs[1:]:
        total = total + number
    return inputs, [total], [1.0] * size, float(size)


def equal_layers(size: int) -> Graph:
    """Return a chain of `size` equal OpFromGraph layers and its gradients (tools/bench/peers)."""
    import engine.tensor as pt
    from engine import OpFromGraph, grad, scan
    from symbolic import Framework, layers
    from values import ARGUMENTS

    inputs, outputs = layers(size)(Framework(pt, grad, OpFromGraph, scan, None))
    return inputs, outputs, ARGUMENTS["layers-50"](), None


GRAPHS: dict[str, Callable[[int], Graph]] = {
    "scalar outputs": scalar_outputs,
    "vector outputs": vector_outputs,
    "chain of a vector": chain(1),
    "chain of a scalar": chain(0),
    "independent scalars": independent_scalars,
    "sum of scalars": sum_of_scalars,
    "layers": equal_layers,
}


if __name__ == "__main__":
    sys.exit(main())
