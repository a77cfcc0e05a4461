"""The stored form of one compiled overload, complete in itself.

    stored   := "CGNB" format(1 byte) length(8 bytes)*3 description object bitcode       little-endian
              | "CGNR" format(1 byte) kind "\0" reason   why there is nothing to store
    description: a pickle of `OverloadDescription`: numba's types, plain values, dtypes

A function that Python may call needs its object alone: LLVM's bitcode, by which others inline the
function, is then a blob beside it, and the bitcode section is empty. A function that only compiled
functions call has no object.

The symbols in numba's own cache files contain a counter of the process: two processes give
different functions one name, and a process that loads both calls the wrong one (numba #10486). Here
an overload exports nothing but its own three functions and the environments, under names made from
the key. All else that was linked into it is internal to its object code, and to its bitcode.

Version history
    1  first
"""

# mypy: disable-error-code="no-untyped-call"
from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import llvmlite.binding as llvm
from numba.core import types
from numba.core.compiler import CompileResult
from numba.core.environment import Environment, lookup_environment
from numba.core.funcdesc import PythonFunctionDescriptor
from numba.core.typed_passes import _reload_parfors
from numba.core.typing.templates import signature

from cachegraph import pickling
from cachegraph.errors import CachegraphError
from cachegraph.named_tuples import NamedTuple
from cachegraph.object_code.elf import read_symbols

MAGIC = b"CGNB"
REFUSED = b"CGNR"
FORMAT = 1
_HEADER = struct.Struct("<4sBQQQ")
_TYPES = ("numba.core.types",)
_RECONSTRUCTORS = (
    ("numba.core.types.abstract", "_type_reconstructor"),
    ("builtins", "object"),
)
_HELD = (("copyreg", "_reconstructor"),)
"""Classes that numba's reconstructor is given, to call them."""
_ENVIRONMENT = "_ZN08NumbaEnv"
_UNRESOLVED = ".numba.unresolved$"
"""The prefix of symbols that numba's loader resolves, where functions call each other."""
_SYMBOLS = ("llvm_func_name", "llvm_cpython_wrapper_name", "llvm_cfunc_wrapper_name")


class NotStorable(CachegraphError):
    """A compiled function that means nothing in another process: what was `found`, and a short `kind`."""

    def __init__(self, kind: str, found: str) -> None:
        super().__init__(kind, found)
        self.kind = kind
        self.found = found

    def __str__(self) -> str:
        return f"storing a function compiled by numba: found {self.found}; every process compiles it again"


class OverloadFormatError(CachegraphError):
    """Bytes that are not a compiled overload; `found` says what they are."""

    def __init__(self, found: str) -> None:
        super().__init__(found)
        self.found = found

    def __str__(self) -> str:
        return f"reading a stored overload: found {self.found}; treat the entry as damaged or foreign"


CythonFunction = tuple[str, str]
"""An extension module and the name of a C function that it exports to Cython."""


class OverloadDescription(NamedTuple):
    """Everything numba must know of the code: plain values, types, and the contents of environments."""

    result: Any
    arguments: tuple[Any, ...]
    names: tuple[str, ...]
    module: str
    qualname: str
    noalias: bool
    abi_tags: tuple[str, ...]
    environments: dict[str, list[Any]]
    addresses: dict[str, CythonFunction]
    needs_parfors: bool

    def descriptor(self, identity: str) -> Any:
        """Return numba's descriptor of the function, under names that contain `identity`."""
        return PythonFunctionDescriptor(
            native=True,
            modname=self.module,
            qualname=self.qualname,
            unique_name=f"{self.qualname}${identity}",
            doc="",
            typemap=None,
            restype=self.result,
            calltypes=None,
            args=self.names,
            kws=(),
            argtypes=self.arguments,
            noalias=self.noalias,
            abi_tags=self.abi_tags,
            uid=identity,
        )


class Stored(NamedTuple):
    """A stored overload: its description, and its object code or, without that, its bitcode."""

    described: OverloadDescription
    code: bytes
    bitcode: bytes

    @classmethod
    def read(cls, content: bytes, arguments: Sequence[Any], trusted: Sequence[str] = ()) -> Stored:
        """Return the overload in `content`, which must be for `arguments`.

        Raises OverloadFormatError if it is not, and UntrustedPickle.
        """
        if len(content) < _HEADER.size:
            raise OverloadFormatError(f"{len(content)} bytes")
        magic, version, *lengths = _HEADER.unpack_from(content)
        if magic != MAGIC or version != FORMAT:
            raise OverloadFormatError(
                f"{magic!r}, format {version}, where {MAGIC!r}, format {FORMAT}, is read"
            )
        if _HEADER.size + sum(lengths) != len(content):
            raise OverloadFormatError(f"{len(content)} bytes where {_HEADER.size + sum(lengths)} are due")
        end = _HEADER.size + lengths[0]
        described = OverloadDescription(*_loads(content[_HEADER.size : end], trusted))
        if described.arguments != tuple(arguments):
            raise OverloadFormatError(f"one for {described.arguments} where {tuple(arguments)} is wanted")
        return cls(described, content[end : end + lengths[1]], content[end + lengths[1] :])

    def refuse_unresolved(self) -> None:
        """Load what the overload needs; raises OverloadFormatError if this process still lacks a symbol."""
        if self.described.needs_parfors:
            _reload_parfors()
        for name in sorted(read_symbols(self.code).undefined if self.code else _declared(self.bitcode)):
            if not llvm.address_of_symbol(name):
                raise OverloadFormatError(f"code that needs {name}, which this process has not")


def pack_overload(
    compiled: Any,
    identity: str,
    trusted: Sequence[str] = (),
    address_of: Callable[[str], CythonFunction | None] | None = None,
    *,
    by_python: bool = True,
) -> tuple[bytes, bytes]:
    """Return the stored form of `compiled`, a CompileResult, and its bitcode if it is called `by_python`.

    All names contain `identity`, of 32 or more letters and digits. `address_of` maps the name of a global
    variable to the C function whose address it holds: the variable is exported, so that it can be set before
    the code runs. Raises NotStorable for what numba itself refuses to cache (dynamic globals such as
    addresses and large arrays, object mode, lifted code), for generators, and for types of other packages
    than numba and the `trusted` ones.
    """
    _refuse_unstorable(compiled)
    found, module = compiled.fndesc, compiled.library._final_module.clone()
    described = OverloadDescription(
        found.restype,
        tuple(found.argtypes),
        tuple(found.args),
        str(found.modname),
        found.qualname,
        bool(found.noalias),
        tuple(found.abi_tags),
        {},
        {},
        bool(compiled.reload_init),
    )
    named = described.descriptor(identity)
    own = {getattr(found, symbol): getattr(named, symbol) for symbol in _SYMBOLS}
    described.environments.update(_renamed_environments(module, {found.env_name: named.env_name}, identity))
    shown = _renamed_functions(module, own)
    if address_of is not None:
        described.addresses.update(_exported_addresses(module, address_of, identity))
    code = compiled.library.codegen._tm.emit_object(module) if by_python else b""
    for function in shown:
        function.linkage = "linkonce_odr"
    for name in described.addresses:
        module.get_global_variable(name).linkage = "private"
    description, bitcode = _dumps(described, trusted), module.as_bitcode()
    within, beside = (b"", bitcode) if by_python else (bitcode, b"")
    header = _HEADER.pack(MAGIC, FORMAT, len(description), len(code), len(within))
    return header + description + code + within, beside


def pack_refusal(refusal: NotStorable) -> bytes:
    """Return the stored form of `refusal`, so that nobody tries again."""
    return REFUSED + bytes((FORMAT,)) + f"{refusal.kind}\0{refusal.found}".encode()


def unpack_refusal(content: bytes) -> NotStorable | None:
    """Return the refusal in `content`; None if it holds anything else."""
    if not content.startswith(REFUSED + bytes((FORMAT,))):
        return None
    kind, _, found = content[len(REFUSED) + 1 :].decode(errors="replace").partition("\0")
    return NotStorable(kind, found)


def rebuild_overload(
    stored: Stored, bitcode: bytes, identity: str, target: Any, globals_: dict[str, Any]
) -> Any:
    """Return the CompileResult that numba would load, linked into this process for numba's context `target`.

    `globals_` are those of the function. What the code needs must be present: numba's loader links an object
    with an unresolved symbol, which crashes when it runs.
    """
    described = stored.described
    named = described.descriptor(identity)
    environments = {name: environment(name, held, globals_) for name, held in described.environments.items()}
    main = environments.get(named.env_name) or environment(named.env_name, [], globals_)
    return CompileResult._rebuild(
        target,
        _library(f"{described.qualname}.{identity}", stored.code, bitcode),
        named,
        main,
        signature(described.result, *described.arguments),
        False,
        (),
        "",
        [_reload_parfors] if described.needs_parfors else [],
        tuple(environments.values()),
    )


def _library(name: str, code: bytes, bitcode: bytes) -> tuple[str, str, Any]:
    """Return the stored form of a library that numba expects."""
    return (name, "object", (code, bitcode)) if code else (name, "bitcode", bitcode)


def _declared(bitcode: bytes) -> list[str]:
    """Return the functions that the code calls and does not define."""
    functions = llvm.parse_bitcode(bitcode).functions
    return [item.name for item in functions if item.is_declaration and not item.name.startswith("llvm.")]


def _refuse_unstorable(compiled: Any) -> None:
    if compiled.objectmode or compiled.lifted:
        raise NotStorable("object mode", "object mode or lifted code")
    if compiled.library.has_dynamic_globals:
        raise NotStorable("dynamic globals", "dynamic globals, such as addresses and large arrays")
    if isinstance(compiled.signature.return_type, types.Generator):
        raise NotStorable("generator", "a generator")
    if any(function is not _reload_parfors for function in compiled.reload_init):
        raise NotStorable("initialization", "what numba has to run again in each process")


def _renamed_environments(module: Any, names: Mapping[str, str], identity: str) -> dict[str, list[Any]]:
    """Rename the environments that `module` refers to; return name -> objects of each. Raises NotStorable for
    recursion."""
    found = {}
    for variable in module.global_variables:
        before = variable.name
        if before.startswith(_UNRESOLVED):
            raise NotStorable("recursion", "functions that call each other")
        if not before.startswith(_ENVIRONMENT):
            continue
        known = lookup_environment(before)
        name = variable.name = names.get(before, f"{before}.{identity}")
        if known is not None:
            found[name] = list(known.consts)
    return found


def _exported_addresses(
    module: Any, address_of: Callable[[str], CythonFunction | None], identity: str
) -> dict[str, CythonFunction]:
    """Export the variables that hold addresses; return their new names -> the C functions."""
    found = {}
    for variable in module.global_variables:
        function = address_of(variable.name)
        if function is not None and not variable.is_declaration:
            variable.name = f"{variable.name}.{identity}"
            variable.linkage = "external"
            found[variable.name] = function
    return found


def _renamed_functions(module: Any, own: Mapping[str, str]) -> list[Any]:
    """Rename the functions in `own` and hide all others; return the renamed ones."""
    shown = []
    for function in module.functions:
        if function.is_declaration:
            continue
        name = own.get(function.name)
        if name is None:
            function.linkage = "internal"
        else:
            function.name = name
            shown.append(function)
    return shown


def _dumps(described: OverloadDescription, trusted: Sequence[str]) -> bytes:
    """Return the pickle of `described`, after loading it once: what cannot be loaded is not stored."""
    try:
        content = pickling.dumps(tuple(described))
        _loads(content, trusted)
    except Exception as error:
        raise NotStorable("foreign objects", f"types or objects that cannot be stored: {error}") from error
    return content


def _loads(content: bytes, trusted: Sequence[str]) -> Any:
    return pickling.loads(content, (*_TYPES, *trusted), named=_RECONSTRUCTORS, declared=_HELD)


def environment(name: str, held: Sequence[Any], globals_: dict[str, Any]) -> Any:
    """Return the environment of that name. Compiled code reads its constants, never its globals."""
    found = lookup_environment(name)
    if found is None:
        found = Environment(globals_)
        found.consts[:] = held
        found.env_name = name
        Environment._memo[name] = found
    return found
