# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import typing as t

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NotFoundError, NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.instances.actions import one_line

Instance = dict[str, t.Any]


def launch(cloud: t.Any, name: str = "web", host: str | None = "hv1") -> Instance:
    (instance,) = cloud.server({"name": name, "flavor": "m1.nano", "image": "ami-tiny"})["to_build"]
    if host is not None:
        cloud.place(instance["uuid"], host)
    return instance


def running(cloud: t.Any, name: str = "web", host: str = "hv1") -> Instance:
    instance = launch(cloud, name, host)
    cloud.state({"uuids": [instance["uuid"]], "state": "active", "host": host})
    return instance


def claims(cloud: t.Any) -> list[str]:
    return [row.instance_uuid for row in cloud.rows(sa.select(tables.allocation))]


def owners(cloud: t.Any) -> set[str]:
    return {row.owner for row in cloud.rows(sa.select(tables.fixed_ip)) if row.owner is not None}


def vcpus_used(cloud: t.Any, host: str = "hv1") -> int:
    query = sa.select(tables.compute_host.c.vcpus_used).where(tables.compute_host.c.name == host)
    return cloud.rows(query)[0][0]


def again(cloud: t.Any, outcome: dict[str, t.Any], **params: t.Any) -> dict[str, t.Any]:
    """The same outcome once more: whatever it says, it must change nothing."""
    before = cloud.dump()
    result = cloud.state(outcome, **params)
    assert not result["changed"] and "diff" not in result
    assert cloud.dump() == before
    return result


def test_active(cloud: t.Any) -> None:
    instance = launch(cloud)
    outcome = {"uuids": [instance["uuid"]], "state": "active", "host": "hv1"}
    result = cloud.state(outcome)
    (now,) = result["instances"]
    assert (now["vm_state"], now["task_state"], now["power_state"], now["host"]) == ("active", None, 1, "hv1")
    assert now["launched_at"] >= now["created_at"] and now["nics"][0]["dhcp_server"]
    assert result["changed"] and not result["errors"] and not result["retry"]
    assert result["diff"]["before"]["web"]["vm_state"] == "building"
    assert result["diff"]["after"]["web"]["vm_state"] == "active"
    (action,) = cloud.info(actions=True)[0]["actions"]
    assert action["finished_at"] and action["message"] is None
    assert [(event["host"], event["result"]) for event in action["events"]] == [("hv1", "Success")]
    assert again(cloud, outcome)["errors"] == []
    assert claims(cloud) == [instance["uuid"]]


def test_active_on_a_host_that_is_not_its_own_is_refused(cloud: t.Any) -> None:
    instance = launch(cloud)
    (error,) = again(cloud, {"uuids": [instance["uuid"]], "state": "active", "host": "hv2"})["errors"]
    assert error["message"] == "'web' cannot be recorded as active: it is building on host hv1, not on hv2"
    two = launch(cloud, "db", None)
    assert again(cloud, {"uuids": [two["uuid"]], "state": "active"})["errors"]


def test_a_server_that_is_being_deleted_does_not_come_alive(cloud: t.Any) -> None:
    instance = launch(cloud)
    cloud.server({"name": "web"}, state="absent")
    (error,) = again(cloud, {"uuids": [instance["uuid"]], "state": "active", "host": "hv1"})["errors"]
    assert error["message"] == "'web' cannot be recorded as active: it is being deleted"
    for attempts in (1, 3):
        assert again(cloud, {"uuids": [instance["uuid"]], "state": "retry", "host": "hv1"}, max_attempts=attempts)[
            "errors"
        ]


def test_error_gives_everything_back(cloud: t.Any) -> None:
    instance = launch(cloud)
    assert vcpus_used(cloud) == 1
    outcome = {"uuids": [instance["uuid"]], "state": "error", "host": "hv1", "reason": "qemu said\nno\x07 " + "x" * 400}
    result = cloud.state(outcome)
    (now,) = result["instances"]
    assert (now["vm_state"], now["task_state"], now["host"], now["attempts"]) == ("error", None, None, ["hv1"])
    assert now["fault"]["code"] == 500 and now["fault"]["message"].startswith("qemu said no x")
    assert len(now["fault"]["message"]) == 255 and now["nics"][0]["ip"] is None
    assert claims(cloud) == [] and vcpus_used(cloud) == 0 and f"vif:{now['nics'][0]['id']}" not in owners(cloud)
    assert [(error["name"], error["message"]) for error in result["errors"]] == [("web", now["fault"]["message"])]
    (action,) = cloud.info(actions=True)[0]["actions"]
    assert action["finished_at"] and action["message"] == now["fault"]["message"]
    assert again(cloud, outcome)["errors"] == result["errors"]
    assert again(cloud, {**outcome, "reason": "other"})["errors"] == result["errors"]


def test_error_without_a_host_or_a_reason(cloud: t.Any) -> None:
    instance = launch(cloud, host=None)
    (now,) = cloud.state({"uuids": [instance["uuid"]], "state": "error"})["instances"]
    assert (now["fault"]["message"], now["attempts"]) == ("no reason was given", [])


def test_a_running_server_cannot_be_declared_failed(cloud: t.Any) -> None:
    instance = running(cloud)
    (error,) = again(cloud, {"uuids": [instance["uuid"]], "state": "error", "reason": "late"})["errors"]
    assert error["message"] == "'web' cannot be recorded as failed: it is active"
    assert claims(cloud) == [instance["uuid"]]


def test_retry_frees_the_host_and_keeps_the_address(cloud: t.Any) -> None:
    instance = launch(cloud)
    outcome = {"uuids": [instance["uuid"]], "state": "retry", "host": "hv1", "reason": "disk full"}
    result = cloud.state(outcome)
    (now,) = result["retry"]
    assert (now["vm_state"], now["task_state"], now["host"], now["attempts"]) == (
        "building",
        "scheduling",
        None,
        ["hv1"],
    )
    assert now["nics"][0]["ip"] and claims(cloud) == [] and vcpus_used(cloud) == 0 and not result["errors"]
    assert [instance["uuid"] for instance in again(cloud, outcome)["retry"]] == [now["uuid"]]
    (action,) = cloud.info(actions=True)[0]["actions"]
    assert action["finished_at"] is None and action["message"] == "disk full"
    cloud.place(instance["uuid"], "hv2")
    assert again(cloud, outcome)["retry"] == []
    assert vcpus_used(cloud, "hv2") == 1


def test_what_another_request_may_have_spoiled_is_tried_again(cloud: t.Any) -> None:
    instance = launch(cloud)
    result = cloud.state({"uuids": [instance["uuid"]], "state": "error", "host": "hv1", "reason": "no"}, alone=False)
    assert [again["uuid"] for again in result["retry"]] == [instance["uuid"]] and result["failures"] == []


def test_the_last_attempt_is_an_error(cloud: t.Any) -> None:
    instance = launch(cloud)
    for host in ("hv1", "hv2"):
        assert cloud.state({"uuids": [instance["uuid"]], "state": "retry", "host": host, "reason": "no"})["retry"]
        cloud.place(instance["uuid"], {"hv1": "hv2", "hv2": "hv3"}[host])
    last = {"uuids": [instance["uuid"]], "state": "retry", "host": "hv3", "reason": "no room"}
    result = cloud.state(last)
    assert result["retry"] == [] and result["changed"]
    (now,) = result["instances"]
    assert (now["vm_state"], now["host"], now["attempts"]) == ("error", None, ["hv1", "hv2", "hv3"])
    assert now["fault"]["message"] == "no room (the last of 3 attempts: hv1, hv2, hv3)"
    assert [error["message"] for error in result["errors"]] == [now["fault"]["message"]]
    assert claims(cloud) == [] and now["nics"][0]["ip"] is None
    assert again(cloud, last)["errors"] == result["errors"]
    events = cloud.info(actions=True)[0]["actions"][0]["events"]
    assert [(event["host"], event["result"]) for event in events] == [(f"hv{n}", "Error") for n in (1, 2, 3)]


def test_max_attempts_of_one_never_retries(cloud: t.Any) -> None:
    instance = launch(cloud)
    result = cloud.state({"uuids": [instance["uuid"]], "state": "retry", "reason": "no"}, max_attempts=1)
    assert not result["retry"] and result["instances"][0]["vm_state"] == "error"


def test_deleted_leaves_nothing(cloud: t.Any) -> None:
    instance = running(cloud)
    cloud.server({"name": "web"}, state="absent")
    outcome = {"uuids": [instance["uuid"]], "state": "deleted"}
    result = cloud.state(outcome)
    (now,) = result["instances"]
    assert (now["vm_state"], now["task_state"], now["power_state"]) == ("deleted", None, 0)
    assert now["terminated_at"] and now["nics"] == [] and now["security_groups"] == []
    assert claims(cloud) == [] and owners(cloud) == set() and vcpus_used(cloud) == 0
    assert cloud.rows(sa.select(tables.vif)) == [] and cloud.rows(sa.select(tables.instance_security_group)) == []
    assert cloud.info() == [] and [instance["name"] for instance in cloud.info(deleted=True)] == ["web"]
    log = cloud.info(deleted=True, actions=True)[0]["actions"]
    assert [(action["action"], action["finished_at"] is not None) for action in log] == [
        ("delete", True),
        ("create", True),
    ]
    assert again(cloud, outcome)["errors"] == []


def test_a_hosts_address_stays_as_long_as_an_instance_needs_it(cloud: t.Any) -> None:
    first, second = running(cloud, "web"), running(cloud, "db")
    running(cloud, "far", "hv2")
    assert {"dhcp:hv1", "dhcp:hv2"} <= owners(cloud)
    for server in (first, second):
        assert "dhcp:hv1" in owners(cloud)
        cloud.server({"name": server["name"]}, state="absent")
        cloud.state({"uuids": [server["uuid"]], "state": "deleted"})
    assert "dhcp:hv1" not in owners(cloud) and "dhcp:hv2" in owners(cloud)


def test_only_what_was_to_be_deleted_can_be_gone(cloud: t.Any) -> None:
    instance = running(cloud)
    (error,) = again(cloud, {"uuids": [instance["uuid"]], "state": "deleted"})["errors"]
    assert error["message"] == "'web' is active and not being deleted: run server with state=absent first"


def test_a_deletion_that_failed_keeps_what_the_guest_may_still_use(cloud: t.Any) -> None:
    instance = running(cloud)
    cloud.server({"name": "web"}, state="absent")
    outcome = {"uuids": [instance["uuid"]], "state": "error", "reason": "host unreachable"}
    result = cloud.state(outcome)
    (now,) = result["instances"]
    assert (now["vm_state"], now["task_state"], now["host"]) == ("active", "deleting", "hv1")
    assert (
        now["fault"]["message"] == "host unreachable" and now["nics"][0]["ip"] and claims(cloud) == [instance["uuid"]]
    )
    assert [error["message"] for error in result["errors"]] == ["host unreachable"]
    again(cloud, outcome)
    assert cloud.server({"name": "web"}, state="absent")["to_delete"]
    assert cloud.state({"uuids": [instance["uuid"]], "state": "deleted"})["changed"]
    assert claims(cloud) == []


def test_one_refused_outcome_does_not_stop_the_others(cloud: t.Any) -> None:
    first, second, third = launch(cloud, "a"), running(cloud, "b"), launch(cloud, "c")
    result = cloud.state(
        {"uuids": [second["uuid"]], "state": "deleted"},
        {"uuids": [first["uuid"]], "state": "active"},
        {"uuids": [third["uuid"]], "state": "retry", "reason": "no"},
    )
    assert {error["name"] for error in result["errors"]} == {"b"}
    assert [instance["vm_state"] for instance in result["instances"]] == ["active", "active", "building"]
    assert [instance["name"] for instance in result["retry"]] == ["c"]
    assert set(result["diff"]["after"]) == {"a", "c"}


def test_an_outcome_of_a_server_that_never_was_is_refused(cloud: t.Any) -> None:
    """The ledger is another one than the run began with: nothing of what the run did may be taken for recorded."""
    instance = launch(cloud)
    before = cloud.dump()
    with pytest.raises(NotFoundError, match="the ledger knows no server no-such"):
        cloud.state({"uuids": [instance["uuid"]], "state": "active"}, {"uuids": ["no-such"], "state": "active"})
    assert cloud.dump() == before


def test_outcomes_that_contradict_each_other_are_refused(cloud: t.Any) -> None:
    instance = launch(cloud)
    before = cloud.dump()
    with pytest.raises(NovaliteError, match="two outcomes"):
        cloud.state({"uuids": [instance["uuid"]], "state": "active"}, {"uuids": [instance["uuid"]], "state": "error"})
    with pytest.raises(NovaliteError, match="state 'fine'"):
        cloud.state({"uuids": [instance["uuid"]], "state": "fine"})
    assert cloud.dump() == before


@pytest.mark.parametrize(
    ("message", "line"),
    [
        (None, ""),
        ("  a\n\tb\x00c ", "a b c"),
        ("GET http://joe:geheim@example.com/x failed", "GET http://***@example.com/x failed"),
        ("password=geheim refused", "password=*** refused"),
        ("admin_password: geheim", "admin_password: ***"),
        ("the token expired", "the token expired"),
    ],
)
def test_messages_become_one_line_without_secrets(message: str | None, line: str) -> None:
    assert one_line(message) == line
