"""The values whose encodings are known answers. Run as a program, it prints what this process makes of them as JSON.

    python tests/cachegraph/fingerprint/golden_cases.py [here | spawn | fork]

Changing an answer in tests/golden/fingerprints.json means that every key changes: raise HASH_VERSION first, note it in
the history in cachegraph/fingerprint/encoder.py, then redirect the output of this program into that file.
"""

import dataclasses
import http
import inspect
import json
import multiprocessing
import re
import struct
import sys
import uuid

import numpy as np

from cachegraph import settings
from cachegraph.fingerprint import digest, encode
from cachegraph.key import CacheKey

QUIET_NAN_7 = struct.unpack("<d", bytes.fromhex("070000000000f87f"))[0]


def _dataclass_of_the_known_answer() -> type:
    """Return the dataclass that the known answer names, with the fields that it had then."""
    fields = ("name", "variable", "allowed", "in_key", "why")
    made = dataclasses.make_dataclass("Setting", fields, frozen=True)
    made.__module__ = settings.__name__
    settings.Setting = made  # type: ignore[misc]
    return made


def cases() -> dict[str, object]:
    """Return name -> value, each value built anew."""
    return {
        "None": None,
        "True": True,
        "False": False,
        "0": 0,
        "-1": -1,
        "127": 127,
        "128": 128,
        "-128": -128,
        "2**64": 2**64,
        "-(2**2000)": -(2**2000),
        "0.0": 0.0,
        "-0.0": -0.0,
        "0.1": 0.1,
        "inf": float("inf"),
        "nan with payload 7": QUIET_NAN_7,
        "1-0j": complex(1.0, -0.0),
        "empty str": "",
        "str": "naïve λ 𝛼",
        "lone surrogate": "\udc80",
        "long str": "x" * 300,
        "bytes": b"\x00\xff",
        "empty tuple": (),
        "nested tuple": (1, ("a", (None,)), [2.5]),
        "list": [1, "a"],
        "dict": {"b": 1, "a": [2], 3: None, (4, 5): "t", None: b""},
        "set": {"spam", "eggs", "ham", 1, 2.5, None},
        "frozenset": frozenset({"spam", "eggs", frozenset({"ham", "jam"})}),
        "slice": slice(1, None, -2),
        "range": range(0, 10, 3),
        "ellipsis": ...,
        "class": int,
        "class of a submodule": json.JSONDecodeError,
        "enum": uuid.SafeUUID.safe,
        "int enum": http.HTTPStatus.NOT_FOUND,
        "flag": re.RegexFlag.IGNORECASE | re.RegexFlag.MULTILINE,
        "dataclass": _dataclass_of_the_known_answer()("n", "N", ("a", "b"), True, "because"),
        "named tuple": inspect.ArgInfo(["a"], None, "kw", {"a": 1}),
        "dtype": np.dtype("<f8"),
        "big-endian dtype": np.dtype(">i4"),
        "time dtype": np.dtype("<M8[25s]"),
        "float64 scalar": np.float64(0.1),
        "float32 scalar": np.float32(0.1),
        "int64 scalar": np.int64(-5),
        "bool scalar": np.bool_(True),
        "str scalar": np.str_("λ"),
        "time scalar": np.datetime64("2020-01-02", "D"),
        "complex scalar": np.complex64(1 - 2j),
        "0-d array": np.array(0.1),
        "array": np.arange(6, dtype="<i4").reshape(2, 3),
        "transposed array": np.arange(6, dtype="<i4").reshape(2, 3).T,
        "big-endian array": np.arange(3, dtype=">f4"),
        "empty array": np.zeros((0, 3), dtype="<f8"),
        "str array": np.array(["a", "bcd"]),
        "props": {
            "scalar_op": ("Add", np.dtype("<f8")),
            "axis": (0, 1),
            "inplace": frozenset({0: 1}.items()),
        },
    }


def answers() -> dict[str, dict[str, str]]:
    """Return name -> encoding and digest (hex) of each case, and of one key."""
    encodings = {name: encode(value) for name, value in cases().items()}
    key = CacheKey.build("kernel", {"loops": encode((1, "a")), "empty": b"", "target": encode("x86-64-v3")})
    found = {name: {"encoding": e.hex(), "digest": digest(e).hex()} for name, e in encodings.items()}
    return {**found, "a key": {"encoding": key.encoding.hex(), "digest": key.hex}}


def main(start_method: str) -> None:
    """Print the answers of this process ("here"), or of a child started by `start_method`."""
    if start_method == "here":
        found = answers()
    else:
        with multiprocessing.get_context(start_method).Pool(1) as pool:
            found = pool.apply(answers)
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main(*(sys.argv[1:] or ["here"]))
