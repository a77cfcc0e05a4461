"""Parts of keys that differ are described in words, whoever wrote them."""

from __future__ import annotations

import ast

import pytest

from cachegraph.fingerprint.encoding import encode
from cachegraph.fingerprint.primitives import pack_uint, prefixed
from cachegraph.part_differences import part_difference
from cachegraph.toolchain import toolchain
from engine.compiling.surroundings import engine_code, kernel_code


def registrations(releases: dict[str, str], *definitions: bytes, bounds: bool = False) -> bytes:
    """Return what fingerprint/extensions.py writes."""
    rows = [prefixed(name.encode()) + prefixed(version.encode()) for name, version in releases.items()]
    written = pack_uint(len(rows)) + b"".join(rows)
    written += pack_uint(len(definitions)) + b"".join(map(prefixed, definitions))
    return encode(None)[:1] + written + encode(bounds)[1:]


def rewrites(include: tuple[str, ...], exclude: set[str], databases: bytes, *backend: str) -> bytes:
    query = encode((include, frozenset(), frozenset(exclude), {}, 1.0, []))
    return b"".join(map(prefixed, (query, databases, *map(encode, backend))))


def test_the_helper_writes_what_the_encoder_writes() -> None:
    from cachegraph.fingerprint.extensions import encode_extensions

    assert encode_extensions()[:1] == registrations({})[:1]
    assert encode_extensions()[-1:] == registrations({})[-1:]


@pytest.mark.parametrize(
    ("wanted", "stored", "said"),
    [
        (
            registrations({"nutpie": "0.16"}),
            registrations({}),
            "nutpie 0.16 has registered with numba; the stored one was compiled without",
        ),
        (
            registrations({}),
            registrations({"nutpie": "0.16"}),
            "the stored one was compiled where nutpie 0.16 had registered with numba",
        ),
        (
            registrations({"nutpie": "0.17"}),
            registrations({"nutpie": "0.16"}),
            "nutpie 0.17 has registered with numba, stored 0.16",
        ),
        (
            registrations({}, b"a"),
            registrations({}),
            "other code than for the stored one has registered with numba",
        ),
        (registrations({}, bounds=True), registrations({}), "checks of bounds: True, stored False"),
        (engine_code(), bytes(16), "the source of cachegraph's engine is another release's, or was edited"),
        (kernel_code(), bytes(48), "the source of cachegraph's engine is another release's, or was edited"),
        (encode(("3.3.7", [])), encode(("3.3.6", [])), "pytensor 3.3.7, stored 3.3.6"),
        (
            encode(("3.3.7", [("pymc", b"a"), ("cachegraph.pytensor", b"b")])),
            encode(("3.3.7", [("cachegraph.pytensor", b"c")])),
            "the source of pymc and cachegraph.pytensor is another release's, or was edited",
        ),
        (b"of nobody", b"of nobody else", "digest "),
    ],
)
def test_code_is_described_by_who_wrote_it(wanted: bytes, stored: bytes, said: str) -> None:
    assert part_difference("code", wanted, stored).startswith(said)


@pytest.mark.parametrize(
    ("wanted", "stored", "said"),
    [
        (
            rewrites(("fast_run",), set(), b"x"),
            rewrites((), set(), b"x"),
            "fast_run included, stored not included",
        ),
        (
            rewrites((), set(), b"x"),
            rewrites((), {"stabilize"}, b"y"),
            "stabilize not excluded, stored excluded; other rewrites are registered, or their code differs",
        ),
        (
            rewrites((), set(), b"x", "engine"),
            rewrites((), set(), b"x"),
            "the backend is 'engine', stored 'numba'",
        ),
        (
            encode(((), (), ())),
            encode(((), (), ("stabilize",))),
            "stabilize not excluded, stored excluded",
        ),
    ],
)
def test_rewrites_are_named(wanted: bytes, stored: bytes, said: str) -> None:
    assert part_difference("rewrites", wanted, stored) == said


def test_releases_and_flags_are_named() -> None:
    tools = toolchain()
    for wanted, stored in (
        (tools, {**tools, "numba": "0.1"}),
        ((tools, "1.0"), ({**tools, "numba": "0.1"}, "1.0")),
    ):
        assert part_difference("toolchain", encode(wanted), encode(stored)) == (
            f"numba: {tools['numba']!r}, stored '0.1'"
        )
    assert (
        part_difference("options", encode({"fast": True}), encode({"fast": False}))
        == "fast: True, stored False"
    )


def test_inputs_are_named() -> None:
    def interface(borrow: bool) -> bytes:
        return encode((([(False,) * 6, (False, borrow, *(False,) * 4)], [False]), False, 0))

    said = "input 1 may be aliased: True, stored False"
    assert part_difference("interface", interface(True), interface(False)) == said
    assert part_difference("interface", encode((1, ())), encode((3, ()))) == "[0]: 1, stored 3"


@pytest.mark.parametrize("size", [0, 1, 7, 16, 30, 48])
def test_truncated_and_foreign_parts_are_never_an_error(size: int) -> None:
    whole = registrations({"nutpie": "0.16"}, b"definition") + bytes(48)
    for part in ("code", "rewrites", "options", "toolchain", "interface", "graph"):
        assert part_difference(part, whole[:size], encode(("something", "else")))
        assert part_difference(part, whole[:size], whole[: size + 1])


def test_long_texts_are_shown_around_their_first_difference() -> None:
    def code(name: str) -> bytes:
        return encode(ast.dump(ast.parse(f"a * b + (c - d) * 2 + {name} * 3 + e ** 4", mode="eval")))

    said = part_difference("function", code("x"), code("y"))
    wanted, stored = said.split(", stored ", 1)
    assert "Name(id='x'" in wanted.replace("\\", "")
    assert "Name(id='y'" in stored.replace("\\", "")
    assert "Expression(body" not in said
    assert len(said) < 150
