"""PyTensor's flags: those in the key, and those that are not.

Every flag is declared, with the reason; a test fails on a flag of the installed release that is in neither
table. A flag in the key that a release lacks is left out. A flag that only decides how a graph is *made*
(floatX, say) shows in the graph; it is in the key as well if rewrites make graphs too. Settings of numba
decide nothing before code is compiled; they are in the key of the code (cachegraph/numba_cache/).
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

IN_KEY = {
    "floatX": "rewrites make constants of it",
    "cast_policy": "rewrites make constants by it",
    "cycle_detection": "which inplace rewrites are refused",
    "on_opt_error": "whether a rewrite that fails is left out, or is an error",
    "on_shape_error": "whether a shape that cannot be inferred is left out, or is an error",
    "optdb__max_use_ratio": "when an equilibrium of rewrites is given up",
    "optdb__position_cutoff": "which rewrites are left out",
    "tensor__insert_inplace_optimizer_validate_nb": "how inplace rewrites are made",
    "tensor__cmp_sloppy": "which constants rewrites take for equal",
    "scan__allow_gc": "rewrites make loops by it",
    "scan__allow_output_prealloc": "how the graphs within loops are rewritten",
    "cxx": "rewrites test for a compiler; which one does not matter",
    "lib__amdlibm": "decides the code that Python steps call",
    "numba__fastmath": "how the code is compiled",
    "warn_float64": "rewrites make no variables of 64 bits where these are not wanted",
    "mode": "the default for functions that rewrites compile",
    "linker": "the default for functions that rewrites compile",
    "optimizer": "the default for functions that rewrites compile",
    "optimizer_excluding": "the default for functions that rewrites compile",
    "optimizer_including": "the default for functions that rewrites compile",
    "optimizer_requiring": "the default for functions that rewrites compile",
}
"""Flags whose values are in the key, and what they decide."""

NOT_IN_KEY = {
    **dict.fromkeys(
        (
            "DebugMode__check_c", "DebugMode__check_finite", "DebugMode__check_preallocated_output",
            "DebugMode__check_preallocated_output_ndim", "DebugMode__check_py", "DebugMode__check_strides",
            "DebugMode__patience", "DebugMode__warn_input_not_reused",
        ),
        "DebugMode is not cached",
    ),
    **dict.fromkeys(
        (
            "NanGuardMode__action", "NanGuardMode__big_is_error", "NanGuardMode__inf_is_error",
            "NanGuardMode__nan_is_error",
        ),
        "NanGuardMode is not cached",
    ),
    **dict.fromkeys(
        (
            "profile", "profile_memory", "profile_optimizer", "profiling__debugprint",
            "profiling__destination",
            "profiling__ignore_first_call", "profiling__min_memory_size", "profiling__min_peak_memory",
            "profiling__n_apply", "profiling__n_ops", "profiling__output_line_width",
            "profiling__time_thunks",
            "print_global_stats",
        ),
        "profiled functions are not cached",
    ),
    **dict.fromkeys(
        (
            "cmodule__age_thresh_use", "cmodule__compilation_warning", "cmodule__debug",
            "cmodule__preload_cache",
            "cmodule__remove_gxx_opt", "cmodule__warn_no_version", "compile__timeout", "compile__wait",
            "gcc__cxxflags", "gcc_version_str", "blas__check_openmp", "check_input", "nocleanup",
            "openmp", "openmp_elemwise_minsize", "vm__lazy",
        ),
        "of the C linkers, which are not cached",
    ),
    **dict.fromkeys(
        ("base_compiledir", "compiledir", "compiledir_format", "generated_src_dir"),
        "the place of files does not change what is computed",
    ),
    **dict.fromkeys(
        (
            "check_stack_trace", "compiler_verbose", "exception_verbosity", "optimizer_verbose",
            "optimizer_verbose_ignore", "traceback__compile_limit", "traceback__limit",
        ),
        "messages; check_stack_trace is in the database of rewrites as well",
    ),
    "blas__ldflags": "of the C linkers; rewrites that read it are cxx_only, which numba's linker leaves out",
    "allow_gc": "read when a function is called, and set for each function",
    "numba__cache": "where numba keeps its code",
    "on_unused_input": "checked for every function",
    "unpickle_function": "of unpickling",
}  # fmt: skip
"""Flags whose values are not in the key, and why."""


def flags_in_key(config: Any) -> dict[str, object]:
    """Return the present values of all flags of PyTensor's `config` but those of NOT_IN_KEY.

    While a graph is rewritten, the flag `mode` is a Mode; the key has another part for what the mode is.
    """
    values = {
        name: _plain(name, getattr(config, name))
        for name in config._config_var_dict
        if name not in NOT_IN_KEY
    }
    return {**values, "cxx": bool(values["cxx"])}


def compiles(environ: Mapping[str, str]) -> bool:
    """Return False if NUMBA_DISABLE_JIT forbids numba to compile; numba is not imported for this."""
    loaded = sys.modules.get("numba.core.config")
    found = environ.get("NUMBA_DISABLE_JIT", "0") if loaded is None else getattr(loaded, "DISABLE_JIT", 0)
    return not int(found or 0)


def _plain(name: str, value: object) -> object:
    return type(value).__qualname__ if name == "mode" and not isinstance(value, str | None) else value
