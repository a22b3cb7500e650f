# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A ledger that is lost is made again from what its hosts keep: what comes back, and what is refused."""

from __future__ import annotations

import json
import typing as t
import uuid
from pathlib import Path

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._errors import ConflictError, NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._host import records as records
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.compute import plans
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.compute.slices import Slicer, without_paths
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import reading, transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.ledger_identity import ledger_id
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.steps.host_record import host_record
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.steps.ledger_rebuild import ledger_rebuild
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.steps.server_adopt import server_adopt
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.steps.server_plan import server_plan
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.tasks.security_group import security_group
from tests.support.cloud import Cloud
from tests.support.leaving import WatchedCloud

Host = dict[str, t.Any]
OTHER = "e" * 32
# what is made anew, may be known better on the hosts, or cannot be known
LOST = ("secret", "instance_action", "instance_action_event", "user", "role_assignment", "token")


def group(cloud: Cloud, project: str, name: str, *rules: dict[str, t.Any]) -> None:
    with transaction(cloud.engine) as connection:
        security_group(
            connection,
            {
                "project": project,
                "security_groups": [{"name": name, "rules": list(rules)}],
                "state": "present",
                "plan": False,
            },
        )


def kept(cloud: Cloud) -> list[Host]:
    """Hosts with what they keep, and what is there: all guests run, and the one deleted last left its chains."""
    hosts = []
    with reading(cloud.engine) as connection:
        slicer = Slicer(connection)
        instances = tables.instance.c
        for name in ("hv1", "hv2", "hv3"):
            rows = connection.execute(
                sa.select(instances.uuid, instances.id).where(instances.host == name, instances.deleted == 0)
            ).all()
            domains = [{"uuid": row.uuid, "name": f"instance-{row.id:08x}", "state": "running"} for row in rows]
            chains = [{"id": row.id, "uuid": row.uuid, "addresses": []} for row in rows]
            chains += [{"id": 17, "uuid": None, "addresses": []}]
            look = {"domains": domains, "chains": chains, "filters": [], "volumes": [], "dhcp_networks": []}
            look["disks"] = [row.uuid for row in rows]
            records = slicer.of_instances([row.uuid for row in rows])
            host = {"name": name, "found": look, "records": records, "host_record": slicer.of_host(name)}
            hosts.append({**host, "marks": {ledger_id(connection): {"mark": f"{name}-mark", "host": name}}})
    return hosts


def empty(cloud: Cloud) -> None:
    """Lose the ledger, and make a new one."""
    with transaction(cloud.engine) as connection:
        for table in reversed(tables.metadata.sorted_tables):
            if table.name not in ("ledger_identity", "volume_type", "domain", "role"):
                connection.execute(sa.delete(table))
        connection.execute(sa.update(tables.metadata.tables["ledger_identity"]).values(uuid=str(uuid.uuid4())))
        connection.execute(sa.delete(tables.tables_volumes.volume_type))


def rebuild(cloud: Cloud, hosts: list[Host], check_mode: bool = False, **params: t.Any) -> dict[str, t.Any]:
    with transaction(cloud.engine, check_mode, while_behind=True) as connection:
        result = ledger_rebuild(connection, {"hosts": hosts, **params})
    if isinstance(cloud, WatchedCloud):
        cloud.forget()  # that somebody left a host is written down when it is done, and not concluded afterwards
    return result


def known(dump: dict[str, list[t.Any]]) -> dict[str, list[t.Any]]:
    """What hosts can tell of these rows."""
    rows = {name: [_told(name, dict(row._mapping)) for row in of_table] for name, of_table in dump.items()}
    texts = {
        name: sorted(json.dumps(row, sort_keys=True) for row in of_table)
        for name, of_table in rows.items()
        if name not in LOST
    }
    for name in ("flavor", "image"):  # those that nothing uses are on no host
        texts[name] = [row for row in texts[name] if any(word in row for word in ("m1.nano", "m1.tiny", "ami-tiny"))]
    return texts


def _told(name: str, row: dict[str, t.Any]) -> dict[str, t.Any]:
    if name == "compute_host":  # what it is, and what it is for, is the operator's to say
        return {"name": row["name"], "vcpus_used": row["vcpus_used"]}
    if name == "allocation":
        del row["compute_host_id"]
    if name == "image":
        row |= {"source": "", "status": "queued"}
    return {column: without_paths(name, column, value) for column, value in row.items()}


def without_files(servers: list[dict[str, t.Any]]) -> list[dict[str, t.Any]]:
    return [{**server, "image": without_paths("instance", "image", server["image"])} for server in servers]


def test_a_lost_ledger_is_made_again(full: Cloud) -> None:
    with reading(full.engine) as connection:
        identity = ledger_id(connection)
    servers, hosts = full.info(all_projects=True), kept(full)
    full.write(sa.update(tables.instance).values(user_data=None))
    before = known(full.dump())
    empty(full)
    planned = rebuild(full, hosts, check_mode=True)
    assert full.info(all_projects=True) == []
    result = rebuild(full, hosts)
    assert planned == result
    assert full.info(all_projects=True) == without_files(servers)
    assert known(full.dump()) == before
    with reading(full.engine) as connection:
        assert ledger_id(connection) == identity
    assert result["servers"] == [
        "web-1 of demo on hv1: active",
        "web-2 of demo on hv2: active",
        "shop of other on hv2: active",
    ]
    assert any("user data of web-1, web-2" in line for line in result["lost"])
    # nothing more comes of it the second time, and nothing is changed by it
    again = full.dump()
    assert rebuild(full, hosts)["changed"] is False
    assert full.dump() == again
    # images have their files again once somebody says where these are; and so have the servers that keep them
    with pytest.raises(NovaliteError, match="is not active"):
        full.server({"name": "late", "flavor": "m1.nano", "image": "ami-tiny"})
    recorded = {"name": "ami-tiny", "source": "https://images.example/tiny", "checksum": "sha256:" + "0" * 64}
    full.task("image", images=[{**recorded, "disk_format": "qcow2"}])
    assert {server["image"]["source"] for server in full.info(all_projects=True)} == {"https://images.example/tiny"}
    # what comes next takes nothing that is somebody's
    [late] = full.server({"name": "late", "flavor": "m1.nano", "image": "ami-tiny"})["to_build"]
    assert late["id"] == 18
    full.change_host("hv1", up=True, vcpus=8, memory_mb=16384, disk_gb=100)  # as it says when it is asked
    full.place(late["uuid"], "hv1")
    [late] = full.info(name="late")
    assert late["nics"][0]["ip"] not in {nic["ip"] for server in servers for nic in server["nics"]}


def test_marks_that_hosts_have_are_the_ledgers_again(full: Cloud) -> None:
    """Or their next trips would find a ledger that is older than they are."""
    c = tables.compute_host.c
    full.change_host("hv1", mark="0" * 32, marks_sent=["1" * 32])
    (ledger,) = full.rows(sa.select(tables.ledger_identity.c.uuid))[0]
    hosts: list[Host] = [
        {**host, "marks": {ledger: {"host": host["name"], "mark": "2" * 32}, str(uuid.uuid4()): {}}}
        for host in kept(full)
    ]
    empty(full)
    rebuild(full, hosts)
    marks = full.rows(sa.select(c.mark, c.marks_sent).order_by(c.name))
    assert marks == [("2" * 32, [])] * len(hosts)
    # of a ledger that is up to date, what is under way stays
    full.change_host("hv1", mark="3" * 32, marks_sent=["2" * 32])
    assert rebuild(full, hosts)["changed"] is False
    assert full.rows(sa.select(c.mark, c.marks_sent).where(c.name == "hv1")) == [("3" * 32, ["2" * 32])]


def test_a_ledger_with_a_project_of_the_same_name_is_refused(full: Cloud) -> None:
    hosts = kept(full)
    empty(full)
    full.write(sa.insert(tables.project).values(id="f" * 32, name="demo", created_at=1))
    with pytest.raises(ConflictError, match=r"a project 'demo' of its own.*in an empty one"):
        rebuild(full, hosts)


def test_hosts_of_two_ledgers_are_asked_about_one(full: Cloud) -> None:
    hosts = kept(full)
    theirs = str(uuid.uuid4())
    hosts[0]["records"] = {
        key: text.replace(json.loads(text)["ledger"], theirs) for key, text in hosts[0]["records"].items()
    }
    empty(full)
    with pytest.raises(ConflictError, match=rf"several ledgers: .*{theirs} \(1 records\).*-e ledger="):
        rebuild(full, hosts)
    assert rebuild(full, hosts, ledger=theirs)["servers"] == ["web-1 of demo on hv1: active"]


@pytest.mark.parametrize(
    ("recorded", "task", "state", "expected"),
    [
        ("building", "spawning", "running", ("active", None, 1)),
        ("building", "networking", "missing", ("error", None, 0)),
        ("active", None, "shutoff", ("stopped", None, 4)),
        ("active", None, "missing", ("stopped", None, 4)),
        ("stopped", "powering-on", "running", ("active", None, 1)),
        ("active", None, "paused", ("paused", None, 3)),
        ("active", "deleting", "running", ("active", "deleting", 1)),
        ("error", None, "running", ("error", None, 1)),
    ],
)
def test_a_guest_is_what_its_domain_is(
    full: Cloud, recorded: str, task: str | None, state: str, expected: tuple[str, str | None, int]
) -> None:
    full.write(
        sa.update(tables.instance).where(tables.instance.c.name == "web-1").values(vm_state=recorded, task_state=task)
    )
    hosts = kept(full)
    [domain] = hosts[0]["found"]["domains"]
    domain["state"] = state
    if state == "missing":
        hosts[0]["found"]["domains"] = []
    empty(full)
    rebuild(full, hosts)
    [web] = full.info(names=["web-1"])
    assert (web["vm_state"], web["task_state"], web["power_state"]) == expected


def test_what_cannot_be_told_is_named(full: Cloud) -> None:
    hosts = kept(full)
    [web] = full.info(names=["web-1"])
    hosts[0]["records"] = {web["uuid"]: "{}"}
    hosts[1]["found"]["volumes"] = ["11111111-2222-3333-4444-555555555555"]
    empty(full)
    lost = "\n".join(rebuild(full, hosts)["lost"])
    assert f"what hv1 keeps of {web['uuid']} cannot be read" in lost
    assert f"instance-{web['id']:08x} ({web['uuid']}) on hv1: no record of it" in lost
    assert "the volume 11111111-2222-3333-4444-555555555555 on hv2" in lost


@pytest.fixture
def adopted(full: Cloud, tmp_path: Path) -> tuple[Cloud, Host, Path]:
    """A cloud with a guest that others made on hv1, that host as it is then, and its state directory."""
    guest = {
        "uuid": str(uuid.uuid4()),
        "name": "db",
        "state": "running",
        "vcpus": 2,
        "memory_mb": 4096,
        "disk_gb": 30,
        "disks": [{"dev": "vda", "bus": "virtio", "source": "/srv/db.qcow2", "format": "qcow2", "size": 5 << 30}],
        "nics": [
            {
                "mac": "52:54:00:12:34:56",
                "bridge": "br-private",
                "network": None,
                "device": "vnet3",
                "addresses": ["10.20.0.9"],
            }
        ],
        "marked": False,
        "adopted_by": None,
    }
    asked = dict.fromkeys(("name", "flavor", "network", "address"))
    with transaction(full.engine) as connection:
        server_adopt(connection, {**asked, "state": "adopted", "project": "demo", "host": "hv1", "domain": guest})
        host_records = host_record(connection, {"host": "hv1"})
    records.write_records(str(tmp_path), {}, host_records["host_record"], host_records["adopted"])
    host = {"name": "hv1", **records.read_records(str(tmp_path))}
    domain = {"uuid": guest["uuid"], "name": "db", "state": "shutoff"}
    host["found"] = {"domains": [domain], "chains": [], "filters": [], "volumes": []}
    return full, host, tmp_path


def test_an_adopted_guest_comes_back(adopted: tuple[Cloud, Host, Path]) -> None:
    cloud, host, _directory = adopted
    before = cloud.info(names=["db"])
    empty(cloud)
    assert rebuild(cloud, [host])["servers"] == ["db of demo on hv1: stopped"]
    now = {"vm_state": "stopped", "power_state": 4}  # as its domain is by now
    assert cloud.info(names=["db"]) == [{**before[0], **now}]
    rows = cloud.rows(sa.select(tables.compute_host.c.vcpus_used).where(tables.compute_host.c.name == "hv1"))
    assert [tuple(row) for row in rows] == [(2,)]


def test_a_record_of_a_guest_that_was_given_back_counts_for_nothing(adopted: tuple[Cloud, Host, Path]) -> None:
    cloud, host, directory = adopted
    [db] = cloud.info(names=["db"])
    host["found"]["domains"] = []
    empty(cloud)
    result = rebuild(cloud, [host])
    assert result["servers"] == [] and cloud.info(all_projects=True) == []
    assert f"the adopted db ({db['uuid']}) on hv1: its domain is gone, or carries no mark" in result["lost"]
    assert records.forget_adopted(str(directory), db["uuid"])
    assert not records.forget_adopted(str(directory), db["uuid"])
    assert records.read_records(str(directory))["records"] == {}


def test_no_secret_leaves_the_ledger(full: Cloud) -> None:
    files = [{"path": "/a", "content": "c2VjcmV0"}]
    full.write(sa.update(tables.instance).values(password_hash="$6$hash", files=files))
    [secret] = full.rows(sa.select(tables.secret.c.value)) or [("none",)]
    text = json.dumps(kept(full))
    for value in ("$6$hash", "c2VjcmV0", "aGVsbG8=", secret[0]):
        assert value not in text


def test_a_build_brings_its_record_along(full: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plans, "guest_of", lambda instance, facts, **_where: instance)
    monkeypatch.setattr(plans, "render", lambda guest: "<domain/>")
    [web] = full.info(names=["web-1"])
    with transaction(full.engine) as connection:
        plan = server_plan(
            connection,
            {"instances": [web], "existing": [], "leaving": [], "compute_hosts": [], "state_dir": "/var/lib/novalite"},
        )["hosts"]["hv1"]["build"]
    [disk] = plan["disks"]
    record = json.loads(disk["record"])
    assert (record["uuid"], record["host"]) == (web["uuid"], "hv1")
    assert [row["name"] for row in record["tables"]["network"]] == ["private"]


def test_hosts_that_were_not_asked_since_are_named(full: Cloud) -> None:
    hosts = kept(full)
    empty(full)
    rebuild(full, hosts)
    with pytest.raises(NovaliteError, match="does not know what hv1 offers"):
        full.task("server_plan", existing=full.info(names=["web-1"]))
