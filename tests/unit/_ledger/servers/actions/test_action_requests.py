# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The step `server_action`: who is acted on, what hosts are given, what is recorded."""

from __future__ import annotations

import time
import typing as t

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._errors import ConflictError, NotFoundError, NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.compute import plans, power_states, server_actions
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables as tables_
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables_jobs
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.steps.ledger_heal import ledger_heal
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.steps.power_sync import power_sync


@pytest.fixture(autouse=True)
def no_domains(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plans, "guest_of", lambda instance, facts, **_where: instance)
    monkeypatch.setattr(plans, "render", lambda guest: f"<domain>{guest['uuid']}</domain>")


def ask(cloud: t.Any, action: str, *servers: t.Any, check_mode: bool = False, **params: t.Any) -> dict[str, t.Any]:
    named = {"servers": list(servers)} if servers else {}
    asked = {"action": action, **named, **params}
    return t.cast("dict[str, t.Any]", cloud.task("server_action", check_mode=check_mode, **asked))


def server(cloud: t.Any, name: str = "web", vm_state: str = "active", host: str = "hv1", **values: t.Any) -> str:
    (instance,) = cloud.server({"name": name, "flavor": "m1.nano", "image": "ami-tiny"})["to_build"]
    cloud.place(instance["uuid"], host)
    cloud.state({"uuids": [instance["uuid"]], "state": "active", "host": host})
    change(cloud, instance["uuid"], vm_state=vm_state, **values)
    return str(instance["uuid"])


def change(cloud: t.Any, uuid: str, **values: t.Any) -> None:
    cloud.write(sa.update(tables_.instance).where(tables_.instance.c.uuid == uuid).values(**values))


def begin(cloud: t.Any, action: str, *uuids: str, **details: t.Any) -> None:
    with transaction(cloud.engine) as connection:
        server_actions.begin(connection, action, uuids, request_id="req-api", details=details)


def states(cloud: t.Any) -> dict[str, tuple[str, str | None, int]]:
    return {
        instance["name"]: (instance["vm_state"], instance["task_state"], instance["power_state"])
        for instance in cloud.info()
    }


def test_by_name_it_begins_and_a_second_time_there_is_nothing_to_do(cloud: t.Any) -> None:
    web, db = server(cloud), server(cloud, "db", host="hv2")
    empty = cloud.dump()
    assert ask(cloud, "stop", "web", "db", check_mode=True)["changed"]
    assert cloud.dump() == empty

    begun = ask(cloud, "stop", {"name": "web", "flavor": "m1.nano"}, "db")
    assert begun["changed"] and begun["request_id"].startswith("req-")
    assert begun["diff"]["after"]["web"]["task_state"] == "powering-off"
    assert {host: plan["uuids"] for host, plan in begun["hosts"].items()} == {"hv1": [web], "hv2": [db]}
    assert begun["hosts"]["hv1"] == {
        "names": ["web"],
        "uuids": [web],
        "starts": False,
        "domains": [{"uuid": web, "name": "instance-00000001", "xml": None, "hard": False, "shutdown_timeout": None}],
    }
    rows = {"hv1": [{"uuid": web, "state": "shutoff"}], "hv2": [{"uuid": db, "state": "shutoff"}]}
    outcomes = [{"host": host, "results": results} for host, results in rows.items()]
    recorded = ask(cloud, "stop", outcomes=outcomes, plans=begun["hosts"])
    assert recorded["changed"] and not recorded["errors"] and not recorded["nothing_to_do"]
    assert states(cloud) == {"web": ("stopped", None, 4), "db": ("stopped", None, 4)}

    before = cloud.dump()
    again = ask(cloud, "stop", "web", "db")
    assert not again["changed"] and not again["hosts"] and len(again["settled"]) == 2
    assert {host: list(look["updated_at"]) for host, look in again["looks"].items()} == {"hv1": [web], "hv2": [db]}
    assert not ask(cloud, "stop", outcomes=outcomes, plans=begun["hosts"])["changed"]
    assert cloud.dump() == before


@pytest.mark.parametrize("action", ["start", "reboot", "resume"])
def test_what_is_to_start_gets_all_that_it_needs(cloud: t.Any, action: str) -> None:
    vm_state = {"start": "stopped", "resume": "suspended"}.get(action, "active")
    uuid = server(cloud, vm_state=vm_state)
    change(cloud, uuid, image={**cloud.info()[0]["image"], "properties": {"os_shutdown_timeout": "5"}})
    plan = ask(cloud, action, "web")["hosts"]["hv1"]
    assert plan["starts"] and plan["uuids"] == [uuid]
    assert plan["bridges"] and plan["dhcp_networks"] and plan["firewall_instances"] and plan["filters"]
    (domain,) = plan["domains"]
    assert domain["xml"] == f"<domain>{uuid}</domain>"
    assert (domain["hard"], domain["shutdown_timeout"]) == (False, 5)


def test_a_reboot_is_never_done_already(cloud: t.Any) -> None:
    uuid = server(cloud)
    for _ in range(2):
        begun = ask(cloud, "reboot", "web", hard=True)
        assert begun["changed"] and begun["hosts"]["hv1"]["domains"][0]["hard"]
        assert begun["instances"][0]["task_state"] == "rebooting_hard"
        results = [{"uuid": uuid, "state": "running"}]
        ask(cloud, "reboot", outcomes=[{"host": "hv1", "results": results}], plans=begun["hosts"])
    change(cloud, uuid, vm_state="stopped")
    with pytest.raises(ConflictError, match=rf"^Cannot 'reboot' instance {uuid} \('web'\) .* in vm_state stopped$"):
        ask(cloud, "reboot", "web")


def test_by_uuid_it_goes_on_with_what_was_begun(cloud: t.Any) -> None:
    web, db, old = server(cloud), server(cloud, "db"), server(cloud, "old")
    begin(cloud, "reboot", web, type="HARD")
    begin(cloud, "pause", old)
    before = cloud.dump()
    going = ask(cloud, "reboot", uuids=[web, db, old, "gone"])
    assert cloud.dump() == before and not going["changed"]
    assert [instance["uuid"] for instance in going["instances"]] == [web]
    assert going["hosts"]["hv1"]["domains"][0]["hard"]
    assert {instance["uuid"]: instance["reason"] for instance in going["nothing_to_do"]} == {
        "gone": "there is no such instance any more",
        db: "'reboot' is not under way: it is in vm_state active",
        old: "'reboot' is not under way: it is in vm_state active and task_state pausing",
    }


def test_what_failed_is_told_for_each(cloud: t.Any) -> None:
    web, db, cache, far = (
        server(cloud, name, host=host)
        for name, host in (("web", "hv1"), ("db", "hv1"), ("cache", "hv2"), ("far", "hv3"))
    )
    begun = ask(cloud, "stop", "web", "db", "cache", "far")
    result = ask(
        cloud,
        "stop",
        plans=begun["hosts"],
        outcomes=[
            {
                "host": "hv1",
                "results": [
                    {"uuid": web, "state": "shutoff", "error": None},
                    {"uuid": db, "state": "running", "error": "it hangs"},
                ],
            },
            {"host": "hv2", "error": "Stop them: libvirtd does not answer"},
        ],
    )
    assert sorted(error["message"] for error in result["errors"]) == [
        "'cache': Stop them: libvirtd does not answer",
        "'db': it hangs",
        "'far': host hv3 did not answer",
    ]
    assert states(cloud) == {
        "web": ("stopped", None, 4),
        "db": ("active", None, 1),
        "cache": ("active", None, 1),
        "far": ("active", None, 1),
    }
    messages = {instance["name"]: instance["actions"][0]["message"] for instance in cloud.info(actions=True)}
    assert messages == {
        "web": None,
        "db": "it hangs",
        "cache": "Stop them: libvirtd does not answer",
        "far": "host hv3 did not answer",
    }
    assert (db, cache, far) == tuple(error["uuid"] for error in result["errors"])


@pytest.mark.both_databases
def test_a_deletion_meanwhile_wins(cloud: t.Any) -> None:
    uuid = server(cloud)
    begun = ask(cloud, "stop", "web")
    cloud.server({"name": "web"}, state="absent")
    outcomes = [{"host": "hv1", "results": [{"uuid": uuid, "state": "missing", "error": "no domain"}]}]
    result = ask(cloud, "stop", outcomes=outcomes, plans=begun["hosts"])
    assert not result["changed"] and not result["errors"] and result["nothing_to_do"][0]["uuid"] == uuid
    assert states(cloud)["web"] == ("active", "deleting", 1)
    with pytest.raises(ConflictError, match="task_state deleting"):
        ask(cloud, "stop", "web")


def test_an_action_whose_run_died_can_be_taken_over(cloud: t.Any) -> None:
    uuid = server(cloud)
    ask(cloud, "stop", "web")
    with pytest.raises(ConflictError, match=r"'web' is powering-off since [0-9]+ s: wait .* takeover=true$"):
        ask(cloud, "start", "web")
    assert ask(cloud, "pause", "web", takeover=True)["instances"][0]["task_state"] == "pausing"
    change(cloud, uuid, updated_at=int(time.time()) - 601)
    assert ask(cloud, "stop", "web")["instances"][0]["task_state"] == "powering-off"
    actions = cloud.info(actions=True)[0]["actions"]
    assert [(action["action"], action["finished_at"] is None) for action in actions] == [
        ("stop", True),
        ("pause", False),
        ("stop", False),
        ("create", False),
    ]


def test_an_action_that_a_job_waits_for_is_not_dead(cloud: t.Any) -> None:
    uuid = server(cloud)
    begin(cloud, "pause", uuid)
    change(cloud, uuid, updated_at=int(time.time()) - 601)
    row = {"id": "j", "kind": "pause", "variables": {}, "state": "queued", "timeout_seconds": 1, "created_at": 1.0}
    cloud.write(
        sa.insert(tables_jobs.job).values(**row),
        sa.insert(tables_jobs.job_instance).values(job_id="j", instance_uuid=uuid),
    )

    def repair() -> dict[str, t.Any]:
        with transaction(cloud.engine) as connection:
            return ledger_heal(connection, {})

    with pytest.raises(ConflictError, match=r"pausing since 60[0-9] s"):
        ask(cloud, "stop", "web")
    assert not [correction for correction in repair()["corrections"] if correction["kind"] == "instance"]
    cloud.write(sa.update(tables_jobs.job).values(state="failed"))
    (instance_correction,) = (correction for correction in repair()["corrections"] if correction["kind"] == "instance")
    assert instance_correction["reason"].startswith("its pause was abandoned") and instance_correction["before"] == {
        "task_state": "pausing"
    }
    assert states(cloud)["web"] == ("active", None, 1)
    assert cloud.info(actions=True)[0]["actions"][0]["message"] == instance_correction["reason"]
    assert ask(cloud, "stop", "web")["changed"]


def test_locked_servers_are_refused_by_name(cloud: t.Any) -> None:
    uuid = server(cloud)
    assert ask(cloud, "lock", "web", reason="backup")["changed"]
    assert not ask(cloud, "lock", "web", reason="backup")["changed"]
    with pytest.raises(ConflictError, match=rf"^Instance {uuid} \('web'\) is locked$"):
        ask(cloud, "stop", "web")
    assert ask(cloud, "unlock", uuids=[uuid])["changed"]
    assert not ask(cloud, "unlock", "web")["changed"]
    assert ask(cloud, "stop", "web")["changed"]


def test_a_console_is_only_read(cloud: t.Any) -> None:
    uuid = server(cloud, vm_state="stopped")
    before = cloud.dump()
    for result in (ask(cloud, "console", "web"), ask(cloud, "console", uuids=[uuid])):
        assert result["hosts"]["hv1"]["uuids"] == [uuid] and not result["changed"]
    assert cloud.dump() == before
    change(cloud, uuid, host=None)
    with pytest.raises(ConflictError, match="is not ready"):
        ask(cloud, "console", "web")


def test_unknown_servers(cloud: t.Any) -> None:
    server(cloud)
    with pytest.raises(NotFoundError, match=r"^unknown server 'web-1': there is web$"):
        ask(cloud, "stop", {"name": "web", "count": 2}, "web-2")
    with pytest.raises(NotFoundError, match="unknown server 'web': there is none yet"):
        ask(cloud, "stop", "web", project="other")
    with pytest.raises(NovaliteError, match="has no outcomes"):
        ask(cloud, "lock", outcomes=[])


@pytest.mark.parametrize(
    ("vm_state", "domain_state", "afterwards"),
    [
        ("active", "shutoff", ("stopped", None, 4)),
        ("active", "running", None),
        ("active", "crashed", ("stopped", None, 6)),
        ("active", "missing", None),
        ("active", "unknown", None),
        ("stopped", "running", ("active", None, 1)),
        ("paused", "running", ("active", None, 1)),
        ("suspended", "saved", None),
        ("suspended", "shutoff", ("stopped", None, 4)),
        ("error", "running", None),
    ],
)
def test_the_ledger_follows_a_guest(
    cloud: t.Any, vm_state: str, domain_state: str, afterwards: tuple[str, str | None, int] | None
) -> None:
    uuid = server(cloud, vm_state=vm_state)
    with transaction(cloud.engine) as connection:
        looks = power_sync(connection, {})["hosts"]
    if vm_state == "error":
        assert looks == {}
        looks = {"hv1": {"updated_at": {uuid: cloud.info()[0]["updated_at"]}}}
    observed = [{"domains": [{"uuid": uuid, "state": domain_state}], "updated_at": looks["hv1"]["updated_at"]}]
    before = cloud.dump()

    def follow() -> dict[str, t.Any]:
        with transaction(cloud.engine) as connection:
            return power_sync(connection, {"observed": observed})

    result = follow()
    assert result["changed"] == bool(afterwards) == bool(result["followed"])
    if afterwards is None:
        assert cloud.dump() == before
    else:
        assert states(cloud)["web"] == afterwards
        assert result["diff"]["after"]["web"]["vm_state"] == afterwards[0]
    assert not follow()["changed"]


def test_what_was_begun_since_the_look_wins(cloud: t.Any) -> None:
    uuid = server(cloud, updated_at=5)
    begin(cloud, "stop", uuid)
    domain_lists = [[{"uuid": uuid, "state": state}] for state in ("shutoff", "running")]
    observed = [{"domains": domains, "updated_at": {uuid: 5}} for domains in domain_lists]
    with transaction(cloud.engine) as connection:
        assert power_states.follow(connection, observed[:1]) == []
    with transaction(cloud.engine) as connection:
        server_actions.finish(connection, "stop", [uuid])
    with transaction(cloud.engine) as connection:
        assert power_states.follow(connection, observed[1:]) == []
    assert states(cloud)["web"] == ("stopped", None, 4)
