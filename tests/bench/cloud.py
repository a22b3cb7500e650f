"""A throwaway cloud of one hypervisor for benchmarks: made, used through ansible-playbook, and taken down again."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import time
import types
import typing as t

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
HYPERVISORS = REPOSITORY / "tests/molecule/shared/hypervisors"
TINY_IMAGE = REPOSITORY / "tests/molecule/shared/tiny-image"
IMAGES = REPOSITORY / ".cache/images"


class Cloud:
    """`with Cloud() as cloud:` hypervisors `hv1` ..., seeded as the lab is, with quotas wide enough for `instances`.

    `up` are further options of tests/molecule/shared/hypervisors, `seed` further variables of seed.yml.
    """

    def __init__(
        self,
        instances: int,
        hosts: int = 1,
        up: t.Sequence[str] = (),
        seed: dict[str, t.Any] | None = None,
        environment: t.Mapping[str, str] = types.MappingProxyType({}),
    ) -> None:
        self._temporary = tempfile.TemporaryDirectory(prefix="novalite-bench-")
        self.home = pathlib.Path(self._temporary.name)
        self.inventory = self.home / "inventory"
        self.cpu_seconds = 0.0  # of the last command: here, with what it started, and without what runs on the host
        self._instances, self._hosts, self._up, self._seed = instances, hosts, up, seed or {}
        binaries = pathlib.Path(sys.executable).parent
        self._env = {
            **os.environ,
            "PATH": f"{binaries}:{os.environ['PATH']}",
            "NOVALITE_HOME": str(self.home),
            "NOVALITE_IMAGES": str(IMAGES),
            "ANSIBLE_FORCE_COLOR": "0",
            **environment,
        }

    def __enter__(self) -> Cloud:
        try:
            self._prepare()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def _prepare(self) -> None:
        self.inventory.mkdir()
        for shared in ("group_vars", "controller.yml"):
            (self.inventory / shared).symlink_to(REPOSITORY / "inventories/lab" / shared)
        (self.home / "lab").mkdir()
        self.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(self.home / "lab/test_key")])
        self.run([str(TINY_IMAGE), str(IMAGES)])
        inventory = ["--inventory", str(self.inventory / "hosts.yml")]
        self.run([*self._hypervisors("up"), "--count", str(self._hosts), *inventory, *self._up])
        self.playbook("playbooks/compute_nodes.yml")
        self.playbook("playbooks/seed.yml")
        quotas = {"instances": self._instances, "cores": self._instances, "ram": self._instances * 1024}
        self.playbook(
            "playbooks/seed.yml",
            novalite_cloud={
                "projects": [{"name": "demo", "quotas": quotas}],
                "flavors": [],
                "images": [],
                "networks": [],
                "keypairs": [],
                "security_groups": [],
                **self._seed,
            },
        )

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: types.TracebackType | None
    ) -> None:
        self.run(self._hypervisors("down"))
        self._temporary.cleanup()

    def playbook(self, path: str, **variables: t.Any) -> float:
        """Run a playbook of the repository and return its wall time in seconds. Raises when it fails."""
        return self.run(["ansible-playbook", "-i", str(self.inventory), path, "-e", json.dumps(variables)])

    def on_host(self, *command: str, stdin: pathlib.Path | None = None) -> float:
        """Run a command on the hypervisor and return its wall time in seconds."""
        return self.run([*self._hypervisors("exec"), "hv1", *command], stdin=stdin)

    @contextlib.contextmanager
    def beside_on_host(self, *command: str) -> t.Iterator[t.Iterable[str]]:
        """Run a command on the hypervisor until the block ends, and its input with it. Yields its lines of output."""
        words = [*self._hypervisors("exec"), "hv1", *command]
        pipe = subprocess.PIPE
        with subprocess.Popen(words, cwd=REPOSITORY, env=self._env, stdin=pipe, stdout=pipe, text=True) as running:
            assert running.stdin is not None and running.stdout is not None
            try:
                yield running.stdout
            finally:
                running.stdin.close()
                running.wait(timeout=10)

    def _hypervisors(self, verb: str) -> list[str]:
        return [str(HYPERVISORS), verb, "--state", str(self.home / "lab/hypervisors")]

    def run(self, command: list[str], stdin: pathlib.Path | None = None) -> float:
        started, cpu_before = time.perf_counter(), _cpu_of_children()
        with open(stdin or os.devnull, "rb") as source:
            done = subprocess.run(
                command, cwd=REPOSITORY, env=self._env, stdin=source, capture_output=True, text=True, check=False
            )
        seconds = time.perf_counter() - started
        self.cpu_seconds = _cpu_of_children() - cpu_before
        if done.returncode:
            raise SystemExit(f"{' '.join(command)} failed with {done.returncode}:\n{done.stdout[-4000:]}{done.stderr}")
        return seconds


def _cpu_of_children() -> float:
    """Return the CPU seconds of all children of this process that have ended, and of theirs."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
