# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""CDs of servers: what a new one has, and what is put in and taken out; recorded when its host has done it."""

from __future__ import annotations

import pathlib
import subprocess
import typing as t

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._errors import ConflictError, NotFoundError, NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.catalog.image_states import is_needed
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.catalog.kept_images import give_files
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.compute.plans import plan_hosts
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.compute.slices import without_paths
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import reading, transaction

FACTS = {
    "domain_type": "qemu",
    "arch": "x86_64",
    "machine": "pc",
    "emulator": "/usr/bin/qemu-system-x86_64",
    "disk_cache": "none",
}
CHECKSUMS = {"installer": "sha256:" + "1" * 64, "drivers": "sha256:" + "2" * 64}


def add_cds(cloud: t.Any, **properties: str) -> None:
    (image,) = cloud.rows(sa.select(tables.image).where(tables.image.c.name == "ami-tiny"))
    boot = {"kernel": None, "ramdisk": None, "cmdline": "", "disk_format": "iso", "virtual_size": 5 << 30}
    for number, (name, checksum) in enumerate(CHECKSUMS.items()):
        own = {"id": str(number) * 36, "name": name, "checksum": checksum, "source": f"/images/{name}"}
        more = {"properties": properties if name == "installer" else {}}
        cloud.write(sa.insert(tables.image).values(**{**image._mapping, **boot, **own, **more}))


def launched(cloud: t.Any, image: str = "installer", vm_state: str = "active", flavor: str = "m1.small") -> str:
    (server,) = cloud.server({"name": "web", "flavor": flavor, "image": image})["to_build"]
    cloud.place(server["uuid"], "hv1")
    cloud.state({"uuids": [server["uuid"]], "state": "active", "host": "hv1"})
    cloud.write(sa.update(tables.instance).values(vm_state=vm_state))
    return str(server["uuid"])


def ask(cloud: t.Any, error: str | None = None, **params: t.Any) -> dict[str, t.Any]:
    """Ask for the change, and record what its host says of it."""
    begun = cloud.run("server_cdrom", servers=["web"], **params)
    for host, plan in begun["hosts"].items():
        results = [{"uuid": uuid, "error": error} for uuid in plan["uuids"]]
        recorded = cloud.run("server_cdrom", plans=begun["hosts"], outcomes=[{"host": host, "results": results}])
        assert [row["message"] for row in recorded["errors"]] == ([f"'web': {error}"] if error else [])
    return t.cast("dict[str, t.Any]", begun)


def inside(cloud: t.Any) -> list[str | None] | None:
    (server,) = cloud.info()
    return None if server["cdroms"] is None else [cdrom and cdrom["name"] for cdrom in server["cdroms"]]


@pytest.fixture
def small(cloud: t.Any) -> t.Any:
    """A cloud with CDs, and a flavor with a root disk that is smaller than they are."""
    (flavor,) = cloud.rows(sa.select(tables.flavor).where(tables.flavor.c.name == "m1.nano"))
    own = {"id": 77, "name": "m1.small", "flavorid": "77", "root_gb": 2}
    cloud.write(sa.insert(tables.flavor).values(**{**flavor._mapping, **own}))
    cloud.write(sa.update(tables.flavor).where(tables.flavor.c.name == "m1.nano").values(root_gb=0))
    cloud.change_host("hv1", facts=FACTS)
    add_cds(cloud)
    return cloud


def test_a_server_starts_from_a_cd_with_an_empty_disk(small: t.Any) -> None:
    launched(small)
    (server,) = small.info()
    assert inside(small) == ["installer"]
    with reading(small.engine) as connection:
        plan = plan_hosts(connection, "/var/lib/novalite", existing=[server]).rendered()["hv1"]["keep"]
    (disk,) = plan["disks"]
    assert (disk["base"], disk["virtual_size_gb"], disk["cdroms"]) == (None, 2, [CHECKSUMS["installer"]])
    assert [(image["checksum"], image["disk_format"]) for image in plan["images"]] == [(CHECKSUMS["installer"], "iso")]
    assert plan["injections"] == [] and '<boot dev="cdrom"/>' in plan["domains"][0]["xml"]
    assert f'/instances/{server["uuid"]}/disk.cd0-{"1" * 16}"' in plan["domains"][0]["xml"]


def test_a_flavor_without_a_root_disk_is_refused(small: t.Any) -> None:
    with pytest.raises(NovaliteError, match="choose a flavor with a root disk"):
        launched(small, flavor="m1.nano")


def test_an_image_names_what_else_is_in_its_drives(small: t.Any) -> None:
    of_installer = sa.update(tables.image).where(tables.image.c.name == "installer")
    small.write(of_installer.values(properties={"os_cdrom_images": "nothing"}))
    with pytest.raises(NotFoundError, match="nothing"):
        launched(small)
    small.write(of_installer.values(properties={"os_cdrom_images": "ami-tiny"}))
    with pytest.raises(NovaliteError, match="no CD"):
        launched(small)
    small.write(of_installer.values(properties={"os_cdrom_images": "drivers,"}))
    launched(small)
    assert inside(small) == ["installer", "drivers", None]


def test_a_cd_is_taken_out_and_another_one_put_in(small: t.Any) -> None:
    launched(small)
    assert ask(small)["diff"] == {"before": {"web": ["installer"]}, "after": {"web": ["empty"]}}
    assert inside(small) == [None] and not ask(small)["changed"]
    begun = ask(small, insert="drivers")
    (disk,) = begun["hosts"]["hv1"]["disks"]
    assert disk["cdroms"] == [CHECKSUMS["drivers"]] and len(begun["hosts"]["hv1"]["images"]) == 1
    assert inside(small) == ["drivers"] and not ask(small, insert="drivers")["changed"]
    assert not ask(small, insert="1" * 36)["changed"]  # its id


def test_what_a_host_could_not_do_is_not_recorded(small: t.Any) -> None:
    launched(small)
    ask(small, error="the guest holds on to it")
    assert inside(small) == ["installer"]
    assert ask(small)["changed"] and inside(small) == [None]


def test_a_drive_comes_while_a_server_is_off(small: t.Any) -> None:
    launched(small, "ami-tiny")
    assert inside(small) is None and not ask(small)["changed"]
    with pytest.raises(ConflictError, match="stop it, insert the CD"):
        ask(small, insert="drivers")
    small.write(sa.update(tables.instance).values(vm_state="stopped"))
    with pytest.raises(NovaliteError, match="its next one is 0"):
        ask(small, insert="drivers", drive=1)
    with pytest.raises(NovaliteError, match="up to 3"):
        ask(small, insert="drivers", drive=3)
    with pytest.raises(NovaliteError, match="no CD"):
        ask(small, insert="ami-tiny")
    ask(small, insert="drivers")
    ask(small, insert="installer", drive=1)
    assert inside(small) == ["drivers", "installer"]
    small.write(sa.update(tables.instance).values(vm_state="suspended"))
    with pytest.raises(ConflictError, match="vm_state suspended"):
        ask(small, insert="drivers")


def test_a_rebuild_puts_the_cds_of_the_image_in(small: t.Any) -> None:
    uuid = launched(small, "ami-tiny", "stopped")
    ask(small, insert="drivers")
    begun = small.run("server_action", action="rebuild", servers=["web"], request={"image": "installer"})
    assert inside(small) == ["installer"] and begun["hosts"]["hv1"]["disks"][0]["base"] is None
    results = [{"uuid": uuid, "error": "gone", "untouched": True}]
    outcomes = [{"host": "hv1", "results": results, "error": None}]
    small.run("server_action", action="rebuild", plans=begun["hosts"], outcomes=outcomes)
    assert inside(small) == ["drivers"]


def test_the_file_of_a_cd_is_kept_as_long_as_it_is_in_a_drive(small: t.Any) -> None:
    launched(small)
    small.write(sa.delete(tables.image).where(tables.image.c.name == "installer"))
    small.write(sa.update(tables.instance).values(image={**small.info()[0]["image"], "source": "/elsewhere"}))
    with reading(small.engine) as connection:
        assert is_needed(connection, "/images/installer") and not is_needed(connection, "/images/gone")
    ask(small)
    with reading(small.engine) as connection:
        assert not is_needed(connection, "/images/installer")


def test_hosts_are_told_of_cds_without_their_paths_and_get_them_back_with_the_image(small: t.Any) -> None:
    launched(small)
    (row,) = small.rows(sa.select(tables.instance.c.cdroms))
    without = without_paths("instance", "cdroms", [*row.cdroms, None, "a path"])
    assert without == [{**row.cdroms[0], "source": ""}, None, None]
    small.write(sa.update(tables.instance).values(cdroms=without))
    with transaction(small.engine) as connection:
        give_files(connection, row.cdroms[0]["id"])
    assert small.rows(sa.select(tables.instance.c.cdroms))[0].cdroms[0]["source"] == "/images/installer"


def test_a_cd_is_registered_by_its_file(cloud: t.Any, tmp_path: pathlib.Path) -> None:
    source = tmp_path / "cd.iso"
    (tmp_path / "content").mkdir()
    subprocess.run(["genisoimage", "-quiet", "-o", str(source), str(tmp_path / "content")], check=True)
    (image,) = cloud.run("image", images=[{"name": "cd", "source": str(source), "disk_format": "iso"}])["images"]
    assert image["virtual_size"] == source.stat().st_size and image["properties"] == {}  # no host mounts it
    with pytest.raises(NovaliteError, match="declared iso"):
        cloud.run("image", images=[{"name": "cd", "source": __file__, "disk_format": "iso"}])
