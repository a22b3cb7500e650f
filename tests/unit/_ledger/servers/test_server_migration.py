# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The module `server_migration`: claims on both hosts, an instance's host, and what a cut-off run leaves."""

from __future__ import annotations

import typing as t

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._errors import ConflictError, NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.tables_addresses import OF_HOST
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.tables_migrations import migration
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.placement import departures
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.steps.ledger_heal import ledger_heal

pytestmark = pytest.mark.usefixtures("two_hosts", "no_domains")


def ask(cloud: t.Any, action: str, *servers: t.Any, check_mode: bool = False, **params: t.Any) -> dict[str, t.Any]:
    named = {"servers": list(servers)} if servers else {}
    return t.cast(
        "dict[str, t.Any]", cloud.task("server_migration", check_mode=check_mode, action=action, **named, **params)
    )


def server(cloud: t.Any, name: str = "web", vm_state: str = "active", host: str = "hv1") -> str:
    (instance,) = cloud.server({"name": name, "flavor": "m1.nano", "image": "ami-tiny"})["to_build"]
    cloud.place(instance["uuid"], host)
    cloud.state({"uuids": [instance["uuid"]], "state": "active", "host": host})
    power_state = 4 if vm_state == "stopped" else 1
    values = {"vm_state": vm_state, "power_state": power_state}
    cloud.write(sa.update(tables.instance).where(tables.instance.c.uuid == instance["uuid"]).values(**values))
    return str(instance["uuid"])


def row(cloud: t.Any, uuid: str) -> t.Any:
    return cloud.rows(sa.select(tables.instance).where(tables.instance.c.uuid == uuid))[0]


def status(cloud: t.Any) -> str:
    return str(cloud.rows(sa.select(migration.c.status).order_by(migration.c.id.desc()))[0].status)


def claims(cloud: t.Any, uuid: str) -> dict[str, tuple[int, int]]:
    c = tables.allocation.c
    query = sa.select(tables.compute_host.c.name, c.vcpus, c.memory_mb).join(
        tables.compute_host, tables.compute_host.c.id == c.compute_host_id
    )
    return {
        record.name: (record.vcpus, record.memory_mb) for record in cloud.rows(query.where(c.instance_uuid == uuid))
    }


def check_sums(cloud: t.Any) -> None:
    """Check that hosts use what is claimed on them, and that every claim has an owner."""
    with transaction(cloud.engine, check_mode=True) as connection:
        corrections = ledger_heal(connection, {"build_timeout": 10**9})["corrections"]
    assert [correction for correction in corrections if correction["kind"] in ("allocation", "compute_host")] == []


def well(*hosts: str, **more: t.Any) -> list[dict[str, t.Any]]:
    return [{"host": host, **more} for host in hosts]


def carried(cloud: t.Any, action: str, begun: dict[str, t.Any], parts: tuple[str, str] = ("hv1", "hv2")) -> None:
    """Both hosts did all that they were asked to."""
    moves = begun["moves"]
    if action != "live-migration":
        done = ask(cloud, action, state="commit", moves=moves, outcomes=well(*parts))
        assert (len(done["done"]), done["errors"]) == (len(moves), [])
    uuids = [move["uuid"] for move in moves]
    ended = ask(cloud, action, state="end", moves=moves, outcomes=well(*parts, done=uuids))
    assert (ended["done"], ended["errors"]) == (uuids, [])


def left(cloud: t.Any, uuid: str) -> dict[str, str]:
    """The hosts that the instance has left, and why."""
    with transaction(cloud.engine) as connection:
        return departures.of_instances(connection, [uuid]).get(uuid, {})


def test_the_host_that_a_guest_left_is_written_down_until_it_comes_back(cloud: t.Any) -> None:
    uuid = server(cloud)
    away = ask(cloud, "live-migration", "web", host="hv2")
    assert left(cloud, uuid) == {}
    carried(cloud, "live-migration", away)
    assert left(cloud, uuid) == {"hv1": "moved"}
    back = ask(cloud, "live-migration", "web", host="hv1")
    assert left(cloud, uuid) == {}  # what arrives there is the guest
    carried(cloud, "live-migration", back, ("hv2", "hv1"))
    assert left(cloud, uuid) == {"hv2": "moved"}
    carried(cloud, "resize", ask(cloud, "resize", "web", flavor="m1.tiny"))
    assert left(cloud, uuid) == {"hv1": "moved"}  # which keeps the disks
    carried(cloud, "revertResize", ask(cloud, "revertResize", "web"), ("hv2", "hv1"))
    assert left(cloud, uuid) == {"hv2": "reverted"}
    # one that did not get there may have left something there all the same
    again = ask(cloud, "live-migration", "web", host="hv2")
    outcomes = well("hv1", error="no room", here=[uuid])
    ask(cloud, "live-migration", state="end", moves=again["moves"], outcomes=[*outcomes, *well("hv2", done=[])])
    assert (row(cloud, uuid).host, left(cloud, uuid)) == ("hv1", {"hv2": "reverted"})


@pytest.mark.both_databases
def test_a_resize_claims_on_both_hosts_until_it_is_confirmed(cloud: t.Any) -> None:
    uuid = server(cloud)
    begun = ask(cloud, "resize", "web", flavor="m1.tiny")
    (move,) = begun["moves"]
    assert (move["from_host"], move["to_host"], move["starts"]) == ("hv1", "hv2", True)
    assert set(claims(cloud, uuid)) == {"hv1", "hv2"}
    assert (row(cloud, uuid).task_state, row(cloud, uuid).host, status(cloud)) == ("resize_prep", "hv1", "migrating")
    assert [instance["uuid"] for instance in begun["hosts"]["hv1"]["leaving"]] == [uuid]
    assert begun["hosts"]["hv2"]["build"]["domains"][0]["xml"].endswith("on hv2</domain>")
    assert begun["hosts"]["hv1"]["leave"]["domains"][0]["xml"].endswith("on hv1</domain>")
    assert begun["hosts"]["hv2"]["build"]["injections"] == []
    carried(cloud, "resize", begun)
    now = row(cloud, uuid)
    assert (now.vm_state, now.task_state, now.host, now.flavor["name"]) == ("resized", None, "hv2", "m1.tiny")
    check_sums(cloud)
    confirm = ask(cloud, "confirmResize", "web")
    ended = ask(cloud, "confirmResize", state="end", moves=confirm["moves"], parts=["from_host"], outcomes=well("hv1"))
    assert ended["errors"] == []
    assert (row(cloud, uuid).vm_state, status(cloud), set(claims(cloud, uuid))) == ("active", "confirmed", {"hv2"})
    check_sums(cloud)
    assert ask(cloud, "confirmResize", "web")["changed"] is False
    assert ask(cloud, "resize", "web", flavor="m1.tiny")["changed"] is False


@pytest.mark.parametrize("launched", [False, True])
def test_what_a_host_is_to_lose_is_what_nothing_uses_in_the_end(cloud: t.Any, launched: bool) -> None:
    """Somebody launched an instance there while the disks were on their way."""
    server(cloud)
    begun = ask(cloud, "resize", "web", flavor="m1.tiny")
    before = begun["hosts"]["hv1"]["leave"]
    assert [bridge["name"] for bridge in before["last_bridges"]] == ["br-private"]
    if launched:
        server(cloud, "late")
    ask(cloud, "resize", state="commit", moves=begun["moves"], outcomes=well("hv1", "hv2"))
    ended = ask(cloud, "resize", state="end", moves=begun["moves"], outcomes=well("hv1", "hv2"))
    of_host = sa.select(tables.fixed_ip.c.ip).where(tables.fixed_ip.c.owner == f"{OF_HOST}hv1")
    assert bool(cloud.rows(of_host)) == launched  # it was not taken again for the plan
    now = ended["unused"]["hv1"]["leave"]
    assert set(ended["unused"]) == {"hv1"} and set(ended["unused"]["hv1"]) == {"leave"}
    assert now == {field: before[field] for field in now} if not launched else now["last_bridges"] == []


def test_what_a_host_is_to_lose_of_a_guest_that_did_not_come_up_is_what_nothing_uses(cloud: t.Any) -> None:
    server(cloud)
    begun = ask(cloud, "resize", "web", flavor="m1.tiny")
    ask(cloud, "resize", state="commit", moves=begun["moves"], outcomes=well("hv1", "hv2"))
    failed = [{"host": "hv1"}, {"host": "hv2", "error": "no such device"}]
    server(cloud, "late", host="hv2")
    ended = ask(cloud, "resize", state="end", moves=begun["moves"], outcomes=failed)
    assert set(ended["unused"]) == {"hv2"} and ended["unused"]["hv2"]["build"]["last_bridges"] == []


def test_a_host_keeps_its_address_in_the_network_of_a_guest_that_is_on_its_way(cloud: t.Any) -> None:
    server(cloud)
    before_it = server(cloud, "db", host="hv2")
    moves = ask(cloud, "resize", "web", flavor="m1.tiny")
    (plan,) = moves["hosts"]["hv2"]["build"]["dhcp_networks"]
    assert plan["listen"]
    cloud.write(sa.update(tables.instance).where(tables.instance.c.uuid == before_it).values(task_state="deleting"))
    cloud.state({"uuids": [before_it], "state": "deleted", "host": "hv2"})
    owner = sa.select(tables.fixed_ip.c.ip).where(tables.fixed_ip.c.owner == OF_HOST + "hv2")
    assert len(cloud.rows(owner)) == 1
    ask(cloud, "resize", state="commit", moves=moves["moves"], outcomes=[{"host": "hv1", "error": "no disks"}])
    assert cloud.rows(owner) == []  # nobody comes any more


@pytest.mark.both_databases
def test_a_revert_leads_back_to_everything_that_was(cloud: t.Any) -> None:
    uuid = server(cloud, vm_state="stopped")
    before = row(cloud, uuid)
    begun = ask(cloud, "migrate", "web")
    assert begun["moves"][0]["starts"] is False
    carried(cloud, "migrate", begun)
    assert (row(cloud, uuid).vm_state, row(cloud, uuid).power_state) == ("resized", 4)
    back = ask(cloud, "revertResize", "web")
    assert [(move["from_host"], move["to_host"]) for move in back["moves"]] == [("hv2", "hv1")]
    carried(cloud, "revertResize", back)
    after = row(cloud, uuid)
    fields = ("host", "flavor", "vm_state", "power_state", "task_state")
    assert [getattr(after, field) for field in fields] == [getattr(before, field) for field in fields]
    assert (status(cloud), set(claims(cloud, uuid))) == ("reverted", {"hv1"})
    check_sums(cloud)


@pytest.mark.both_databases
def test_a_check_changes_nothing(cloud: t.Any) -> None:
    server(cloud)
    before = cloud.dump()
    planned = ask(cloud, "resize", "web", flavor="m1.tiny", check_mode=True)
    assert planned["diff"]["after"]["web"]["destination"] == "hv2"
    assert cloud.dump() == before


def test_disks_that_did_not_arrive_leave_it_where_it_was(cloud: t.Any) -> None:
    uuid = server(cloud)
    begun = ask(cloud, "migrate", "web")
    failed = ask(
        cloud,
        "migrate",
        state="commit",
        moves=begun["moves"],
        outcomes=[{"host": "hv1"}, {"host": "hv2", "error": "no space left"}],
    )
    assert [error["message"] for error in failed["errors"]] == ["'web': no space left"]
    now = row(cloud, uuid)
    assert (now.vm_state, now.task_state, now.host, status(cloud)) == ("active", None, "hv1", "error")
    assert set(claims(cloud, uuid)) == {"hv1"}
    check_sums(cloud)


def test_a_host_that_says_nothing_has_done_nothing(cloud: t.Any) -> None:
    uuid = server(cloud)
    begun = ask(cloud, "migrate", "web")
    failed = ask(cloud, "migrate", state="commit", moves=begun["moves"], outcomes=well("hv1"))
    assert "host hv2 did not answer" in failed["errors"][0]["message"]
    assert row(cloud, uuid).host == "hv1"


def test_each_step_takes_over_what_went_wrong_before_it(cloud: t.Any) -> None:
    """Whatever is lost is named to the end, once, and the hosts that undo it are those that did it."""
    uuids = [server(cloud, name) for name in ("a", "b")]
    begun = ask(cloud, "migrate", "a", "b")
    so_far = {"moves": begun["moves"], "lost": [], "failures": [{"message": "of a move before"}]}
    so_far["targets"] = begun["targets"]
    assert begun["targets"]["stop"] == ["hv1"] and begun["targets"]["dest_open_channel"] == ["hv2"]
    # as if another run had ended the first one's
    cloud.write(sa.update(migration).where(migration.c.instance_uuid == uuids[0]).values(status="error"))
    committed = ask(cloud, "migrate", state="commit", before=so_far, outcomes=well("hv1", "hv2"))
    assert [move["uuid"] for move in committed["moves"]] == [uuids[1]]
    assert committed["targets"]["restore"] == ["hv1"] and committed["targets"]["dest_rollback"] == ["hv2"]
    outcomes = [{"host": "hv2", "error": "no kvm"}]
    ended = ask(cloud, "migrate", state="end", before=committed, parts=["to_host"], outcomes=outcomes)
    assert ended["lost_uuids"] == ended["lost_here"] == uuids and ended["done"] == ended["moves"] == []
    said = ["of a move before", "'a': its move was ended by another run", "'b': no kvm"]
    assert [failure["message"] for failure in ended["failures"]] == said
    assert [error["message"] for error in ended["errors"]] == said[2:]


def test_a_guest_of_which_nobody_knows_where_it_is_is_taken_away_from_nowhere(cloud: t.Any) -> None:
    uuids = [server(cloud, name) for name in ("a", "b")]
    begun = ask(cloud, "live-migration", "a", "b")
    outcomes = well("hv1", error="cut off", here=uuids[:1])
    ended = ask(cloud, "live-migration", state="end", before=begun, parts=["from_host"], outcomes=outcomes)
    assert ended["lost_uuids"] == uuids and ended["lost_here"] == uuids[:1]


def test_a_guest_that_does_not_come_up_goes_back(cloud: t.Any) -> None:
    uuid = server(cloud)
    begun = ask(cloud, "resize", "web", flavor="m1.tiny")
    ask(cloud, "resize", state="commit", moves=begun["moves"], outcomes=well("hv1", "hv2"))
    assert row(cloud, uuid).host == "hv2"
    failed = ask(
        cloud,
        "resize",
        state="end",
        moves=begun["moves"],
        parts=["to_host"],
        outcomes=[{"host": "hv2", "error": "out of memory"}],
    )
    assert failed["lost"][0]["uuid"] == uuid
    now = row(cloud, uuid)
    assert (now.host, now.flavor["name"], now.vm_state, now.task_state) == ("hv1", "m1.nano", "active", None)
    assert (status(cloud), set(claims(cloud, uuid))) == ("error", {"hv1"})
    check_sums(cloud)


@pytest.mark.both_databases
@pytest.mark.parametrize(
    ("committed", "host", "vm_state", "of_move", "claimed"),
    [(False, "hv1", "active", "error", {"hv1"}), (True, "hv2", "resized", "finished", {"hv1", "hv2"})],
)
def test_a_killed_run_leaves_it_on_one_host(
    cloud: t.Any, committed: bool, host: str, vm_state: str, of_move: str, claimed: set[str]
) -> None:
    uuid = server(cloud)
    begun = ask(cloud, "migrate", "web")
    if committed:
        ask(cloud, "migrate", state="commit", moves=begun["moves"], outcomes=well("hv1", "hv2"))
    cloud.write(sa.update(tables.instance).values(updated_at=1))
    with transaction(cloud.engine) as connection:
        ledger_heal(connection, {"build_timeout": 600})
    now = row(cloud, uuid)
    assert (now.host, now.vm_state, now.task_state, status(cloud)) == (host, vm_state, None, of_move)
    assert set(claims(cloud, uuid)) == claimed
    check_sums(cloud)


@pytest.mark.both_databases
def test_a_resize_on_its_own_host_keeps_one_claim(cloud: t.Any) -> None:
    uuid = server(cloud)
    begun = ask(cloud, "resize", "web", flavor="m1.tiny", same_host="only")
    assert [instance["uuid"] for instance in begun["hosts"]["hv1"]["staying"]] == [uuid]
    assert claims(cloud, uuid) == {"hv1": (1, 512)}
    carried(cloud, "resize", begun)
    back = ask(cloud, "revertResize", "web")
    carried(cloud, "revertResize", back)
    assert (claims(cloud, uuid), row(cloud, uuid).flavor["name"]) == ({"hv1": (1, 96)}, "m1.nano")
    check_sums(cloud)


@pytest.mark.both_databases
def test_where_no_other_host_has_room_its_own_may(cloud: t.Any) -> None:
    server(cloud)
    cloud.write(sa.update(tables.compute_host).where(tables.compute_host.c.name != "hv1").values(enabled=False))
    with pytest.raises(NovaliteError, match="No valid host"):
        ask(cloud, "migrate", "web")
    with pytest.raises(NovaliteError, match="No valid host"):
        ask(cloud, "resize", "web", flavor="m1.tiny", same_host="never")
    assert ask(cloud, "resize", "web", flavor="m1.tiny")["moves"][0]["same_host"] is True


@pytest.mark.parametrize("killed", [False, True])
def test_a_confirmation_that_was_cut_off_can_only_be_confirmed(cloud: t.Any, killed: bool) -> None:
    uuid = server(cloud)
    carried(cloud, "migrate", ask(cloud, "migrate", "web"))
    begun = ask(cloud, "confirmResize", "web")
    if killed:
        cloud.write(sa.update(tables.instance).values(updated_at=1))
        with transaction(cloud.engine) as connection:
            ledger_heal(connection, {"build_timeout": 600})
    else:
        silent = [{"host": "hv1", "error": "its host does not answer"}]
        ask(cloud, "confirmResize", state="end", moves=begun["moves"], parts=["from_host"], outcomes=silent)
    now = row(cloud, uuid)
    assert (now.host, now.vm_state, now.task_state, status(cloud)) == ("hv2", "resized", None, "confirming")
    assert set(claims(cloud, uuid)) == {"hv1", "hv2"}
    with pytest.raises(ConflictError, match=r"cannot be reverted: its resize was confirmed.* confirm it once more"):
        ask(cloud, "revertResize", "web")
    again = ask(cloud, "confirmResize", "web")
    ask(cloud, "confirmResize", state="end", moves=again["moves"], parts=["from_host"], outcomes=well("hv1"))
    assert (row(cloud, uuid).vm_state, status(cloud), set(claims(cloud, uuid))) == ("active", "confirmed", {"hv2"})
    check_sums(cloud)


def test_a_revert_whose_former_host_has_no_disk_changes_nothing(cloud: t.Any) -> None:
    uuid = server(cloud)
    carried(cloud, "migrate", ask(cloud, "migrate", "web"))
    begun = ask(cloud, "revertResize", "web")
    assert begun["targets"]["look_for_former"] == ["hv1"]
    outcomes = [
        {"host": "hv1", "error": "its disk is not there"},
        {"host": "hv2", "error": "hv1: its disk is not there"},
    ]
    failed = ask(cloud, "revertResize", state="commit", before=begun, parts=["from_host", "to_host"], outcomes=outcomes)
    assert failed["lost_uuids"] == [uuid]
    assert (row(cloud, uuid).host, row(cloud, uuid).vm_state, status(cloud)) == ("hv2", "resized", "finished")
