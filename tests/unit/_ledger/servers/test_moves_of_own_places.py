# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""CPUs, huge pages and PCI devices of servers that move: claimed anew at the destination, given back at the source."""

from __future__ import annotations

import collections
import random
import typing as t
import uuid as uuids

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._errors import ConflictError, NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.compute.plans import plan_hosts
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.compute.rebuilds import _check_numa
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.compute.instance_rows import instance_row
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.compute.views import instances_by
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.tasks.compute_host import compute_host
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.tasks.scheduler import scheduler
from ansible_collections.novalite.cloud.plugins.module_utils._model import pci
from ansible_collections.novalite.cloud.plugins.module_utils._model.numa import Claim
from tests.support.rows import a_flavor, an_image
from tests.unit._ledger.servers.test_server_migration import ask, check_sums, row

HOSTS = ("hv1", "hv2", "hv3")
GPU: t.Any = {"vendor_id": "10de", "product_id": "1eb8"}
FLAVORS = {
    "pinned": {"hw:cpu_policy": "dedicated", "hw:mem_page_size": "large"},
    "gpu": {pci.ALIAS: "gpu:1"},
    "both": {"hw:cpu_policy": "dedicated", pci.ALIAS: "gpu:1", "hw:pci_numa_affinity_policy": "required"},
}
STEPS, HISTORIES = 25, 6


def facts(name: str, **more: t.Any) -> dict[str, t.Any]:
    nodes = [
        {
            **{"id": node, "cpus": f"{4 * node}-{4 * node + 3}", "memory_mb": 4096},
            **{"siblings": [f"{4 * node}-{4 * node + 1}", f"{4 * node + 2}-{4 * node + 3}"]},
            "pages": {"4": 786432, "2048": 192},
        }
        for node in (0, 1)
    ]
    devices = [pci.Device(f"0000:0{bus}:00.0", **GPU, numa_node=bus % 2).row for bus in (1, 2, 3)]
    usual = {"up": True, "vcpus": 8, "memory_mb": 8192, "disk_gb": 100, "traits": [], "arch": "x86_64"}
    sets = {"cpu_shared_set": "0,4", "cpu_dedicated_set": "1-3,5-7"}
    of_devices = {pci.DEVICES: devices, pci.ALIASES: [{"name": "gpu", **GPU}], "domains": []}
    return {"name": name, **usual, "numa": nodes, **sets, **of_devices, **more}


@pytest.fixture(autouse=True)
def _hosts(cloud: t.Any, no_domains: None) -> None:
    for name, specs in FLAVORS.items():
        size = {"vcpus": 2, "memory_mb": 128, "root_gb": 0}
        cloud.insert(tables.flavor, **a_flavor(name, **size, extra_specs=specs))
    with transaction(cloud.engine) as connection:
        compute_host(connection, {"compute_hosts": [facts(name) for name in HOSTS]})


def launch(cloud: t.Any, name: str, flavor: str, **params: t.Any) -> str | None:
    """Return the UUID of a server that runs; None where no host has room."""
    (instance,) = cloud.server({"name": name, "flavor": flavor, "image": "ami-tiny"})["to_build"]
    uuid = str(instance["uuid"])
    with transaction(cloud.engine) as connection:
        placed = scheduler(connection, {"instances": instances_by(connection, uuids=[uuid]), **params})
    if placed["unplaced"]:
        return None
    host = row(cloud, uuid).host or next(iter(claims(cloud, uuid)))
    cloud.state({"uuids": [uuid], "state": "active", "host": host})
    return uuid


def test_a_server_goes_where_the_fewest_devices_are_free(cloud: t.Any) -> None:
    of_devices_alone = {f"{name}_weight_multiplier": 0.0 for name in ("cpu", "ram", "disk", "io_ops")}
    with_device = launch(cloud, "with-device", "gpu", limit_to=["hv3"])
    assert with_device is not None
    for name, flavor in (("plain", "m1.tiny"), ("another", "gpu")):  # the others keep theirs
        uuid = launch(cloud, name, flavor, options=of_devices_alone)
        assert uuid is not None and row(cloud, uuid).host == "hv3"


def claims(cloud: t.Any, uuid: str | None = None) -> dict[t.Any, Claim]:
    """Return what is held: of one server by host, of all by server and host."""
    c, host = tables.allocation.c, tables.compute_host.c
    query = sa.select(c.instance_uuid, host.name, c.numa).join(tables.compute_host).where(c.numa.is_not(None))
    rows = [(held.instance_uuid, held.name, Claim.of(held.numa)) for held in cloud.rows(query)]
    if uuid is None:
        return {(of, at): claim for of, at, claim in rows}
    return {at: claim for of, at, claim in rows if of == uuid}


def check(cloud: t.Any, where: dict[str, set[str]]) -> None:
    """Check that each server holds something where it is and where it goes, and nobody anything twice."""
    held = claims(cloud)
    assert {uuid: {host for of, host in held if of == uuid} for uuid in where} == where
    assert {uuid for uuid, _host in held} == where.keys()
    things: collections.Counter[tuple[str, t.Any]] = collections.Counter()
    pages: collections.Counter[tuple[str, int]] = collections.Counter()
    for (_uuid, host), claim in held.items():
        things.update((host, device.address) for device in claim.devices)
        for cell in claim.cells:
            things.update((host, cpu) for cpu in cell.held)
            pages[host, cell.node] += cell.memory_mb // 2 if cell.page_kib == 2048 else 0
    assert not things or max(things.values()) == 1
    assert not pages or max(pages.values()) <= 192
    check_sums(cloud)


def carry(cloud: t.Any, action: str, move: dict[str, t.Any], fails: bool) -> None:
    """Both hosts do what they are asked to, or the destination fails."""
    source, there = move["from_host"], move["to_host"]
    outcomes = [{"host": source}, {"host": there, **({"error": "no such device"} if fails else {})}]
    ask(cloud, action, state="commit", moves=[move], outcomes=outcomes)
    done = [] if fails else [move["uuid"]]
    ask(cloud, action, state="end", moves=[move], outcomes=[{**each, "done": done} for each in outcomes])


@pytest.mark.parametrize("seed", range(HISTORIES))
def test_random_moves_hold_no_more_than_there_is(cloud: t.Any, seed: int) -> None:
    rng = random.Random(seed)
    where: dict[str, set[str]] = {}
    waiting: dict[str, tuple[str, str]] = {}  # moves that are to be confirmed or reverted: source, destination
    seen: collections.Counter[str] = collections.Counter()
    for step in range(STEPS):
        settled = sorted(where.keys() - waiting.keys())
        act = rng.choice(["launch", "launch", "migrate", "migrate", "confirm", "revert", "delete"])
        if act == "launch":
            uuid = launch(cloud, f"web-{step}", rng.choice(list(FLAVORS)))
            if uuid is not None:
                where[uuid] = set(claims(cloud, uuid))
            act = "launch" if uuid is not None else "no room"
        elif act == "migrate" and settled:
            uuid = rng.choice(settled)
            name, fails = row(cloud, uuid).name, rng.random() < 0.2
            try:
                (move,) = ask(cloud, "migrate", name)["moves"]
            except NovaliteError as error:
                assert "No valid host" in str(error)
                seen["nowhere"] += 1
                continue
            source, there = move["from_host"], move["to_host"]
            check(cloud, {**where, uuid: {source, there}})
            carry(cloud, "migrate", move, fails)
            if not fails:
                where[uuid], waiting[uuid] = {source, there}, (source, there)
            act = "failed" if fails else "migrate"
        elif act in ("confirm", "revert") and waiting:
            uuid = rng.choice(sorted(waiting))
            source, there = waiting.pop(uuid)
            name, action = row(cloud, uuid).name, f"{act}Resize"
            (move,) = ask(cloud, action, name)["moves"]
            if act == "confirm":
                ask(cloud, action, state="end", moves=[move], parts=["from_host"], outcomes=[{"host": source}])
            else:
                carry(cloud, action, move, fails=False)
            where[uuid] = {there if act == "confirm" else source}
        elif act == "delete" and settled:
            uuid = rng.choice(settled)
            cloud.write(sa.update(tables.instance).where(tables.instance.c.uuid == uuid).values(task_state="deleting"))
            cloud.state({"uuids": [uuid], "state": "deleted", "host": row(cloud, uuid).host})
            del where[uuid]
        else:
            continue
        seen[act] += 1
        check(cloud, where)
    assert seen["launch"] and seen["migrate"] and (seen["confirm"] or seen["revert"])


@pytest.mark.both_databases
def test_a_device_is_claimed_rendered_and_no_foreign_one_taken(cloud: t.Any, monkeypatch: pytest.MonkeyPatch) -> None:
    users = {"0000:01:00.0": str(uuids.uuid4())}  # a guest of somebody else's
    with transaction(cloud.engine) as connection:
        compute_host(connection, {"compute_hosts": [facts("hv1", pci_users=users)]})
    placed = [launch(cloud, f"web-{number}", "gpu", limit_to=["hv1"]) for number in range(3)]
    assert placed[2] is None
    held = {device.address for uuid in placed[:2] for device in claims(cloud, uuid)["hv1"].devices}
    assert held == {"0000:02:00.0", "0000:03:00.0"}
    # what the ledger's own guests have is theirs, whatever the host says of it; what the other one left is free
    with transaction(cloud.engine) as connection:
        of_ours = dict.fromkeys(held, placed[0])
        domains = [{"uuid": placed[0], "state": "running", "vcpus": 1, "memory_mb": 1, "disk_gb": 1}]
        compute_host(connection, {"compute_hosts": [facts("hv1", pci_users=of_ours, domains=domains)]})
    assert launch(cloud, "last", "gpu", limit_to=["hv1"]) is not None
    monkeypatch.undo()  # the plan's XML is the guest's from here
    known = {"domain_type": "qemu", "machine": "pc", "emulator": "/usr/bin/qemu", "disk_cache": "none"}
    with transaction(cloud.engine) as connection:
        compute_host(connection, {"compute_hosts": [facts("hv1", **known)]})
        servers = instances_by(connection, uuids=[str(placed[0])])
        plan = plan_hosts(connection, "/var/lib/novalite", instances=servers).rendered()
    (device,) = claims(cloud, placed[0])["hv1"].devices
    bus = device.address.split(":")[1]
    assert f'<address domain="0x0000" bus="0x{bus}" slot="0x00" function="0x0"/>' in str(plan["hv1"])


@pytest.mark.parametrize("action", ["live-migration", "suspend"])
def test_one_with_a_device_is_not_saved_while_it_runs(cloud: t.Any, action: str) -> None:
    uuid = launch(cloud, "web", "gpu")
    before = cloud.dump()
    with pytest.raises(ConflictError, match=f"Cannot '{action}' instance {uuid} .*: it has PCI devices of hv1"):
        if action == "suspend":
            cloud.operate("server_action", action=action, servers=["web"])
        else:
            ask(cloud, action, "web")
    assert cloud.dump() == before


def test_a_resize_on_its_own_host_would_need_the_device_twice(cloud: t.Any) -> None:
    launch(cloud, "web", "gpu")
    with pytest.raises(NovaliteError, match="pages or devices of its own: resize it to another host"):
        ask(cloud, "resize", "web", flavor="m1.tiny", same_host="only")


def test_an_image_that_wants_devices_elsewhere_is_no_rebuild(cloud: t.Any) -> None:
    uuid = str(launch(cloud, "web", "gpu"))
    with transaction(cloud.engine) as connection:
        of_server = instance_row(connection, uuid)
        _check_numa(of_server, t.cast(t.Any, an_image("same")))
        other = t.cast(t.Any, an_image("other", properties={"hw_pci_numa_affinity_policy": "required"}))
        with pytest.raises(NovaliteError, match=r"image 'other' asks for .* devices nearer or farther"):
            _check_numa(of_server, other)
