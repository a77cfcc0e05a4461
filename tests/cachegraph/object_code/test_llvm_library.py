"""libllvmlite is called as llvmlite would call it, once in a process, and never by two threads at once."""

from __future__ import annotations

import ctypes
import importlib
import os
import pkgutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import llvmlite
import llvmlite.binding as llvm
import pytest

import cachegraph.object_code
import engine.codegen.llvm
import engine.runtime
from cachegraph.object_code import llvm_library
from cachegraph.object_code.llvm_library import TEXT_OUT, LLVMFunctions, LLVMLibraryError, with_text

TRIPLE = {"LLVMPY_GetProcessTriple": (None, TEXT_OUT)}
CALLERS = (cachegraph.object_code, engine.codegen.llvm, engine.runtime)


def declared() -> dict[str, tuple[object, ...]]:
    """Return every function of LLVM that is declared anywhere."""
    modules = [
        importlib.import_module(f"{package.__name__}.{module.name}")
        for package in CALLERS
        for module in pkgutil.iter_modules(package.__path__)
    ]
    tables = [value for module in modules for value in vars(module).values()]
    return {
        name: signature
        for table in tables
        if isinstance(table, LLVMFunctions)
        for name, signature in table.signatures.items()
    }


@pytest.fixture
def reopened(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """Have the library opened again, within the test and after it."""
    llvm_library._library.cache_clear()
    yield monkeypatch
    llvm_library._library.cache_clear()


@pytest.mark.parametrize("name", sorted(declared()))
def test_functions_are_declared_as_llvmlite_declares_them(name: str) -> None:
    result, *arguments = declared()[name]
    assert llvm_library.declared_otherwise(name, result, arguments) == ""


@pytest.mark.parametrize(
    "signature",
    [
        (ctypes.c_bool, ctypes.c_void_p),
        (ctypes.c_bool, ctypes.c_void_p, ctypes.c_void_p, TEXT_OUT),
        (ctypes.c_bool, ctypes.c_void_p, ctypes.c_int),
        (ctypes.c_void_p, ctypes.c_void_p, TEXT_OUT),
    ],
)
def test_a_function_of_an_unknown_release_that_is_declared_otherwise_is_not_called(
    signature: tuple[object, ...], reopened: pytest.MonkeyPatch
) -> None:
    functions = LLVMFunctions({"LLVMPY_LLJIT_Dylib_Tracker_Dispose": signature})
    reopened.setattr(llvm_library, "CHECKED_RELEASES", ("0.1", "0.2"))
    with pytest.raises(LLVMLibraryError, match=r"unknown release.*declared as.*0\.1 to 0\.2"):
        functions.LLVMPY_LLJIT_Dylib_Tracker_Dispose(None)


def test_a_structure_with_other_fields_is_another_declaration() -> None:
    class Symbol(ctypes.Structure):
        _fields_ = (("name", ctypes.c_char_p), ("address", ctypes.c_uint32))

    result, *arguments = declared()["LLVMPY_LLJIT_Link"]
    arguments[5] = ctypes.POINTER(Symbol)
    assert "arguments" in llvm_library.declared_otherwise("LLVMPY_LLJIT_Link", result, arguments)


def test_functions_of_an_unknown_release_that_agree_are_called(reopened: pytest.MonkeyPatch) -> None:
    reopened.setattr(llvm_library, "CHECKED_RELEASES", ("0.1",))
    assert with_text(LLVMFunctions(TRIPLE).LLVMPY_GetProcessTriple)[1] == llvm.get_process_triple()


def test_a_function_that_the_library_lacks_is_an_error_that_names_both() -> None:
    functions = LLVMFunctions({"LLVMPY_Nothing": (None,)})
    with pytest.raises(LLVMLibraryError, match=r"LLVMPY_Nothing: .*libllvmlite.*; install a release"):
        functions.LLVMPY_Nothing()
    with pytest.raises(AttributeError):
        functions.LLVMPY_Undeclared()


def test_a_library_that_is_not_there_or_is_none_is_an_error(
    reopened: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    reopened.setattr(llvmlite, "__path__", [str(tmp_path)])
    for found in (None, b"", b"not a library"):
        if found is not None:
            (tmp_path / "binding").mkdir(exist_ok=True)
            (tmp_path / "binding" / "libllvmlite.so").write_bytes(found)
        with pytest.raises(LLVMLibraryError, match=f"opening {tmp_path}"):
            LLVMFunctions(TRIPLE).LLVMPY_GetProcessTriple()


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="the process's memory is not listed")
@pytest.mark.parametrize("comes_first", ["llvmlite.binding", "engine.runtime.target"])
def test_a_process_has_the_library_once_whoever_opens_it_first(comes_first: str) -> None:
    program = f"""
import {comes_first}
import sys
from engine.runtime.target import process_triple
own = process_triple()
assert {comes_first == "llvmlite.binding"} == ("llvmlite.binding" in sys.modules)
import llvmlite.binding as llvm
llvm.initialize_native_target()
assert llvm.get_process_triple() == own
from cachegraph.object_code.llvm_library import _library
assert _library()[0]._handle == llvm.ffi.lib._handle
lines = open("/proc/self/maps").read().splitlines()
print(sum("libllvmlite" in line and "r-xp" in line for line in lines))
"""
    done = subprocess.run([sys.executable, "-c", program], stdout=-1, text=True, check=True)
    assert done.stdout.split() == ["1"]


def called_while(lock: object) -> float:
    """Return how long a call takes while another thread holds `lock` for a quarter of a second."""
    holding = threading.Event()

    def hold() -> None:
        with lock:  # type: ignore[attr-defined]
            holding.set()
            time.sleep(0.25)

    thread = threading.Thread(target=hold)
    thread.start()
    holding.wait()
    begin = time.monotonic()
    with_text(LLVMFunctions(TRIPLE).LLVMPY_GetProcessTriple)
    taken = time.monotonic() - begin
    thread.join()
    return taken


def test_a_call_waits_for_those_of_other_threads() -> None:
    assert called_while(llvm_library._LOCK) > 0.2


def test_a_call_waits_for_those_that_go_through_llvmlites_package() -> None:
    assert called_while(llvm.ffi.lib._lock) > 0.2


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_fork_waits_for_calls_and_a_child_can_call() -> None:
    with_text(LLVMFunctions(TRIPLE).LLVMPY_GetProcessTriple)
    holding = threading.Event()

    def hold() -> None:
        with llvm_library._LOCK:
            holding.set()
            time.sleep(0.25)

    thread = threading.Thread(target=hold)
    thread.start()
    holding.wait()
    begin = time.monotonic()
    child = os.fork()
    if child == 0:
        waited = time.monotonic() - begin > 0.2
        is_free = llvm_library._LOCK.acquire(timeout=1)
        os._exit(0 if waited and is_free else 1)
    thread.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_function_that_writes_no_text_gives_an_empty_one() -> None:
    assert with_text(lambda *arguments: len(arguments), 1, 2) == (3, "")
