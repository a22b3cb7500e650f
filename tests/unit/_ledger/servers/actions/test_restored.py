# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A ledger that was restored from an older copy changes nothing, until its hosts have said what came since."""

from __future__ import annotations

import ipaddress
import json
import pathlib
import time
import typing as t
import uuid

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._errors import BehindError, ConflictError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import behind, copies, tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import reading, transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.tables_addresses import SEEN
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.tables_migrations import departure
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.steps.ledger_heal import wrong_sums
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.volumes import volume_attachments, volumes
from tests.support.cloud import Cloud
from tests.support.rows import OTHER
from tests.unit._ledger.servers.actions.test_rebuild import Host, kept, rebuild

AN_HOUR = 3600
Backup = t.Callable[[], t.Callable[[], None]]


def launched(cloud: Cloud, name: str, host: str, **more: t.Any) -> dict[str, t.Any]:
    [server] = cloud.server({"name": name, "flavor": "m1.nano", "image": "ami-tiny", **more})["to_build"]
    cloud.place(server["uuid"], host)
    cloud.state({"uuids": [server["uuid"]], "state": "active", "host": host})
    [server] = cloud.info(names=[name])
    return server


def deleted(cloud: Cloud, name: str) -> None:
    [server] = cloud.server({"name": name}, state="absent")["to_delete"]
    cloud.state({"uuids": [server["uuid"]], "state": "deleted"})


def moved(cloud: Cloud, name: str, host: str) -> None:
    """Record a move as it leaves the ledger, later than the copy."""
    i, a, h = tables.instance, tables.allocation, tables.compute_host
    number = sa.select(h.c.id).where(h.c.name == host).scalar_subquery()
    uuid = sa.select(i.c.uuid).where(i.c.name == name, i.c.deleted == 0).scalar_subquery()
    cloud.write(
        sa.update(a).where(a.c.instance_uuid == uuid).values(compute_host_id=number),
        sa.update(i).where(i.c.name == name).values(host=host, updated_at=int(time.time())),
    )
    with transaction(cloud.engine) as connection:
        wrong_sums(connection)


@pytest.fixture
def backup(full: Cloud, tmp_path: pathlib.Path) -> Backup:
    """Back the ledger up, as it was an hour ago; what is returned restores that."""

    def back_up() -> t.Callable[[], None]:
        for table in tables.metadata.sorted_tables:
            times = [column for column in table.columns if column.name.endswith("_at")]
            for column in times:
                full.write(sa.update(table).where(column > AN_HOUR).values({column: column - AN_HOUR}))
        copies.write_text(full.engine, str(tmp_path / "copy"))
        return lambda: restore(full, tmp_path)

    return back_up


def restore(cloud: Cloud, directory: pathlib.Path) -> None:
    copies.load_file(cloud.engine, str(directory / "copy"), str(directory), force=True)


def look(cloud: Cloud) -> list[dict[str, t.Any]]:
    """The servers as they are, but for what changes with each look at them."""
    return [{**server, "updated_at": None} for server in cloud.info(all_projects=True)]


@pytest.mark.parametrize(
    ("operation", "params"),
    [
        ("server", {"servers": [{"name": "new", "flavor": "m1.nano", "image": "ami-tiny"}]}),
        ("server", {"servers": [{"name": "web-1"}], "state": "absent"}),
        ("server_migration", {"state": "begin", "action": "resize", "servers": ["web-1"], "flavor": "m1.tiny"}),
        ("server_migration", {"state": "begin", "action": "evacuate", "from_host": "hv2"}),
        ("server_action", {"action": "stop", "servers": ["web-1"]}),
        ("network", {"networks": [{"name": "more", "cidr": "10.44.0.0/28"}]}),
        ("security_group", {"security_groups": [{"name": "more"}]}),
        ("compute_service", {"hosts": ["hv1"], "enabled": False}),
        ("user", {"users": [{"name": "ann"}]}),
        ("volume", {"volumes": [{"name": "v", "size": 1}]}),
    ],
)
def test_nothing_is_changed_before_the_hosts_were_asked(
    full: Cloud, backup: Backup, operation: str, params: dict[str, t.Any]
) -> None:
    backup()()
    before = full.dump()
    for check_mode in (True, False):
        with pytest.raises(BehindError, match=r"behind its hosts since .* \(restored from .*copy, made at "):
            full.run(operation, check_mode=check_mode, **params)
    assert full.dump() == before


def test_addresses_by_statements_of_their_own_are_refused_too(full: Cloud, backup: Backup) -> None:
    """Pools are written to by the driver's own statements on SQLite, and in SQL of its own on PostgreSQL."""
    servers = [{**server, "nics": [{**nic, "ip": None} for nic in server["nics"]]} for server in full.info()]
    full.write(sa.update(tables.fixed_ip).values(owner=None))
    backup()()
    with pytest.raises(BehindError):
        full.run("fixed_ip", instances=servers)
    with pytest.raises(BehindError), transaction(full.engine) as connection:
        connection.exec_driver_sql("DELETE FROM fixed_ip")
    assert full.rows(sa.select(tables.fixed_ip.c.owner).where(tables.fixed_ip.c.owner.is_not(None))) == []


def test_looking_goes_on_and_what_comes_after_may_write_again(full: Cloud, backup: Backup) -> None:
    backup()()
    assert [server["name"] for server in full.run("server_info")["servers"]] == ["web-1", "web-2"]
    assert "restored from" in full.run("cloud_info", picture=False)["behind"]
    hosts = kept(full)
    rebuild(full, hosts)
    assert full.run("cloud_info", picture=False)["behind"] is None
    launched(full, "new", "hv1")


def test_a_cloud_without_hosts_is_not_behind_them(full: Cloud, tmp_path: pathlib.Path) -> None:
    for table in (tables.allocation, tables.compute_host):
        full.write(sa.delete(table))
    copies.write_text(full.engine, str(tmp_path / "copy"))
    restore(full, tmp_path)
    full.project("new")


def test_what_came_since_the_copy_is_brought_up_to_date(full: Cloud, backup: Backup) -> None:
    restored = backup()
    [gone] = full.info(names=["web-2"])
    moved(full, "web-1", "hv3")
    deleted(full, "web-2")
    launched(full, "web-2", "hv1")  # of the same name, with the address of the one that is gone
    late = launched(full, "late", "hv2")
    full.write(sa.update(tables.instance).where(tables.instance.c.name == "late").values(display_name="Late"))
    with transaction(full.engine) as connection:
        volume = volumes.create_volume(connection, "d" * 32, {"size_gb": 1, "name": "more"})
        volume_attachments.attach_new(
            connection, late["uuid"], volume, device=None, boot_index=None, tag=None, delete_on_termination=False
        )
        connection.execute(
            sa.update(tables.tables_volumes.volume)
            .where(tables.tables_volumes.volume.c.name == "more")
            .values(status="in-use", host="hv2", made_at=5)
        )
        connection.execute(
            sa.update(tables.tables_volumes.volume_attachment)
            .where(tables.tables_volumes.volume_attachment.c.volume_id == volume.id)
            .values(attached_at=6)
        )
    before, hosts = look(full), kept(full)
    claims = full.rows(sa.select(tables.compute_host.c.name, tables.compute_host.c.vcpus_used).order_by("name"))
    restored()
    assert [(server["name"], server["host"]) for server in look(full)] == [
        ("web-1", "hv1"),
        ("web-2", "hv2"),
        ("shop", "hv2"),
    ]
    planned = rebuild(full, hosts, check_mode=True)
    with reading(full.engine) as connection:
        assert behind.sentence(connection) is not None
    result = rebuild(full, hosts)
    assert planned == result
    [line] = result["updated"]
    assert "host hv1 -> hv3" in line and line.startswith("web-1 (")
    assert result["servers"] == ["web-2 of demo on hv1: active", "late of demo on hv2: active"]
    ghost = f"web-2-gone-{gone['id']}"
    there = {server["name"]: server for server in look(full)}
    assert ghost in there and any(gone["uuid"] in line for line in result["gone"])
    del there[ghost]
    assert sorted(there.values(), key=lambda server: server["id"]) == before
    used = dict(full.rows(sa.select(tables.compute_host.c.name, tables.compute_host.c.vcpus_used)))
    assert used == {**dict(claims), "hv2": dict(claims)["hv2"] + 1}  # the ghost's, until it is deleted
    # marks that hosts have are the ledger's
    assert {mark for (mark,) in full.rows(sa.select(tables.compute_host.c.mark))} == {
        "hv1-mark",
        "hv2-mark",
        "hv3-mark",
    }
    # nothing more comes of it the second time
    again_ = full.dump()
    assert rebuild(full, hosts)["changed"] is False
    assert full.dump() == again_
    assert launched(full, "next", "hv1")["id"] > late["id"]


def test_an_address_that_was_given_on_goes_to_who_has_it(full: Cloud, backup: Backup) -> None:
    """web-1 gave its first interface up, and another server got its address."""
    [web, *_rest] = full.info()
    nic = web["nics"][0]
    restored = backup()
    pool, vif = tables.fixed_ip, tables.vif
    late = launched(full, "late", "hv2")
    full.write(
        sa.update(pool).where(pool.c.owner == f"vif:{nic['id']}").values(owner=None),
        sa.delete(vif).where(vif.c.id == nic["id"]),
        sa.update(pool).where(pool.c.owner == f"vif:{late['nics'][0]['id']}").values(owner=None),
    )
    address = int(ipaddress.IPv4Address(nic["ip"]))
    full.write(sa.update(pool).where(pool.c.ip == address).values(owner=f"vif:{late['nics'][0]['id']}"))
    full.write(sa.update(tables.instance).values(updated_at=int(time.time())))
    hosts = kept(full)
    restored()
    rebuild(full, hosts)
    assert [server["nics"] for server in full.info(names=["web-1"])] == [[]]
    assert [server["nics"][0]["ip"] for server in full.info(names=["late"])] == [nic["ip"]]


def test_an_address_that_two_have_stays_where_it_is_and_is_said(full: Cloud, backup: Backup) -> None:
    restored = backup()
    late = launched(full, "late", "hv2")
    hosts = kept(full)
    [web] = full.info(names=["web-1"])
    record = json.loads(hosts[1]["records"][late["uuid"]])
    for row in record["tables"]["fixed_ip"]:
        if row["owner"] == f"vif:{late['nics'][0]['id']}":
            row["ip"] = int(ipaddress.IPv4Address(web["nics"][0]["ip"]))
    hosts[1]["records"][late["uuid"]] = json.dumps(record)
    restored()
    result = rebuild(full, hosts)
    assert any(f"the address {web['nics'][0]['ip']} is web-1's here, and late's" in line for line in result["disputed"])
    assert full.info(names=["web-1"])[0]["nics"][0]["ip"] == web["nics"][0]["ip"]


def test_a_guest_that_runs_on_two_hosts_stays_where_the_ledger_has_it(full: Cloud, backup: Backup) -> None:
    restored = backup()
    moved(full, "web-1", "hv3")
    hosts = kept(full)
    [web] = full.info(names=["web-1"])
    hosts[0]["found"]["domains"].append({**hosts[2]["found"]["domains"][0]})
    restored()
    result = rebuild(full, hosts)
    assert result["disputed"] == [f"web-1 ({web['uuid']}) is running on hv1 and running on hv3"]
    assert full.info(names=["web-1"])[0]["host"] == "hv1"


def test_a_guest_that_comes_back_to_a_host_has_not_left_it(full: Cloud, backup: Backup) -> None:
    [web] = full.info(names=["web-1"])
    full.insert(departure, instance_uuid=web["uuid"], host="hv3", reason="moved", left_at=1)
    restored = backup()
    moved(full, "web-1", "hv3")
    hosts = kept(full)
    restored()
    rebuild(full, hosts)
    assert full.rows(sa.select(departure)) == []


def test_hosts_that_do_not_answer_are_waited_for(full: Cloud, backup: Backup) -> None:
    backup()()
    hosts = kept(full)
    with pytest.raises(ConflictError, match=r"do not say what they keep: hv3, hv9\..*partial=true"):
        rebuild(full, hosts[:2], silent=["hv9"])
    with pytest.raises(ConflictError, match=r"hosts that answer are not gone, .*: hv9: this machine is hv3"):
        rebuild(full, hosts[:2], silent=["hv9"], refused={"hv9": "hv9: this machine is hv3"}, partial=True)
    assert rebuild(full, hosts[:2], silent=["hv9"], partial=True)["missing"] == ["hv3", "hv9"]
    launched(full, "new", "hv1")


def seen(full: Cloud) -> set[str]:
    return {owner for (owner,) in full.rows(sa.select(tables.fixed_ip.c.owner)) if (owner or "").startswith(SEEN)}


def test_addresses_and_numbers_of_guests_that_no_record_tells_of_are_not_given_out(full: Cloud) -> None:
    hosts = kept(full)
    look_: Host = hosts[2]["found"]
    look_["chains"] = [
        {"id": 40, "uuid": None, "addresses": ["10.20.0.12", "192.0.2.1", "fe80::1"]},
        {"id": full.info()[0]["id"], "uuid": str(uuid.uuid4()), "addresses": ["10.20.0.11"]},  # given out twice
    ]
    look_["filters"] = ["nova-instance-instance-0000002c"]
    look_["domains"] = [{"uuid": str(uuid.uuid4()), "name": "instance-00000029", "state": "running"}]
    [bridge] = {nic["network"]["bridge"] for server in full.info() for nic in server["nics"]}
    entries = [{"mac": "fa:16:3e:00:00:01", "ip": "10.20.0.13", "hostname": "x"}]
    look_["dhcp_networks"] = [
        {"bridge": bridge, "hosts": entries},
        {"bridge": "theirs", "hosts": [{"ip": "10.20.0.14"}]},
    ]
    result = rebuild(full, hosts)
    assert seen(full) == {f"{SEEN}10.20.0.12", f"{SEEN}10.20.0.13", f"{SEEN}10.20.0.11"}
    assert len(result["reserved"]) == 3 and "the chain nova-inst-40 on hv3 has it" in result["reserved"][1]
    taken = [launched(full, f"new-{number}", "hv1") for number in range(3)]
    assert min(server["id"] for server in taken) == 0x2C + 1
    assert not {nic["ip"] for server in taken for nic in server["nics"]} & {f"10.20.0.1{end}" for end in (1, 2, 3)}
    # the next time they are on no host
    look_ |= {"chains": [], "dhcp_networks": []}
    for host in hosts:
        host["found"]["chains"] = []
    assert rebuild(full, hosts[:2], partial=True)["reserved"] == []  # which was not asked
    assert len(rebuild(full, hosts)["reserved"]) == 3
    assert seen(full) == set()


def test_numbers_are_never_lowered_and_no_host_can_use_them_up(full: Cloud) -> None:
    launched(full, "gone", "hv1")
    full.write(sa.delete(tables.allocation), sa.delete(tables.vif), sa.update(tables.fixed_ip).values(owner=None))
    full.write(sa.delete(tables.instance).where(tables.instance.c.name == "gone"))
    hosts = kept(full)
    for host in hosts:
        host["found"]["chains"] = []
    hosts[0]["found"]["chains"] = [{"id": 1 << 31, "uuid": None, "addresses": []}]
    result = rebuild(full, hosts)
    assert any(f"the instance number {1 << 31}, " in line for line in result["disputed"])
    assert launched(full, "next", "hv1")["id"] == 6


def test_a_floating_ip_leads_where_hosts_have_it_lead(full: Cloud, backup: Backup) -> None:
    f, pool = tables.floating_ip, tables.floating_pool
    full.insert(pool, name="public", cidr="203.0.113.0/30", interface="eth0")
    for number, address in enumerate((3405803776, 3405803777)):
        full.insert(f, id=f"{number:08}-0000-4000-8000-000000000000", pool="public", address=address)
    [web, *_rest] = full.info()
    restored = backup()
    change = sa.update(f).where(f.c.address == 3405803777)
    full.write(change.values(project_id="d" * 32, vif_id=web["nics"][0]["id"]))
    full.write(sa.update(tables.instance).values(updated_at=int(time.time())))
    hosts = kept(full)
    restored()
    result = rebuild(full, hosts)
    assert any("floating_ip none -> 203.0.113.1" in line for line in result["updated"])
    [web, *_rest] = full.info()
    assert [floating["address"] for floating in web["nics"][0]["floating_ips"]] == ["203.0.113.1"]


def test_what_is_another_projects_is_not_given_by_a_host(full: Cloud, backup: Backup) -> None:
    """hv1 names the volume of a server of another project, which is on hv2, as its guest's own; and its group."""
    restored = backup()
    hosts = kept(full)
    [web] = full.info(names=["web-1"])
    [shop] = [server for server in full.info(all_projects=True) if server["name"] == "shop"]
    theirs = json.loads(hosts[1]["records"][shop["uuid"]])["tables"]
    record = json.loads(hosts[0]["records"][web["uuid"]])
    rows = record["tables"]
    link = {**theirs["volume_attachment"][0], "instance_uuid": web["uuid"], "id": str(uuid.uuid4())}
    rows |= {"volume_attachment": [link], "volume": theirs["volume"], "volume_type": theirs["volume_type"]}
    groups = theirs["instance_security_group"]
    rows["instance_security_group"] += [{**row, "instance_id": web["id"]} for row in groups]
    rows["security_group"] += theirs["security_group"]
    rows["vif"].append({**theirs["vif"][0], "instance_uuid": web["uuid"], "position": 7})
    rows["instance"][0]["updated_at"] = int(time.time())
    hosts[0]["records"][web["uuid"]] = json.dumps(record)
    restored()
    before = full.info(all_projects=True)
    result = rebuild(full, hosts)
    assert [{**server, "updated_at": 0} for server in full.info(all_projects=True)] == [
        {**server, "updated_at": 0} for server in before
    ]
    text = "\n".join(result["disputed"])
    assert "a volume_attachment of another project" in text and "a instance_security_group of another" in text
    assert OTHER not in json.dumps(full.info(names=["web-1"]))
