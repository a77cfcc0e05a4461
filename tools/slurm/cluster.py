"""A real Slurm on this machine, on loopback: a controller and several nodes, brought up in a directory
and down again.

Debian's packages munge, slurmctld, slurmd and slurm-client, and root, are all it needs;
`unavailable` says what is missing. Nodes differ by name alone, so what runs on one is given a host
name of its own (`on_node`).
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from cachegraph.processes import is_gone, start_of

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "sinfo", "scancel", "unshare", "hostname")
PACKAGES = "munge slurmctld slurmd slurm-client"
_START_SECONDS = 30.0
_STOP_SECONDS = 5.0
_CONFIGURATION = """\
ClusterName=loopback
SlurmctldHost={host}(127.0.0.1)
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={directory}/munge/socket
CredType=cred/munge
StateSaveLocation={directory}/state
SlurmdSpoolDir={directory}/spool.%n
SlurmctldPidFile={directory}/slurmctld.pid
SlurmdPidFile={directory}/slurmd.%n.pid
SlurmctldLogFile={directory}/slurmctld.log
SlurmdLogFile={directory}/slurmd.%n.log
SlurmctldPort={port}
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=1,batch_sched_delay=0,sched_min_interval=0
SlurmdParameters=config_overrides
ReturnToService=2
MaxArraySize=10001
MaxJobCount=20000
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
"""


def unavailable() -> str:
    """Return why no Slurm can be brought up here, empty if one can."""
    missing = [name for name in PROGRAMS if shutil.which(name, path=_path()) is None]
    if sys.platform != "linux":
        return "Slurm runs on Linux"
    if missing:
        return f"{', '.join(missing)} not found: apt-get install --no-install-recommends {PACKAGES}"
    if os.geteuid() != 0:
        return "only root can start Slurm's daemons and give nodes host names of their own"
    if subprocess.run(["unshare", "--uts", "true"], capture_output=True, check=False).returncode != 0:
        return "this container may not make host names (unshare --uts)"
    return ""


class Cluster:
    """Slurm in `directory`, of nodes n1, n2, .. with `slots` each; up while entered.

    Raises RuntimeError, with what its log says, if it does not come up.
    """

    def __init__(self, directory: Path, nodes: int, slots: int) -> None:
        self.directory = directory
        self.names = [f"n{number + 1}" for number in range(nodes)]
        self.slots = slots
        self._configuration = directory / "slurm.conf"
        self.environment = {**os.environ, "PATH": _path(), "SLURM_CONF": str(self._configuration)}

    def __enter__(self) -> Cluster:
        try:
            self._start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def run(self, *command: str, **options: object) -> subprocess.CompletedProcess[str]:
        """Run a command of Slurm's; raises CalledProcessError if it fails."""
        return subprocess.run(  # type: ignore[call-overload, no-any-return]
            command, env=self.environment, check=True, text=True, capture_output=True, **options
        )

    def run_array(self, script: Path, tasks: int, output: str) -> float:
        """Run `script` as an array of `tasks` and return the seconds until the last has ended; `output` is
        theirs.
        """
        begin = time.monotonic()
        submitted = self.run("sbatch", "--parsable", f"--array=1-{tasks}", f"--output={output}", str(script))
        job = submitted.stdout.strip()
        while self.run("squeue", "-h", "-j", job).stdout.strip():
            time.sleep(0.2)
        return time.monotonic() - begin

    def stop(self) -> None:
        """End the daemons that this object has started, by the numbers that they wrote down."""
        for file in [
            *self.directory.glob("slurmd.*.pid"),
            self.directory / "slurmctld.pid",
            self._munge("pid"),
        ]:
            if file.exists() and (text := file.read_text().strip()).isdecimal():
                _end(int(text))

    def _start(self) -> None:
        for name in ("state", "munge"):
            (self.directory / name).mkdir()
        self.directory.chmod(0o755)
        self._configuration.write_text(self._configured())
        self._start_munge()
        self.run("slurmctld", "-c", "-f", str(self._configuration))
        for name in self.names:
            (self.directory / f"spool.{name}").mkdir()
            self.run("slurmd", "-f", str(self._configuration), "-N", name)
        self._wait_until_idle()

    def _start_munge(self) -> None:
        key = self._munge("key")
        key.touch(0o600)
        key.write_bytes(os.urandom(1024))
        places = {
            "key-file": "key",
            "socket": "socket",
            "pid-file": "pid",
            "log-file": "log",
            "seed-file": "seed",
        }
        options = [f"--{option}={self._munge(name)}" for option, name in places.items()]
        self.run("munged", "--force", *options)

    def _configured(self) -> str:
        host = socket.gethostname().split(".")[0]
        first, *others = _free_ports(1 + len(self.names))
        text = _CONFIGURATION.format(host=host, directory=self.directory, port=first)
        for name, port in zip(self.names, others, strict=True):
            text += f"NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} "
            text += f"CPUs={self.slots} RealMemory=4000\n"
        return text + "PartitionName=all Nodes=ALL Default=YES MaxTime=600 State=UP OverSubscribe=NO\n"

    def _wait_until_idle(self) -> None:
        end = time.monotonic() + _START_SECONDS
        while time.monotonic() < end:
            try:
                if self.run("sinfo", "-h", "-o", "%T %D").stdout.split() == ["idle", str(len(self.names))]:
                    return
            except subprocess.CalledProcessError:
                pass
            time.sleep(0.1)
        log = self.directory / "slurmctld.log"
        raise RuntimeError(f"Slurm did not come up in {_START_SECONDS:.0f} s:\n{log.read_text()[-2000:]}")

    def _munge(self, name: str) -> Path:
        return self.directory / "munge" / name


def on_node(command: str) -> str:
    """Return a shell command that runs `command` under the host name of the node that it is on."""
    return f"exec unshare --uts sh -c 'hostname \"$SLURMD_NODENAME\" && exec {command}'"


def _path() -> str:
    return os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin", "/sbin"))


def _free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()


def _end(pid: int) -> None:
    start = start_of(pid)
    for signal_number in (signal.SIGTERM, signal.SIGKILL):
        if is_gone(pid, start):
            return
        os.kill(pid, signal_number)
        end = time.monotonic() + _STOP_SECONDS
        while not is_gone(pid, start) and time.monotonic() < end:
            time.sleep(0.05)
