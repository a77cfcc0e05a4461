"""Builds the extensions in this directory with whatever compilers and generators are installed.

Each is built by the commands that its generator documents, without a build system, and without
optimization: about 13 seconds of processor time for all. What cannot be built here says why; tests
that need it are skipped with that.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

SOURCES = Path(__file__).parent
SUFFIX = sysconfig.get_config_var("EXT_SUFFIX")
PYBIND11_2 = "pybind11==2.13.6"
REEXPORTED = """
from reexported import _ext
from reexported._ext import scaled as renamed

moved = _ext.inner.scaled
del _ext.inner
"""


class Missing(Exception):
    """Something that a build needs is not installed."""


class Extensions:
    """What was built: `directory` has every module, compiled with FACTOR 2."""

    def __init__(self, root: Path) -> None:
        self.directory = root / "built"
        self.directory.mkdir()
        self._root = root
        self._why_not: dict[str, str] = {}
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(self._build, BUILDERS))

    @property
    def built(self) -> list[str]:
        """The names of the modules that there are."""
        return [name for name in BUILDERS if name not in self._why_not]

    def require(self, name: str) -> None:
        """Skip the test if the module `name` could not be built."""
        if name in self._why_not:
            pytest.skip(f"{name} was not built: {self._why_not[name]}")

    def require_any(self) -> None:
        """Skip the test if nothing could be built."""
        if not self.built:
            pytest.skip(f"no extension was built: {self._why_not}")

    def rebuilt(self, name: str, factor: float = 3.0) -> Path:
        """A directory that has the module `name` alone, compiled with another FACTOR."""
        self.require(name)
        directory = self._root / f"rebuilt-{factor}"
        if not (directory / name).exists():
            (directory / name).mkdir(parents=True)
            BUILDERS[name](directory / name, factor)
        return directory / name

    def _build(self, name: str) -> None:
        try:
            BUILDERS[name](self.directory, 2.0)
        except Missing as error:
            self._why_not[name] = str(error)


def build_c_api(directory: Path, factor: float, name: str = "with_c_api") -> None:
    """Python's C API, without a generator."""
    _compile("cc", directory, name, factor, [SOURCES / "with_c_api.c"], f"-DNAME={name}")


def _build_reexported(directory: Path, factor: float) -> None:
    """A package that offers, under other names, what its extension has."""
    package = directory / "reexported"
    package.mkdir(exist_ok=True)
    (package / "__init__.py").write_text(REEXPORTED)
    build_c_api(package, factor, "_ext")


def _build_pybind11_2(directory: Path, factor: float) -> None:
    # Of another release than the one that is installed: its headers lie where only this build looks.
    headers = directory / "pybind11-2"
    command = [sys.executable, "-m", "pip", "install", "-qq", "--disable-pip-version-check", "--no-deps"]
    installed = subprocess.run(
        [*command, "--target", headers, PYBIND11_2], capture_output=True, text=True, check=False
    )
    if installed.returncode:
        raise Missing(f"pip install {PYBIND11_2} failed: {installed.stderr.strip()[-200:]}")
    _build_pybind11(directory, factor, "with_pybind11_2", headers / "pybind11" / "include")


def _build_pybind11_3(directory: Path, factor: float) -> None:
    _build_pybind11(directory, factor, "with_pybind11_3", _package("pybind11") / "include")


def _build_pybind11(directory: Path, factor: float, name: str, headers: Path) -> None:
    options = (f"-DNAME={name}", f"-I{headers}", "-std=c++17", "-fvisibility=hidden")
    _compile("c++", directory, name, factor, [SOURCES / "with_pybind11.cpp"], *options)


def _build_nanobind(directory: Path, factor: float) -> None:
    package = _package("nanobind")
    sources = [package / "src" / "nb_combined.cpp", SOURCES / "with_nanobind.cpp"]
    headers = (f"-I{package / 'include'}", f"-I{package / 'ext' / 'robin_map' / 'include'}")
    options = ("-std=c++17", "-fvisibility=hidden", "-fno-strict-aliasing", "-DNB_COMPACT_ASSERTIONS")
    _compile("c++", directory, "with_nanobind", factor, sources, *headers, *options)


def _build_swig(directory: Path, factor: float) -> None:
    wrapper = directory / "with_swig_wrap.cpp"
    _run(_program("swig"), "-python", "-c++", "-outdir", directory, "-o", wrapper, SOURCES / "with_swig.i")
    _compile("c++", directory, "_with_swig", factor, [wrapper])


def _build_cython(directory: Path, factor: float) -> None:
    _package("Cython")
    translated = directory / "with_cython.c"
    _run(sys.executable, "-m", "cython", "-3", SOURCES / "with_cython.pyx", "-o", translated)
    _compile("cc", directory, "with_cython", factor, [translated])


def _build_f2py(directory: Path, factor: float) -> None:
    build = ("-m", "numpy.f2py", SOURCES / "with_f2py.pyf", "--lower", "--build-dir", directory)
    _run(sys.executable, *build)
    runtime = _package("numpy") / "f2py" / "src"
    sources = [directory / "with_f2pymodule.c", runtime / "fortranobject.c", SOURCES / "with_f2py_scaled.c"]
    _compile("cc", directory, "with_f2py", factor, sources, f"-I{runtime}", f"-I{np.get_include()}")


def _build_fortran(directory: Path, factor: float) -> None:
    compiler = _program("gfortran")
    source, name = SOURCES / "with_fortran.f90", "with_fortran"
    _run(sys.executable, "-m", "numpy.f2py", source, "-m", name, "--lower", "--build-dir", directory)
    runtime = _package("numpy") / "f2py" / "src"
    wrappers = (directory / f"{name}-f2pywrappers.f", directory / f"{name}-f2pywrappers2.f90")
    sources = [source, *wrappers, directory / f"{name}module.c", runtime / "fortranobject.c"]
    options = ("-cpp", "-J", directory, f"-I{runtime}", f"-I{np.get_include()}")
    _compile(compiler, directory, name, factor, sources, *map(str, options))


BUILDERS: dict[str, Callable[[Path, float], None]] = {
    "with_pybind11_2": _build_pybind11_2,
    "with_pybind11_3": _build_pybind11_3,
    "with_nanobind": _build_nanobind,
    "with_swig": _build_swig,
    "with_cython": _build_cython,
    "with_f2py": _build_f2py,
    "with_fortran": _build_fortran,
    "with_c_api": build_c_api,
    "reexported": _build_reexported,
}


def _compile(
    compiler: str, directory: Path, name: str, factor: float, sources: Sequence[Path], *options: str
) -> None:
    include = sysconfig.get_paths()["include"]
    if not os.path.exists(os.path.join(include, "Python.h")):
        raise Missing(f"no Python.h in {include}")
    command = (_program(compiler), "-shared", "-fPIC", "-O0", "-w", f"-DFACTOR={factor}", f"-I{include}")
    _run(*command, *options, *sources, "-o", directory / f"{name}{SUFFIX}")


def _program(name: str) -> str:
    """Where the program is: beside this Python, or on the path."""
    beside = shutil.which(name, path=os.path.dirname(sys.executable))
    found = beside or shutil.which(name)
    if found is None:
        raise Missing(f"no {name} is installed")
    return found


def _package(name: str) -> Path:
    found = find_spec(name)
    if found is None or not found.origin:
        raise Missing(f"no {name} is installed")
    return Path(found.origin).parent


def _run(*command: object) -> None:
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}"
