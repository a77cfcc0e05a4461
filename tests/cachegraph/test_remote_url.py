"""The URLs of remotes: what they may say, and that no message shows a password."""

from __future__ import annotations

import pytest

from cachegraph.errors import SettingsError
from cachegraph.remote_url import RemoteURL
from cachegraph.settings import current_settings


def test_options_of_the_cache_are_taken_out_and_those_of_the_server_stay() -> None:
    url = RemoteURL.of("postgresql://me:secret@db/cache?sslmode=require&write=no&timeout=2.5")
    assert (url.may_write, url.timeout) == (False, 2.5)
    assert url.url == "postgresql://me:secret@db/cache?sslmode=require"
    assert url.location == "postgresql://db/cache"


def test_files_of_redis_may_have_a_time_to_live() -> None:
    assert RemoteURL.of("redis://cache:6379/0?ttl=7d").ttl == 7 * 86400


def test_a_database_may_name_the_bucket_of_its_large_files() -> None:
    url = RemoteURL.of("postgresql://me@db/cache?timeout=2&content=s3://bucket/some/prefix")
    assert url.content is not None
    assert (url.content.scheme, url.content.url, url.content.timeout) == ("s3", "s3://bucket/some/prefix", 2)
    assert url.url == "postgresql://me@db/cache"


def test_web_servers_are_only_read() -> None:
    assert not RemoteURL.of("https://cache.site/published").may_write


@pytest.mark.parametrize(
    "text",
    [
        "ftp://host/path",
        "/a/path",
        "s3:///prefix",
        "redis://host?write=maybe",
        "redis://host?timeout=0",
        "redis://host?timeout=nan",
        "redis://host?ttl=7",
        "postgresql://host/db?content=https://host/path",
        "redis://host:port/0",
        "s3://bucket/prefix?ttl=7d",
        "s3://bucket/prefix?wirte=no",
        "s3://key:secret@bucket/prefix",
        "https://host/path?token=secret",
        "https://me:secret@host/path",
        "bundle:/file?x=y",
    ],
)
def test_any_other_url_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"\S") as raised:
        RemoteURL.of(text)
    assert "secret" not in str(raised.value)


def test_the_setting_is_a_list_with_spaces_and_its_error_shows_no_password() -> None:
    environ = {"CACHEGRAPH_DIR": "/nowhere", "CACHEGRAPH_REMOTE": "redis://one  https://two/path"}
    assert [url.scheme for url in current_settings(environ).remotes] == ["redis", "https"]
    with pytest.raises(SettingsError) as raised:
        current_settings(environ | {"CACHEGRAPH_REMOTE": "ftp://me:secret@host/"})
    assert "secret" not in str(raised.value)
