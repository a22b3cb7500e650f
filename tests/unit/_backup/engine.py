# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The engine of backups as a program: what one call of it does, by a request in JSON, with the Python that hosts have.

Beside restic there is a store of plain files, for sequences by the hundred: what restic does is the same each time, and
each of its calls takes a second.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import pathlib
import secrets
import sys
import time
import typing as t

import libvirt

from ansible_collections.novalite.cloud.plugins.module_utils._backup import compact, live, replay, writing
from ansible_collections.novalite.cloud.plugins.module_utils._backup.catalog import Catalog
from ansible_collections.novalite.cloud.plugins.module_utils._backup.live import Scratch
from ansible_collections.novalite.cloud.plugins.module_utils._backup.store import Restic, Store, Stored
from ansible_collections.novalite.cloud.plugins.module_utils._backup.take import Request, take
from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError


@dataclasses.dataclass(frozen=True)
class PlainStore:
    """A directory with a file for each object, whose name has its words; `local` is a directory of one host."""

    directory: pathlib.Path
    local: str

    def put(self, words: t.Mapping[str, str], write: t.Callable[[t.BinaryIO], object]) -> str:
        self.directory.mkdir(exist_ok=True)
        name = secrets.token_hex(8)
        with open(self.directory / f"{name}.part", "wb") as stream:
            write(stream)
        texts = [*(f"{key}={value}" for key, value in words.items()), f"stored={time.time_ns():020d}"]
        (self.directory / f"{name}.words").write_text(json.dumps(texts))
        os.rename(self.directory / f"{name}.part", self.directory / name)
        return name

    @contextlib.contextmanager
    def get(self, name: str) -> t.Iterator[t.BinaryIO]:
        with open(self.directory / name, "rb") as stream:
            yield stream

    def list(self, **words: str) -> t.Sequence[Stored]:
        rows = []
        for path in self.directory.glob("*.words"):
            texts = json.loads(path.read_text())
            if path.with_suffix("").exists() and {f"{key}={value}" for key, value in words.items()} <= set(texts):
                rows.append(Stored(path.stem, tuple(texts)))
        return sorted(rows, key=lambda stored: stored.time)

    def forget(self, names: t.Collection[str]) -> None:
        for name in names:
            (self.directory / name).unlink(missing_ok=True)
            (self.directory / f"{name}.words").unlink(missing_ok=True)


def pause(reached: pathlib.Path, go: pathlib.Path) -> None:
    """Have a backup wait before it reads a disk: it makes the file `reached`, and goes on when `go` is there."""
    add = writing.Writing.add

    def paused(*args: t.Any) -> t.Any:
        reached.touch()
        deadline = time.monotonic() + 60
        while not go.exists() and time.monotonic() < deadline:
            time.sleep(0.005)
        return add(*args)

    setattr(writing.Writing, "add", paused)  # noqa: B010  # in this process alone, with no type of its own


def run(request: t.Mapping[str, t.Any]) -> t.Any:
    """Do what the request says; returns what is to be printed."""
    libvirt.registerErrorHandler(lambda context, error: None, None)
    place = request["store"]
    store: Store
    cache = request.get("cache", f"{place}.cache")
    if request.get("key"):
        store = Restic(place, request["key"], cache, stall=request.get("stall", 20.0))
        store.prepare()
    else:
        pathlib.Path(place).mkdir(exist_ok=True)
        store = PlainStore(pathlib.Path(place), cache)
    server, backup = request["server"], request.get("backup", "")
    action = request["action"]
    if action == "take":
        scratch = Scratch(request["scratch"], request.get("limit", 1 << 30), request.get("reserve", 0))
        if request.get("pause"):
            pause(pathlib.Path(request["pause"] + ".reached"), pathlib.Path(request["pause"] + ".go"))
        taken = take(
            libvirt.open("qemu:///system"),
            Request(backup, server, scratch, request.get("bases", {}), full=request.get("full", False)),
            store,
        )
        return {
            "read": taken.read,
            "parent": taken.manifest.parent,
            "consistency": taken.manifest.consistency,
            "disks": {disk.name: [disk.kind, disk.reason] for disk in taken.manifest.disks},
        }
    if action == "restore":
        return replay.restore(Catalog(store, server), backup, request["disks"])
    if action == "verify":
        return replay.verify(Catalog(store, server), backup, request["scratch"])
    if action == "list":
        catalog = Catalog(store, server)
        return {"backups": catalog.names(), "left_over": catalog.left_over()}
    if action == "full":
        return compact.make_full(store, server, backup).kind
    if action == "forget":  # as before the guest is brought back to an internal snapshot
        return live.forget_checkpoints(libvirt.open("qemu:///system").lookupByUUIDString(server), None)
    if action == "delete":
        return compact.delete(store, server, backup)
    raise ValueError(action)


def answer(request: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """Return the result of run(), or the error that it raises."""
    try:
        return {"answer": run(request)}
    except NovaliteError as error:
        return {"error": str(error)}


if __name__ == "__main__":
    print(json.dumps(answer(json.loads(sys.stdin.read()))))
