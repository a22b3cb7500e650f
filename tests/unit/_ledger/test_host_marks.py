# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which machine is this, and which ledger does it know? Trips as action plug-ins take them, to hosts that are
directories.

The ledger is real, and so is the host's side; only what carries requests from one to the other is not.
"""

from __future__ import annotations

import errno
import itertools
import json
import os
import pathlib
import shutil
import typing as t
import uuid

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._host import mark
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.plugin_utils._handshake import HostRefusedError
from tests.support.cloud import Cloud, sqlite
from tests.unit._ledger.conftest import on_sqlite
from tests.unit._ledger.marked_machines import Machine, Trips, an_identity, behind, mark_file, marks_at, row


@pytest.fixture
def cloud(ledger_url: str) -> t.Iterator[Cloud]:
    opened = Cloud(ledger_url)
    yield opened
    opened.close()


@pytest.fixture
def trips(ledger_url: str, cloud: Cloud) -> Trips:
    return Trips(marks_at(ledger_url))


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


# --- Names over machines ----------------------------------------------------------------------------------------------

HOSTS = ("hv1", "hv2", "hv3")
KINDS = {
    "whole": lambda n: an_identity(n),
    "no product": lambda n: {"machine_id": an_identity(n)["machine_id"]},
    "no machine id": lambda n: {"product_uuid": an_identity(n)["product_uuid"]},
    "clones of one image": lambda n: {**an_identity(n), "machine_id": "c" * 32},
    "clones that cannot be told apart": lambda n: an_identity(7),
    "nothing to tell by": lambda n: {},
}


def permuted_hosts() -> list[t.Any]:
    """All ways in which an inventory can lead three names to three machines: permutations, and several to one."""
    return [pytest.param(way, id="".join(map(str, way))) for way in itertools.product(range(3), repeat=3)]


@on_sqlite
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("way", permuted_hosts())
def test_a_name_that_leads_to_another_machine_is_refused(
    cloud: Cloud, trips: Trips, tmp_path: pathlib.Path, kind: str, way: tuple[int, ...]
) -> None:
    """Exactly those, by what the machines are, or by the marks that they have. Nothing is done or recorded."""
    machines = [Machine(tmp_path / str(n), **KINDS[kind](n)) for n in range(3)]
    told_apart = "apart" not in kind
    for name in HOSTS:
        cloud.host(name)
    for name, machine in zip(HOSTS, machines):
        if told_apart:
            trips.go(machine, name)
    if not told_apart:  # whoever comes first has the identity; the others are refused, also under their own names
        trips.go(machines[0], HOSTS[0])
        for name, machine in zip(HOSTS[1:], machines[1:]):
            with pytest.raises(HostRefusedError, match="this machine is hv1 of this ledger"):
                trips.go(machine, name)
        return
    before, steps = [row(cloud, name) for name in HOSTS], [list(machine.done) for machine in machines]
    for number, (name, target) in enumerate(zip(HOSTS, way)):
        if number == target:
            trips.go(machines[target], name, looks=True)
            steps[target].append("step")
            continue
        for options in ({}, {"looks": True}, {"check_mode": True}):
            with pytest.raises(HostRefusedError, match=f"{name}: this machine .*{HOSTS[target]}|{name}: this is not"):
                trips.go(machines[target], name, **options)
    assert [machine.done for machine in machines] == steps
    assert [row(cloud, name) for name in HOSTS] == before and behind(cloud) is None


@on_sqlite
@pytest.mark.parametrize("kind", ["whole", "no product", "no machine id", "clones of one image"])
@pytest.mark.parametrize("way", permuted_hosts())
def test_what_hosts_report_is_compared_too(cloud: Cloud, kind: str, way: tuple[int, ...]) -> None:
    """By those who record it, for hosts that lost their marks, or never had one."""
    facts = {"vcpus": 4, "memory_mb": 4096, "disk_gb": 40, "up": True}
    entries = [{"name": name, **facts, "identity": KINDS[kind](n)} for n, name in enumerate(HOSTS)]
    permuted = [{**entry, "identity": KINDS[kind](n)} for entry, n in zip(entries, way)]
    if len(set(way)) < 3:
        with pytest.raises(NovaliteError, match=r"this machine is hv[123]"):
            cloud.operate("compute_host", compute_hosts=permuted)
        assert cloud.rows(sa.select(tables.compute_host)) == []
    cloud.operate("compute_host", compute_hosts=entries)
    before = cloud.dump()
    if way == (0, 1, 2):
        assert not cloud.operate("compute_host", compute_hosts=permuted)["changed"]
        return
    with pytest.raises(NovaliteError, match=r"this machine is hv[123] of this ledger, and hv[123] is expected here"):
        cloud.operate("compute_host", compute_hosts=permuted)
    machines = {entry["name"]: {"identity": entry["identity"], "marks": {}, "ledgers": []} for entry in permuted}
    with pytest.raises(NovaliteError, match=r"this machine is hv[123] of this ledger, and hv[123] is expected here"):
        cloud.run("host_identity", machines=machines)
    assert cloud.dump() == before


def test_a_second_name_of_a_machine_is_refused(cloud: Cloud, trips: Trips, tmp_path: pathlib.Path) -> None:
    """Also where nothing but the machine itself tells: the mark is gone."""
    machine = Machine(tmp_path / "m", **an_identity(1))
    cloud.host("hv1")
    trips.go(machine, "hv1")
    for _attempt in range(2):
        with pytest.raises(HostRefusedError, match=r"compute_node_rename.yml -e host=hv1 -e new_name=hv1.example.org"):
            trips.go(machine, "hv1.example.org", looks=True)
        mark_file(machine, cloud).unlink(missing_ok=True)
    assert [host.name for host in cloud.rows(sa.select(tables.compute_host.c.name))] == ["hv1"]
    refused = {"name": "hv1.example.org", "up": False, "down_reason": "refused", "refused_host": True}
    cloud.operate("compute_host", compute_hosts=[refused])
    assert [host.name for host in cloud.rows(sa.select(tables.compute_host.c.name))] == ["hv1"]


def test_a_machine_whose_parts_become_readable_is_the_same(cloud: Cloud, trips: Trips, tmp_path: pathlib.Path) -> None:
    whole = an_identity(1)
    cloud.host("hv1")
    trips.go(Machine(tmp_path / "1", machine_id=whole["machine_id"]), "hv1")
    trips.go(Machine(tmp_path / "2", **whole), "hv1")
    trips.go(Machine(tmp_path / "3"), "hv1")
    assert row(cloud).identity == whole


def test_a_machine_is_asked_before_the_first_step_who_it_is(cloud: Cloud, trips: Trips, tmp_path: pathlib.Path) -> None:
    """Of hosts that an older version recorded nothing is known; two of their names may be swapped by now."""
    machine = Machine(tmp_path / "m", **an_identity(1))
    cloud.host("hv1", identity=machine.identity)
    cloud.host("hv2")
    with pytest.raises(HostRefusedError, match="hv2: this machine is hv1 of this ledger"):
        trips.go(machine, "hv2")
    assert machine.done == [] and row(cloud, "hv2").identity is None


# --- Documented ways --------------------------------------------------------------------------------------------------


def test_a_replaced_machine_is_recorded_when_it_is_named(cloud: Cloud, trips: Trips, tmp_path: pathlib.Path) -> None:
    old, new = (Machine(tmp_path / str(n), **an_identity(n)) for n in range(2))
    cloud.host("hv1")
    trips.go(old, "hv1")
    with pytest.raises(HostRefusedError, match=r"its machine_id is \w+, and \w+ is recorded.* -e replaced=hv1"):
        trips.go(new, "hv1")
    trips.go(new, "hv1", looks=True, replaced=True)
    assert row(cloud).identity == new.identity
    trips.go(new, "hv1")
    with pytest.raises(HostRefusedError):
        trips.go(old, "hv1")


def test_a_replaced_machine_made_of_another_hosts_disk(cloud: Cloud, trips: Trips, tmp_path: pathlib.Path) -> None:
    """Its mark is the other host's, and its machine id, too; what the hardware says of itself is not."""
    machine = Machine(tmp_path / "m", **an_identity(1))
    for name in ("hv1", "hv2"):
        cloud.host(name)
    trips.go(machine, "hv1")
    clone = machine.clone(tmp_path / "clone")
    (clone.root / "sys/class/dmi/id/product_uuid").write_text(an_identity(2)["product_uuid"])
    for host in ("hv1", "hv2"):
        with pytest.raises(HostRefusedError, match="replaced=hv"):
            trips.go(clone, host)
    trips.go(clone, "hv2", looks=True, replaced=True)
    trips.go(clone, "hv2")
    trips.go(machine, "hv1")
    assert json.loads(mark_file(clone, cloud).read_text())["host"] == "hv2"


def test_another_host_replaces_none(cloud: Cloud, trips: Trips, tmp_path: pathlib.Path) -> None:
    machines = [Machine(tmp_path / str(n), **an_identity(n)) for n in range(2)]
    for name, machine in zip(HOSTS, machines):
        cloud.host(name)
        trips.go(machine, name)
    reported = {"hv1": {"identity": machines[1].identity, "marks": {}, "ledgers": []}}
    with pytest.raises(NovaliteError, match="hv1: this machine is hv2 of this ledger"):
        cloud.run("host_identity", machines=reported, replaced=["hv1"])
    with pytest.raises(HostRefusedError, match="hv1: this machine is hv2 of this ledger"):
        trips.go(machines[1], "hv1", looks=True, replaced=True)
    with pytest.raises(NovaliteError, match="replaced=hv9: there is no such compute host"):
        cloud.run("host_identity", machines={}, replaced=["hv9"])


def test_a_renamed_host(cloud: Cloud, trips: Trips, tmp_path: pathlib.Path) -> None:
    machine = Machine(tmp_path / "m", **an_identity(1))
    cloud.host("hv1")
    trips.go(machine, "hv1")
    (identity,) = cloud.rows(sa.select(tables.ledger_identity.c.uuid))[0]
    marks = mark.marks_here(str(machine.state_dir))
    assert marks == {identity: {"host": "hv1", "mark": row(cloud).mark}}
    machines = {"node1": {"identity": machine.identity, "marks": marks}}
    cloud.run("host_identity", state="renamed", name="hv1", new_name="node1", machines=machines)
    # the run was cut off: the host does not know its name yet
    with pytest.raises(HostRefusedError, match=r"compute_node_rename.yml -e host=hv1 -e new_name=node1"):
        trips.go(machine, "node1")
    trips.go(machine, "node1", former="hv1")
    trips.go(machine, "node1")
    with pytest.raises(HostRefusedError, match="hv1: this machine is node1 of this ledger"):
        trips.go(machine, "hv1")


def test_a_host_that_has_left_comes_back(cloud: Cloud, trips: Trips, tmp_path: pathlib.Path) -> None:
    """With a mark that the ledger has forgotten; nothing of anybody was on it when it left, or since."""
    machine = Machine(tmp_path / "m", **an_identity(1))
    cloud.host("hv1")
    trips.go(machine, "hv1")
    cloud.operate("compute_host", state="absent", name="hv1")
    trips.go(machine, "hv1", check_mode=True)
    assert mark_file(machine, cloud).exists()
    trips.go(machine, "hv1", looks=True)
    cloud.host("hv1")
    trips.go(machine, "hv1")
    assert behind(cloud) is None


@pytest.mark.parametrize("place", ["instances/{}/record.json", "adopted/{}.json"])
def test_a_host_with_guests_that_the_ledger_does_not_know_is_one_of_a_newer_ledger(
    cloud: Cloud, trips: Trips, tmp_path: pathlib.Path, place: str
) -> None:
    machine = Machine(tmp_path / "m", **an_identity(1))
    cloud.host("hv1")
    trips.go(machine, "hv1")
    ledger = mark_file(machine, cloud).stem
    record = machine.state_dir / place.format(uuid.uuid4())
    record.parent.mkdir(parents=True)
    record.write_text(json.dumps({"ledger": ledger}))
    cloud.write(sa.delete(tables.compute_host))
    trips.go(machine, "hv1", looks=True, any_mark=True)
    with pytest.raises(HostRefusedError, match=r"run ledger_rebuild.yml"):
        trips.go(machine, "hv1", looks=True)
    assert behind(cloud) and mark_file(machine, cloud).exists()
    trips.go(machine, "hv1", looks=True)
    record.write_text(json.dumps({"ledger": str(uuid.uuid4())}))
    cloud.write(sa.update(tables.ledger_identity).values(behind=None))
    trips.go(machine, "hv1", looks=True)


# --- The host's files -------------------------------------------------------------------------------------------------


def _linked(path: pathlib.Path) -> None:
    elsewhere = path.with_name("elsewhere")
    path.rename(elsewhere)
    path.symlink_to(elsewhere)


@on_sqlite
@pytest.mark.parametrize("directory", [False, True])
@pytest.mark.parametrize("spoil", [_linked, lambda path: path.chmod(0o770), lambda path: os.chown(path, 1, 1)])
def test_marks_that_others_may_write_are_not_believed(
    cloud: Cloud, trips: Trips, tmp_path: pathlib.Path, spoil: t.Callable[[pathlib.Path], None], directory: bool
) -> None:
    machine = Machine(tmp_path / "m", **an_identity(1))
    cloud.host("hv1")
    trips.go(machine, "hv1")
    file = mark_file(machine, cloud)
    spoil(file.parent if directory else file)
    with pytest.raises(HostRefusedError, match="ledgers in its state directory is a link, or open to others"):
        trips.go(machine, "hv1")
    assert machine.done == ["step"] and behind(cloud) is None


@on_sqlite
def test_a_damaged_mark_is_replaced(cloud: Cloud, trips: Trips, tmp_path: pathlib.Path) -> None:
    machine = Machine(tmp_path / "m", **an_identity(1))
    cloud.host("hv1")
    trips.go(machine, "hv1")
    for text in ("", "{", "[]", '{"host": "hv1"}'):
        mark_file(machine, cloud).write_text(text)
        trips.go(machine, "hv1")
    assert json.loads(mark_file(machine, cloud).read_text())["mark"] == row(cloud).mark


@on_sqlite
def test_a_host_without_room_for_the_mark_can_be_worked_on(
    cloud: Cloud, trips: Trips, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or nothing could be removed from one that is full."""

    def no_room(*_args: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    machine = Machine(tmp_path / "m", **an_identity(1))
    cloud.host("hv1")
    trips.go(machine, "hv1")
    left = row(cloud).mark
    with monkeypatch.context() as patched:
        patched.setattr(os, "pwrite", no_room)
        trips.go(machine, "hv1")
    assert machine.done == ["step", "step"] and row(cloud).mark == left
    trips.go(machine, "hv1")
    assert row(cloud).marks_sent == []


def test_several_ledgers_have_marks_on_one_host(
    home: pathlib.Path, tmp_path: pathlib.Path, postgresql_ledger: t.Callable[[], str]
) -> None:
    machine = Machine(tmp_path / "m", **an_identity(1))
    for url, name in ((sqlite(home), "hv1"), (postgresql_ledger(), "node-a")):
        cloud = Cloud(url)
        cloud.host(name)
        for _trip in range(2):
            Trips(marks_at(url)).go(machine, name)
        cloud.close()
    assert sorted(mark["host"] for mark in mark.marks_here(str(machine.state_dir)).values()) == ["hv1", "node-a"]
