# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Histories, as the leaves of trees: those of one tree have their first acts in common, and split up after each.

What an act is follows from the path of the branch alone, so one history is played again by its path:

    python -m tests.unit._ledger.histories.driver 17/0/2/1
"""

from __future__ import annotations

import contextlib
import math
import os
import pathlib
import random
import sys
import tempfile
import time
import typing as t
import unittest.mock
import uuid

import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._host.files import read_text
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.compute import plans
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import clock, engine
from tests.support.cloud import Cloud, sqlite
from tests.support.statements import compiled_once
from tests.unit._ledger.histories.acts import Acts
from tests.unit._ledger.histories.runs import Run
from tests.unit._ledger.histories.things import rendered
from tests.unit._ledger.histories.world import START, Violation, World
from tests.unit._ledger.servers.conftest import seed

STEM = 4  # acts that all histories of a tree have in common
BRANCHES = (2, 2, 3, 4)  # and how many ways each goes on after that
LEAVES = math.prod(BRANCHES)


class Beginning(t.NamedTuple):
    """A world, as it was saved, and its files."""

    world: bytes
    files: pathlib.Path


class _Kept:
    """An engine that stays open: to open a ledger takes as long as to use it."""

    def __init__(self, opened: sa.Engine) -> None:
        self._opened = opened

    def __getattr__(self, name: str) -> t.Any:
        return getattr(self._opened, name)

    def dispose(self) -> None:
        pass


class Histories:
    """Plays histories in a `directory` of its own, in a `world`, or each in a copy of the `beginning`. While it is
    entered, ledgers see the clocks of their worlds."""

    def __init__(self, directory: pathlib.Path, beginning: Beginning | None = None, world: World | None = None) -> None:
        self._directory, self._beginning, self._world = directory, beginning, world
        self._engines: dict[str, tuple[int, sa.Engine]] = {}
        self._open = engine.open_ledger
        self._patches = contextlib.ExitStack()

    def __enter__(self) -> Histories:
        for target, name, value in (
            (time, "time", lambda: self.world.time()),
            (time, "monotonic", lambda: self.world.now),
            (time, "sleep", lambda seconds: None),
            (uuid, "uuid4", lambda: uuid.UUID(int=self.world.new_uuid(), version=4)),
            (clock, "read_text", self._read_text),
            (engine, "open_ledger", self._open_once),
            (plans, "guest_of", lambda instance, facts, **_where: instance),
            (plans, "render", rendered),
        ):
            self._patches.enter_context(unittest.mock.patch.object(target, name, value))
        return self

    def __exit__(self, *error: object) -> None:
        for _inode, opened in self._engines.values():
            opened.dispose()
        self._patches.close()

    @property
    def world(self) -> World:
        assert self._world is not None
        return self._world

    def _read_text(self, path: str) -> str | None:
        """Of a machine that has been up since the history began."""
        return f"{self.world.now - START} 0" if path == clock._UPTIME else read_text(path)

    def _open_once(self, home: str | None = None, url: str | None = None, **options: bool) -> t.Any:
        path = os.path.join(home or "", engine.FILE_NAME)
        if any(options.values()) or not os.path.exists(path):
            return self._open(home, url, **options)
        inode = os.stat(path).st_ino
        known = self._engines.get(path)
        if known is None or known[0] != inode:
            if known is not None:
                known[1].dispose()
            self._engines[path] = known = (inode, self._open(home, url, **options))
        clock.note(path)  # as whoever opens it does
        return _Kept(known[1])

    def begin(self, tree: str) -> World:
        """A world with four guests, and a copy of its ledger."""
        assert self._beginning is not None
        self._world = World.copied(*self._beginning, self._directory / "stem")
        self.world.ids = random.Random(tree)
        return self.world

    def take(self, path: str) -> str:
        """The next act of the history `path`. Returns how it is told. Raises Violation."""
        world = self.world
        drawn = Acts(world, random.Random(path)).draw()
        before = world.before()
        try:
            drawn.do()
            world.judge(before)
        except Violation as violation:
            raise Violation(f"{drawn.words}: {violation}") from None
        return drawn.words

    def play(self, path: str) -> t.Iterator[str]:
        """One history, act by act, as it is told."""
        tree, *branches = path.split("/")
        self.begin(tree)
        steps = [f"{tree}-{number}" for number in range(STEM)]
        steps += ["/".join([tree, *branches[: number + 1]]) for number in range(len(branches))]
        for step in steps:
            yield self.take(step)

    def tree(self, tree: str) -> dict[str, str]:
        """Play all histories of the tree; returns the violations by the path of their history."""
        self.begin(tree)
        for number in range(STEM):
            try:
                self.take(f"{tree}-{number}")
            except Violation as violation:
                return {tree: str(violation)}
        return dict(self._grow(tree, 0))

    def _grow(self, path: str, depth: int) -> t.Iterator[tuple[str, str]]:
        if depth == len(BRANCHES):
            return
        saved, files = self.world.save(), self.world.directory
        for branch in range(BRANCHES[depth]):
            self._world = World.copied(saved, files, self._directory / f"branch-{depth}")
            further = f"{path}/{branch}"
            try:
                self.take(further)
            except Violation as violation:
                yield further, str(violation)
            else:
                yield from self._grow(further, depth + 1)


def make_beginning(directory: pathlib.Path) -> Beginning:
    """Make the world that histories begin with, and its ledger."""
    template, files = directory / "template", directory / "begun"
    template.mkdir()
    opened = engine.open_ledger(str(template))
    seed(Cloud(sqlite(template), opened))
    opened.dispose()
    world = World(files, template)
    with Histories(directory, world=world):
        run = Run(world, world.controllers[0])
        run.compute_nodes()
        run.launch(["g1", "g2", "g3", "g4"])
        world.copies.append(str(files / "copy-0"))
        run.copy_ledger(world.copies[0])
    return Beginning(world.save(), files)


@contextlib.contextmanager
def histories(beginning: Beginning | None = None) -> t.Iterator[Histories]:
    """Histories in memory, where there is such a file system."""
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with (
        tempfile.TemporaryDirectory(prefix="novalite-histories-", dir=memory) as name,
        compiled_once(),
        Histories(pathlib.Path(name), beginning or make_beginning(pathlib.Path(name))) as played,
    ):
        yield played


def main(paths: t.Sequence[str]) -> int:
    with histories() as played:
        for path in paths:
            print(f"history {path}")
            shown: list[str] = []
            try:
                for words in played.play(path):
                    print(f"  {words}")
                    if played.world.output is not shown:
                        shown = played.world.output
                        print("".join(f"    said: {line}\n" for line in shown), end="")
            except Violation as violation:
                print(f"  VIOLATION {violation}")
                return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
