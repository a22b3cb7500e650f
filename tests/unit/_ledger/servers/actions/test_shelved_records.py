# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Records of shelved servers, which are on no host: two hosts keep each, and a lost ledger is made again with them."""

from __future__ import annotations

import hashlib
import json
import uuid as uuids
from pathlib import Path

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._host import records as records
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import reading
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.steps.host_record import host_record
from tests.support.cloud import Cloud
from tests.unit._ledger.servers.actions.test_rebuild import Host, empty, rebuild, without_files

DISK = "0f5c8a52-9d2e-4a53-8c53-9a1d3c2b7e11"
CHECKSUM = "sha256:" + hashlib.sha256(b"disk").hexdigest()


def shelved_records(cloud: Cloud, directory: Path) -> list[Host]:
    """Hosts with the files that they keep of a shelved server of the cloud, and no guest."""
    [server] = cloud.server({"name": "away", "flavor": "m1.tiny", "image": "ami-tiny"})["to_build"]
    uuid = server["uuid"]
    cloud.place(uuid, "hv1")
    cloud.state({"uuids": [uuid], "state": "active", "host": "hv1"})
    [image] = cloud.rows(sa.select(tables.instance.c.image))
    disk = {**image.image, "id": DISK, "checksum": CHECKSUM, "source": str(directory / "home/images" / DISK)}
    offloaded = {"vm_state": "shelved_offloaded", "host": None, "disk_image": disk, "power_state": 4}
    cloud.write(sa.update(tables.instance).where(tables.instance.c.uuid == uuid).values(**offloaded))
    cloud.write(sa.delete(tables.allocation))
    hosts = []
    for name in ("hv1", "hv2", "hv3"):
        (directory / name).mkdir(exist_ok=True)
        keep(cloud, directory, name)
        look: dict[str, list[str]] = {"domains": [], "chains": [], "filters": [], "volumes": []}
        hosts.append({"name": name, "found": look, **records.read_records(str(directory / name))})
    return hosts


def keep(cloud: Cloud, directory: Path, name: str) -> None:
    with reading(cloud.engine) as connection:
        host_records = host_record(connection, {"host": name})
    records.write_records(
        str(directory / name), {}, host_records["host_record"], host_records["adopted"], host_records["shelved"]
    )


@pytest.mark.parametrize("stored", [True, False])
def test_two_hosts_keep_a_shelved_server(stored: bool, cloud: Cloud, tmp_path: Path) -> None:
    """Its disk is in the store of images on the controller, or nobody says any more where it is."""
    hosts = shelved_records(cloud, tmp_path)
    before = cloud.info(names=["away"])
    assert sorted(len(host["records"]) for host in hosts) == [0, 1, 1]
    assert str(tmp_path) not in json.dumps(hosts)  # no host knows where
    (tmp_path / "home/images").mkdir(parents=True)
    (tmp_path / "home/images" / DISK).write_bytes(b"disk" if stored else b"something else")
    empty(cloud)
    result = rebuild(cloud, hosts, home=str(tmp_path / "home"))
    assert result["servers"] == ["away of demo on no host: shelved_offloaded"]
    path = str(tmp_path / "home/images" / DISK) if stored else "its file is not in the store"
    assert any(f"the disk of away, which is shelved: {path}" in line for line in result["lost"])
    assert without_files(cloud.info(names=["away"])) == without_files(before)
    held = sa.select(tables.fixed_ip.c.ip).where(tables.fixed_ip.c.owner.like("vif:%"))
    assert len(cloud.rows(held)) == 1  # its address is nobody else's


def test_what_came_back_or_is_gone_is_kept_by_no_other_host(cloud: Cloud, tmp_path: Path) -> None:
    hosts = shelved_records(cloud, tmp_path)
    [keeper, _other] = [host["name"] for host in hosts if host["records"]]
    foreign = tmp_path / keeper / "shelved" / f"{uuids.uuid4()}.json"
    foreign.write_text(json.dumps({"ledger": "another"}))
    strange = foreign.with_name("notes.txt")
    strange.touch()
    cloud.write(sa.update(tables.instance).values(deleted=1))
    keep(cloud, tmp_path, keeper)
    assert {path.name for path in foreign.parent.iterdir()} == {foreign.name, strange.name}
