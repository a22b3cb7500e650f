# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Each difference between a host and the ledger: what is told, what is begun or written, and what is left alone."""

from __future__ import annotations

import time
import typing as t
import uuid

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.compute import server_actions
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import clock, tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.tables_jobs import job
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.tables_volumes import volume, volume_type
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.ec2 import ec2_records
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.jobs import job_outcomes
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.jobs import job_records
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.steps.drift_report import drift_report
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.steps.host_drift import host_drift
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.steps.ledger_heal import ledger_heal

Result = dict[str, t.Any]
NOTHING_ELSEWHERE: Result = {"sights": {}, "volumes": {}, "silent": []}  # all other hosts were asked
BASE = "sha256:" + "0" * 64


def running(instance: Result, **other: t.Any) -> Result:
    """Return the look of a host that is as the ledger says."""
    name = f"instance-{instance['id']:08x}"
    mac = instance["nics"][0]["mac"]
    tap: Result = {"device": "vnet0", "bridge": "br-private", "master": "br-private", "filter": f"nova-instance-{name}"}
    domain = {"uuid": instance["uuid"], "name": name, "macs": [mac], "state": "running", "reason": "", "taps": [tap]}
    tap["unfiltered"] = False
    return {
        "domains": [{**domain, **other}],
        "disks": [instance["uuid"]],
        "files": {instance["uuid"]: ["disk", "disk.info", "kernel", "ramdisk"]},
        "volumes": [],
        "missing_bases": {},
        "stale_devices": [],
        "filters": [f"nova-instance-{name}"],
        "chains": [{"id": instance["id"], "addresses": []}],
        "dhcp_networks": [],
        "bridges": ["br-private"],
    }


def compare(cloud: t.Any, look: Result, check_mode: bool = False, began: float | None = None) -> Result:
    with transaction(cloud.engine, check_mode) as connection:
        params = {"host": "hv2", "found": look, "state_dir": "/var/lib/novalite", "elsewhere": NOTHING_ELSEWHERE}
        return host_drift(connection, {**params, "began": began or time.monotonic() + 10})


def repair_rows(result: Result) -> list[tuple[str, str, str]]:
    return [(row["object"], row["there"], row["repair"]) for row in result["rows"]]


def now(cloud: t.Any) -> tuple[str, str | None]:
    (row,) = cloud.rows(sa.select(tables.instance).where(tables.instance.c.deleted == 0))
    return row.vm_state, row.task_state


def test_a_host_as_it_should_be_differs_in_nothing(cloud: t.Any, web: Result) -> None:
    result = compare(cloud, running(web))
    assert (result["rows"], result["changed"], result["left"]) == ([], False, False)
    assert not result["restart"] and not result["define"] and not result["disks"] and not result["images"]
    assert result["keep"]["uuids"] == [web["uuid"]] and result["keep"]["renew"] == []


@pytest.mark.parametrize("state", [("missing", ""), ("shutoff", "destroyed"), ("shutoff", "failed"), ("shutoff", "")])
def test_a_guest_that_was_ended_is_begun_again(cloud: t.Any, web: Result, state: tuple[str, str]) -> None:
    look = running(web, state=state[0], reason=state[1], taps=[])
    if state[0] == "missing":
        look["domains"] = []
    check = compare(cloud, look, check_mode=True)
    assert now(cloud) == ("active", None)
    result = compare(cloud, look)
    assert repair_rows(result) == repair_rows(check) and len(repair_rows(result)) == 1
    assert [instance["uuid"] for instance in result["restart"]] == [web["uuid"]] and result["restart"][0]["hard"]
    assert result["restart"][0]["xml"].startswith("<domain")
    assert now(cloud) == ("active", "rebooting_hard")
    # and nobody begins it twice
    assert compare(cloud, look)["restart"] == []


@pytest.mark.parametrize(
    ("state", "reason", "vm_state"),
    [("shutoff", "shutdown", "stopped"), ("paused", "", "paused"), ("saved", "", "suspended")],
)
def test_a_guest_that_went_by_itself_is_followed(
    cloud: t.Any, web: Result, state: str, reason: str, vm_state: str
) -> None:
    result = compare(cloud, running(web, state=state, reason=reason))
    assert [row["repair"] for row in result["rows"]] == [f"recorded as {vm_state}"]
    assert now(cloud) == (vm_state, None) and result["restart"] == []
    assert compare(cloud, running(web, state=state, reason=reason))["rows"] == []


@pytest.fixture
def terminated_with_its_guest(cloud: t.Any, web: Result) -> None:
    with transaction(cloud.engine) as connection:
        ec2_records.write_attributes(connection, web["uuid"], {"shutdown_behavior": "terminate"})


@pytest.mark.usefixtures("terminated_with_its_guest")
def test_a_guest_that_shut_itself_down_is_terminated_if_its_owner_wants_that(cloud: t.Any, web: Result) -> None:
    off = running(web, state="shutoff", reason="shutdown", taps=[])
    check = compare(cloud, off, check_mode=True)
    assert now(cloud) == ("active", None) and cloud.rows(sa.select(job)) == []
    assert repair_rows(compare(cloud, off)) == repair_rows(check)
    assert [row["repair"] for row in check["rows"]] == ["recorded as stopped", "deletion begun"]
    assert now(cloud) == ("stopped", "deleting")
    (asked,) = cloud.rows(sa.select(job))
    assert (asked.kind, asked.state, asked.project_id) == ("terminate", "queued", web["project"]["id"])
    with transaction(cloud.engine) as connection:
        assert job_records.instances_of(connection, [asked.id]) == {asked.id: [web["uuid"]]}
        verdict = job_outcomes.judge(connection, asked.request_id, "delete", [web["uuid"]])
    assert verdict.open == {web["uuid"]}
    assert compare(cloud, off)["rows"] == []  # once


@pytest.mark.usefixtures("terminated_with_its_guest")
@pytest.mark.parametrize("how", ["destroyed", "its owner's stop, cut off", "locked", "paused"])
def test_a_guest_that_others_ended_is_not_terminated(cloud: t.Any, web: Result, how: str) -> None:
    reason = "destroyed" if how == "destroyed" else "shutdown"
    if how == "locked":
        cloud.write(sa.update(tables.instance).values(locked=True))
    elif how == "paused":
        cloud.write(sa.update(tables.instance).values(vm_state="paused", power_state=3))
    elif how != "destroyed":
        with transaction(cloud.engine) as connection:
            server_actions.begin(connection, "stop", [web["uuid"]], request_id="req-1")
            server_actions.interrupt(connection, "stop", [web["uuid"]], "its worker died")
    compare(cloud, running(web, state="shutoff", reason=reason, taps=[]))
    assert now(cloud)[1] != "deleting" and cloud.rows(sa.select(job)) == []


@pytest.mark.parametrize(("action", "again"), [("resize", True), ("reboot", True), ("stop", False)])
def test_a_guest_that_an_action_switched_off_before_it_was_killed(
    cloud: t.Any, web: Result, action: str, again: bool
) -> None:
    """Nova would leave it off, and its owner would not know why."""
    state = {"resize": "resize_migrating", "reboot": "rebooting", "stop": "powering-off"}[action]
    cloud.write(sa.update(tables.instance).values(task_state=state, updated_at=1))
    with transaction(cloud.engine) as connection:
        assert ledger_heal(connection, {"build_timeout": 0})["changed"]
    off = running(web, state="shutoff", reason="shutdown", taps=[])
    if again:
        assert [instance["uuid"] for instance in compare(cloud, off)["restart"]] == [web["uuid"]]
    else:
        assert compare(cloud, off)["restart"] == [] and now(cloud) == ("stopped", None)


def test_a_guest_that_runs_after_its_action_was_killed_may_be_shut_down_by_its_owner(cloud: t.Any, web: Result) -> None:
    cloud.write(sa.update(tables.instance).values(power_state=server_actions.NO_STATE))
    result = compare(cloud, running(web))
    assert result["changed"] and result["rows"] == []
    assert not compare(cloud, running(web))["changed"]
    compare(cloud, running(web, state="shutoff", reason="shutdown", taps=[]))
    assert now(cloud) == ("stopped", None)


def test_a_stopped_guest_without_a_domain_is_defined(cloud: t.Any, web: Result) -> None:
    cloud.write(sa.update(tables.instance).values(vm_state="stopped", power_state=4))
    result = compare(cloud, {**running(web), "domains": []})
    assert [instance["uuid"] for instance in result["define"]] == [web["uuid"]] and result["restart"] == []


def test_a_lost_disk_is_an_error_and_the_claim_stays(cloud: t.Any, web: Result) -> None:
    look = running(web)
    look["files"] = {}
    assert repair_rows(compare(cloud, look))[0][:2] == ("disk of web", "missing")
    (instance,) = cloud.info(actions=True)
    assert (instance["vm_state"], instance["host"]) == ("error", "hv2")
    assert instance["fault"]["message"].startswith(
        "its disk is gone from hv2; its guest still runs on what it has open"
    )
    assert instance["actions"][0]["action"] == "reconcile" and instance["actions"][0]["finished_at"] is not None
    assert len(cloud.rows(sa.select(tables.allocation))) == 1
    assert compare(cloud, look)["rows"] == []


def test_what_another_run_is_at_is_left_to_it(cloud: t.Any, web: Result) -> None:
    look = {**running(web), "domains": []}
    assert compare(cloud, look, began=time.monotonic() - 100)["rows"] == []  # changed since the look began
    with transaction(cloud.engine) as connection:
        server_actions.begin(connection, "stop", [web["uuid"]], request_id="req-1")
    result = compare(cloud, look)
    assert (result["rows"], result["keep"]) == ([], None)
    assert now(cloud) == ("active", "powering-off")


@pytest.mark.parametrize("earlier", [0, 1])
def test_what_was_changed_in_the_second_of_the_look_is_not_judged(
    cloud: t.Any, web: Result, earlier: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    began = int(time.time()) + 10
    monkeypatch.setattr(clock, "at", lambda _connection, moment: moment)
    cloud.write(sa.update(tables.instance).values(updated_at=began - earlier))
    result = compare(cloud, running(web, state="shutoff", reason="destroyed", taps=[]), began=began)
    assert [domain["uuid"] for domain in result["restart"]] == [web["uuid"]] * earlier
    assert len(result["rows"]) == earlier


def test_devices_that_are_not_plugged_in_or_not_guarded(cloud: t.Any, web: Result) -> None:
    look = running(web)
    look["domains"][0]["taps"][0].update(master=None, unfiltered=True)
    result = compare(cloud, look)
    (bridge,) = result["keep"]["bridges"]
    if bridge["name"] == "br-private":
        assert bridge["taps"] == ["vnet0"]
    assert result["keep"]["renew"] == ["vnet0"]
    assert {row["repair"] for row in result["rows"]} == {"plugged in", "written anew"}


def test_what_leads_to_a_strangers_disk_is_not_touched(cloud: t.Any, web: Result) -> None:
    def left(uuid: str) -> Result:
        return {"what": "disk server", "name": f"{uuid}/disk", "disk": f"/var/lib/novalite/instances/{uuid}/disk"}

    ours, strange = left(web["uuid"]), left("f" * 8 + "-0000-4000-8000-000000000000")
    assert compare(cloud, {**running(web), "stale_devices": [ours, strange]})["stale_devices"] == [ours]


def test_volumes_that_are_gone_or_that_nobody_goes_on_with(cloud: t.Any) -> None:
    kind, old = str(uuid.uuid4()), int(time.time()) - 5000
    of_type = {"id": kind, "name": "spinning", "backend": "file", "options": {}, "extra_specs": {}, "created_at": 1}
    cloud.write(sa.insert(volume_type).values(**of_type))
    ids = {}
    for name, status, made_at in (("kept", "available", 1), ("lost", "available", 1), ("half", "creating", None)):
        ids[name] = str(uuid.uuid4())
        values = {"id": ids[name], "name": name, "status": status, "made_at": made_at, "host": "hv2"}
        more = {"project_id": "d" * 32, "size_gb": 1, "type_id": kind, "format": "raw", "metadata": {}}
        cloud.write(sa.insert(volume).values(**values, **more, created_at=old, updated_at=old))
    nothing: Result = {
        name: [] for name in ("domains", "disks", "stale_devices", "filters", "chains", "dhcp_networks", "bridges")
    }
    look = {**nothing, "files": {}, "missing_bases": {}, "volumes": [ids["kept"]]}
    assert repair_rows(compare(cloud, look)) == [("volume lost", "missing", "volume to error")]
    assert compare(cloud, look)["rows"] == []
    with transaction(cloud.engine) as connection:
        (correction,) = ledger_heal(connection, {})["corrections"]
        assert ledger_heal(connection, {})["corrections"] == []
    assert correction["name"] == f"half ({ids['half']})" and correction["after"] == {"status": "error"}
    statuses = {row.name: row.status for row in cloud.rows(sa.select(volume.c.name, volume.c.status))}
    assert statuses == {"kept": "available", "lost": "error", "half": "error"}


def test_the_report_has_all_of_it(cloud: t.Any, web: Result) -> None:
    correction = {"kind": "vif", "name": "x", "reason": "its instance is gone", "before": {"mac": "m"}, "after": None}
    chains = {f"nova-inst-{web['id']}": ["-A"]}
    steps = {
        "bridge": {"changed": True, "diff": {"before": {"br1": {}}, "after": {"br1": {"mtu": 1500}}}},
        "firewall": {"changed": True, "diff": {"before": {"IPv4": {}}, "after": {"IPv4": chains}}},
        "dhcp": {"changed": False},
    }
    # what the removal of something else found, and put back before the rest was looked at
    damage = {"changed": True, "repaired": {"IPv4": ["nova-local", *chains], "IPv6": ["nova-local"]}}
    host_report = {
        "rows": [],
        "steps": [{"module": module, "result": result} for module, result in steps.items()],
        "taken": [{"module": "firewall", "result": damage}],
        "failed": "",
    }
    params = {
        "corrections": [correction],
        "deletions": [{"uuid": "u", "name": "old", "host": "hv1", "silent": 700}],
        "hosts": {"hv2": host_report, "hv3": {"failed": "it did not answer"}},
        "failures": [],
        "repaired": False,
    }
    with transaction(cloud.engine) as connection:
        result = drift_report(connection, params)
    assert [difference["object"] for difference in result["report"]["differences"]] == [
        "vif x",
        "instance old",
        "bridge br1",
        f"chain nova-inst-{web['id']} (web)",
        "chain nova-local",
    ]
    assert result["report"]["failures"] == ["hv3: it did not answer"] and result["pending"] == 5
    assert result["in_words"] == "5 differences, 1 failed"
    assert result["table"][0].split() == ["HOST", "OBJECT", "THE", "LEDGER", "SAYS", "IS", "THERE", "REPAIR"]
    assert len(result["table"]) == 8
