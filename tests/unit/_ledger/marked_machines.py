# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Machines that are directories, and the trips of controllers to them: shared by the tests of hosts' marks."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import pathlib
import random
import shutil
import typing as t
import uuid

import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._host import mark
from ansible_collections.novalite.cloud.plugins.module_utils._host.mark import Expected, Seen
from ansible_collections.novalite.cloud.plugins.module_utils._json import JsonObject
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.placement.host_marks import HostMarks, open_marks
from ansible_collections.novalite.cloud.plugins.plugin_utils._handshake import Errand, Handshake
from tests.support.cloud import Cloud


class LostError(Exception):
    """A host whose answer did not come."""


class Machine:
    """One whose root, with its identity, is a directory. `done` are the trips whose steps it has taken."""

    def __init__(self, path: pathlib.Path, machine_id: str | None = None, product_uuid: str | None = None) -> None:
        self.root, self.state_dir = path, path / "state"
        self.identity = {
            name: value for name, value in (("machine_id", machine_id), ("product_uuid", product_uuid)) if value
        }
        for name, value in self.identity.items():
            file = path / mark.SOURCES[name][0]
            file.parent.mkdir(parents=True)
            file.write_text(f"{value}\n")
        self.state_dir.mkdir(parents=True, exist_ok=True)
        self.done: list[str] = []

    def answer(self, expected: JsonObject, steps: t.Sequence[str], check_mode: bool = False) -> Seen:
        request = Expected.of(json.loads(json.dumps(expected)))
        seen = mark.meet(request, str(self.state_dir), check_mode, root=str(self.root))
        self.done += [] if seen.refused else steps
        return Seen.of(json.loads(json.dumps(dataclasses.asdict(seen))))

    def clone(self, path: pathlib.Path) -> Machine:
        """A machine made of this one's disk."""
        shutil.copytree(self.root, path)
        copy = Machine.__new__(Machine)
        copy.root, copy.state_dir, copy.identity, copy.done = path, path / "state", dict(self.identity), []
        return copy


@dataclasses.dataclass
class Trips:
    """Trips of one controller, over the ledger of `marks`."""

    marks: HostMarks

    def go(self, machine: Machine, host: str, **errand: t.Any) -> None:
        """Take a trip to `machine`, to which the inventory leads under the name `host`."""
        with contextlib.closing(self.marks):
            handshake = Handshake.begin(self.marks, Errand(host, **errand))
            assert handshake is not None
            handshake.take(lambda expected, with_steps: (self.reach(machine, expected, with_steps, **errand), None))

    @staticmethod
    def reach(machine: Machine, expected: JsonObject, with_steps: bool, check_mode: bool = False, **_: t.Any) -> Seen:
        return machine.answer(expected, ["step"] if with_steps else [], check_mode)


def an_identity(seed: int) -> dict[str, str]:
    drawn = random.Random(seed)
    return {
        "machine_id": f"{drawn.getrandbits(128):032x}",
        "product_uuid": str(uuid.UUID(int=drawn.getrandbits(128), version=4)),
    }


def marks_at(url: str) -> HostMarks:
    marks = open_marks("/nowhere", url)
    assert marks is not None
    return marks


def row(cloud: Cloud, host: str = "hv1") -> t.Any:
    c = tables.compute_host.c
    (found_row,) = cloud.rows(sa.select(c.identity, c.mark, c.marks_sent).where(c.name == host))
    return found_row


def behind(cloud: Cloud) -> str | None:
    return t.cast("str | None", cloud.rows(sa.select(tables.ledger_identity.c.behind))[0][0])


def mark_file(machine: Machine, cloud: Cloud) -> pathlib.Path:
    return machine.state_dir / "ledgers" / f"{cloud.rows(sa.select(tables.ledger_identity.c.uuid))[0][0]}.json"
