# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Blocks that a backup takes, disks that several backups make, and objects in the store."""

from __future__ import annotations

import dataclasses
import io

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._backup import (
    blocks,
    compact,
    domain_xml,
    manifest,
    objects,
)
from ansible_collections.novalite.cloud.plugins.module_utils._backup.blocks import BLOCK, Block, Run, Span
from ansible_collections.novalite.cloud.plugins.module_utils._backup.manifest import Manifest, SavedDisk
from ansible_collections.novalite.cloud.plugins.module_utils._backup.objects import Header, Written
from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError

HEADER = Header("b2", "b1", "vda", 2 * BLOCK + 512)
ROWS = [Block(0, b"a" * BLOCK), Block(1, None), Block(2, b"c" * 512)]


def test_a_full_backup_takes_whole_blocks_that_hold_data() -> None:
    data = [Span(0, 512, True), Span(512, 3 * BLOCK, False), Span(3 * BLOCK + 512, 1024, True)]
    assert blocks.changed(0, 5 * BLOCK, data, None) == [Run(0, 1, True), Run(3, 1, True)]


def test_an_incremental_backup_takes_zeros_too() -> None:
    start = blocks.WINDOW
    data = [Span(start, BLOCK, False), Span(start + BLOCK, 2 * BLOCK, True)]
    dirty = [Span(start, 2 * BLOCK, True), Span(start + 2 * BLOCK, BLOCK, False)]
    first = start // BLOCK
    assert blocks.changed(start, 3 * BLOCK, data, dirty) == [Run(first, 1, False), Run(first + 1, 1, True)]


def test_the_newest_layer_wins() -> None:
    layers = [[Block(0, b"old"), Block(1, b"old")], [Block(1, b"newer"), Block(2, b"newer")], [Block(1, b"newest")]]
    assert list(blocks.newest(layers)) == [Block(0, b"old"), Block(1, b"newest"), Block(2, b"newer")]


def written() -> tuple[bytes, bytes, Written]:
    """An object of ROWS, its map, and what is said of it."""
    out, into_map = io.BytesIO(), io.BytesIO()
    said = objects.write(HEADER, ROWS, out, into_map)
    return out.getvalue(), into_map.getvalue(), said


def read(stored: bytes, map_: bytes, said: Written, header: Header = HEADER) -> list[Block]:
    entries = objects.read_map(io.BytesIO(map_), said, header.size, "it")
    return list(objects.checked(objects.read(io.BytesIO(stored), header, "it"), entries, "it"))


def test_what_is_written_is_read() -> None:
    stored, map_, said = written()
    assert read(stored, map_, said) == ROWS
    assert (said.blocks, said.data) == (3, BLOCK + 512)


def test_every_flipped_byte_of_a_record_is_noticed() -> None:
    stored, map_, said = written()
    line = len(HEADER.line())
    for at in [*range(line + 12), line + 5000, *range(len(stored) - 530, len(stored))]:
        with pytest.raises(NovaliteError, match=r"^it"):
            read(stored[:at] + bytes([stored[at] ^ 4]) + stored[at + 1 :], map_, said)


def test_what_is_cut_off_or_goes_on_is_noticed() -> None:
    stored, map_, said = written()
    for end in (0, 10, len(HEADER.line()), len(stored) - 9, len(stored) - 1):
        with pytest.raises(NovaliteError, match=r"^it"):
            read(stored[:end], map_, said)
    with pytest.raises(NovaliteError, match="damaged"):
        read(stored + b"x", map_, said)
    for other in (map_[:-1], map_[:-24], map_[:-1] + b"x", b""):
        with pytest.raises(NovaliteError, match="damaged"):
            read(stored, other, said)


@pytest.mark.parametrize("change", [{"backup": "b3"}, {"parent": None}, {"disk": "vdb"}, {"size": 3 * BLOCK}])
def test_an_object_of_another_backup_is_refused(change: dict[str, str | int | None]) -> None:
    stored, map_, said = written()
    with pytest.raises(NovaliteError, match="another object"):
        read(stored, map_, said, dataclasses.replace(HEADER, **change))  # type: ignore[arg-type]  # of fields by name


def saved(name: str, kind: str = manifest.INCREMENTAL, data: int = 0, has_bitmap: bool = True) -> SavedDisk:
    return SavedDisk(name, name, 100 * BLOCK, kind, "", has_bitmap, "object", Written(0, data, "", 0), "")


def backup(name: str, parent: str | None, *disks: SavedDisk) -> Manifest:
    return Manifest(name, "server", parent, f"novalite-{name}", 0, manifest.CRASH, "<domain/>", disks)


def test_a_manifest_is_read_as_it_was_written() -> None:
    made = backup("b2", "b1", saved("vda"), saved("vdb", manifest.FULL))
    assert manifest.parse(made.line(), "it") == made
    for line in (b"", b"{}", b"[]", made.line()[:-9], made.line().replace(b'"size"', b'"sise"')):
        with pytest.raises(NovaliteError, match=r"^it"):
            manifest.parse(line, "it")


def test_a_chain_begins_where_the_disk_is_whole() -> None:
    all_of_them = {
        "b1": backup("b1", None, saved("vda", manifest.FULL)),
        "b2": backup("b2", "b1", saved("vda"), saved("vdb", manifest.FULL)),
        "b3": backup("b3", "b2", saved("vda"), saved("vdb")),
    }
    needed = manifest.chain(all_of_them, "b3")
    assert [each.backup for each in needed] == ["b1", "b2", "b3"]
    assert [each.backup for each, _disk in manifest.disk_chain(needed, "vdb")] == ["b2", "b3"]
    del all_of_them["b1"]
    with pytest.raises(NovaliteError, match="backup b3 needs backup b1"):
        manifest.chain(all_of_them, "b3")


def test_a_disk_that_cannot_go_on_is_taken_whole_and_the_reason_is_said() -> None:
    parent = backup("b1", None, saved("vda"), saved("vdb"), saved("vdc", has_bitmap=False))
    disks = [domain_xml.Disk(name, name, f"/{name}", "qcow2") for name in ("vda", "vdc", "vdd")]
    disks += [domain_xml.Disk("vdb", "another", "/vdb", "qcow2"), domain_xml.Disk("vde", "vde", "/vde", "raw")]
    plans = {plan.disk.name: (plan.kind, plan.reason) for plan in domain_xml.plan(disks, parent, "")}
    assert plans == {
        "vda": ("incremental", ""),
        "vdb": ("full", "it is another disk than in backup b1"),
        "vdc": ("full", "it is another disk than in backup b1"),
        "vdd": ("full", "backup b1 has no such disk"),
        "vde": ("full", "a raw disk keeps no record of changes"),
    }


def test_a_full_backup_is_due_after_many_or_large_incremental_ones() -> None:
    chain = [backup("b0", None, saved("vda", manifest.FULL, 90 * BLOCK))]
    chain += [backup(f"b{number}", f"b{number - 1}", saved("vda", data=BLOCK)) for number in range(1, 8)]
    assert not compact.is_due(chain)
    assert compact.is_due([*chain, backup("b8", "b7", saved("vda"))])
    assert compact.is_due([*chain[:2], backup("b2", "b1", saved("vda", data=50 * BLOCK))])


def test_disks_of_a_domain() -> None:
    xml = """<domain><seclabel type='dynamic' model='dac'><label>+64055:+109</label></seclabel><devices>
      <disk type='file' device='cdrom'><source file='/config'/><target dev='hda'/></disk>
      <disk type='file' device='disk'><driver type='qcow2'/><source file='/a'/><target dev='vda'/></disk>
      <disk type='block'><driver type='raw'/><source dev='/dev/b'/><target dev='vdb'/><serial>id</serial></disk>
      <channel><target name='org.qemu.guest_agent.0' state='connected'/></channel></devices></domain>"""
    assert domain_xml.disks_of(xml) == [
        domain_xml.Disk("vda", "vda", "/a", "qcow2"),
        domain_xml.Disk("vdb", "id", "/dev/b", "raw"),
    ]
    assert domain_xml.owner_of(xml) == (64055, 109)
    assert domain_xml.has_agent(xml)
    assert not domain_xml.has_agent(xml.replace("connected", "disconnected"))
