"""Stored overloads are linked without numba's compiler: callable from Python, and only with what a process offers."""

from __future__ import annotations

import ctypes
import math
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
from numba.core import types

from cachegraph.errors import CythonFunctionError, ObjectFormatError
from cachegraph.numba_cache.compiled import Stored, pack_overload
from cachegraph.numba_cache.emission import emit, optimize
from cachegraph.numba_cache.linking import LinkError, forget_overload, link_callback, link_overload

ROOT = Path(__file__).resolve().parents[3]


def scaled(values: Any, factor: Any) -> Any:
    if factor < 0:
        raise ValueError("negative", factor)
    return values * factor, values.sum()


def stored(function: Callable[..., Any], *arguments: Any, identity: str) -> Stored:
    compiled = numba.njit(function)
    signature = tuple(map(numba.typeof, arguments))
    compiled.compile(signature)
    payload, _ = pack_overload(compiled.overloads[signature], identity)
    return Stored.read(payload, signature)


@pytest.fixture(scope="module")
def linked() -> Any:
    identity = "1" * 32
    return link_overload(stored(scaled, np.ones(3), 2.0, identity=identity), identity).entry_point


def test_what_is_linked_computes_and_raises_as_it_did(linked: Any) -> None:
    values = np.arange(4.0)
    product, total = linked(values, 1.5)
    assert product.tobytes() == (values * 1.5).tobytes()
    assert total == values.sum()
    with pytest.raises(ValueError, match="negative") as raised:
        linked(values, -2.0)
    assert raised.value.args == ("negative", -2.0)
    with pytest.raises(TypeError):
        linked(values)


def test_what_it_returns_outlives_it(linked: Any) -> None:
    made = [linked(np.full(1000, float(i)), 2.0)[0] for i in range(50)]
    assert [row[0] for row in made] == [2.0 * i for i in range(50)]
    assert all(sys.getrefcount(row) <= 3 for row in made)


def test_one_identity_is_linked_once() -> None:
    identity = "2" * 32
    found = stored(scaled, np.ones(3), 2.0, identity=identity)
    assert link_overload(found, identity) is link_overload(found, identity)


def test_code_that_asks_for_what_no_overload_may_have_is_refused() -> None:
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    module = llvm.parse_assembly(
        "declare i32 @system(i8*)\ndefine i32 @f(i8* %x) {\n %r = call i32 @system(i8* %x)\n ret i32 %r\n}"
    )
    code = llvm.Target.from_default_triple().create_target_machine().emit_object(module)
    found = stored(scaled, np.ones(3), 2.0, identity="3" * 32)
    with pytest.raises(LinkError, match="system"):
        link_overload(found._replace(code=code), "4" * 32)


def test_an_address_that_is_not_there_is_refused() -> None:
    identity = "5" * 32
    found = stored(scaled, np.ones(3), 2.0, identity=identity)
    name = next(iter(found.described.environments))
    described = found.described._replace(addresses={name: ("scipy.linalg.cython_blas", "no_such_routine")})
    with pytest.raises(CythonFunctionError, match="no_such_routine"):
        link_overload(found._replace(described=described), identity)


def stored_callback(function: Callable[..., Any], identity: str) -> Stored:
    compiled = numba.cfunc(types.float64(types.float64))(function)
    result = compiled._compile_uncached()
    optimize(result.library)
    payload, _ = pack_overload(result, identity)
    return Stored.read(payload, (types.float64,))


def test_a_function_of_c_is_linked_and_called_by_its_address() -> None:
    identity = "8" * 32
    found = stored_callback(lambda x: math.exp(x) + 1.0, identity)
    address = link_callback(found, identity)
    assert ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(address)(0.5) == math.exp(0.5) + 1.0
    assert link_callback(found, identity) == address
    forget_overload(identity)
    assert link_callback(found, identity) != address
    with pytest.raises(LinkError, match="no function"):
        link_overload(found, identity)


def test_a_library_whose_code_was_not_emitted_can_still_be_loaded_by_numba() -> None:
    compiled = numba.cfunc(types.float64(types.float64))(lambda x: x * 3.0)
    result = compiled._compile_uncached()
    optimize(result.library)
    emit(result.library)
    address = result.library.get_pointer_to_function(result.fndesc.llvm_cfunc_wrapper_name)
    assert ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(address)(0.5) == 1.5


@pytest.mark.parametrize("length", [0, 3, 100, -1])
def test_damaged_code_is_refused_before_it_is_linked(length: int) -> None:
    found = stored(scaled, np.ones(3), 2.0, identity="6" * 32)
    with pytest.raises((ObjectFormatError, LinkError)):
        link_overload(found._replace(code=found.code[:length]), "7" * 32)


def test_linking_loads_none_of_numbas_registries() -> None:
    script = (
        "import sys, numba\n"
        "from cachegraph.numba_cache import linking\n"
        "print([name for name in ('numba.np.linalg', 'numba.typed.typedlist', 'scipy.linalg') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
