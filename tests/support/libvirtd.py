# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A libvirtd of the test's own, with its state in a directory: this machine may have another one."""

from __future__ import annotations

import contextlib
import pathlib
import subprocess
import time
import typing as t

from tests.support.patience import GENEROUS

PLACES = {"run": "/run/libvirt", "lib": "/var/lib/libvirt", "log": "/var/log/libvirt", "etc": "/etc/libvirt"}
_CONF = """user = "root"
group = "root"
security_driver = "none"
cgroup_controllers = []
namespaces = []
stdio_handler = "file"
"""


@contextlib.contextmanager
def running(directory: pathlib.Path) -> t.Iterator[str]:
    """The URI of a libvirtd whose guests run as root. It ends with the block, and its guests are destroyed before."""
    mounts = []
    for name, place in PLACES.items():
        (directory / name).mkdir(mode=0o700)
        mounts.append(f"mkdir -p {place} && mount --bind {directory / name} {place}")
    (directory / "etc/qemu.conf").write_text(_CONF)
    script = " && ".join([*mounts, "exec libvirtd --pid-file /run/libvirt/libvirtd.pid"])
    with open(directory / "libvirtd.log", "w", encoding="utf-8") as log:
        daemon = subprocess.Popen(["unshare", "--mount", "sh", "-c", script], stderr=log)
    uri = f"qemu+unix:///system?socket={directory}/run/libvirt-sock"
    try:
        end = time.monotonic() + GENEROUS
        while subprocess.run(["virsh", "-c", uri, "version"], capture_output=True, check=False).returncode != 0:
            assert daemon.poll() is None and time.monotonic() < end, (directory / "libvirtd.log").read_text()
            time.sleep(0.1)
        yield uri
    finally:
        virsh = ["virsh", "-q", "-c", uri]
        listed = subprocess.run([*virsh, "list", "--uuid"], capture_output=True, text=True, check=False)
        for uuid in listed.stdout.split():
            subprocess.run([*virsh, "destroy", uuid], capture_output=True, check=False)
        daemon.terminate()
        daemon.wait(GENEROUS)
