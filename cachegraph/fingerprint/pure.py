"""Functions and classes of Python, numpy, SciPy and numba that are known to depend on their arguments alone.

Left out is everything that reads files, clocks, the environment, random state, settings that others
change (the context of decimals, print options of numpy), addresses, or the order of hashes. Nothing
is known of modules that are not listed.

A module stands for all its submodules; the longest name counts. None means everything in the
module, names mean these only, and names after "-" mean everything but these.
"""

from __future__ import annotations

from typing import Any

_NUMPY = frozenset(
    """
    all allclose amax amin angle any append apply_along_axis apply_over_axes arange argmax argmin
    argpartition argsort argwhere around array array_equal array_equiv array_split asanyarray asarray
    asarray_chkfinite ascontiguousarray asfarray asfortranarray asmatrix astype atleast_1d atleast_2d
    atleast_3d average bartlett base_repr binary_repr bincount blackman block bmat broadcast
    broadcast_arrays broadcast_shapes broadcast_to busday_count busday_offset busdaycalendar can_cast choose
    clip column_stack common_type compress concat concatenate convolve copy copyto corrcoef correlate
    count_nonzero cov cross cumprod cumproduct cumsum cumulative_prod cumulative_sum datetime_as_string
    datetime_data delete deprecate diag diag_indices diag_indices_from diagflat diagonal diff digitize dot
    dsplit dstack dtype ediff1d einsum einsum_path empty empty_like errstate expand_dims extract eye
    fill_diagonal finfo fix flatiter flatnonzero flip fliplr flipud format_float_positional
    format_float_scientific from_dlpack frombuffer fromfunction fromiter frompyfunc fromstring full
    full_like geomspace get_array_wrap gradient hamming hanning histogram histogram2d histogram_bin_edges
    histogramdd hsplit hstack i0 identity iinfo imag in1d indices inner insert interp intersect1d is_busday
    isclose iscomplex iscomplexobj isdtype isfortran isin isneginf isposinf isreal isrealobj isscalar
    issctype issubclass_ issubdtype issubsctype iterable ix_ kaiser kron lexsort linspace logspace
    mask_indices matmul matrix matrix_transpose max maximum_sctype may_share_memory mean median meshgrid min
    min_scalar_type mintypecode moveaxis msort nan_to_num nanargmax nanargmin nancumprod nancumsum nanmax
    nanmean nanmedian nanmin nanpercentile nanprod nanquantile nanstd nansum nanvar ndarray ndenumerate ndim
    ndindex nditer nested_iters nonzero ones ones_like outer packbits pad partition percentile permute_dims
    piecewise place poly poly1d polyadd polyder polydiv polyfit polyint polymul polysub polyval prod product
    promote_types ptp put put_along_axis putmask quantile ravel ravel_multi_index real real_if_close
    recarray record repeat require reshape resize result_type roll rollaxis roots rot90 round round_
    row_stack searchsorted select setdiff1d setxor1d shape shares_memory sinc size sometrue sort
    sort_complex split squeeze stack std sum swapaxes take take_along_axis tensordot tile trace transpose
    trapezoid trapz tri tril tril_indices tril_indices_from trim_zeros triu triu_indices triu_indices_from
    typename ufunc union1d unique unique_all unique_counts unique_inverse unique_values unpackbits
    unravel_index unstack unwrap vander var vdot vectorize vsplit vstack where zeros zeros_like
    """.split()
)

PURE: dict[str, Any] = {
    # Python's own
    **dict.fromkeys(
        (
            "_abc", "_ast", "_bisect", "_collections", "_collections_abc", "_contextvars", "_functools",
            "_hashlib", "_heapq", "_json", "_operator", "_sre", "_struct", "_typing", "_warnings", "abc",
            "array", "base64", "binascii", "bisect", "cmath", "collections", "colorsys", "contextlib",
            "copy", "dataclasses", "difflib", "enum", "errno", "fractions", "functools", "graphlib",
            "hashlib", "heapq", "itertools", "json", "keyword", "math", "numbers", "operator", "re",
            "statistics", "string", "struct", "textwrap", "types", "typing", "typing_extensions",
            "unicodedata", "warnings", "zlib",
        )
    ),
    "builtins": (
        "-", "__import__", "breakpoint", "compile", "eval", "exec", "globals", "hash", "help", "id",
        "input", "locals", "open", "vars",
    ),
    "ast": ("literal_eval",),
    "datetime": ("timedelta",),
    "inspect": ("Parameter", "Signature", "isclass", "isfunction", "ismethod", "signature"),
    "logging": (
        "Logger", "NullHandler", "RootLogger", "critical", "debug", "error", "exception", "getLogger",
        "info", "log", "warning",
    ),
    "os": ("PathLike", "fspath"),
    **dict.fromkeys(
        ("posixpath", "ntpath", "genericpath"),
        (
            "basename", "commonpath", "commonprefix", "dirname", "isabs", "join", "normcase", "normpath",
            "split", "splitdrive", "splitext",
        ),
    ),
    **dict.fromkeys(("pathlib", "pathlib._local"), ("PurePath", "PurePosixPath", "PureWindowsPath")),
    "sys": ("float_info", "int_info", "intern", "version_info"),
    # numpy
    **dict.fromkeys(("numpy", "numpy._core", "numpy.core"), _NUMPY),
    **dict.fromkeys(
        (
            "numpy.char", "numpy.dtypes", "numpy.exceptions", "numpy.fft", "numpy.lib._index_tricks_impl",
            "numpy.lib.array_utils", "numpy.lib.index_tricks", "numpy.lib.mixins", "numpy.lib.recfunctions",
            "numpy.lib.scimath", "numpy.lib.stride_tricks", "numpy.linalg", "numpy.ma", "numpy.matlib",
            "numpy.polynomial", "numpy.strings", "numpy.testing", "numpy.typing", "numpy._typing",
        )
    ),
    "numpy.ctypeslib": ("as_array", "as_ctypes", "as_ctypes_type", "ndpointer"),
    "numpy.matlib": ("-", "rand", "randn"),
    "numpy.rec": ("-", "fromfile"),
    # SciPy
    **dict.fromkeys(
        (
            "scipy.constants", "scipy.fft", "scipy.fftpack", "scipy.interpolate", "scipy.linalg",
            "scipy.ndimage", "scipy.odr", "scipy.signal", "scipy.spatial", "scipy.special",
        )
    ),
    "scipy.cluster": ("-", "kmeans", "kmeans2"),
    "scipy.integrate": ("-", "qmc_quad"),
    "scipy.linalg.interpolative": (),
    "scipy.optimize": ("-", "basinhopping", "check_grad", "differential_evolution", "dual_annealing", "shgo"),
    "scipy.sparse": ("-", "load_npz", "rand", "random", "random_array", "save_npz"),
    "scipy.sparse.linalg": ("-", "eigs", "eigsh", "expm_multiply", "lobpcg", "onenormest", "svds"),
    "scipy.stats": (
        "-", "bootstrap", "monte_carlo_test", "permutation_test", "power", "random_correlation",
        "random_table", "goodness_of_fit", "ortho_group", "special_ortho_group", "unitary_group", "dunnett",
    ),
    **dict.fromkeys(("scipy.stats.qmc", "scipy.stats._qmc"), ()),
    **dict.fromkeys(("scipy.stats.sampling", "scipy.stats._sampling"), ()),
    # numba, and what computes with it
    "numba": ("-", "get_num_threads", "get_parallel_chunksize", "get_thread_id"),
    **dict.fromkeys(("numba.cuda", "numba.core.config"), ()),
    **dict.fromkeys(("numba_scipy", "numba_stats")),
    # what describes classes and tables
    **dict.fromkeys(("attr", "attrs")),
    "pandas": (
        "Categorical", "CategoricalDtype", "CategoricalIndex", "DataFrame", "DatetimeIndex", "Index",
        "Interval", "IntervalIndex", "MultiIndex", "RangeIndex", "Series", "TimedeltaIndex", "concat",
        "crosstab", "cut", "factorize", "get_dummies", "isna", "isnull", "melt", "merge", "notna",
        "notnull", "pivot", "pivot_table", "qcut", "to_numeric", "to_timedelta", "unique", "value_counts",
    ),
}  # fmt: skip

EXTERNAL_ATTRIBUTES: dict[str, frozenset[str]] = {
    "logging": frozenset(
        (
            "disabled", "filter", "filters", "getChildren", "getEffectiveLevel", "handlers", "hasHandlers",
            "isEnabledFor", "level", "manager", "parent", "propagate",
        )
    ),
    "scipy": frozenset(("random_state", "resample", "rvs")),
    "statistics": frozenset(("kde_random", "samples")),
}  # fmt: skip
"""Attributes that read external state, by the package whose objects have them."""


def is_pure(module: str, name: str) -> bool:
    """Return True if the object `name` of `module` is known to depend on its arguments alone."""
    place = module
    while place not in PURE:
        place, _, _ = place.rpartition(".")
        if not place:
            return False
    names = PURE[place]
    if names is None:
        return True
    first = name.partition(".")[0]
    return (first in names) != (names[:1] == ("-",)) if isinstance(names, tuple) else first in names
