"""The files of examples/site: jobs run on a real Slurm, and every other file is read by what will read it."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from cachegraph.cache import Cache
from cachegraph.cli.app import app
from cachegraph.declared_settings import SETTINGS
from cachegraph.key import CacheKey
from cachegraph.remote_url import RemoteURL
from cachegraph.settings import Settings, current_settings
from cachegraph.store.entry import Artifact, Hit, Miss
from cachegraph.store.remote.files import WriteRefused
from cachegraph.store.remote.opening import open_files
from tests.cachegraph.store.remote.servers import SERVERS, missing
from tests.cachegraph.store.signers import signing_key
from tests.tools.programs import load_program

SITE = Path(__file__).resolve().parents[2] / "examples" / "site"
FILES = sorted(path for path in SITE.rglob("*") if path.is_file())
VARIABLE = re.compile(r"\bCACHEGRAPH_[A-Z_]+")
VALUE = re.compile(r"(CACHEGRAPH_[A-Z_]+)(?:=|: |\s+\"|\": \")\"?([^\s\"$]+)")
COMMAND = re.compile(r"(?:^|[\s/])cachegraph ((?:prune|stats|doctor)\b[^\n]*)", re.MULTILINE)
FIT = "import engine, engine.tensor as pt\nx = pt.vector('x')\nf = engine.function([x], pt.exp(x).sum())\n"
cluster = load_program("slurm/cluster.py")


def section(name: str) -> str:
    """Return the lines of a section of the Apptainer definition."""
    text = (SITE / "model.def").read_text()
    [found] = re.findall(rf"^%{name}\n(.*?)(?=^%|\Z)", text, re.MULTILINE | re.DOTALL)
    return "\n".join(line.strip() for line in found.splitlines())


def shell_texts() -> dict[str, str]:
    """Return everything that a shell will run, by where it is."""
    scripts = {path.name: path.read_text() for path in FILES if path.suffix in (".sbatch", ".sh")}
    sections = {
        name: f"#!/bin/sh\n{section(name)}\n" for name in ("post", "environment", "test", "runscript")
    }
    return {**scripts, **sections}


@pytest.mark.parametrize("name", sorted(shell_texts()))
def test_a_script_is_right_for_its_shell_and_for_shellcheck(name: str) -> None:
    text = shell_texts()[name]
    shell = "bash" if "bash" in text.partition("\n")[0] else "sh"
    done = subprocess.run([shell, "-n"], input=text, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    checker = shutil.which("shellcheck", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    if checker is None:
        pytest.skip("shellcheck is not installed; the shell has parsed the script")
    done = subprocess.run([checker, "-"], input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_file_sets_declared_variables_to_values_that_are_allowed(path: Path, tmp_path: Path) -> None:
    text = path.read_text()
    declared = {setting.variable for setting in SETTINGS}
    assert set(VARIABLE.findall(text)) <= declared
    values = {name: value for name, value in VALUE.findall(text) if "..." not in value and "{" not in value}
    current_settings({**values, "CACHEGRAPH_DIR": os.fspath(tmp_path), "HOME": os.fspath(tmp_path)})


def commands() -> list[tuple[str, str]]:
    """Return the commands of cachegraph in the files, with the names of these."""
    lines = "\n".join(line for path in FILES for line in [f"#{path.name}", *path.read_text().splitlines()])
    found, name = [], ""
    for line in lines.splitlines():
        name = line[1:] if line.startswith("#") and (SITE / line[1:]).exists() else name
        found += [(name, command) for command in COMMAND.findall(line)]
    return found


@pytest.mark.parametrize(("name", "command"), commands())
def test_a_command_in_a_file_runs(
    name: str, command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CACHEGRAPH_DIR", os.fspath(tmp_path))
    done = CliRunner().invoke(app, shlex.split(command))
    assert done.exit_code == 0, done.output


def test_every_kind_of_file_has_its_commands() -> None:
    assert {name for name, _ in commands()} == {
        "cachegraph.cron", "cachegraph-prune.service", "fill.sbatch", "github.yml", "gitlab.yml"
    }  # fmt: skip


def test_systemd_accepts_the_service_and_the_timer(tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed")
    units = [SITE / "cachegraph-prune.service", SITE / "cachegraph-prune.timer"]
    for unit in units:
        text = unit.read_text().replace("/opt/cachegraph/bin/cachegraph", shutil.which("true") or "/bin/true")
        (tmp_path / unit.name).write_text(text)
    command = ["systemd-analyze", "verify", "--man=no", *(str(tmp_path / unit.name) for unit in units)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    complaints = [line for line in done.stderr.splitlines() if str(tmp_path) in line or "cachegraph" in line]
    assert (done.returncode, complaints) == (0, [])


def test_the_table_of_cron_has_a_time_a_user_and_a_command() -> None:
    lines = (SITE / "cachegraph.cron").read_text().splitlines()
    [job] = [line for line in lines if re.match(r"[\d*]", line)]
    minute, hour, day, month, weekday, user, *command = job.split()
    assert 0 <= int(minute) < 60
    assert 0 <= int(hour) < 24
    assert (day, month, weekday, user) == ("*", "*", "*", "cachegraph")
    assert command[1] == "prune"
    assert not any("%" in line for line in lines), "cron ends a line at %"


def test_the_modulefile_sets_what_a_job_needs(tmp_path: Path) -> None:
    shell = shutil.which("tclsh")
    if shell is None:
        pytest.skip("tclsh is not installed")
    program = (
        "proc module-whatis text {}\n"
        'proc setenv {name value} { puts "$name=$value" }\n'
        f"source {SITE / 'modulefiles' / 'cachegraph' / '1.0'}\n"
    )
    done = {}
    for name, variables in {"tmp": {"TMPDIR": "/scratch/7"}, "none": {"USER": "ada"}}.items():
        ran = subprocess.run(
            [shell], input=program, env=variables, capture_output=True, text=True, check=True
        )
        done[name] = dict(line.split("=", 1) for line in ran.stdout.splitlines())
    assert done["tmp"]["CACHEGRAPH_DIR"] == "/scratch/7/cachegraph"
    assert done["none"]["CACHEGRAPH_DIR"] == "/tmp/cachegraph-ada"
    settings = current_settings({**done["tmp"], "HOME": os.fspath(tmp_path)})
    assert settings.shared_directory == Path("/project/cachegraph")
    assert settings.trust == "published:990"


def test_the_job_of_kubernetes_mounts_what_it_names_and_makes_the_key_its_users_own() -> None:
    job = yaml.safe_load((SITE / "kubernetes.yaml").read_text())
    assert (job["apiVersion"], job["kind"]) == ("batch/v1", "Job")
    assert set(job["spec"]) == {"completions", "parallelism", "completionMode", "backoffLimit", "template"}
    pod = job["spec"]["template"]["spec"]
    assert set(pod) == {"restartPolicy", "securityContext", "initContainers", "containers", "volumes"}
    assert pod["restartPolicy"] == "Never"
    volumes = {volume["name"] for volume in pod["volumes"]}
    containers = [*pod["initContainers"], *pod["containers"]]
    allowed = {"name", "image", "command", "env", "volumeMounts", "resources"}
    assert all(set(container) <= allowed for container in containers)
    mounted = {mount["name"] for container in containers for mount in container["volumeMounts"]}
    assert mounted == volumes
    [fit] = pod["containers"]
    variables = {entry["name"]: entry for entry in fit["env"]}
    mounts = {mount["mountPath"]: mount["name"] for mount in fit["volumeMounts"]}
    assert variables["CACHEGRAPH_DIR"]["value"].startswith(f"{next(iter(mounts))}/")
    assert (
        f"{variables['XDG_CONFIG_HOME']['value']}/cachegraph/key" == pod["initContainers"][0]["command"][-1]
    )
    assert all(isinstance(entry.get("value", ""), str) for entry in fit["env"])


def test_githubs_cache_has_a_new_name_in_each_run_and_falls_back_to_the_newest() -> None:
    workflow: dict[Any, Any] = yaml.safe_load((SITE / "github.yml").read_text())
    assert set(workflow) == {"name", True, "jobs"}  # YAML reads `on` as true
    job = workflow["jobs"]["tests"]
    assert set(job) == {"runs-on", "env", "steps"}
    [cache] = [step["with"] for step in job["steps"] if step.get("uses", "").startswith("actions/cache@")]
    prefix, run = cache["key"].rsplit("-", 1)
    assert run == "${{ github.run_id }}"
    assert cache["restore-keys"] == f"{prefix}-"
    assert job["env"]["CACHEGRAPH_DIR"].endswith(f"/{cache['path']}")


def test_gitlabs_job_keeps_the_directory_that_it_uses() -> None:
    job = yaml.safe_load((SITE / "gitlab.yml").read_text())["tests"]
    assert set(job) == {"image", "variables", "cache", "script", "after_script"}
    [path] = job["cache"]["paths"]
    assert job["variables"]["CACHEGRAPH_DIR"] == f"$CI_PROJECT_DIR/{path}"


def test_the_hub_gives_every_server_the_shared_directory() -> None:
    hub = SimpleNamespace(Spawner=SimpleNamespace())
    code = compile((SITE / "jupyterhub_config.py").read_text(), "jupyterhub_config.py", "exec")
    exec(code, {"get_config": lambda: hub})
    assert hub.Spawner.environment["CACHEGRAPH_SHARED_DIR"] == "/srv/cachegraph"


KEYS = [CacheKey.build("kernel", {"scheme": b"site", "graph": bytes((n,))}) for n in range(2)]
STORED = Artifact(b"payload", {"code": bytes(100_000)})


def rights(tmp_path: Path, writing: str, reading: str) -> None:
    """Check that a writer builds by a lease and stores, and that a reader finds it and is refused."""
    signing_key()
    writer, reader = open_files(RemoteURL.of(writing)), open_files(RemoteURL.of(reading))
    cache = Cache(Settings(tmp_path / "1", "readwrite", "compile", remotes=(RemoteURL.of(writing),)))
    assert cache.get_or_build(KEYS[0], lambda: STORED, lambda payload: payload).value == b"payload"
    cache.flush()
    assert {file.name[:5] for file in writer.listed("v1/")} == {"v1/e/", "v1/b/", "v1/u/"}
    found = Cache(
        Settings(tmp_path / "2", "readwrite", "compile", remotes=(RemoteURL.of(f"{reading}?write=no"),))
    )
    assert isinstance(found.lookup(KEYS[0]), Hit)
    assert isinstance(found.lookup(KEYS[1]), Miss)
    with pytest.raises(WriteRefused):
        reader.write("v1/b/ab/file", b"content")
    assert sorted(reader.listed("v1/"))[0].name.startswith("v1/b/")


def test_the_accounts_of_postgresql_suffice_and_readers_write_nothing(tmp_path: Path) -> None:
    if missing("postgresql"):
        pytest.skip("postgresql is not installed")
    import psycopg

    with SERVERS["postgresql"]() as server, psycopg.connect(server.url, autocommit=True) as owner:
        owner.execute((SITE / "postgresql.sql").read_text())
        urls = [server.url.replace("postgres@", f"cachegraph_{role}@") for role in ("writer", "reader")]
        rights(tmp_path, *urls)
        files = open_files(RemoteURL.of(server.url))
        files.write("v1/r/list", b"")
        pruned = CliRunner().invoke(app, ["prune", "--remote", urls[0], "--older-than", "0s"])
        assert "removed 1 entry, 1 blob" in pruned.stdout, pruned.output
        assert {file.name[:5] for file in files.listed("")} == {"v1/r/", "v1/u/"}


def test_the_accounts_of_redis_suffice_and_readers_write_nothing(tmp_path: Path) -> None:
    if missing("redis"):
        pytest.skip("redis is not installed")
    import redis

    with SERVERS["redis"]() as server:
        owner = redis.Redis.from_url(server.url)
        for line in (SITE / "redis-users.acl").read_text().splitlines():
            owner.execute_command("ACL", "SETUSER", *line.split()[1:])
        users = ("cachegraph-writer", "cachegraph-reader")
        rights(tmp_path, *(server.url.replace("redis://", f"redis://{user}:CHANGE-ME@") for user in users))


def test_a_bucket_takes_the_rules_for_what_is_old_and_revocation_lists_stay(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import boto3

    rules = json.loads((SITE / "s3-lifecycle.json").read_text())
    policy = json.loads((SITE / "s3-policy.json").read_text())
    assert {rule["Filter"]["Prefix"] for rule in rules["Rules"]} == {f"PREFIX/v1/{kind}/" for kind in "ebu"}
    with SERVERS["s3"]() as server:
        for name, value in server.variables.items():
            monkeypatch.setenv(name, value)
        boto3.client("s3").put_bucket_lifecycle_configuration(Bucket="bucket", LifecycleConfiguration=rules)
        boto3.client("iam", region_name="us-east-1").create_policy(
            PolicyName="cachegraph", PolicyDocument=json.dumps(policy)
        )


@pytest.mark.slow
def test_an_image_for_any_user_is_filled_by_root_and_read_only_afterwards(tmp_path: Path) -> None:
    """The sections %post, %environment, %test and %runscript, with other paths and without the network."""
    (tmp_path / "opt").mkdir(mode=0o755)
    (tmp_path / "opt" / "model.py").write_text(f"{FIT}print(f.cache_info.outcome)\n")

    def run(*names: str) -> str:
        text = "\n".join(section(name) for name in names).replace("/opt/", f"{tmp_path}/opt/")
        text = re.sub(r"^pip .*\n", "", text, flags=re.MULTILINE).replace("x86-64-v3", "x86-64")
        text = re.sub(r"\bpython\b", shlex.quote(sys.executable), text).replace(":0 ", f":{os.getuid()} ")
        environ = {key: value for key, value in os.environ.items() if not key.startswith("CACHEGRAPH_")}
        done = subprocess.run(["sh", "-ec", text], env=environ, capture_output=True, text=True, check=True)
        return done.stdout.split()[-1]

    assert run("post") == "miss"
    assert run("environment", "test") == "hit"
    assert run("environment", "runscript") == "hit"
    modes = {path.stat().st_mode & 0o777 for path in (tmp_path / "opt" / "cachegraph").rglob("*.sqlite")}
    assert modes <= {0o644, 0o600}


@pytest.mark.slow
def test_on_a_real_slurm_the_fill_job_compiles_and_no_task_of_the_array_does(tmp_path: Path) -> None:
    if reason := cluster.unavailable():
        pytest.skip(reason)
    model = tmp_path / "model.py"
    said = tmp_path / "said"
    said.mkdir()
    model.write_text(
        f"{FIT}import os\nopen('{said}/' + os.environ['SLURM_JOB_ID'], 'w').write(f.cache_info.outcome)\n"
    )
    with cluster.Cluster(tmp_path, 1, 2) as slurm:
        slurm.environment |= {
            "PATH": f"{Path(sys.executable).parent}:{slurm.environment['PATH']}",
            "CACHEGRAPH_DIR": f"{tmp_path}/cache",
            "CACHEGRAPH_CPU": "x86-64",
        }
        for job in ("fill.sbatch", "array.sbatch"):
            slurm.run("sbatch", "--test-only", str(SITE / job), str(model), cwd=tmp_path)
        jobs = _copies(tmp_path / "jobs")
        fill, array = slurm.run(str(jobs / "submit.sh"), str(model), cwd=tmp_path).stdout.split()
        assert int(array) > int(fill)
        end = time.monotonic() + 120
        while slurm.run("squeue", "-h").stdout.strip() and time.monotonic() < end:
            time.sleep(0.2)
    outcomes = [path.read_text() for path in sorted(said.iterdir(), key=lambda path: int(path.name))]
    assert outcomes == ["miss", *["hit"] * 4], [path.read_text() for path in tmp_path.glob("slurm-*.out")]


def _copies(directory: Path) -> Path:
    """Return a directory with the jobs as they are, but with an array of four tasks."""
    directory.mkdir()
    for name in ("submit.sh", "fill.sbatch", "array.sbatch"):
        text = (SITE / name).read_text().replace("--array=1-1000", "--array=1-4")
        (directory / name).write_text(text)
    (directory / "submit.sh").chmod(0o755)
    return directory
