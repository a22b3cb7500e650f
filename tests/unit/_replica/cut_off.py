# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A sequence of copies that are cut off at any of their steps, by the seed in the first argument. It runs by the
interpreter that has libnbd, in the directory of the second argument, and prints what was wrong, or `sound`."""

from __future__ import annotations

import contextlib
import os
import pathlib
import random
import shutil
import subprocess
import sys
import typing as t

from ansible_collections.novalite.cloud.plugins.module_utils._backup import export, stopped
from ansible_collections.novalite.cloud.plugins.module_utils._backup.blocks import BLOCK, Block
from ansible_collections.novalite.cloud.plugins.module_utils._backup.domain_xml import REPLICA_PREFIX
from ansible_collections.novalite.cloud.plugins.module_utils._backup.manifest import (
    CRASH,
    FULL,
    INCREMENTAL,
    Manifest,
    SavedDisk,
)
from ansible_collections.novalite.cloud.plugins.module_utils._backup.writing import UNCHANGED
from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._replica import copies, sending
from ansible_collections.novalite.cloud.plugins.module_utils._replica.copies import Place
from ansible_collections.novalite.cloud.plugins.module_utils._replica.delta import DamagedError

SERVER = "5a4fd4c0-91c2-4b65-8ba5-3c2e0c1d7a10"
FILES = {"vda": "disk", "vdb": "disk.swap"}
SMALLEST, LARGEST = 3 * BLOCK, 24 * BLOCK
COPIES = 6
Content = dict[str, bytes]


class CutOffError(Exception):
    """The process would have been killed here."""


class Scissors:
    """Cuts off at the step number `at` of those that change files; None: never."""

    def __init__(self) -> None:
        self.steps = 0
        self.at: int | None = None

    def step(self, *_arguments: object) -> None:
        self.steps += 1
        if self.at is not None and self.steps >= self.at:
            raise CutOffError

    def around(self, module: t.Any, name: str) -> None:
        """Have a function be a step: cut off before it, or after."""
        former = getattr(module, name)

        def cut(*arguments: t.Any, **more: t.Any) -> t.Any:
            self.step()
            answer = former(*arguments, **more)
            self.step()
            return answer

        setattr(module, name, cut)


class Handle:
    """libnbd's handle, of which each write is a step."""

    def __init__(self, handle: t.Any, scissors: Scissors) -> None:
        self._handle, self._scissors = handle, scissors

    def __getattr__(self, name: str) -> t.Any:
        if name in ("pwrite", "zero", "flush"):
            self._scissors.step()
        return getattr(self._handle, name)


def changed(generator: random.Random, content: Content) -> tuple[Content, dict[str, list[Block]]]:
    """Write something to the disks, some of which grow; return what they are then, and which blocks were written."""
    now, blocks = {}, {}
    for name, before in content.items():
        data = bytearray(before)
        if generator.random() < 0.2:
            data += bytes(generator.choice([512, BLOCK, 3 * BLOCK + 512]))
        numbers = sorted(generator.sample(range(-(-len(data) // BLOCK)), generator.randrange(3)))
        numbers = sorted({*numbers, *range(len(before) // BLOCK, -(-len(data) // BLOCK))})
        rows = []
        for number in numbers:
            length = min(BLOCK, len(data) - number * BLOCK)
            some = None if generator.random() < 0.3 else generator.randbytes(length)
            data[number * BLOCK : number * BLOCK + length] = some or bytes(length)
            rows.append(Block(number, some))
        now[name], blocks[name] = bytes(data), rows
    return now, blocks


def send(staging: pathlib.Path, manifest: Manifest, content: Content, blocks: dict[str, list[Block]]) -> None:
    """Have what changed arrive, by an archive, as over ssh."""
    shutil.rmtree(staging, ignore_errors=True)
    staging.mkdir(parents=True)
    argv = ["tar", "--extract", "--sparse", "--no-same-owner", "--file=-", f"--directory={staging}"]
    sender = sending.Sender(argv, "nothing is there", lambda _manifest: FILES)
    with sender.writing():
        for name, data in content.items():
            kind = FULL if manifest.parent is None else INCREMENTAL
            saved = SavedDisk(name, name, len(data), kind, "", True, None, UNCHANGED, "")
            sender.add(saved, manifest.header(saved), iter(blocks[name]))
        sender.finish(manifest)


def damage(file: pathlib.Path) -> None:
    """Have a file of the second host's be another one than it was."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(b"{")


def content_of(place: Place, path: pathlib.Path) -> tuple[str | None, Content]:
    """Return the id of the newest complete copy, and what it holds; nothing of a damaged one."""
    try:
        current = place.settle()
    except DamagedError:
        return None, {}
    if current is None:
        return None, {}
    content = {}
    for name, file in current.files.items():
        raw = path / "raw"
        disk = os.path.join(place.root, current.directory, file)
        subprocess.run(["qemu-img", "convert", "-f", "qcow2", "-O", "raw", disk, raw], check=True)
        content[name] = raw.read_bytes()
    return current.manifest.backup, content


def play(seed: int, path: pathlib.Path) -> str:
    """Play the sequence. Returns what was wrong with a copy."""
    generator, scissors = random.Random(seed), Scissors()
    for module, name in (
        *((copies, name) for name in ("sync", "write_atomically", "remove_file", "resize")),
        *((copies.os, "rename"), (copies.shutil, "rmtree"), (stopped, "make")),
    ):
        scissors.around(module, name)
    opened = export.opened

    def steps(socket: str, *arguments: t.Any) -> t.Any:
        @contextlib.contextmanager
        def inside() -> t.Iterator[t.Any]:
            with opened(socket, *arguments) as reader:
                reader.handle = Handle(reader.handle, scissors)
                yield reader

        return inside()

    vars(export)["opened"] = steps
    vars(sending)["PART_BLOCKS"] = 2  # so that there are several parts
    place, staging = Place(str(path), SERVER), path / "incoming"
    content = {name: bytes(generator.randrange(SMALLEST, LARGEST) // 512 * 512) for name in FILES}
    states: dict[str | None, Content] = {None: {}}
    newest: str | None = None  # that counts, for it arrived whole
    for number in range(COPIES):
        if newest is not None and generator.random() < 0.2:  # then another full copy takes its place
            damage(pathlib.Path(place.root, generator.choice(["copy.json", "delta/delta.json"])))
            newest = None
        there, held = content_of(place, path)
        if there != newest or held != states[there]:
            return f"before copy {number}: {there} is there, and not {newest} as it was"
        content, blocks = changed(generator, content)
        is_new = there is None or generator.random() < 0.25
        if is_new:  # all that is not zeros
            blocks = {
                name: [
                    Block(index, data[index * BLOCK : (index + 1) * BLOCK])
                    for index in range(-(-len(data) // BLOCK))
                    if any(data[index * BLOCK : (index + 1) * BLOCK])
                ]
                for name, data in content.items()
            }
        copy_id = f"00000000-0000-4000-8000-{number:012d}"
        manifest = Manifest(
            copy_id, SERVER, None if is_new else there, f"{REPLICA_PREFIX}{copy_id}", 1000, CRASH, "<domain/>", ()
        )
        send(staging, manifest, content, blocks)
        states[copy_id] = content
        way = generator.randrange(3)
        if way == 0:  # a part is lost, or is another one than was sent
            victim = staging / generator.choice(sorted(os.listdir(staging)))
            victim.unlink() if generator.random() < 0.5 else victim.write_bytes(victim.read_bytes()[:-1])
            try:
                place.accept(str(staging))
            except NovaliteError:
                content = states[there] if there is not None else {name: bytes(len(d)) for name, d in content.items()}
                continue
            return f"copy {number} counts without {victim.name}"
        scissors.steps, scissors.at = 0, generator.randrange(1, 60) if way == 1 else None
        try:
            place.accept(str(staging))
            place.settle()
        except CutOffError:
            pass
        scissors.at = None
        # all of it arrived: it counts from the moment that it has its name
        arrived = not staging.exists()
        newest = copy_id if arrived else there
        if not arrived:
            content = states[there] if there is not None else {name: bytes(len(d)) for name, d in content.items()}
        if generator.random() < 0.5 and arrived:  # whoever merges may be cut off again
            scissors.steps, scissors.at = 0, generator.randrange(1, 30)
            with contextlib.suppress(CutOffError):
                place.settle()
            scissors.at = None
    there, held = content_of(place, path)
    return "sound" if there == newest and held == states[there] else f"at the end {there} is there, not {newest}"


if __name__ == "__main__":
    print(play(int(sys.argv[1]), pathlib.Path(sys.argv[2])))
