# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Random life of a guest, with backups in all of it: each one that is restored has to be what the disks were."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import tempfile
import traceback
import typing as t

from tests.unit._backup import cheap_repository, engine, faults
from tests.unit._backup.hypervisor import EngineError, Guest, Hypervisor, wait

KIB = 1024
SIZES = {"vda": 6 * KIB * KIB + 512, "vdb": 3 * KIB * KIB, "vdc": 512 * KIB}  # the first one ends within a block
BASE = 2 * KIB * KIB  # bytes of the raw file below the first one


class Life:
    """A guest, a copy of its disks, and what the disks were at each backup."""

    def __init__(
        self,
        host: Hypervisor,
        seed: int,
        fault: str | None = None,
        key: str | None = None,
        other: Hypervisor | None = None,
    ) -> None:
        self.hosts = [host] if other is None else [host, other]
        self.random, self.fault, self.key = random.Random(seed), fault, key
        self.path = pathlib.Path(tempfile.mkdtemp(prefix=f"life-{seed}-", dir=host.path))
        self.store = self.path / "store"
        if key is not None:
            cheap_repository.make(self.store, key)
        self.shadow: dict[str, bytearray] = {}
        self.truths: dict[str, dict[str, bytes]] = {}
        self.is_broken = True  # the next backup cannot go on from the one before
        self.number = 0
        self.told: list[str] = []
        self.guest = self._guest()

    def _guest(self) -> Guest:
        content = bytes(self.random.randrange(256) for _byte in range(97)) * (BASE // 97 + 1)
        base, first, second, third = (self.path / name for name in ("base", "vda", "vdb", "vdc"))
        base.write_bytes(content[:BASE])
        self.base: pathlib.Path | None = base
        create = ["qemu-img", "create", "-q", "-f", "qcow2"]
        subprocess.run([*create, "-F", "raw", "-b", str(base), str(first), str(SIZES["vda"])], check=True)
        subprocess.run([*create, str(second), str(SIZES["vdb"])], check=True)
        third.write_bytes(bytes(SIZES["vdc"]))
        files = {"vda": (first, "qcow2"), "vdb": (second, "qcow2"), "vdc": (third, "raw")}
        if self.random.random() < 0.4:  # QEMU has no internal snapshots of a guest with a raw disk
            del files["vdc"]
        for name in files:
            self.shadow[name] = bytearray(SIZES[name])
        self.shadow["vda"][:BASE] = content[:BASE]
        return Guest(self.hosts[0], files)

    @property
    def host(self) -> Hypervisor:
        """The host that the guest is on."""
        return self.guest.host

    def live(self, steps: int) -> None:
        """Go through so many steps, and restore at the end what there is."""
        weights = {
            self.write: 6, self.backup: 5, self.backup_while_written: 3, self.stop_or_start: 2, self.resize: 1,
            self.snapshot: 1, self.reboot: 1, self.kill_libvirtd: 1, self.kill_qemu: 1, self.kill_engine: 2,
            self.kill_controller: 0.5, self.restore: 1, self.make_full: 1, self.delete: 1, self.saved: 1,
            self.migrate: 2 if len(self.hosts) > 1 else 0, self.revert: 1 if "vdc" not in self.shadow else 0,
            self.bring_back: 1,
        }  # fmt: skip
        if self.fault in faults.OFTEN:
            weights[getattr(self, faults.OFTEN[self.fault])] = 8
        self.guest.start()
        for step in [self.write, self.backup, *self.random.choices(list(weights), list(weights.values()), k=steps)]:
            self.told.append(step.__name__)
            step()
        self.backup()
        self.restore(list(self.truths)[-1])
        self.restore()

    # what the guest does

    def write(self) -> None:
        """Write, zero and discard here and there, and flush; the disks of a guest that is off stay as they are."""
        if not self.guest.is_active():
            return
        for disk in self.shadow:
            commands = [self._written(disk) for _write in range(self.random.randrange(6))]
            if commands:
                self.guest.io(disk, *commands, "flush")

    def _written(self, disk: str) -> str:
        shadow = self.shadow[disk]
        grain = self.random.choice((512, 4 * KIB, 64 * KIB))
        length = grain * self.random.randint(1, 6)
        offset = self.random.randrange(0, max(len(shadow) - length, 1), 512)
        length = min(length, len(shadow) - offset)
        if self.random.random() < 0.1:  # the very end
            offset = len(shadow) - length
        kind = self.random.choice(("write", "write", "write", "zero", "zero", "unmap"))
        if kind == "write":
            pattern = self.random.randint(1, 255)
            shadow[offset : offset + length] = bytes([pattern]) * length
            return f"write -P {pattern} {offset} {length}"
        shadow[offset : offset + length] = bytes(length)
        return f"write -z {'-u ' if kind == 'unmap' else ''}{offset} {length}"

    def stop_or_start(self) -> None:
        """Have the guest shut down, or start it."""
        if self.guest.is_active():
            self.guest.stop()
        else:
            self.guest.start()

    def saved(self) -> None:
        """Suspend the guest to disk, and have it go on."""
        if self.guest.is_active():
            self.host.virsh("managedsave", self.guest.name)
            self.guest.start()

    def reboot(self) -> None:
        """Reset the guest."""
        if self.guest.is_active():
            self.host.virsh("reset", self.guest.name)

    def resize(self) -> None:
        """Let a disk grow."""
        disk = self.random.choice(("vda", "vdb"))
        size = len(self.shadow[disk]) + 512 * self.random.randint(1, 1000)
        path = str(self.guest.files[disk][0])
        if self.guest.is_active():
            self.host.virsh("blockresize", self.guest.name, path, f"{size}B")
        else:
            subprocess.run(["qemu-img", "resize", "-q", "-f", "qcow2", path, str(size)], check=True)
        self.shadow[disk] += bytes(size - len(self.shadow[disk]))

    def snapshot(self) -> None:
        """Have the guest write to an overlay for a while, with a backup then, and bring that back into the disk."""
        if not self.guest.is_active():
            return
        disk = self.random.choice(("vda", "vdb"))
        overlay = self.path / f"{disk}.overlay"
        others = [word for name in self.shadow if name != disk for word in ("--diskspec", f"{name},snapshot=no")]
        self.host.virsh(
            "snapshot-create-as", self.guest.name, "--disk-only", "--no-metadata", "--diskspec",
            f"{disk},file={overlay}", *others,
        )  # fmt: skip
        self.write()
        if self.random.random() < 0.5:
            self.backup()
            self.write()
        self.host.virsh("blockcommit", self.guest.name, disk, "--active", "--pivot", "--wait", "--shallow")
        overlay.unlink()

    def migrate(self) -> None:
        """Have the guest go on, or be started the next time, on the other host, which has the same files."""
        here, there = self.host, self.hosts[self.hosts.index(self.host) - 1]
        if self.guest.is_active():
            flags = "--live", "--p2p", "--persistent", "--undefinesource", "--unsafe"
            memory = f"unix://{self.path / 'memory'}"
            here.virsh("migrate", *flags, self.guest.name, there.uri, "--migrateuri", memory)
            for verb in ("resume", "suspend"):  # QEMU has the disks of a paused guest closed until it runs
                there.virsh(verb, self.guest.name)
        else:
            xml = here.virsh("dumpxml", "--inactive", "--security-info", self.guest.name)
            there.virsh("define", "/dev/stdin", text=xml)
            here.virsh("undefine", self.guest.name, "--checkpoints-metadata")
        self.guest.move(there)

    def revert(self) -> None:
        """Take an internal snapshot, and bring the guest back to it: its checkpoints go first, for QEMU refuses what
        would leave their bitmaps wrong."""
        if not self.guest.is_active():
            return
        self.host.virsh("snapshot-create-as", self.guest.name, "internal")
        before = self._truth()
        for step in self.random.choices((self.write, self.backup), k=3):
            step()
        self.do("forget", "")
        self.host.virsh("snapshot-revert", self.guest.name, "internal")
        self.host.virsh("snapshot-delete", self.guest.name, "internal")
        self.shadow = {disk: bytearray(truth) for disk, truth in before.items()}
        self.is_broken = True

    # what goes wrong

    def kill_libvirtd(self) -> None:
        """End libvirtd as kill -9 does, half of the times while a backup is read."""
        if self.random.random() < 0.5 and self.guest.is_active():
            with self._paused():
                self.host.kill()
            self._end_job()
        else:
            self.host.kill()

    def kill_engine(self) -> None:
        """End the engine as kill -9 does, while it reads."""
        with self._paused() as pid:
            self.write()
            os.kill(pid, signal.SIGKILL)
        self._end_job()

    def _end_job(self) -> None:
        """End the job of an engine that was cut off: libvirt keeps other ones off the guest until somebody does, as the
        next backup."""
        if self.random.random() < 0.5 or not self.guest.is_active():
            self.backup()
        else:
            self.host.virsh("domjobabort", self.guest.name, check=False)

    def kill_qemu(self) -> None:
        """End QEMU as kill -9 does, half of the times while a backup is read; what was flushed is there then."""
        if not self.guest.is_active():
            return
        if self.random.random() < 0.5:  # QEMU writes bitmaps to the disks as it ends, and has them in use the next time
            self.guest.stop()
            self.guest.start()
            self.write()
        with self._paused() if self.random.random() < 0.5 else contextlib.nullcontext():
            self.guest.kill()
            wait(lambda: None if self.guest.is_active() else True, "libvirt does not notice")
        self.is_broken = True
        if self.random.random() < 0.5:
            self.backup()

    def kill_controller(self) -> None:
        """Ask for a backup while one is read that nobody waits for any more: the second one is refused."""
        with self._paused():
            try:
                self.backup()
            except EngineError as error:
                assert "another run has held the lock" in str(error), error
            else:
                raise AssertionError("two backups of a guest were taken at once")

    # what is done with backups

    def backup(self) -> None:
        """Take a backup."""
        self._taken({**self._next(), "full": self.random.random() < 0.05})

    def backup_while_written(self) -> None:
        """Take a backup while the guest writes: it has what was there at its begin."""
        with self._paused() as pid:
            truth = self._truth()
            self.write()
            self._pause.with_suffix(".go").touch()
            self._finish(self._request, truth, _answer(pid, self._out))

    @contextlib.contextmanager
    def _paused(self) -> t.Iterator[int]:
        """A backup that has begun to read, in a process of its own; it ends with the context, one way or the other."""
        self._request = self._next()
        self._pause = self.path / f"pause-{self.number}.x"
        self._out = self.path / f"out-{self.number}"
        reached, go = self._pause.with_suffix(".reached"), self._pause.with_suffix(".go")
        pid = self._fork({**self._request, "pause": str(self._pause.with_suffix(""))}, self._out)
        self._is_begun = True
        wait(lambda: True if reached.exists() or _has_ended(pid) else None, "the backup does not begin")
        try:
            yield pid
        finally:
            go.touch()
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)
            answer = json.loads(self._out.read_text() or "{}") if self._out.exists() else {}
            if "answer" in answer and self._request["backup"] not in self.truths:  # it came through all the same
                self._finish(self._request, self._truth(), answer)

    def _next(self) -> dict[str, t.Any]:
        self.number += 1
        bases = {} if self.base is None else {str(self.guest.files["vda"][0]): str(self.base)}
        return self._asks("take", f"b{self.number}", bases=bases)

    def _asks(self, action: str, backup: str, **more: t.Any) -> dict[str, t.Any]:
        return {
            "action": action, "backup": backup, "server": self.guest.uuid, "store": str(self.store),
            "scratch": str(self.path / "scratch"), "fault": self.fault, "key": self.key,
            "cache": f"{self.store}.on-{self.hosts.index(self.host)}", **more,
        }  # fmt: skip

    def _truth(self) -> dict[str, bytes]:
        return {disk: bytes(shadow) for disk, shadow in self.shadow.items()}

    def _taken(self, request: dict[str, t.Any]) -> None:
        self._finish(request, self._truth(), self._engine(request))

    def _finish(self, request: dict[str, t.Any], truth: dict[str, bytes], answer: dict[str, t.Any]) -> None:
        if "error" in answer:
            raise EngineError(answer["error"])
        self.truths[request["backup"]] = truth
        kinds = {disk: kind for disk, (kind, _reason) in answer["answer"]["disks"].items()}
        assert kinds.get("vdc", "full") == "full"
        if not self.is_broken and not request.get("full"):
            assert kinds["vda"] == kinds["vdb"] == "incremental", f"it did not go on: {answer}"
        self.is_broken = False

    def _engine(self, request: dict[str, t.Any]) -> dict[str, t.Any]:
        out = self.path / f"out-{self.number}-{len(self.told)}-{request['action']}"
        return _answer(self._fork(request, out), out)

    def _fork(self, request: dict[str, t.Any], out: pathlib.Path) -> int:
        pid = os.fork()
        if pid == 0:
            try:
                self.host.enter()
                faults.plant(request.get("fault"))
                answer = engine.answer(request)
            except BaseException:
                answer = {"error": traceback.format_exc()}
            out.write_text(json.dumps(answer))
            os._exit(0)
        return pid

    def do(self, action: str, backup: str, **more: t.Any) -> t.Any:
        """The answer of the engine. Raises EngineError."""
        answer = self._engine(self._asks(action, backup, **more))
        if "error" in answer:
            raise EngineError(f"{action} {backup}: {answer['error']}")
        return answer["answer"]

    def restore(self, backup: str | None = None) -> None:
        """Restore a backup, and compare it with what the disks were."""
        backup = backup or self.random.choice(list(self.truths))
        place = self._restored(backup)
        for disk, truth in self.truths[backup].items():
            raw = place / f"{disk}.raw"
            subprocess.run(["qemu-img", "convert", "-f", "qcow2", "-O", "raw", str(place / disk), str(raw)], check=True)
            restored = raw.read_bytes()
            assert len(restored) == len(truth), f"backup {backup}, disk {disk} has another size"
            differs = [at for at in range(0, len(truth), 512) if truth[at : at + 512] != restored[at : at + 512]]
            assert not differs, f"backup {backup}, disk {disk} of {len(truth)} bytes differs at {differs[:8]}"
        shutil.rmtree(place)

    def _restored(self, backup: str) -> pathlib.Path:
        place = pathlib.Path(tempfile.mkdtemp(dir=self.path))
        self.do("restore", backup, disks={disk: str(place / disk) for disk in self.shadow})
        return place

    def bring_back(self) -> None:
        """Have the guest go on with the disks of a backup."""
        backup = self.random.choice(list(self.truths))
        place = self._restored(backup)
        if self.guest.is_active():
            self.guest.stop()
        for disk, (path, fmt) in self.guest.files.items():
            if fmt == "raw":
                convert = ["qemu-img", "convert", "-f", "qcow2", "-O", "raw"]
                subprocess.run([*convert, str(place / disk), str(path)], check=True)
            else:
                os.replace(place / disk, path)
        shutil.rmtree(place)
        self.base, self.is_broken = None, True
        self.shadow = {disk: bytearray(truth) for disk, truth in self.truths[backup].items()}
        self.guest.start()

    def make_full(self) -> None:
        """Make a full backup of one, at the store."""
        self.do("full", self.random.choice(list(self.truths)))

    def delete(self) -> None:
        """Remove a backup that is not the newest."""
        if len(self.truths) > 1:
            gone = self.random.choice(list(self.truths)[:-1])
            self.do("delete", gone)
            del self.truths[gone]

    def close(self) -> None:
        """End the guest, and remove its files."""
        self.guest.kill()
        wait(lambda: None if self.guest.is_active() else True, "libvirt does not notice")
        self.host.virsh("undefine", self.guest.name, "--checkpoints-metadata", "--managed-save", check=False)
        self.host.guests.remove(self.guest)
        shutil.rmtree(self.path)


def _has_ended(pid: int) -> bool:
    """Tell whether a child has ended; it stays to be waited for."""
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _answer(pid: int, out: pathlib.Path) -> dict[str, t.Any]:
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, 0)
    return dict(json.loads(out.read_text()))
