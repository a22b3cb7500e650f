# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""`kill -9` of an injection: what it held is free again, and the next run completes the work.

NOVALITE_KILLS is the number of random moments, 10 without it; NOVALITE_INJECT_BACKEND the back end, fuse without it.
"""

from __future__ import annotations

import os
import pathlib
import random
import subprocess
import sys
import time
import typing as t

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._disk import daemon
from ansible_collections.novalite.cloud.plugins.module_utils._guest.inject import Request
from ansible_collections.novalite.cloud.plugins.module_utils._guest.session import inject_all
from tests.support.patience import GENEROUS

pytestmark = [pytest.mark.root, pytest.mark.usefixtures("nothing_left")]

Host = t.Any  # conftest.Host: test directories are no packages
KEY = "ssh-ed25519 AAAA me@example.org"
INJECTED = f"\n# The following ssh key was injected by Nova\n{KEY}\n"
KILLS = int(os.environ.get("NOVALITE_KILLS", "10"))
BACKEND = os.environ.get("NOVALITE_INJECT_BACKEND", "fuse")
DISKS = 3

# What the module does, without Ansible's own start, where a kill would hit nothing of ours. The first line of its
# output says that the work begins.
RUN = """
import sys
from ansible_collections.novalite.cloud.plugins.module_utils._guest.inject import Request
from ansible_collections.novalite.cloud.plugins.module_utils._guest.session import inject_all
print("begins", flush=True)
inject_all([Request(uuid, (sys.argv[3],)) for uuid in sys.argv[4:]], sys.argv[1], sys.argv[2])
"""


def started(host: Host, uuids: list[str], program: str = RUN) -> subprocess.Popen[bytes]:
    run = subprocess.Popen(
        [sys.executable, "-c", program, host.state_dir, BACKEND, KEY, *uuids], stdout=subprocess.PIPE
    )
    assert run.stdout is not None and run.stdout.readline() == b"begins\n"
    return run


def killed(run: subprocess.Popen[bytes]) -> None:
    run.kill()
    run.wait()
    assert run.stdout is not None
    run.stdout.close()


def test_at_random_moments(host: Host) -> None:
    image = host.file_system()
    run = started(host, host.instances(image, DISKS))
    begin = time.monotonic()
    assert run.wait() == 0
    whole = time.monotonic() - begin
    killed(run)
    moments = random.Random(os.environ.get("NOVALITE_SEED", "5"))
    cut_off = 0
    for _moment in range(KILLS):
        uuids = host.instances(image, DISKS)
        run = started(host, uuids)
        time.sleep(moments.uniform(0, whole))
        killed(run)
        done = inject_all([Request(uuid, (KEY,)) for uuid in uuids], host.state_dir, BACKEND)
        cut_off += done["changed"]
        for uuid in uuids:
            assert host.cat(uuid, "/root/.ssh/authorized_keys") == INJECTED
    assert cut_off  # with a kill after all was done there is nothing to see


HANGS = RUN.replace(
    'print("begins", flush=True)',
    """
import time
from ansible_collections.novalite.cloud.plugins.module_utils._guest import session
from ansible_collections.novalite.cloud.plugins.module_utils._guest.guest_root import Entry
def hang(guest, steps):
    guest.write("/half", Entry(0o644, data=b"x"))
    print("begins", flush=True)
    time.sleep(60)
session.apply = hang
""",
)


def test_while_the_guests_file_system_is_written(host: Host) -> None:
    (uuid,) = host.instances(host.file_system())
    killed(started(host, [uuid], HANGS))
    assert inject_all([Request(uuid, (KEY,))], host.state_dir, BACKEND)["changed"]
    assert host.cat(uuid, "/root/.ssh/authorized_keys") == INJECTED


@pytest.mark.skipif(BACKEND != "fuse", reason="the daemon is the one of that back end")
def test_a_daemon_that_outlived_its_run_is_ended(host: Host) -> None:
    (uuid,) = host.instances(host.file_system())
    work = host.path / "work"
    work.mkdir()
    (work / "raw").touch()
    block = f'{{"driver": "qcow2", "node-name": "disk", "file": {{"driver": "file", "filename": "{host.disk(uuid)}"}}}}'
    orphan = subprocess.Popen(
        [
            "qemu-storage-daemon",
            "--blockdev",
            block,
            "--export",
            f"type=fuse,id=export,node-name=disk,mountpoint={work}/raw,writable=on",
            "--pidfile",
            f"{work}/pid",
        ]
    )
    try:
        while not (work / "pid").exists():
            assert orphan.poll() is None
            time.sleep(0.01)
        assert inject_all([Request(uuid, (KEY,))], host.state_dir, BACKEND)["changed"]
        assert orphan.wait(GENEROUS) == -9
    finally:
        orphan.kill()
        orphan.wait()
        subprocess.run(["umount", "--lazy", str(work / "raw")], check=False, capture_output=True)


DEAF_ONCE = """
import signal, sys, time
asked = []
signal.signal(signal.SIGTERM, lambda *_: asked.append(1) if not asked else sys.exit(0))
print("ready", flush=True)
while True:
    time.sleep(60)
"""


@pytest.mark.parametrize(("patience", "code"), [(20.0, 0), (0.0, -9)])
def test_a_daemon_that_misses_the_first_signal_is_asked_again(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, patience: float, code: int
) -> None:
    monkeypatch.setattr(daemon, "STOP_TIMEOUT", patience)
    (tmp_path / daemon.ERRORS).touch()
    child = subprocess.Popen([sys.executable, "-c", DEAF_ONCE], stdout=subprocess.PIPE)
    assert child.stdout is not None
    with child.stdout:
        assert child.stdout.readline() == b"ready\n"
        if code:
            with pytest.raises(daemon.DaemonError, match="ended with -9"):
                daemon.stop(child, str(tmp_path))
        else:
            daemon.stop(child, str(tmp_path))
    assert child.returncode == code


def test_only_our_own_programs_at_that_disk_are_ended(tmp_path: pathlib.Path) -> None:
    disk = "/var/lib/novalite/instances/x/disk"
    qsd = [b"setpriv", b"--pdeathsig", b"KILL", b"--", b"qemu-storage-daemon", b"--blockdev"]
    ours = b'{"driver": "qcow2", "file": {"driver": "file", "filename": "%s"}}'
    for argv in ([*qsd, ours % disk.encode()], [b"/usr/bin/qemu-nbd", b"--format=qcow2", disk.encode()]):
        assert daemon.serves(argv, disk)
    for argv in (
        [*qsd, ours % b"/other"],
        [*qsd, b"7"],
        [*qsd, b'{"file": []}'],
        [b"qemu-nbd", b"/other"],
        [b""],
        [b"qemu-system-x86_64", b"-drive", disk.encode()],
        [b"vi", disk.encode()],
    ):
        assert not daemon.serves(argv, disk)
