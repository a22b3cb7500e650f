"""inject.one_*, inject.sixteen_*: keys into one disk and into sixteen, for each back end, beside the bare commands.

`fuse` runs on this machine, `nbd` where its kernel has the driver, otherwise on a throwaway hypervisor with a kernel of
its own. inject.virt_customize is one disk beside libguestfs' `virt-customize --ssh-inject`, where that is installed.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import pathlib
import shlex
import shutil
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
import typing as t

from tests.bench.cloud import IMAGES, REPOSITORY, TINY_IMAGE

MACHINES = REPOSITORY / "tests/molecule/shared/virtual-hypervisors"
PROGRAM = "tests/bench/inject_host.py"
SHIPPED = (
    PROGRAM,
    "tests/bench/inject_reference.sh",
    "collections/ansible_collections/novalite/cloud/plugins/module_utils",
)
BACKENDS = ("fuse", "nbd")
VIRT_CUSTOMIZE = "inject.virt_customize"

Figures = dict[str, t.Any]


def run(prefix: str) -> t.Iterator[Figures]:
    ours: float | None = None
    for backend in BACKENDS:
        names = {size: f"inject.{size}_{backend}" for size in ("one", "sixteen")}
        if any(name.startswith(prefix) for name in names.values()):
            for size, figures in _measure(backend):
                if names[size].startswith(prefix):
                    yield _figure(names[size], figures["ours"], figures["reference"], module_s=figures["module"])
                if (backend, size) == ("fuse", "one"):
                    ours = figures["ours"]
    if VIRT_CUSTOMIZE.startswith(prefix) and shutil.which("virt-customize"):
        if ours is None:
            ours = dict(_measure("fuse"))["one"]["ours"]
        if (reference := _virt_customize()) is not None:
            yield _figure(VIRT_CUSTOMIZE, ours, reference)


def _measure(backend: str) -> t.Iterator[tuple[str, dict[str, float]]]:
    with contextlib.ExitStack() as stack:
        here = backend == "fuse" or os.path.isdir("/sys/block/nbd0") or _has_nbd()
        output = _local(backend) if here else _on_a_machine(stack, backend)
    for line in output.splitlines():
        figures = json.loads(line)
        yield figures.pop("size"), figures


def _has_nbd() -> bool:
    load = ["/usr/sbin/modprobe", "nbd", "max_part=16"]
    return subprocess.run(load, check=False, capture_output=True).returncode == 0


def _local(backend: str) -> str:
    env = {**os.environ, "PYTHONPATH": str(REPOSITORY / "collections")}
    return _output([sys.executable, PROGRAM, backend, "7"], env=env)


def _on_a_machine(stack: contextlib.ExitStack, backend: str) -> str:
    """Everything there is some ten times slower, both sides alike."""
    state = stack.enter_context(tempfile.TemporaryDirectory(prefix="novalite-bench-"))

    def machine(*words: str, stdin: bytes = b"") -> str:
        return _output([str(MACHINES), words[0], "--state", f"{state}/lab", *words[1:]], stdin=stdin)

    stack.callback(machine, "down")
    machine("up", "--count", "1", "--inventory", f"{state}/hosts.yml")
    machine("exec", "vh1", "tar", "xz", "-C", "/root", stdin=_archive())
    return machine("exec", "vh1", "env", "PYTHONPATH=/root/collections", "python3", f"/root/{PROGRAM}", backend, "3")


def _archive() -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for path in SHIPPED:
            archive.add(REPOSITORY / path, path, filter=lambda entry: None if "__pycache__" in entry.name else entry)
    return packed.getvalue()


def _virt_customize() -> float | None:
    """Seconds for one disk; None when it refuses the disk, because it only takes systems that it recognises."""
    subprocess.run([str(TINY_IMAGE), str(IMAGES)], check=True)
    with tempfile.TemporaryDirectory(prefix="novalite-bench-") as directory:
        key, disk = pathlib.Path(directory, "key"), pathlib.Path(directory, "disk")
        key.write_text("ssh-ed25519 AAAA me@example.org\n")
        shutil.copyfile(IMAGES / "disk-tiny.qcow2", disk)
        command = ["virt-customize", "--format", "qcow2", "-a", str(disk), "--ssh-inject", f"root:file:{key}"]
        took = []
        for _round in range(3):
            started = time.perf_counter()
            done = subprocess.run(
                command,
                check=False,
                capture_output=True,
                text=True,
                env={**os.environ, "LIBGUESTFS_BACKEND_SETTINGS": "force_tcg"},
            )
            took.append(time.perf_counter() - started)
            if done.returncode:
                print(f"virt-customize: {done.stderr.strip()[-200:]}", file=sys.stderr)
                return None
        return statistics.median(took)


def _output(command: list[str], stdin: bytes = b"", env: dict[str, str] | None = None) -> str:
    done = subprocess.run(command, cwd=REPOSITORY, input=stdin, capture_output=True, check=False, env=env)
    if done.returncode:
        said = done.stderr.decode(errors="replace")[-2000:]
        raise SystemExit(f"{shlex.join(command)} failed with {done.returncode}:\n{said}")
    return done.stdout.decode()


def _figure(name: str, ours: float, reference: float, **more: float) -> Figures:
    return {
        "bench": name,
        "ours": round(ours, 3),
        "reference": round(reference, 3),
        "ratio": round(ours / reference, 3),
        "unit": "s",
        **{key: round(value, 3) for key, value in more.items()},
    }
