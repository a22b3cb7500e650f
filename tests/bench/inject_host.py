# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""One JSON line for each size: seconds that an injection takes, ours and the bare commands', in turn.

    python3 inject_host.py BACKEND [ROUNDS]

Runs on the host whose back end it measures, with the collection's module_utils on PYTHONPATH and nothing else but the
standard library. `ours` is the work of module nbd_inject in a warm process; `module` adds what a process of its own
costs, Python's start and imports, as a task pays them once whatever the number of instances.
"""

from __future__ import annotations

import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
import uuid

from ansible_collections.novalite.cloud.plugins.module_utils._disk import layout
from ansible_collections.novalite.cloud.plugins.module_utils._disk.overlay import Disk, create_disks
from ansible_collections.novalite.cloud.plugins.module_utils._guest.inject import Request
from ansible_collections.novalite.cloud.plugins.module_utils._guest.session import inject_all
from ansible_collections.novalite.cloud.plugins.module_utils._host.files import instance_dir

REFERENCE = pathlib.Path(__file__).with_name("inject_reference.sh")
SIZES = {"one": 1, "sixteen": 16}
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGdldCB5b3VyIG93biBrZXkgZnJvbSBzc2gta2V5Z2Vu me@example.org"
IMAGE_SIZE = 32 << 20

PROCESS = """
import sys
from ansible_collections.novalite.cloud.plugins.module_utils._guest.inject import Request
from ansible_collections.novalite.cloud.plugins.module_utils._guest.session import inject_all
inject_all([Request(uuid, (sys.argv[3],)) for uuid in sys.argv[4:]], sys.argv[1], sys.argv[2])
"""


class Host:
    """A state directory with one image in its cache, as large as the lab's."""

    def __init__(self, directory: pathlib.Path) -> None:
        self.state_dir = str(directory / "state")
        layout.prepare_state_dir(self.state_dir)
        for name in ("etc", "root"):
            (directory / "tree" / name).mkdir(parents=True)
        self.key_file = directory / "key"
        self.key_file.write_text(f"{KEY}\n")
        self.base = f"sha256:{'0' * 64}"
        image = layout.cache_path(self.state_dir, self.base)
        with open(image, "wb") as handle:
            handle.truncate(IMAGE_SIZE)
        subprocess.run(["/usr/sbin/mke2fs", "-q", "-t", "ext4", "-d", str(directory / "tree"), image], check=True)

    def instances(self, count: int) -> list[str]:
        uuids = [str(uuid.uuid4()) for _ in range(count)]
        create_disks([Disk(instance_uuid, self.base) for instance_uuid in uuids], self.state_dir)
        return uuids

    def disk(self, instance_uuid: str) -> str:
        return os.path.join(instance_dir(self.state_dir, instance_uuid), layout.DISK)


def ours(host: Host, backend: str, count: int) -> float:
    requests = [Request(instance, (KEY,)) for instance in host.instances(count)]
    started = time.perf_counter()
    inject_all(requests, host.state_dir, backend)
    return time.perf_counter() - started


def reference(host: Host, backend: str, count: int) -> float:
    disks = [host.disk(instance) for instance in host.instances(count)]
    return command("bash", str(REFERENCE), backend, str(host.key_file), *disks)


def module(host: Host, backend: str, count: int) -> float:
    return command(sys.executable, "-c", PROCESS, host.state_dir, backend, KEY, *host.instances(count))


def command(*argv: str) -> float:
    started = time.perf_counter()
    subprocess.run(argv, check=True)
    return time.perf_counter() - started


def measure(host: Host, backend: str, count: int, rounds: int) -> dict[str, float]:
    figures: dict[str, list[float]] = {}
    for _round in range(rounds):
        for side in (ours, reference, module):
            figures.setdefault(side.__name__, []).append(side(host, backend, count))
    return {name: statistics.median(values) for name, values in figures.items()}


def main() -> None:
    backend = sys.argv[1]
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    with tempfile.TemporaryDirectory(prefix="novalite-bench-") as directory:
        host = Host(pathlib.Path(directory))
        inject_all([Request(host.instances(1)[0], (KEY,))], host.state_dir, backend)  # loads modules, fills caches
        for name, count in SIZES.items():
            print(json.dumps({"size": name, **measure(host, backend, count, rounds)}), flush=True)


if __name__ == "__main__":
    main()
