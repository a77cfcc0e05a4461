"""The examination of the servers of CACHEGRAPH_REMOTE: who answers, how soon, and who may write.

A server that does not answer is a fact, not a problem: compiles go on without it. A missing library, a server
that answers and refuses to write, and a key that nobody trusts are problems, with advice.
"""

from __future__ import annotations

from contextlib import suppress
from time import perf_counter

from cachegraph.remote_url import READ_ONLY, RemoteURL
from cachegraph.store.files import Oversized
from cachegraph.store.maintenance.diagnosis import Finding, own_key
from cachegraph.store.paths import STORE_VERSION, TEMPORARY_PREFIX, unique_name
from cachegraph.store.remote.files import RemoteError, RemoteFiles
from cachegraph.store.remote.opening import open_files
from cachegraph.store.trust import Trust

_PROBE = b"probe"


def examine_remote(url: RemoteURL, trust: Trust) -> list[Finding]:
    """Return the facts about a server; writes a probe file there and removes it.

    Never raises: a failed check is a finding. Takes at most a few times the URL's `timeout`.
    """
    files = open_files(url)
    try:
        return _examine(url, files, trust)
    except ImportError as error:
        advice = f"pip install 'cachegraph[{_extra(url)}]'"
        return [Finding("library", f"{error.name or error} is not installed", advice)]
    except Exception as error:  # a library may raise anything on an odd server
        return [_silence(error)]
    finally:
        files.close()


def _examine(url: RemoteURL, files: RemoteFiles, trust: Trust) -> list[Finding]:
    name = f"{STORE_VERSION}/{unique_name(TEMPORARY_PREFIX)}"
    try:
        first, again = _seconds_to_miss(files, name), _seconds_to_miss(files, name)
    except RemoteError as error:
        return [_silence(error)]
    answer = Finding("a get", f"{1e3 * again:.1f} ms; {1e3 * first:.0f} ms with the connection")
    found = [answer, Finding("trust", str(trust)), *own_key(trust)]
    return [*found, _writing(url, files, trust, name)]


def _silence(error: Exception) -> Finding:
    what = error.what if isinstance(error, RemoteError) else f"{type(error).__name__}: {error}"
    return Finding("no answer", f"{what}; compiles go on without it")


def _seconds_to_miss(files: RemoteFiles, name: str) -> float:
    """Return the seconds until the server says that it has no such file. Raises RemoteError."""
    begin = perf_counter()
    with suppress(FileNotFoundError, Oversized):
        files.read(name, len(_PROBE))
    return perf_counter() - begin


def _writing(url: RemoteURL, files: RemoteFiles, trust: Trust, name: str) -> Finding:
    if url.scheme in READ_ONLY:
        return Finding("writing", f"{url.scheme} is only read")
    if not files.may_write:
        return Finding("writing", "the URL says write=no: it is only read")
    if not trust.may_write:
        return Finding("writing", "left to those who have a trusted key: this user only reads here")
    try:
        files.write(name, _PROBE)
        same = files.read(name, len(_PROBE)) == _PROBE
        files.remove(name)
    except OSError as error:
        what = error.what if isinstance(error, RemoteError) else str(error)
        return Finding("writing", what, "let this user write there, or add ?write=no to the URL")
    if not same:
        return Finding("writing", "reads back as something else", "use another server")
    return Finding("writing", "a file was written, read back and removed")


def _extra(url: RemoteURL) -> str:
    """Return the extra of this package that brings the libraries of a URL."""
    extra = "redis" if url.scheme.startswith("redis") else url.scheme
    return extra if url.content is None else f"{extra},{url.content.scheme}"
