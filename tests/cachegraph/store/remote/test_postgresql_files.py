"""Files of a database whose large content is in a bucket."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from cachegraph.remote_url import RemoteURL
from cachegraph.store.entry import INLINE_LIMIT
from cachegraph.store.paths import lease_place
from cachegraph.store.remote.files import RemoteError, RemoteFiles
from cachegraph.store.remote.opening import open_files
from cachegraph.store.remote.store import RemoteStore
from cachegraph.store.trust import Trust
from tests.cachegraph.store.remote.servers import SERVERS, Server, missing, pgbouncer
from tests.cachegraph.store.state_machine import StoreAgainstDict

NAME = "v1/e/ab/file"
LARGE = bytes(range(256)) * (INLINE_LIMIT // 256 + 1)


@pytest.fixture(scope="module")
def urls() -> Iterator[tuple[str, str]]:
    """Yield the URL of a database, and that of a bucket."""
    lacking = missing("postgresql") or missing("s3")
    if lacking:
        pytest.skip(f"{lacking} is not installed")
    with (
        SERVERS["postgresql"]() as database,
        SERVERS["s3"]() as bucket,
        pytest.MonkeyPatch.context() as patch,
    ):
        for name, value in bucket.variables.items():
            patch.setenv(name, value)
        yield database.url, bucket.url


@pytest.fixture
def files(urls: tuple[str, str]) -> Iterator[RemoteFiles]:
    """Yield the files of both, which are removed after the test."""
    opened = open_files(RemoteURL.of(f"{urls[0]}?content={urls[1]}"))
    yield opened
    for file in list(opened.listed("")):
        opened.remove(file.name)
    opened.close()


@pytest.fixture
def objects(urls: tuple[str, str]) -> RemoteFiles:
    """Return the files of the bucket alone."""
    return open_files(RemoteURL.of(urls[1]))


def test_content_above_the_limit_is_in_the_bucket_and_shorter_content_in_the_table(
    files: RemoteFiles, objects: RemoteFiles
) -> None:
    files.write(NAME, LARGE[:INLINE_LIMIT])
    assert list(objects.listed("")) == []
    files.write(NAME, LARGE)
    assert [file.size for file in objects.listed("v1/b/")] == [len(LARGE)]
    assert files.read(NAME, len(LARGE)) == LARGE
    assert [(file.name, file.size) for file in files.listed("v1/")] == [(NAME, len(LARGE))]


def test_an_object_goes_with_the_row_that_refers_to_it(files: RemoteFiles, objects: RemoteFiles) -> None:
    files.write(NAME, LARGE)
    files.write(NAME, LARGE[::-1])
    assert files.read(NAME, len(LARGE)) == LARGE[::-1]
    assert len(list(objects.listed(""))) == 1
    files.write(NAME, b"short")
    assert list(objects.listed("")) == []
    assert files.create(f"{NAME}2", LARGE)
    assert not files.create(f"{NAME}2", LARGE[::-1])
    assert files.read(f"{NAME}2", len(LARGE)) == LARGE
    assert files.remove(f"{NAME}2")
    assert list(objects.listed("")) == []


def test_a_row_whose_object_is_gone_is_a_missing_file_until_it_is_written_again(
    files: RemoteFiles, objects: RemoteFiles
) -> None:
    files.write(NAME, LARGE)
    [found] = objects.listed("")
    objects.remove(found.name)
    with pytest.raises(FileNotFoundError):
        files.read(NAME, len(LARGE))
    files.write(NAME, LARGE)
    assert files.read(NAME, len(LARGE)) == LARGE


def test_a_connection_that_the_server_closed_meanwhile_is_replaced(
    files: RemoteFiles, urls: tuple[str, str]
) -> None:
    import psycopg

    files.write(NAME, b"content")
    with psycopg.connect(urls[0], autocommit=True) as other:
        for _ in range(3):
            closed = other.execute(
                "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
                " WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
            ).fetchall()
            assert closed
            assert files.read(NAME, 10) == b"content"


@pytest.mark.parametrize("mode", ["session", "transaction"])
def test_nodes_share_the_few_connections_of_a_pooler(
    urls: tuple[str, str], files: RemoteFiles, mode: str
) -> None:
    if shutil.which("pgbouncer") is None:
        pytest.skip("pgbouncer is not installed")
    files.write(NAME, b"content")
    lease = f"{lease_place('ab' * 16)}.1"
    nodes = 8 if mode == "transaction" else 2
    with pgbouncer(Server(None, urls[0], {}), mode) as pooler:  # type: ignore[arg-type]
        opened = [open_files(RemoteURL.of(pooler.url)) for _ in range(nodes)]
        with ThreadPoolExecutor(nodes) as pool:
            for turn in range(10):  # psycopg prepares what is repeated, if it may
                assert list(pool.map(lambda one: one.read(NAME, 10), opened)) == [b"content"] * nodes
                assert list(pool.map(lambda one: one.create(lease, b"1"), opened)).count(True) == (turn == 0)
        began = time.monotonic()
        opened[0].wait(lease, 0.3)
        assert 0.25 < time.monotonic() - began < 5.0
        opened[1].remove(lease)
        for one in opened:
            one.close()


def test_who_does_not_name_the_bucket_is_told_to(files: RemoteFiles, urls: tuple[str, str]) -> None:
    files.write(NAME, LARGE)
    with pytest.raises(RemoteError, match=r"\?content=s3://"):
        open_files(RemoteURL.of(urls[0])).read(NAME, len(LARGE))


def test_any_sequence_of_verbs_behaves_like_a_dict(urls: tuple[str, str], files: RemoteFiles) -> None:
    class BothAgainstDict(StoreAgainstDict):
        remembers_deletions = False
        keeps_index = False
        quarantines = False

        def open(self) -> RemoteStore:
            opened = open_files(RemoteURL.of(f"{urls[0]}?content={urls[1]}"))
            return RemoteStore(opened, Trust.on_servers("private"))

        def teardown(self) -> None:
            for file in list(files.listed("")):
                files.remove(file.name)
            super().teardown()

    run_state_machine_as_test(
        BothAgainstDict, settings=settings(max_examples=3, stateful_step_count=12, database=None)
    )
