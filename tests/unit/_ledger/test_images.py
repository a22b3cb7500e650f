# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import hashlib
import os
import pathlib
import struct
import typing as t

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._disk.cache import Image
from ansible_collections.novalite.cloud.plugins.module_utils._errors import ConflictError, NovaliteError, QuotaError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.catalog import image_files, image_records
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import reading, transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.lookups import image_by_name
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.tasks.image import image

if t.TYPE_CHECKING:
    from .conftest import Run

HASH = f"sha256:{'a' * 64}"
URL = "https://cloud.example.com/debian.qcow2"
MIB = 1 << 20


def sha256(path: pathlib.Path) -> str:
    return f"sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}"


@pytest.fixture
def disk(tmp_path: pathlib.Path) -> pathlib.Path:
    path = tmp_path / "disk.raw"
    path.write_bytes((bytes(510) + b"\x55\xaa") * 2048)  # with a boot signature
    return path


@pytest.fixture
def kernel(tmp_path: pathlib.Path) -> pathlib.Path:
    path = tmp_path / "vmlinuz"
    path.write_bytes(b"kernel")
    return path


def test_a_local_image_is_measured(run: Run, disk: pathlib.Path, kernel: pathlib.Path) -> None:
    item = {
        "name": "tiny",
        "source": str(disk),
        "disk_format": "raw",
        "kernel": str(kernel),
        "ramdisk": {"source": str(kernel), "checksum": sha256(kernel)},
        "cmdline": "root=/dev/vda",
    }
    made = run("image", images=[item])
    [image] = made["images"]
    assert (image["checksum"], image["size"], image["virtual_size"]) == (sha256(disk), MIB, MIB)
    assert image["kernel"] == image["ramdisk"] == {"source": str(kernel), "checksum": sha256(kernel), "size": 6}
    # the operator's: hosts mount it to inject, as Nova's did
    assert image["properties"] == {"os_host_mount": "yes"} == made["diff"]["after"]["images"]["tiny"]["properties"]
    again = {"changed": False, "images": [image], "files": made["files"], "appliances": []}
    assert run("image", images=[item]) == again == run("image", images=[{"name": "tiny"}])


def test_a_file_url_is_a_path(run: Run, disk: pathlib.Path) -> None:
    odd = disk.rename(disk.parent / "a disk.raw")
    item = {"name": "tiny", "source": f"file://{disk.parent}/a%20disk.raw", "disk_format": "raw"}
    assert run("image", images=[item])["images"][0]["source"] == str(odd)
    assert not run("image", images=[item])["changed"]


def test_the_files_are_what_the_cache_takes(run: Run, disk: pathlib.Path, kernel: pathlib.Path) -> None:
    items = [{"name": name, "source": str(disk), "disk_format": "raw", "kernel": str(kernel)} for name in "ab"]
    made = run("image", images=items)
    assert [Image(**file) for file in made["files"]] == [
        Image(sha256(disk), str(disk), MIB, "disk", "raw", MIB),
        Image(sha256(kernel), str(kernel), 6, "kernel"),
    ]
    assert run("image", images=[{"name": "a"}])["files"] == made["files"]
    assert run("image", images=[{"name": "a"}], state="absent")["files"] == []


def test_an_image_of_a_url_is_recorded_unseen(run: Run) -> None:
    made = run("image", images=[{"name": "debian", "source": URL, "disk_format": "qcow2", "checksum": HASH}])
    [image] = made["images"]
    assert (image["source"], image["checksum"], image["size"], image["virtual_size"]) == (URL, HASH, 0, 0)
    other = f"sha256:{'b' * 64}"
    assert run("image", images=[{"name": "debian", "checksum": other}])["images"][0]["checksum"] == other


def test_an_unchanged_file_is_read_once(run: Run, disk: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    inspect = image_files.inspect_image

    def counted(path: str, *args: t.Any, **kwargs: t.Any) -> t.Any:
        read.append(path)
        return inspect(path, *args, **kwargs)

    monkeypatch.setattr(image_files, "inspect_image", counted)
    item = {"name": "tiny", "source": str(disk), "disk_format": "raw"}
    first = run("image", images=[item])
    run("image", images=[item])
    run("image", images=[{**item, "checksum": sha256(disk)}])
    assert len(read) == 1
    os.utime(disk, (1, 1))
    assert not run("image", images=[item])["changed"]
    run("image", images=[item])
    assert len(read) == 2
    disk.write_bytes((b"x" * 510 + b"\x55\xaa") * 4096)
    changed = run("image", images=[item])
    assert len(read) == 3
    assert changed["diff"]["before"]["images"]["tiny"]["checksum"] == first["images"][0]["checksum"]
    assert changed["images"][0]["checksum"] == sha256(disk)


def test_the_ledger_is_not_locked_while_a_file_is_read(
    run: Run, ledger: sa.Engine, disk: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inspect = image_files.inspect_image

    def writing(*args: t.Any, **kwargs: t.Any) -> t.Any:
        with transaction(ledger) as connection:
            connection.execute(sa.insert(tables.project).values(id="e" * 32, name="meanwhile", created_at=0))
        return inspect(*args, **kwargs)

    monkeypatch.setattr(image_files, "inspect_image", writing)
    assert run("image", images=[{"name": "tiny", "source": str(disk), "disk_format": "raw"}])["changed"]


def test_the_operation_measures_by_itself(ledger: sa.Engine, disk: pathlib.Path) -> None:
    left_out = dict.fromkeys(("checksum", "kernel", "ramdisk", "cmdline", "min_disk_gb", "min_ram_mb", "properties"))
    params = {
        "images": [{**left_out, "name": "tiny", "source": str(disk), "disk_format": "raw"}],
        "project": None,
        "state": "present",
    }
    with transaction(ledger) as connection:
        assert image(connection, params)["images"][0]["checksum"] == sha256(disk)


@pytest.mark.parametrize(
    ("item", "message"),
    [
        ({}, "'i' does not exist yet: give its source"),
        ({"source": URL}, "'i' does not exist yet: give its disk_format"),
        ({"source": URL, "disk_format": "qcow2"}, "give its checksum"),
        ({"source": URL, "disk_format": "qcow2", "checksum": "md5:1"}, "is not of the form sha256:"),
        ({"source": URL, "disk_format": "qcow2", "checksum": HASH.upper()}, "is not of the form sha256:"),
        ({"source": "ftp://example.com/i", "disk_format": "raw", "checksum": HASH}, r"is not an http\(s\) URL"),
        ({"source": "file://host/etc/shadow", "disk_format": "raw"}, "is not a file of the controller"),
        ({"source": "file:///no/such/disk", "disk_format": "raw"}, "/no/such/disk on the controller: No such file"),
        ({"source": "file:relative", "disk_format": "raw"}, "neither an absolute path"),
        ({"source": "http://[/i", "disk_format": "raw", "checksum": HASH}, r"is not an http\(s\) URL"),
        ({"source": "http:///i", "disk_format": "raw", "checksum": HASH}, r"is not an http\(s\) URL"),
        ({"source": "https://u:hunter2@h/i", "disk_format": "raw", "checksum": HASH}, "carries a user or a password"),
        ({"source": "disk.raw", "disk_format": "raw"}, "neither an absolute path"),
        ({"source": "/no/such/disk", "disk_format": "raw"}, "/no/such/disk on the controller: No such file"),
        ({"source": "/dev/null", "disk_format": "raw"}, "is not a regular file"),
        ({"source": "DISK", "disk_format": "qcow2"}, "declared qcow2 but its content is raw"),
        ({"source": "QCOW2", "disk_format": "raw"}, "declared raw but its content is qcow2"),
        ({"source": "DISK", "disk_format": "raw", "checksum": HASH}, "has the checksum sha256:[0-9a-f]{64}, not"),
        ({"source": "EMPTY", "disk_format": "raw"}, "is empty"),
        ({"source": "DISK", "disk_format": "raw", "cmdline": "quiet"}, "need a kernel"),
        ({"source": "DISK", "disk_format": "raw", "ramdisk": "DISK"}, "need a kernel"),
        ({"source": "DISK", "disk_format": "raw", "kernel": ["x"]}, "give a path, a URL, or a dictionary"),
        ({"source": "DISK", "disk_format": "raw", "kernel": {"source": 7}}, "7 is not text"),
        ({"source": "DISK", "disk_format": "raw", "kernel": URL}, "give its checksum"),
        ({"source": "DISK", "disk_format": "raw", "min_disk_gb": -1}, "min_disk_gb -1 is out of range"),
        ({"source": "DISK", "disk_format": "raw", "properties": {"novalite:stat": "x"}}, "are novalite's own"),
        ({"source": "DISK", "disk_format": "raw", "properties": {"a": {}}}, "give it a string"),
        ({"source": "DISK", "disk_format": "raw", "properties": {"os_admin_user": 'a"b'}}, "property os_admin_user is"),
    ],
)
def test_an_image_that_is_not_what_was_said_is_refused(
    run: Run, disk: pathlib.Path, item: dict[str, t.Any], message: str
) -> None:
    (disk.parent / "empty").write_bytes(b"")
    (disk.parent / "qcow2").write_bytes(struct.pack(">4sI", b"QFI\xfb", 3) + bytes(MIB))
    paths = {"DISK": str(disk), "EMPTY": str(disk.parent / "empty"), "QCOW2": str(disk.parent / "qcow2")}
    known = {key: paths.get(value, value) if isinstance(value, str) else value for key, value in item.items()}
    with pytest.raises(NovaliteError, match=message) as refused:
        run("image", images=[{"name": "i", **known}])
    assert "hunter2" not in str(refused.value)


def test_a_kernel_can_be_taken_away(run: Run, disk: pathlib.Path, kernel: pathlib.Path) -> None:
    base = {"name": "i", "source": str(disk), "disk_format": "raw"}
    run("image", images=[{**base, "kernel": str(kernel), "cmdline": "quiet"}])
    with pytest.raises(NovaliteError, match=r"need a kernel"):
        run("image", images=[{"name": "i", "kernel": ""}])
    assert run("image", images=[{"name": "i", "kernel": "", "cmdline": ""}])["images"][0]["kernel"] is None


def test_properties_are_replaced_and_bookkeeping_is_not_shown(run: Run, ledger: sa.Engine, disk: pathlib.Path) -> None:
    item = {"name": "i", "source": str(disk), "disk_format": "raw", "properties": {"hw_machine_type": "q35", "x": True}}
    described = {"hw_machine_type": "q35", "x": "true", "os_host_mount": "yes"}
    assert run("image", images=[item])["images"][0]["properties"] == described
    run("image", images=[{"name": "i", "properties": {"os_type": "linux"}}])
    with reading(ledger) as connection:
        assert image_by_name(connection, "i", "d" * 32)["properties"] == {"os_type": "linux", "os_host_mount": "yes"}
        stored = connection.execute(sa.select(tables.image.c.properties)).scalar_one()
    assert stored["novalite:stat"]["disk"][0] == MIB


def test_an_image_of_a_project_is_its_own_and_counts(run: Run, ledger: sa.Engine) -> None:
    run("project", projects=[{"name": "demo", "quotas": {"images": 1}}])
    items = [{"name": name, "source": URL, "disk_format": "qcow2", "checksum": HASH} for name in "ab"]
    assert run("image", images=items)["changed"]
    with pytest.raises(QuotaError, match=r"images: 2 wanted, 1 allowed"):
        run("image", images=items, project="demo")
    [own] = run("image", images=items[:1], project="demo")["images"]
    with reading(ledger) as connection:
        assert image_by_name(connection, "a", "d" * 32)["id"] == own["id"]
        assert image_by_name(connection, "a", "e" * 32)["id"] != own["id"]
    assert run("image", images=[{"name": "a"}], state="absent", project="demo")["changed"]
    assert not run("image", images=[{"name": "a"}], state="absent", project="demo")["changed"]
    assert run("image", images=[{"name": "a"}], state="absent")["changed"]


def test_the_id_of_a_removed_image_is_not_used_again(run: Run, ledger: sa.Engine) -> None:
    """Whoever could, would have others launch his image by the id that they know (OSSN-0075)."""
    item = {"name": "a", "source": URL, "disk_format": "qcow2", "checksum": HASH}
    image_id = run("image", images=[item])["images"][0]["id"]
    run("image", images=[{"name": "a"}], state="absent")
    with reading(ledger) as connection, pytest.raises(ConflictError, match=f"Image ID {image_id} already exists"):
        image_records.check_id(connection, image_id)
    run("image", images=[item])
    run("image", images=[{"name": "a"}], state="absent")
