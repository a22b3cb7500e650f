# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Module `image` with disks of other hypervisors, OVAs and compressed files: what it records, and what it leaves."""

from __future__ import annotations

import bz2
import gzip
import lzma
import pathlib
import subprocess
import typing as t

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger_module import operation_of, run_operation
from tests.support.cloud import checked
from tests.unit._image_import.appliances import (
    EFI,
    FORMATS,
    archive,
    converted,
    descriptor,
    manifest,
    member,
    raw_disk,
    raw_of,
)

Result = dict[str, t.Any]


class Controller:
    """A ledger in a home of its own."""

    def __init__(self, directory: pathlib.Path) -> None:
        self.home = directory / "home"
        self.home.mkdir()
        self.raw = raw_disk(directory / "disk.raw")

    def record(self, item: Result, check_mode: bool = False) -> Result:
        params = checked("image", images=[{"name": "web", **item}], home=str(self.home))
        return run_operation(operation_of("image"), params, check_mode)

    def kept(self) -> list[str]:
        """The names of all disks in the home."""
        directory = self.home / "imported"
        return sorted(path.name for path in directory.glob("*") if path.suffix not in (".json", ".lock"))

    def appliance(self, count: int = 1, **changes: t.Any) -> pathlib.Path:
        names = [f"web-disk{number}.vmdk" for number in range(1, count + 1)]
        disk = converted(self.raw, "vmdk").read_bytes()
        text = descriptor(names, **changes)
        files = {"web.ovf": text, **dict.fromkeys(names, disk)}
        members = [member(name, data) for name, data in files.items()]
        return archive(self.raw.with_suffix(".ova"), *members, member("web.mf", manifest(files)))


@pytest.fixture
def controller(tmp_path: pathlib.Path) -> Controller:
    return Controller(tmp_path)


@pytest.mark.parametrize("disk_format", FORMATS)
def test_a_disk_of_another_hypervisor_is_converted_once(controller: Controller, disk_format: str) -> None:
    item = {"source": str(converted(controller.raw, disk_format)), "disk_format": disk_format}
    planned = controller.record(item, check_mode=True)
    assert planned["changed"] and controller.kept() == []
    [image] = controller.record(item)["images"]
    assert image["disk_format"] == "qcow2" and image["virtual_size"] == controller.raw.stat().st_size
    assert raw_of(image["source"]) == controller.raw.read_bytes()
    assert controller.kept() == [pathlib.Path(image["source"]).name]
    assert not controller.record(item)["changed"]
    assert not controller.record(item, check_mode=True)["changed"]


def test_a_second_run_reads_nothing_again(controller: Controller, monkeypatch: pytest.MonkeyPatch) -> None:
    item = {"source": str(converted(controller.raw, "vmdk")), "disk_format": "vmdk"}
    controller.record(item)
    monkeypatch.setattr(subprocess, "run", None)  # no program
    assert not controller.record(item)["changed"]


def test_another_file_in_its_place_is_another_image(controller: Controller) -> None:
    path = converted(controller.raw, "vdi")
    before = controller.record({"source": str(path), "disk_format": "vdi"})["images"][0]
    controller.raw.write_bytes(bytes(510) + b"\x55\xaa" + bytes((8 << 20) - 512))
    converted(controller.raw, "vdi")
    changed = controller.record({"source": str(path), "disk_format": "vdi"})
    assert changed["changed"] and changed["images"][0]["checksum"] != before["checksum"]
    assert changed["images"][0]["virtual_size"] == 8 << 20


def test_the_checksum_is_that_of_the_file_which_was_given(controller: Controller) -> None:
    path = converted(controller.raw, "vdi")
    with pytest.raises(NovaliteError, match="has the checksum"):
        controller.record({"source": str(path), "disk_format": "vdi", "checksum": f"sha256:{'0' * 64}"})
    assert controller.kept() == []


@pytest.mark.parametrize(
    ("suffix", "pack"),
    [
        ("xz", lzma.compress),
        ("gz", gzip.compress),
        ("bz2", bz2.compress),
        ("zst", lambda data: subprocess.run(["zstd", "-c"], input=data, capture_output=True, check=True).stdout),
    ],
)
def test_a_compressed_file_is_unpacked(
    controller: Controller, suffix: str, pack: t.Callable[[bytes], bytes], tmp_path: pathlib.Path
) -> None:
    path = tmp_path / f"disk.raw.{suffix}"
    path.write_bytes(pack(controller.raw.read_bytes()))
    [image] = controller.record({"source": str(path), "disk_format": "raw"})["images"]
    assert image["disk_format"] == "raw"
    assert pathlib.Path(image["source"]).read_bytes() == controller.raw.read_bytes()
    assert not controller.record({"source": str(path), "disk_format": "raw"})["changed"]


def test_an_appliance_is_an_image_for_each_of_its_disks(controller: Controller) -> None:
    path = controller.appliance(count=2, more=EFI)
    done = controller.record({"source": str(path), "disk_format": "ova", "properties": {"os_admin_user": "core"}})
    first, second = done["images"]
    assert (first["name"], second["name"]) == ("web", "web-disk2")
    assert first["min_ram_mb"] == 512 and second["min_ram_mb"] == 0
    properties = {"hw_firmware_type": "uefi", "os_admin_user": "core"}
    assert {key: first["properties"][key] for key in properties} == properties
    assert raw_of(first["source"]) == raw_of(second["source"]) == controller.raw.read_bytes()
    again = controller.record({"source": str(path), "disk_format": "ova", "properties": {"os_admin_user": "core"}})
    assert not again["changed"] and len(again["images"]) == 2


def test_a_url_needs_its_checksum(controller: Controller) -> None:
    with pytest.raises(NovaliteError, match="give its checksum"):
        controller.record({"source": "https://mirror.example.com/web.ova", "disk_format": "ova"})
