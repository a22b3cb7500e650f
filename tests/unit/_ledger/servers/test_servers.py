# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import time
import typing as t

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._errors import (
    ConflictError,
    NotFoundError,
    NovaliteError,
    QuotaError,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.tables_migrations import departure
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.network import vifs

DEMO = "d" * 32
Entry = dict[str, t.Any]


def ask(name: str = "web", **more: t.Any) -> Entry:
    return {"name": name, "flavor": "m1.nano", "image": "ami-tiny", **more}


def test_a_new_server_is_recorded_whole(cloud: t.Any) -> None:
    result = cloud.server(ask("Web", key="test", availability_zone="nova", metadata={"tier": "1"}, hints={"x": ["y"]}))
    assert result["changed"] and not result["existing"] and not result["differences"] and not result["to_delete"]
    (instance,) = result["to_build"]
    names = (instance["name"], instance["hostname"], instance["domain_name"])
    assert names == ("Web", "web", f"instance-{instance['id']:08x}")
    assert instance["project"] == {"id": DEMO, "name": "demo"}
    states = (instance["vm_state"], instance["task_state"], instance["power_state"], instance["host"])
    assert states == ("building", "scheduling", 0, None)
    assert instance["flavor"]["memory_mb"] == 96 and instance["image"]["disk_format"] == "qcow2"
    assert instance["key"] == {"name": "test", "public_key": "ssh-ed25519 AAAA test"}
    choices = (instance["availability_zone"], instance["metadata"], instance["request"])
    assert choices == ("nova", {"tier": "1"}, {"x": ["y"]})
    assert [group["name"] for group in instance["security_groups"]] == ["default"]
    (nic,) = instance["nics"]
    assert nic["mac"].startswith("fa:16:3e:") and nic["ip"] is None and nic["network"]["name"] == "private"
    (action,) = cloud.info(name="Web", actions=True)[0]["actions"]
    assert (action["action"], action["request_id"], action["finished_at"]) == ("create", result["request_id"], None)
    assert result["request_id"].startswith("req-") and len(result["request_id"]) == 40
    assert result["diff"]["before"] == {} and result["diff"]["after"]["Web"]["networks"] == ["private"]


def test_count_makes_numbered_servers_with_macs_of_their_own(cloud: t.Any) -> None:
    built = cloud.server(ask(count=3))["to_build"]
    assert [instance["name"] for instance in built] == ["web-1", "web-2", "web-3"]
    assert len({instance["nics"][0]["mac"] for instance in built}) == len({instance["uuid"] for instance in built}) == 3


def test_check_mode_shows_all_and_writes_nothing(cloud: t.Any) -> None:
    before = cloud.dump()
    assert len(cloud.server(ask(count=3), check_mode=True)["to_build"]) == 3
    assert cloud.dump() == before


@pytest.mark.parametrize(
    ("entries", "error", "message"),
    [
        ([ask(), ask("db", flavor="m9")], NotFoundError, "m9"),
        ([ask(), ask("db", image="win")], NotFoundError, "win"),
        ([ask(), ask("db", key="mine")], NotFoundError, "mine"),
        ([ask(), ask("db", networks=["dmz"])], NotFoundError, "dmz"),
        ([ask(), ask("db", security_groups=["open"])], NotFoundError, "open"),
        ([ask(), {"name": "db", "image": "ami-tiny"}], NovaliteError, "'db' does not exist yet and names no flavor"),
        ([ask(), {"name": "db", "flavor": "m1.nano"}], NovaliteError, "'db' does not exist yet and names no image"),
        ([ask(), ask("db", image="ami-ram")], NovaliteError, "96 MiB of RAM, the image needs 1024"),
        ([ask(), ask("db", flavor="m1.tiny", image="ami-disk")], NovaliteError, "1 GiB, the image needs 2"),
        ([ask(), ask("db", flavor="m1.tiny", image="ami-wide")], NovaliteError, "1 GiB, the image's disk 2 GiB"),
        ([ask(), ask("db", count=10)], QuotaError, "for instances: Requested 11, but already used 0 of 10 instances"),
        ([ask(), ask("db", flavor="m1.large", count=5)], QuotaError, "for cores: Requested 21, but already used 0 of"),
        ([ask(), ask("a..b")], NovaliteError, "'a..b' is not a host name"),
        ([ask(), ask("db", networks=[{"name": "private", "fixed_ip": "10.9.0.5"}])], NovaliteError, "10.9.0.5"),
        ([ask(), ask("db", networks=[{"name": "private", "fixed_ip": "10.20.0.15"}])], NovaliteError, "10.20.0.15"),
        ([ask(), ask("db", metadata={str(n): "" for n in range(129)})], QuotaError, "129 items: at most 128"),
    ],
)
def test_one_wrong_server_stops_all(
    cloud: t.Any, entries: list[Entry], error: type[NovaliteError], message: str
) -> None:
    before = cloud.dump()
    with pytest.raises(error) as caught:
        cloud.server(*entries)
    assert message in str(caught.value) and "\n" not in str(caught.value)
    assert cloud.dump() == before


def test_unknown_project(cloud: t.Any) -> None:
    with pytest.raises(NotFoundError, match="nowhere"):
        cloud.server(ask(), project="nowhere")


def test_the_only_network_is_the_default_and_a_choice_must_be_made_among_two(cloud: t.Any) -> None:
    cloud.network("hidden", "10.21.0.0/28", owner="e" * 32)
    assert cloud.server(ask("one"))["to_build"][0]["nics"][0]["network"]["name"] == "private"
    cloud.network("mine", "10.22.0.0/28", owner=DEMO)
    with pytest.raises(NovaliteError, match=r"'two' names no network, and project 'demo' sees 2 \(mine, private\)"):
        cloud.server(ask("two"))
    (two,) = cloud.server(ask("two", networks=["mine", "private"]))["to_build"]
    assert [nic["network"]["name"] for nic in two["nics"]] == ["mine", "private"]
    with pytest.raises(NotFoundError, match="hidden"):
        cloud.server(ask("three", networks=["hidden"]))
    cloud.write(sa.update(tables.network).values(owner="x" * 32))
    with pytest.raises(NotFoundError, match="project 'demo' sees none"):
        cloud.server(ask("four"))


@pytest.mark.both_databases
def test_quota_counts_what_is_there_and_lets_go_of_what_is_deleted(cloud: t.Any) -> None:
    cloud.server(ask("web", count=9))
    with pytest.raises(QuotaError, match=r"^Quota exceeded for instances: Requested 3, but already used 9 of 10 inst"):
        cloud.server(ask("db", count=3))
    (gone,) = cloud.server({"name": "web-1"}, state="absent")["to_delete"]
    with pytest.raises(QuotaError):
        cloud.server(ask("db", count=2))
    cloud.state({"uuids": [gone["uuid"]], "state": "deleted"})
    assert len(cloud.server(ask("db", count=2))["to_build"]) == 2


@pytest.mark.both_databases
def test_quota_of_ram_and_fixed_ips(cloud: t.Any) -> None:
    cloud.network("dmz", "10.21.0.0/28")
    cloud.write(
        sa.insert(tables.quota).values([{"project_id": DEMO, "resource": "fixed_ips", "hard_limit": 3}]),
        sa.insert(tables.quota).values([{"project_id": DEMO, "resource": "ram", "hard_limit": 150}]),
    )
    cloud.server(ask("one", networks=["dmz", "private"]))
    with pytest.raises(QuotaError, match="for ram, fixed_ips: Requested 96, 2, but already used 96, 2 of 150, 3 ram"):
        cloud.server(ask("two", networks=["dmz", "private"]))
    with pytest.raises(QuotaError, match="for ram: Requested 96, but already used 96 of 150 ram"):
        cloud.server(ask("two", networks=["dmz"]))


def test_another_projects_servers_do_not_count(cloud: t.Any) -> None:
    cloud.server(ask(count=10), project="other")
    assert len(cloud.server(ask(count=10))["to_build"]) == 10


def test_a_server_that_runs_is_left_alone(cloud: t.Any) -> None:
    (instance,) = cloud.server(ask(key="test"))["to_build"]
    cloud.place(instance["uuid"])
    cloud.state({"uuids": [instance["uuid"]], "state": "active", "host": "hv1"})
    cloud.write(sa.delete(tables.flavor).where(tables.flavor.c.name == "m1.nano"))
    before = cloud.dump()
    result = cloud.server(ask(key="test"))
    assert (result["changed"], result["to_build"], result["differences"]) == (False, [], [])
    assert [instance["name"] for instance in result["existing"]] == ["web"] and "diff" not in result
    result = cloud.server(ask(flavor="m1.large", image="ami-ram"))
    assert not result["changed"]
    assert result["differences"] == [
        {"name": "web", "field": "flavor", "requested": "m1.large", "actual": "m1.nano"},
        {"name": "web", "field": "image", "requested": "ami-ram", "actual": "ami-tiny"},
    ]
    assert cloud.dump() == before


@pytest.mark.parametrize("project", ["demo", "other"])
@pytest.mark.parametrize(
    "asked",
    [
        {"count": 2},
        {"networks": [{"name": "private", "fixed_ip": "10.20.0.9"}], "hints": {"host": "hv1"}},
        {"networks": ["private", {"name": "storage", "fixed_ip": "10.21.0.9"}]},
        {"metadata": {"colour": "red"}, "user_data": "#!/bin/sh\n", "config_drive": True},
        {"volumes": [{"boot": True, "size": 1, "delete_on_termination": True}, {"size": 2}]},
    ],
    ids=lambda asked: "+".join(asked),
)
def test_whatever_it_was_asked_for_with_it_is_left_alone(cloud: t.Any, project: str, asked: Entry) -> None:
    cloud.network("storage", "10.21.0.0/24")
    request = ask(**{"networks": ["private"], **asked})
    for instance in cloud.server(request, project=project)["to_build"]:
        cloud.place(instance["uuid"])
        cloud.state({"uuids": [instance["uuid"]], "state": "active", "host": "hv1"})
    before = cloud.dump()
    result = cloud.server(request, project=project)
    assert (result["changed"], result["to_build"], result["differences"]) == (False, [], [])
    assert len(result["existing"]) == asked.get("count", 1)
    assert cloud.dump() == before


def test_more_of_a_kind_adds_what_is_missing(cloud: t.Any) -> None:
    for instance in cloud.server(ask(count=2))["to_build"]:
        cloud.place(instance["uuid"])
        cloud.state({"uuids": [instance["uuid"]], "state": "active"})
    result = cloud.server(ask(count=3))
    assert [instance["name"] for instance in result["existing"]] == ["web-1", "web-2"]
    assert [instance["name"] for instance in result["to_build"]] == ["web-3"]


def test_a_failed_server_is_begun_again_as_itself(cloud: t.Any) -> None:
    (instance,) = cloud.server(ask(hints={"a": 1}, networks=[{"name": "private", "fixed_ip": "10.20.0.9"}]))["to_build"]
    assert instance["nics"][0]["ip"] == "10.20.0.9"
    cloud.place(instance["uuid"])
    cloud.state({"uuids": [instance["uuid"]], "state": "error", "reason": "boom"})
    assert cloud.info(name="web")[0]["nics"][0]["ip"] is None
    result = cloud.server(ask())
    (again,) = result["to_build"]
    for same in ("id", "uuid", "request", "created_at"):
        assert again[same] == instance[same]
    assert again["nics"][0]["mac"] == instance["nics"][0]["mac"]
    assert again["nics"][0]["ip"] == "10.20.0.9"
    assert (again["fault"], again["attempts"], again["host"]) == (None, [], None)
    assert (again["vm_state"], again["task_state"]) == ("building", "scheduling")
    assert result["changed"] and result["diff"]["before"]["web"]["vm_state"] == "error"
    actions = cloud.info(name="web", actions=True)[0]["actions"]
    assert [action["finished_at"] is None for action in actions] == [True, False]


def test_a_host_that_a_build_left_is_written_down_until_it_is_tried_there_again(cloud: t.Any) -> None:
    def left() -> dict[str, str]:
        return {row.host: row.reason for row in cloud.rows(sa.select(departure))}

    (instance,) = cloud.server(ask())["to_build"]
    cloud.place(instance["uuid"], "hv1")
    cloud.state({"uuids": [instance["uuid"]], "state": "retry", "host": "hv1"})
    assert left() == {"hv1": "retried"}
    cloud.place(instance["uuid"], "hv2")
    # somebody took its claim away, and it is placed anew
    cloud.write(sa.delete(tables.allocation))
    cloud.place(instance["uuid"], "hv3")
    assert left() == {"hv1": "retried", "hv2": "retried"}
    cloud.state({"uuids": [instance["uuid"]], "state": "error", "reason": "boom"})
    assert left() == {"hv1": "retried", "hv2": "retried", "hv3": "retried"}
    cloud.server(ask())
    cloud.place(instance["uuid"], "hv1")
    assert left() == {"hv2": "retried", "hv3": "retried"}


@pytest.mark.parametrize(
    "corrected", [{"flavor": "m1.nano"}, {"availability_zone": None}, {"security_groups": []}, {"hints": {"a": 2}}]
)
def test_a_failed_server_that_is_asked_for_otherwise_is_made_anew(cloud: t.Any, corrected: dict[str, t.Any]) -> None:
    cloud.host("hv9", zone="mars")
    request: dict[str, t.Any] = {"flavor": "m1.tiny", "availability_zone": "mars", "hints": {"a": 1}}
    (instance,) = cloud.server(ask(**request))["to_build"]
    cloud.state({"uuids": [instance["uuid"]], "state": "error", "reason": "No valid host"})
    (again,) = cloud.server(ask(**{**request, **corrected}))["to_build"]
    assert again["uuid"] != instance["uuid"] and again["flavor"]["name"] == corrected.get("flavor", "m1.tiny")
    assert [other["uuid"] for other in cloud.info()] == [again["uuid"]]
    (buried,) = [other for other in cloud.info(deleted=True) if other["uuid"] == instance["uuid"]]
    assert (buried["vm_state"], buried["nics"], buried["security_groups"]) == ("deleted", [], [])


def test_a_failed_server_whose_address_went_to_another_says_so(cloud: t.Any) -> None:
    (instance,) = cloud.server(ask(networks=[{"name": "private", "fixed_ip": "10.20.0.9"}]))["to_build"]
    cloud.state({"uuids": [instance["uuid"]], "state": "error", "reason": "boom"})
    cloud.server(ask("db", networks=[{"name": "private", "fixed_ip": "10.20.0.9"}]))
    with pytest.raises(ConflictError, match=r"10\.20\.0\.9 in network 'private' .* is in use by instance 'db'"):
        cloud.server(ask())


def test_a_build_of_another_run_is_not_touched_until_it_is_old_or_dead(cloud: t.Any) -> None:
    (instance,) = cloud.server(ask())["to_build"]
    cloud.place(instance["uuid"])
    now = int(time.time())
    cloud.write(sa.update(tables.instance).values(updated_at=now - 500))
    with pytest.raises(ConflictError, match=r"'web' is being built by another run since 50\d s: .*takeover=true"):
        cloud.server(ask())
    with pytest.raises(ConflictError):
        cloud.server(ask("db"), ask())
    assert [instance["name"] for instance in cloud.info()] == ["web"]
    (taken,) = cloud.server(ask(), takeover=True)["to_build"]
    # the host is kept: a guest that the dead run started must be found there, not started elsewhere, too
    assert (taken["uuid"], taken["host"], taken["task_state"]) == (instance["uuid"], "hv1", "scheduling")
    assert taken["updated_at"] >= now
    cloud.write(sa.update(tables.instance).values(updated_at=now - 601))
    assert cloud.server(ask())["to_build"]
    cloud.write(sa.update(tables.instance).values(updated_at=now - 20))
    assert cloud.server(ask(), build_timeout=10)["to_build"]


def test_what_is_being_deleted_is_not_begun_again(cloud: t.Any) -> None:
    cloud.server(ask())
    cloud.server({"name": "web"}, state="absent")
    with pytest.raises(ConflictError, match="'web' is being deleted"):
        cloud.server(ask(), takeover=True)


def test_a_hostname_has_one_owner(cloud: t.Any) -> None:
    cloud.server(ask("web", hostname="front"))
    with pytest.raises(ConflictError, match="'Front' would get the host name 'front', which server 'web' has"):
        cloud.server(ask("Front"))
    assert cloud.server(ask("front"), project="other")["changed"]


def test_absent_takes_exactly_the_names(cloud: t.Any) -> None:
    cloud.server(ask(count=3), ask("web"), ask("web-10"))
    result = cloud.server({"name": "web", "count": 2}, {"name": "never"}, state="absent")
    assert [instance["name"] for instance in result["to_delete"]] == ["web-1", "web-2"]
    assert {instance["task_state"] for instance in result["to_delete"]} == {"deleting"}
    assert result["changed"] and set(result["diff"]["before"]) == {"web-1", "web-2"} and result["diff"]["after"] == {}
    log = cloud.info(name="web-1", actions=True)[0]["actions"]
    assert [action["action"] for action in log] == ["delete", "create"]
    assert log[1]["finished_at"] is not None


def test_absent_of_nothing_changes_nothing_and_of_something_can_be_repeated(cloud: t.Any) -> None:
    result = cloud.server({"name": "web"}, state="absent")
    assert (result["changed"], result["to_delete"]) == (False, []) and "diff" not in result
    cloud.server(ask())
    (first,) = cloud.server({"name": "web"}, state="absent")["to_delete"]
    before = cloud.dump()
    (second,) = cloud.server({"name": "web"}, state="absent")["to_delete"]
    assert first == second and cloud.dump() == before


def test_absent_leaves_other_projects_alone(cloud: t.Any) -> None:
    cloud.server(ask(), project="other")
    assert not cloud.server({"name": "web"}, state="absent")["changed"]


def test_a_deleted_name_can_be_used_again_and_ids_never(cloud: t.Any) -> None:
    (instance,) = cloud.server(ask())["to_build"]
    cloud.server({"name": "web"}, state="absent")
    cloud.state({"uuids": [instance["uuid"]], "state": "deleted"})
    (two,) = cloud.server(ask())["to_build"]
    assert two["id"] > instance["id"] and two["uuid"] != instance["uuid"]


def test_a_chosen_address_goes_to_one(cloud: t.Any) -> None:
    chosen = [{"name": "private", "fixed_ip": "10.20.0.9"}]
    (instance,) = cloud.server(ask(networks=chosen))["to_build"]
    assert instance["nics"][0]["ip"] == "10.20.0.9"
    with pytest.raises(ConflictError, match=r"10\.20\.0\.9"):
        cloud.server(ask("db", networks=chosen))
    cloud.server({"name": "web"}, state="absent")
    cloud.state({"uuids": [instance["uuid"]], "state": "deleted"})
    assert cloud.server(ask("db", networks=chosen))["to_build"][0]["nics"][0]["ip"] == "10.20.0.9"


def test_macs_that_are_taken_are_drawn_again(cloud: t.Any, monkeypatch: pytest.MonkeyPatch) -> None:
    taken = cloud.server(ask("one"))["to_build"][0]["nics"][0]["mac"]
    draws = iter([taken, taken, "fa:16:3e:00:00:01", "fa:16:3e:00:00:01", "fa:16:3e:00:00:02"])
    monkeypatch.setattr(vifs, "new_mac", lambda prefix: next(draws))
    built = cloud.server(ask(count=2))["to_build"]
    assert {instance["nics"][0]["mac"] for instance in built} == {"fa:16:3e:00:00:01", "fa:16:3e:00:00:02"}


def test_macs_are_made_under_the_prefix_that_is_asked_for(cloud: t.Any) -> None:
    [instance] = cloud.server(ask("one"), mac_prefix="02:00:5E")["to_build"]
    assert instance["nics"][0]["mac"].startswith("02:00:5e:")
    for prefix in ("00:16:3e", "03:00:00", "fa16"):
        with pytest.raises(NovaliteError, match=f"MAC prefix '{prefix}'"):
            cloud.server(ask("two"), mac_prefix=prefix)
    assert [row["name"] for row in cloud.info()] == ["one"]
