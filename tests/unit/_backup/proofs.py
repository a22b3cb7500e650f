# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Verdicts of `verify`, beside what the disks were: with each fault in how backups are put together, planted while one
is verified, made full, or removed. A fault that changes a disk has to be seen, by it or by the engine itself.

`unshare -m --propagation private /usr/bin/python3 -m tests.unit._backup.proofs` prints where each fault was first seen.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
import shutil
import sys
import tempfile
import typing as t

from tests.unit._backup import faults
from tests.unit._backup.hypervisor import EngineError, Hypervisor
from tests.unit._backup.life import Life

CHAIN = ("b1", "b2", "b3", "b4")


def chain(life: Life) -> None:
    """Take four backups, each of which changes some of what the one before did, and something of its own."""
    life.guest.start()
    for number in range(1, len(CHAIN) + 1):
        for disk in ("vda", "vdb"):
            for offset, length in ((0, 256 << 10), (number << 18, 64 << 10)):
                life.guest.io(disk, f"write -P {number} {offset} {length}", "flush")
                life.shadow[disk][offset : offset + length] = bytes([number]) * length
        life.backup()


def seen(life: Life, fault: str | None, action: str | None) -> str | None:
    """Return the complaints about a store after `action` with the fault, or about the last backup verified with it."""
    whole, place = life.store, life.path / "copy"
    shutil.copytree(whole, place)
    life.store = place
    try:
        if action is None:
            return "; ".join(verdict(life, fault, CHAIN[-1])) or None
        with planted(life, fault):
            life.do(action, CHAIN[-1] if action == "full" else CHAIN[-2])
        complaints = verdict(life, None, CHAIN[-1])
        if not complaints:  # so it has to be true
            life.restore(CHAIN[-1])
        return "; ".join(complaints) or None
    except EngineError as error:
        return str(error)
    finally:
        life.store = whole
        shutil.rmtree(place)
        shutil.rmtree(f"{place}.on-0", ignore_errors=True)


def verdict(life: Life, fault: str | None, backup: str) -> list[str]:
    with planted(life, fault):
        complaints: list[str] = life.do("verify", backup)
    assert all(f"backup {backup}" in each for each in complaints), complaints
    return complaints


@contextlib.contextmanager
def planted(life: Life, fault: str | None) -> t.Iterator[None]:
    life.fault = fault
    try:
        yield
    finally:
        life.fault = None


def main() -> int:
    """Take the backups, and plant the faults."""
    missed = []
    with tempfile.TemporaryDirectory(prefix="proofs-") as directory:
        os.chmod(directory, 0o711)
        host = Hypervisor(pathlib.Path(directory), is_here=True)
        try:
            life = Life(host, 1)
            chain(life)
            for fault in (None, *faults.MERGING):
                where = {}
                for action in (None, "full", "delete"):
                    where[action or "verify"] = seen(life, fault, action)
                    if any(where.values()):
                        break  # to be seen once is enough
                print(f"{fault or 'no fault'}: {where}", flush=True)
                if any(where.values()) == (fault is None):
                    missed.append(fault or "no fault")
            life.close()
        finally:
            host.close()
    print(f"missed: {missed}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
