# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which machine is this, and which ledger does it know? Trips as action plug-ins take them, to hosts that are
directories.

The ledger is real, and so is the host's side; only what carries requests from one to the other is not.
"""

from __future__ import annotations

import dataclasses
import json
import pathlib
import random
import shutil
import typing as t
import uuid

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils import _host_mark
from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._host_mark import Expected, Seen
from ansible_collections.novalite.cloud.plugins.module_utils._json import JsonObject
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.placement.host_marks import HostMarks, open_marks
from ansible_collections.novalite.cloud.plugins.plugin_utils._handshake import Errand, Handshake, HostRefusedError
from tests.support.cloud import Cloud, sqlite


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
            file = path / _host_mark.SOURCES[name][0]
            file.parent.mkdir(parents=True)
            file.write_text(f"{value}\n")
        self.state_dir.mkdir(parents=True, exist_ok=True)
        self.done: list[str] = []

    def answer(self, expected: JsonObject, steps: t.Sequence[str], check_mode: bool = False) -> Seen:
        request = Expected.of(json.loads(json.dumps(expected)))
        seen = _host_mark.meet(request, str(self.state_dir), check_mode, root=str(self.root))
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
        handshake = Handshake.begin(self.marks, Errand(host, **errand))
        assert handshake is not None

        def go(expected: JsonObject, with_steps: bool) -> tuple[Seen, None]:
            return machine.answer(expected, ["step"] if with_steps else [], bool(errand.get("check_mode"))), None

        handshake.take(go)


def an_identity(seed: int) -> dict[str, str]:
    drawn = random.Random(seed)
    return {
        "machine_id": f"{drawn.getrandbits(128):032x}",
        "product_uuid": str(uuid.UUID(int=drawn.getrandbits(128), version=4)),
    }


@pytest.fixture
def cloud(ledger_url: str) -> t.Iterator[Cloud]:
    opened = Cloud(ledger_url)
    yield opened
    opened.close()


@pytest.fixture
def trips(ledger_url: str, cloud: Cloud) -> Trips:
    return Trips(marks_at(ledger_url))


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


def test_a_trip_leaves_its_mark_and_learns_who_the_machine_is(
    cloud: Cloud, trips: Trips, tmp_path: pathlib.Path
) -> None:
    cloud.host("hv1")
    machine = Machine(tmp_path / "m", **an_identity(1))
    trips.go(machine, "hv1")
    file = mark_file(machine, cloud)
    assert machine.done == ["step"]
    assert json.loads(file.read_text()) == {"host": "hv1", "mark": row(cloud).mark}
    assert (row(cloud).identity, row(cloud).marks_sent) == (machine.identity, [])
    assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    before = row(cloud).mark
    trips.go(machine, "hv1")
    assert row(cloud).mark != before


def test_looking_and_checks_leave_nothing(cloud: Cloud, trips: Trips, tmp_path: pathlib.Path) -> None:
    cloud.host("hv1")
    machine = Machine(tmp_path / "m", **an_identity(1))
    trips.go(machine, "hv1", check_mode=True)
    assert row(cloud) == (None, None, [])
    trips.go(machine, "hv1", looks=True)
    assert row(cloud) == (machine.identity, None, [])
    assert not list(machine.state_dir.iterdir())


def test_a_restored_ledger_is_behind(home: pathlib.Path, tmp_path: pathlib.Path) -> None:
    cloud, machine = Cloud(sqlite(home)), Machine(tmp_path / "m", **an_identity(1))
    cloud.host("hv1")
    Trips(marks_at(cloud.url)).go(machine, "hv1")
    older = Cloud(sqlite(shutil.copytree(home, tmp_path / "copy")))
    Trips(marks_at(cloud.url)).go(machine, "hv1")
    with pytest.raises(HostRefusedError, match="hv1: the ledger did not leave the mark"):
        Trips(marks_at(older.url)).go(machine, "hv1", check_mode=True)
    assert behind(older) is None
    with pytest.raises(HostRefusedError):
        Trips(marks_at(older.url)).go(machine, "hv1")
    assert "is older than the host" in str(behind(older))
    with pytest.raises(NovaliteError, match="nothing is changed, for the ledger is behind its hosts"):
        Trips(marks_at(older.url)).go(machine, "hv1")
    Trips(marks_at(older.url)).go(machine, "hv1", looks=True)
    Trips(marks_at(cloud.url)).go(machine, "hv1")
    assert len(machine.done) == 4 and behind(cloud) is None


SWAPPED = "hv2: this machine is hv1 of this ledger, and hv2 is expected here: give hv2 the address"


def test_swapped_hosts_are_refused_before_the_first_step(cloud: Cloud, trips: Trips, tmp_path: pathlib.Path) -> None:
    machines = {name: Machine(tmp_path / name, **an_identity(n)) for n, name in enumerate(("hv1", "hv2"))}
    for name, machine in machines.items():
        cloud.host(name)
        trips.go(machine, name)
    before = row(cloud, "hv1"), row(cloud, "hv2")
    for options in ({}, {"looks": True}, {"check_mode": True}):
        with pytest.raises(HostRefusedError, match=SWAPPED):
            trips.go(machines["hv1"], "hv2", **options)
    assert all(machine.done == ["step"] for machine in machines.values())
    assert before == (row(cloud, "hv1"), row(cloud, "hv2")) and behind(cloud) is None
