# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A guest, and two backups of it, for tests of what goes wrong with a store or a host."""

from __future__ import annotations

import os
import pathlib
import subprocess
import typing as t

import pytest

from tests.unit._backup import cheap_repository
from tests.unit._backup.hypervisor import EngineError, Guest, Hypervisor, wait


class Place:
    """A guest with one disk, and backups of it in a store: of restic, or, without a key, of plain files."""

    def __init__(self, host: Hypervisor, path: pathlib.Path, key: str | None = "secret") -> None:
        self.host, self.path, self.key = host, path, key
        self.store: pathlib.Path | str = path / "store"
        if key is not None:
            cheap_repository.make(path / "store", key)
        disk = path / "vda"
        subprocess.run(["qemu-img", "create", "-q", "-f", "qcow2", str(disk), "8M"], check=True)
        self.guest = Guest(host, {"vda": (disk, "qcow2")})
        self.guest.start()
        self.guest.io("vda", "write -P 1 0 1M", "flush")
        self.do("take", "first")
        self.guest.io("vda", "write -P 2 512k 192k", "flush")
        self.do("take", "second")

    def asks(self, action: str, backup: str, **more: t.Any) -> dict[str, t.Any]:
        return {
            "action": action, "backup": backup, "server": self.guest.uuid, "store": str(self.store), "key": self.key,
            "scratch": str(self.path), "cache": f"{self.path}.cache", **more,
        }  # fmt: skip

    def do(self, action: str, backup: str, **more: t.Any) -> t.Any:
        return self.host.engine(self.asks(action, backup, **more))

    def refuses_to_restore(self, **more: t.Any) -> str:
        """Return the reason why a restore is refused; nothing is there then that was not before."""
        before = set(os.listdir(self.path))
        with pytest.raises(EngineError) as refused:
            self.do("restore", "second", disks={"vda": str(self.path / "restored")}, **more)
        assert set(os.listdir(self.path)) == before
        return str(refused.value)

    def write(self, offset: int, size: int) -> None:
        """Write bytes that cannot be compressed."""
        pattern = self.path / "pattern"
        pattern.write_bytes(os.urandom(size))
        self.guest.io("vda", f"write -s {pattern} {offset} {size}", "flush")
        pattern.unlink()

    def begin(self, backup: str, **more: t.Any) -> tuple[subprocess.Popen[str], t.Callable[[], None]]:
        """Start a backup; returns it, waiting before it reads the disk, and what lets it go on."""
        pause = self.path / f"pause-{backup}.x"
        for word in ("reached", "go"):
            pause.with_suffix(f".{word}").unlink(missing_ok=True)
        process = self.host.begin(self.asks("take", backup, pause=str(pause.with_suffix("")), **more))
        wait(lambda: pause.with_suffix(".reached").exists() or None, "the backup does not begin")
        return process, pause.with_suffix(".go").touch

    def goes_on(self, backup: str, **more: t.Any) -> None:
        """Take the next backup: incremental, good, and nothing is left of one that failed."""
        self.guest.io("vda", "write -P 8 0 64k", "flush")
        assert self.do("take", backup, **more)["disks"]["vda"] == ["incremental", ""]
        assert self.do("verify", backup, **more) == []
        assert self.do("list", "", **more)["left_over"] == []
