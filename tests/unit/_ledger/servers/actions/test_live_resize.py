# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A flavor that changes while the server runs: claims, quotas, refusals, and what a failure leaves."""

from __future__ import annotations

import typing as t

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._errors import ConflictError, NovaliteError, QuotaError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.compute import plans, server_actions
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.steps.ledger_heal import ledger_heal
from tests.support.rows import DEMO

SPECS = {"novalite:max_vcpus": "4", "novalite:max_ram": "256"}
FLAVORS = {
    "web.small": {"vcpus": 1, "memory_mb": 64, "extra_specs": SPECS},
    "web.large": {"vcpus": 3, "memory_mb": 256, "extra_specs": SPECS},
    "web.wider": {"vcpus": 3, "memory_mb": 256, "extra_specs": {**SPECS, "novalite:max_vcpus": "8"}},
}


@pytest.fixture(autouse=True)
def no_domains(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plans, "guest_of", lambda instance, facts, **_where: instance)
    monkeypatch.setattr(plans, "render", lambda guest: f"<domain>{guest['flavor']['name']}</domain>")


@pytest.fixture
def web(cloud: t.Any) -> str:
    cloud.task("flavor", flavors=[{"name": name, "root_gb": 1, **sizes} for name, sizes in FLAVORS.items()])
    return server(cloud)


def server(cloud: t.Any, name: str = "web", flavor: str = "web.small") -> str:
    (instance,) = cloud.server({"name": name, "flavor": flavor, "image": "ami-tiny"})["to_build"]
    cloud.place(instance["uuid"], "hv1")
    cloud.state({"uuids": [instance["uuid"]], "state": "active", "host": "hv1"})
    return str(instance["uuid"])


def ask(cloud: t.Any, flavor: str, *names: str, check_mode: bool = False) -> dict[str, t.Any]:
    asked = {"action": "live-resize", "servers": list(names) or ["web"], "request": {"flavor": flavor}}
    return t.cast("dict[str, t.Any]", cloud.task("server_action", check_mode=check_mode, **asked))


def end(cloud: t.Any, begun: dict[str, t.Any], error: str | None = None) -> dict[str, t.Any]:
    results = [{"uuid": uuid, "error": error} for plan in begun["hosts"].values() for uuid in plan["uuids"]]
    outcomes = [{"host": "hv1", "results": results}]
    ended = cloud.task("server_action", action="live-resize", outcomes=outcomes, plans=begun["hosts"])
    return t.cast("dict[str, t.Any]", ended)


def held(cloud: t.Any, uuid: str) -> tuple[int, int, int]:
    """Return what the server claims; the host's sums are those of its claims."""
    with transaction(cloud.engine, check_mode=True) as connection:
        corrections = ledger_heal(connection, {"build_timeout": 10**9})["corrections"]
    assert [row for row in corrections if row["kind"] in ("allocation", "compute_host")] == []
    c = tables.allocation.c
    (row,) = cloud.rows(sa.select(c.vcpus, c.memory_mb, c.disk_gb).where(c.instance_uuid == uuid))
    return tuple(row)


def flavor_of(cloud: t.Any, name: str = "web") -> str:
    return str(cloud.info(name=name)[0]["flavor"]["name"])


def host(cloud: t.Any, **values: t.Any) -> None:
    cloud.write(sa.update(tables.compute_host).where(tables.compute_host.c.name == "hv1").values(**values))


def emulating(cloud: t.Any, domain_type: str) -> None:
    (facts,) = cloud.rows(sa.select(tables.compute_host.c.facts).where(tables.compute_host.c.name == "hv1"))[0]
    host(cloud, facts={**facts, "domain_type": domain_type})


def test_the_claim_grows_first_and_the_host_is_told_the_new_size(cloud: t.Any, web: str) -> None:
    empty = cloud.dump()
    shown = ask(cloud, "web.large", check_mode=True)
    assert cloud.dump() == empty and shown["changed"]
    assert shown["diff"]["before"]["web"]["flavor"] == "web.small (1 vCPUs, 64 MiB)"
    assert shown["diff"]["after"]["web"]["flavor"] == "web.large (3 vCPUs, 256 MiB)"

    begun = ask(cloud, "web.large")
    assert (held(cloud, web), flavor_of(cloud)) == ((3, 256, 1), "web.large")
    (domain,) = begun["hosts"]["hv1"]["sizes"]
    assert domain == {"uuid": web, "name": "instance-00000001", "xml": "<domain>web.large</domain>"}
    with pytest.raises(ConflictError, match=r"is resizing_live since \d+ s"):
        ask(cloud, "web.small")
    assert end(cloud, begun)["errors"] == []
    assert (held(cloud, web), flavor_of(cloud)) == ((3, 256, 1), "web.large")
    again = ask(cloud, "web.large")
    assert (again["changed"], [row["uuid"] for row in again["settled"]]) == (False, [web])


def test_a_smaller_claim_is_given_back_when_the_guest_has_let_go(cloud: t.Any, web: str) -> None:
    end(cloud, ask(cloud, "web.large"))
    emulating(cloud, "kvm")
    begun = ask(cloud, "web.small")
    assert held(cloud, web) == (3, 256, 1)
    end(cloud, begun)
    assert (held(cloud, web), flavor_of(cloud)) == ((1, 64, 1), "web.small")


@pytest.mark.parametrize("grows", [True, False])
def test_a_failure_leaves_what_was_before(cloud: t.Any, web: str, grows: bool) -> None:
    emulating(cloud, "kvm")
    before, after, size = ("web.small", "web.large", (1, 64, 1)) if grows else ("web.large", "web.small", (3, 256, 1))
    if not grows:
        end(cloud, ask(cloud, "web.large"))
    assert [error["message"] for error in end(cloud, ask(cloud, after), "no balloon")["errors"]] == [
        "'web': no balloon"
    ]
    assert (held(cloud, web), flavor_of(cloud)) == (size, before)
    ask(cloud, after)
    with transaction(cloud.engine) as connection:  # its run was killed
        assert server_actions.interrupt(connection, "live-resize", [web], "its worker died") == [web]
    assert (held(cloud, web), flavor_of(cloud)) == (size, before)
    assert cloud.info()[0]["vm_state"] == "active" and cloud.info()[0]["task_state"] is None


def test_what_needs_a_restart_is_refused_with_the_reason(cloud: t.Any, web: str) -> None:
    for flavor, reason in (
        ("web.wider", "needs a restart, for novalite:max_vcpus changes from 4 to 8. Resize it with a restart"),
        ("m1.tiny", "novalite:max_vcpus changes from 4 to none; novalite:max_ram changes from 256 to none"),
    ):
        with pytest.raises(ConflictError, match=reason):
            ask(cloud, flavor)
    end(cloud, ask(cloud, "web.large"))
    emulating(cloud, "qemu")
    with pytest.raises(ConflictError, match="its host emulates CPUs"):
        ask(cloud, "web.small")
    assert (held(cloud, web), flavor_of(cloud)) == ((3, 256, 1), "web.large")


def test_a_resize_with_a_restart_says_before_whether_it_needs_one(cloud: t.Any, web: str) -> None:
    def why(flavor: str) -> str:
        asked = {
            "action": "resize",
            "servers": ["web"],
            "flavor": flavor,
            "same_host": "only",
            "service_down_time": 10**12,
        }
        return str(cloud.task("server_migration", check_mode=True, **asked)["moves"][0]["why"][-1])

    assert why("web.large") == "restarted although it need not be: live_resize.yml changes it while it runs"
    assert why("web.wider") == "needs a restart: novalite:max_vcpus changes from 4 to 8"


def test_there_must_be_room_and_quota(cloud: t.Any, web: str) -> None:
    c = tables.compute_host.c
    (row,) = cloud.rows(sa.select(c.memory_mb, c.reserved_memory_mb, c.ram_ratio).where(c.name == "hv1"))
    host(cloud, memory_mb=100 + row.reserved_memory_mb, ram_ratio=1.0)
    with pytest.raises(ConflictError, match=r"flavor web\.large: .*ram removed 1"):
        ask(cloud, "web.large")
    host(cloud, memory_mb=row.memory_mb, ram_ratio=row.ram_ratio)
    cloud.write(sa.insert(tables.quota).values(project_id=DEMO, resource="cores", hard_limit=4))
    other = server(cloud, "db")
    with pytest.raises(QuotaError, match="cores"):
        ask(cloud, "web.large", "web", "db")  # each alone would fit
    assert (held(cloud, web), held(cloud, other)) == ((1, 64, 1), (1, 64, 1))
    end(cloud, ask(cloud, "web.large"))


def test_a_host_that_nobody_looked_at_for_long_is_still_the_servers_own(cloud: t.Any, web: str) -> None:
    host(cloud, last_seen_at=1)
    end(cloud, ask(cloud, "web.large"))
    assert held(cloud, web) == (3, 256, 1)


def test_a_flavor_must_be_named(cloud: t.Any, web: str) -> None:
    with pytest.raises(NovaliteError, match="name the flavor to resize to"):
        cloud.task("server_action", action="live-resize", servers=["web"])
