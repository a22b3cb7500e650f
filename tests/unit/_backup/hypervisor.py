# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A libvirtd and a guest without an operating system, whose disks are written by QEMU's own qemu-io as by the guest."""

from __future__ import annotations

import ctypes
import json
import os
import pathlib
import signal
import subprocess
import time
import typing as t
import uuid

from tests.support.patience import GENEROUS

REPOSITORY = pathlib.Path(__file__).parents[3]
ENGINE = pathlib.Path(__file__).with_name("engine.py")
PYTHON = "/usr/bin/python3"  # which has libvirt's binding and libnbd
PATIENCE = GENEROUS

# With state of its own: this machine may have a libvirtd.
_PLACE = """
for directory in /etc/libvirt /var/lib/libvirt /var/cache/libvirt /run; do
  mkdir -p "$directory"
  mount -t tmpfs -o mode=755 tmpfs "$directory"
done
mkdir -p /var/cache/libvirt/qemu/capabilities "$2"
mount --bind "$2" /var/cache/libvirt/qemu/capabilities
printf '%s\\n' 'security_driver="none"' 'stdio_handler="file"' 'namespaces=[]' 'cgroup_controllers=[]' \\
  'user="root"' 'group="root"' >/etc/libvirt/qemu.conf
printf 'host_uuid = "%s"\\n' "$1" >/etc/libvirt/libvirtd.conf
"""
# What libvirt learned from each QEMU, which takes several processes; it decides itself whether that still holds
_CAPABILITIES = str(REPOSITORY / ".cache/libvirt-capabilities")
_NEW_NAMESPACE = 0x00020000  # CLONE_NEWNS


class EngineError(Exception):
    """The engine said why it does not do what was asked."""


class Hypervisor:
    """A libvirtd with state of its own, in a mount namespace of its own; its guests' files are below `path`. It is made
    in the namespace of this process if this one is for it alone (`is_here`)."""

    def __init__(self, path: pathlib.Path, is_here: bool = False) -> None:
        self.path, self.number = path, str(uuid.uuid4())
        self.place: subprocess.Popen[bytes] | None = None
        self.daemon: subprocess.Popen[bytes] | None = None
        self.guests: list[Guest] = []
        if is_here:
            subprocess.run(["sh", "-ec", _PLACE, "sh", self.number, _CAPABILITIES], check=True)
        else:
            script = _PLACE + "exec sleep infinity"
            argv = ["unshare", "-m", "--propagation", "private", "sh", "-ec", script, "sh", self.number, _CAPABILITIES]
            self.place = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            root = pathlib.Path(f"/proc/{self.place.pid}")
            wait(lambda: (root / "cmdline").read_bytes().startswith(b"sleep") or None, "the namespace is not ready")
        try:
            self.start()
        except BaseException:
            self.close()
            raise

    def inside(self, *argv: str) -> list[str]:
        """The words that run `argv` in the namespace."""
        return [*(["nsenter", "-t", str(self.place.pid), "-m"] if self.place else []), *argv]

    def enter(self) -> None:
        """Have this process, which has one thread, be in the namespace."""
        if self.place is not None:
            with open(f"/proc/{self.place.pid}/ns/mnt", "rb") as namespace:
                if ctypes.CDLL(None, use_errno=True).setns(namespace.fileno(), _NEW_NAMESPACE):
                    raise OSError(ctypes.get_errno(), "the namespace cannot be entered")

    @property
    def uri(self) -> str:
        """The name of its libvirtd for that of another one."""
        pid = os.getpid() if self.place is None else self.place.pid
        return f"qemu+unix:///system?socket=/proc/{pid}/root/run/libvirt/libvirt-sock"

    def start(self) -> None:
        """Start libvirtd, and return when it answers."""
        self.daemon = subprocess.Popen(
            self.inside("libvirtd", "--pid-file", "/run/libvirtd.pid"),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        wait(lambda: self.virsh("version", check=False) or None, "libvirtd does not answer")

    def kill(self) -> None:
        """End libvirtd as kill -9 does, and start it again."""
        assert self.daemon is not None
        self.daemon.kill()
        self.daemon.wait()
        self.start()
        for guest in self.guests:
            wait(lambda: self._knows(guest) or None, f"libvirtd does not find {guest.name} again")  # noqa: B023  # at once

    def _knows(self, guest: Guest) -> bool:
        """Tell whether libvirtd has found the QEMU of a guest, if there is one."""
        query = "qemu-monitor-command", guest.name, '{"execute":"query-status"}'
        return guest.pid() is None or bool(self.virsh(*query, check=False))

    def virsh(self, *words: str, check: bool = True, text: str | None = None) -> str:
        """The output of virsh, and for lines of `text` its errors as well."""
        argv = self.inside("virsh", "-q", "-c", "qemu:///system", *words)
        done = subprocess.run(argv, input=text, capture_output=True, text=True, timeout=PATIENCE, check=False)
        if check and done.returncode:
            raise RuntimeError(f"{words}: {done.stderr}")
        return "" if done.returncode else done.stdout + (done.stderr if text else "")

    def engine(self, request: t.Mapping[str, t.Any]) -> t.Any:
        """The answer of the engine. Raises EngineError."""
        return answer_of(self.begin(request))

    def begin(self, request: t.Mapping[str, t.Any], program: pathlib.Path = ENGINE) -> subprocess.Popen[str]:
        """Start the engine, or another program of its kind."""
        process = subprocess.Popen(
            self.inside(PYTHON, str(program)),
            env={**os.environ, "PYTHONPATH": str(REPOSITORY / "collections"), "TMPDIR": str(self.path)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stdin is not None
        process.stdin.write(json.dumps(request))
        process.stdin.close()
        process.stdin = None
        return process

    def close(self) -> None:
        """End all of it."""
        for guest in self.guests:
            guest.kill()
        if self.daemon is not None:
            self.daemon.kill()
            self.daemon.wait()
        if self.place is not None:
            self.place.kill()
            self.place.wait()


def answer_of(process: subprocess.Popen[str]) -> t.Any:
    """Return the answer of an engine that was started, at its end. Raises EngineError."""
    out, err = process.communicate(timeout=PATIENCE)
    if process.returncode:
        raise RuntimeError(err)
    answer = json.loads(out)
    if "error" in answer:
        raise EngineError(answer["error"])
    return answer["answer"]


T = t.TypeVar("T")


def wait(look: t.Callable[[], T | None], complaint: str) -> T:
    """Wait until `look` finds something, and return it."""
    deadline = time.monotonic() + PATIENCE
    while True:
        answer = look()
        if answer is not None:
            return answer
        if time.monotonic() > deadline:
            raise RuntimeError(complaint)
        time.sleep(0.02)


class Guest:
    """A guest with the disks `files`, by target; `serials` are those of volumes, `number` is its UUID."""

    def __init__(
        self,
        host: Hypervisor,
        files: t.Mapping[str, tuple[pathlib.Path, str]],
        serials: t.Mapping[str, str] | None = None,
        number: str | None = None,
    ) -> None:
        numbers = {name: f"<serial>{serial}</serial>" for name, serial in (serials or {}).items()}
        self.host, self.uuid, self.files = host, number or str(uuid.uuid4()), dict(files)
        self.name = f"instance-{self.uuid[:8]}"
        disks = "".join(
            f"<disk type='file' device='disk'><driver name='qemu' type='{fmt}' cache='none' discard='unmap'/>"
            f"<source file='{path}'/><target dev='{name}' bus='virtio'/>{numbers.get(name, '')}</disk>"
            for name, (path, fmt) in files.items()
        )
        host.virsh(
            "define",
            "/dev/stdin",
            text=f"<domain type='qemu'><name>{self.name}</name><uuid>{self.uuid}</uuid><memory unit='MiB'>4</memory>"
            "<vcpu>1</vcpu><os><type arch='x86_64' machine='pc'>hvm</type></os><on_reboot>restart</on_reboot><devices>"
            f"<emulator>/usr/bin/qemu-system-x86_64</emulator>{disks}<controller type='usb' model='none'/>"
            "<memballoon model='none'/></devices></domain>",
        )
        host.guests.append(self)

    def start(self) -> None:
        self.host.virsh("start", self.name, "--paused")  # it has nothing to run

    def stop(self) -> None:
        """Have QEMU end by itself, as after the guest's shutdown."""
        self.host.virsh("destroy", self.name, "--graceful")

    def move(self, host: Hypervisor) -> None:
        """Have it be on another host."""
        self.host.guests.remove(self)
        host.guests.append(self)
        self.host = host

    def is_active(self) -> bool:
        return self.name in self.host.virsh("list", "--name").split()

    def pid(self) -> int | None:
        """QEMU's process, if there is one."""
        for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
            try:
                if self.uuid.encode() in path.read_bytes() and b"qemu-system" in path.read_bytes().split(b"\0")[0]:
                    return int(path.parent.name)
            except OSError:
                continue
        return None

    def kill(self) -> None:
        """End QEMU as kill -9 does, and return when libvirt knows."""
        pid = self.pid()
        if pid is not None:
            os.kill(pid, signal.SIGKILL)
            wait(lambda: None if self.pid() == pid else True, "QEMU does not end")

    def io(self, disk: str, *commands: str) -> None:
        """Do commands of qemu-io on a disk, as the guest would."""
        device = f"/machine/peripheral/virtio-disk{list(self.files).index(disk)}/virtio-backend"
        lines = [
            f"""qemu-monitor-command {self.name} --hmp 'qemu-io -d {device} "{command}"'""" for command in commands
        ]
        out = self.host.virsh(text="\n".join(lines) + "\n")
        assert "rror" not in out and "ailed" not in out, out
