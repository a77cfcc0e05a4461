"""Two users with machines of their own share what one compiled, by every kind of store and every trust.

Each is a process under the kernel's rules, with a number, a configuration and a local directory of its own.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import engine
import engine.tensor as pt
from cachegraph.cache import default_cache
from cachegraph.remote_url import RemoteURL
from cachegraph.store.maintenance.directory import CacheDirectory
from cachegraph.store.maintenance.exporting import export
from cachegraph.store.maintenance.revoking import Publisher, revoke
from cachegraph.store.paths import revocation_place
from cachegraph.store.remote.opening import open_files
from cachegraph.store.revocation.list_file import Revoked
from cachegraph.store.signing import make_own_key, public_key_text
from cachegraph.store.tiers import place
from cachegraph.store.trust import Trust
from cachegraph.store.trusted_signers import TrustedSigner, trust_signer
from tests.cachegraph.store.remote.servers import SERVERS, Server, missing, nginx
from tests.conftest import HOME_VARIABLES
from tests.flow.users import ALICE, BOB, CAROL, PROJECT, as_user

pytestmark = pytest.mark.skipif(
    not hasattr(os, "setuid") or os.geteuid() != 0, reason="only root can become other users"
)

USERS = (ALICE, BOB, CAROL)
KINDS = ("bundle", "directory", "http", *sorted(SERVERS))


class Site:
    """Machines of users, each with a key, and the store between them."""

    def __init__(self, directory: Path, kind: str, server: Server | None) -> None:
        self.directory = directory
        self.kind = kind
        self.server = server
        for user in USERS:
            self._make(f"machine-{user}", user, 0o700)
        self.keys = {user: as_user(user, self._as(user, make_own_key)) for user in USERS}

    def _make(self, name: str, owner: int, mode: int) -> Path:
        path = self.directory / name
        path.mkdir()
        os.chown(path, owner, PROJECT)
        path.chmod(mode)
        return path

    def open_to(self, policy: str) -> None:
        """Make the directory that the users share, as the policy needs it."""
        modes = {"private": 0o755, "published": 0o755, "group": 0o2770, "signed": 0o2775}
        self.project = self._make("project", ALICE, modes[policy])

    def key(self, user: int) -> str:
        return public_key_text(self.keys[user])

    def trusting(self, user: int, whom: int) -> None:
        """Put a key into the trust list of a user."""
        as_user(user, self._as(user, lambda: trust_signer(TrustedSigner(self.keys[whom], ""))))

    def _as(self, user: int, work: Callable[[], Any]) -> Callable[[], Any]:
        def with_own_home() -> Any:
            home = str(self.directory / f"machine-{user}")
            os.environ.update({name: f"{home}/{name.lower()}" for name in HOME_VARIABLES}, HOME=home)
            return work()

        return with_own_home

    def compile(self, user: int, trust: str) -> tuple[str, str, float]:
        """Compile the model on the machine of a user; return the outcome, its reason, and a result."""

        def work() -> tuple[str, str, float]:
            machine = self.directory / f"machine-{user}" / "cache"
            os.environ.update(self.variables(user), CACHEGRAPH_DIR=str(machine), CACHEGRAPH_TRUST=trust)
            found = compiled(lambda x: pt.exp(x).sum() * 3)
            if self.kind == "bundle" and user == ALICE:
                self.export(machine, trust)
            return found

        return as_user(user, self._as(user, work))

    def export(self, machine: Path, trust: str) -> None:
        """Write all entries of a machine into the bundle."""
        cache = CacheDirectory(place(machine, None, trust))
        export(cache, {entry.digest for entry in cache.listed()}, str(self.bundle))
        self.bundle.chmod(0o644)

    @property
    def bundle(self) -> Path:
        return self.project / "models.bundle"

    def variables(self, user: int) -> dict[str, str]:
        """Return the settings that name the store between the users.

        Alice has the directory that a web server publishes, and writes the bundle.
        """
        if self.kind == "bundle":
            return {} if user == ALICE else {"CACHEGRAPH_REMOTE": f"bundle:{self.bundle}"}
        if self.server is not None and (self.kind != "http" or user != ALICE):
            return {"CACHEGRAPH_REMOTE": self.server.url}
        return {"CACHEGRAPH_SHARED_DIR": str(self.project)}

    def revoke(self, user: int, revoked: Revoked, trust: str) -> None:
        def work() -> None:
            if self.server is not None and self.kind != "http":
                publisher = Publisher.of_server(open_files(RemoteURL.of(self.server.url)))
            else:
                publisher = Publisher.of_directory(self.project, Trust.of(trust))
            revoke([publisher], revoked)

        as_user(user, self._as(user, work))

    def remove_list(self, user: int, signer: int) -> None:
        """Have a user remove the list of a signer."""
        place = revocation_place(self.keys[signer])

        def work() -> None:
            if self.server is not None and self.kind != "http":
                open_files(RemoteURL.of(self.server.url)).remove(place)
            else:
                (self.project / place).unlink()

        as_user(user, work)


@pytest.fixture
def directory() -> Iterator[Path]:
    """Yield a directory that all can reach, and in which nobody but root can write."""
    path = Path(tempfile.mkdtemp(prefix="cachegraph-users-"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


@pytest.fixture(params=KINDS)
def site(request: pytest.FixtureRequest, directory: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    lacking = missing(request.param)
    if lacking:
        pytest.skip(f"{lacking} is not installed")
    if request.param in ("bundle", "directory"):
        made = Site(directory, request.param, None)
        _warm(made, monkeypatch)
        yield made
        return
    running = nginx(directory / "project") if request.param == "http" else SERVERS[request.param]()
    with running as server:
        for name, value in server.variables.items():
            monkeypatch.setenv(name, value)
        made = Site(directory, request.param, server)
        _warm(made, monkeypatch)
        yield made


def compiled(model: Callable[[Any], Any]) -> tuple[str, str, float]:
    """Compile a model of a vector; return the outcome, its reason, and the result for two zeros."""
    x = pt.vector("x")
    f = engine.function([x], model(x))
    default_cache().flush()
    return f.cache_info.outcome, f.cache_info.reason or "", float(f([0.0, 0.0]))


def _warm(site: Site, patch: pytest.MonkeyPatch) -> None:
    """Do once as root what the users will do: where this interpreter lies, they may not be able to look."""
    root = site.directory / "machine-0"
    site.project = site.directory / "warm"
    site.project.mkdir()
    with patch.context() as variables:
        for name, value in (site.variables(ALICE) | site.variables(BOB)).items():
            variables.setenv(name, value)
        variables.setenv("XDG_CONFIG_HOME", str(root / "config"))
        variables.setenv("CACHEGRAPH_TRUST", f"signed:{public_key_text(make_own_key())}")
        for number in "123":
            variables.setenv("CACHEGRAPH_DIR", str(root / number))
            compiled(lambda x: pt.sin(x).max() + 1)
            if site.kind == "bundle":
                site.export(root / number, "signed")
    if site.server is not None and site.kind != "http":
        open_files(RemoteURL.of(site.server.url)).close()


SIGNED = {"signed:KEYS", "signed", "group:KEYS"}


@pytest.mark.slow
@pytest.mark.parametrize("trust", ["private", "published", "group:KEYS", "signed:KEYS", "signed"])
def test_two_users_share_what_one_compiled_where_the_other_trusts_him(site: Site, trust: str) -> None:
    site.open_to(trust.partition(":")[0])
    site.trusting(BOB, ALICE)
    of_alice = trust.replace("KEYS", site.key(ALICE))
    of_bob = f"published:{ALICE}" if trust == "published" else of_alice
    assert site.compile(ALICE, of_alice) == ("miss", "never-seen", 6.0)
    is_shared = trust in SIGNED or (trust == "published" and site.kind == "directory")
    is_closed = trust == "private" and site.kind == "directory"  # its mode is 0700
    refused = ("miss", "unreadable" if is_closed else "untrusted", 6.0)
    assert site.compile(BOB, of_bob) == (("hit", "", 6.0) if is_shared else refused)
    assert site.compile(BOB, of_bob) == ("hit", "", 6.0), "from his own machine"
    assert site.compile(CAROL, "signed") == refused, "she trusts nobody"


@pytest.mark.slow
def test_a_revocation_reaches_the_machines_of_other_users(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Carol revokes what Alice signed; Bob has a copy. Alice, who may write there, cannot undo it."""
    if site.kind == "bundle":
        pytest.skip("its lists are those of whoever wrote it")
    policy = "group" if site.kind in ("directory", "http") else "signed"
    site.open_to(policy)
    keys = f"{site.key(ALICE)},{site.key(CAROL)}"
    of_writers, of_bob = f"{policy}:{keys}", f"signed:{keys}"
    assert site.compile(ALICE, of_writers) == ("miss", "never-seen", 6.0)
    for _ in range(2):
        assert site.compile(BOB, of_bob) == ("hit", "", 6.0)
    site.revoke(CAROL, Revoked(signers=frozenset((site.keys[ALICE].hex(),))), of_writers)
    monkeypatch.setattr("cachegraph.store.revocation.node.READ_SECONDS", 0.0)  # an hour passes
    assert site.compile(BOB, of_bob) == ("hit", "", 6.0), "he hears of it when this process ends"
    site.remove_list(ALICE, CAROL)
    assert site.compile(BOB, of_bob) == ("miss", "untrusted", 6.0), "he has seen the list, and has no copy"
    assert site.compile(BOB, of_bob) == ("hit", "", 6.0), "what he built himself"
