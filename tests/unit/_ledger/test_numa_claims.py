# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""CPUs of their own: claimed with the rest, by one instance each, given back with it, chosen anew by a move."""

from __future__ import annotations

import collections
import threading
import time
import typing as t
import uuid

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.compute.plans import plan_hosts
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.compute.rebuilds import _check_numa
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.tables import allocation, instance
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.tables import compute_host as host_table
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations import reserve
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.placement import migration_claims
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.placement.claims import release_claims
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.compute.instance_rows import instance_row
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.compute.views import instances_by
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.tasks.compute_host import compute_host
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.tasks.scheduler import scheduler
from ansible_collections.novalite.cloud.plugins.module_utils._model.numa import Claim
from tests.support.rows import IMAGE_ID, a_flavor, an_image, an_instance

pytestmark = pytest.mark.both_databases

PINNED: t.Any = a_flavor("pinned", flavorid="1", vcpus=2, memory_mb=64, extra_specs={"hw:cpu_policy": "dedicated"})
PAGES = {**PINNED, "extra_specs": {"hw:cpu_policy": "dedicated", "hw:mem_page_size": "large"}}
CORES, WORKERS = 8, 6


def facts(name: str, **fields: t.Any) -> dict[str, t.Any]:
    cpus = 2 * CORES + 2
    siblings = [f"{cpu}-{cpu + 1}" for cpu in range(0, cpus, 2)]
    pages = {"4": 1048576, "2048": 512}
    node = {"id": 0, "cpus": f"0-{cpus - 1}", "siblings": siblings, "memory_mb": 8192, "pages": pages}
    usual = {"up": True, "vcpus": cpus, "memory_mb": 8192, "disk_gb": 50, "traits": [], "arch": "x86_64"}
    known = {"domain_type": "qemu", "machine": "pc", "emulator": "/usr/bin/qemu", "disk_cache": "none"}
    sets = {"cpu_shared_set": "0-1", "cpu_dedicated_set": f"2-{cpus - 1}"}
    return {"name": name, **usual, **known, "numa": [node], **sets, **fields}


def record(ledger: sa.Engine, *hosts: dict[str, t.Any]) -> None:
    with transaction(ledger) as connection:
        compute_host(connection, {"compute_hosts": list(hosts)})


def launch(ledger: sa.Engine, count: int, flavor: dict[str, t.Any] = PINNED) -> list[str]:
    """Records of `count` instances that are to be built."""
    uuids = [str(uuid.uuid4()) for _number in range(count)]
    state = {"vm_state": "building", "task_state": "scheduling", "updated_at": int(time.time())}
    image = an_image(id=IMAGE_ID)
    with transaction(ledger) as connection:
        for each in uuids:
            row = an_instance(f"web-{each}", uuid=each, flavor=flavor, image=image, **state)
            connection.execute(sa.insert(instance).values(**row))
    return uuids


def schedule(ledger: sa.Engine, uuids: list[str], **params: t.Any) -> dict[str, t.Any]:
    with transaction(ledger) as connection:
        servers = instances_by(connection, uuids=uuids)
        return scheduler(connection, {"instances": servers, "all_or_nothing": False, **params})


def held(ledger: sa.Engine) -> dict[tuple[str, str], Claim]:
    with transaction(ledger) as connection:
        query = sa.select(allocation.c.instance_uuid, host_table.c.name, allocation.c.numa).join(host_table)
        return {(row[0], row[1]): Claim.of(row[2]) for row in connection.execute(query) if row[2] is not None}


def cpus_of(claims: t.Mapping[tuple[str, str], Claim]) -> collections.Counter[tuple[str, int]]:
    return collections.Counter(
        (host, cpu) for (_uuid, host), claim in claims.items() for cell in claim.cells for cpu in cell.held
    )


def test_cpus_are_claimed_rendered_and_given_back(ledger: sa.Engine) -> None:
    record(ledger, facts("hv1"))
    uuids = launch(ledger, CORES + 1)
    result = schedule(ledger, uuids)
    claims = held(ledger)
    assert len(claims) == CORES and set(cpus_of(claims).values()) == {1}
    (refused,) = result["unplaced"]
    assert "hv1: 0 of 16 dedicated CPUs are free, 2 are asked for" in refused["message"]
    with transaction(ledger) as connection:
        row = connection.execute(sa.select(host_table)).one()
        # those that share CPUs have two of them, and all of these still
        assert (row.vcpus, row.vcpus_used, row.memory_mb_used) == (2, 0, CORES * 64)
        placed = [server for server in instances_by(connection, hosts=["hv1"]) if server["uuid"] == uuids[0]]
        plan = plan_hosts(connection, "/var/lib/novalite", instances=placed).rendered()
        (cell,) = claims[uuids[0], "hv1"].cells
        assert f'<vcpupin vcpu="0" cpuset="{cell.pins[0][1]}"/>' in str(plan["hv1"])
        release_claims(connection, uuids[:1])
    assert len(held(ledger)) == CORES - 1
    (another,) = launch(ledger, 1)
    schedule(ledger, [another])
    assert held(ledger)[another, "hv1"].cells == (cell,)


def test_the_reserve_counts_the_cpus_that_others_hold(ledger: sa.Engine) -> None:
    record(ledger, facts("hv1"), facts("hv2"))
    schedule(ledger, launch(ledger, 2 * CORES))  # every dedicated CPU of both hosts
    with transaction(ledger) as connection:
        losses = reserve.losses(connection)
    assert [(loss["host"], len(loss["stranded"]), loss["takers"]) for loss in losses] == [
        ("hv1", CORES, {}),
        ("hv2", CORES, {}),
    ]
    assert "0 of 16 dedicated CPUs are free" in losses[0]["stranded"][0]["reason"]


def test_no_cpu_goes_to_two_whoever_asks_at_once(ledger: sa.Engine) -> None:
    record(ledger, facts("hv1"), facts("hv2"))
    batches = [launch(ledger, 4) for _worker in range(WORKERS)]
    begin = threading.Barrier(WORKERS)
    errors: list[BaseException] = []

    def work(uuids: list[str]) -> None:
        begin.wait(60)
        try:
            for each in uuids:
                schedule(ledger, [each])
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(uuids,)) for uuids in batches]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    claims = held(ledger)
    cpus = cpus_of(claims)
    assert len(claims) == 2 * CORES and len(cpus) == 4 * CORES  # each of them, once
    assert set(cpus.values()) == {1}


def active(ledger: sa.Engine, flavor: dict[str, t.Any] = PINNED, host: str = "hv1") -> t.Any:
    (each,) = launch(ledger, 1, flavor)
    schedule(ledger, [each], limit_to=[host])
    with transaction(ledger) as connection:
        connection.execute(
            sa.update(instance).where(instance.c.uuid == each).values(vm_state="active", task_state=None)
        )
        (server,) = instances_by(connection, uuids=[each])
    return server


def test_a_move_chooses_anew_and_holds_both_until_it_is_over(ledger: sa.Engine) -> None:
    record(ledger, facts("hv1"), facts("hv2", cpu_dedicated_set="4-7", cpu_shared_set="0"))
    server = active(ledger)
    with transaction(ledger) as connection:
        place = migration_claims.place(connection, server, PINNED)
        assert place.host == "hv2"
    claims = held(ledger)
    assert {host for _uuid, host in claims} == {"hv1", "hv2"}
    assert claims[server["uuid"], "hv2"].cells[0].held <= {4, 5, 6, 7}
    with transaction(ledger) as connection:
        release_claims(connection, [server["uuid"]], ["hv1"])
    assert [host for _uuid, host in held(ledger)] == ["hv2"]


def test_a_resize_on_its_own_host_is_refused(ledger: sa.Engine) -> None:
    record(ledger, facts("hv1"))
    server = active(ledger)
    with transaction(ledger) as connection:
        for same_host, host in (("only", None), ("allowed", "hv1"), ("allowed", None)):
            place = migration_claims.place(
                connection, server, t.cast(t.Any, a_flavor()), same_host=same_host, host=host
            )
            assert place.host is None
        assert "resize it to another host" in migration_claims.place(connection, server, PINNED, host="hv1").message


def test_one_that_moves_while_it_runs_keeps_the_size_of_its_pages(ledger: sa.Engine) -> None:
    small = [{**facts("hv2")["numa"][0], "pages": {"4": 1048576, "1048576": 4}}]
    record(ledger, facts("hv1"), facts("hv2", numa=small))
    server = active(ledger, {**PAGES, "memory_mb": 1024})
    assert held(ledger)[server["uuid"], "hv1"].cells[0].page_kib == 2048
    with transaction(ledger) as connection:
        refused = migration_claims.place(connection, server, server["flavor"], live=True)
        assert refused.host is None and "too few free pages of 2048 KiB" in refused.message
        assert migration_claims.place(connection, server, server["flavor"]).host == "hv2"


def test_an_image_that_wants_another_place_is_no_rebuild(ledger: sa.Engine) -> None:
    record(ledger, facts("hv1"))
    server = active(ledger, PAGES)
    with transaction(ledger) as connection:
        row = instance_row(connection, server["uuid"])
        _check_numa(row, t.cast(t.Any, an_image("same")))
        other = t.cast(t.Any, an_image("other", properties={"hw_mem_page_size": "2048"}))
        with pytest.raises(NovaliteError, match="image 'other' asks for other CPUs, NUMA nodes or pages"):
            _check_numa(row, other)
