# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Disks that a domain takes with it when it moves while it runs, and whether the others may stay where they are."""

from __future__ import annotations

import os
import re
import types

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._domain import lifecycle_migrate
from ansible_collections.novalite.cloud.plugins.module_utils._domain.lifecycle_migrate import (
    memory_at_risk,
    own_disks,
    sockets,
    stay_whole,
)
from ansible_collections.novalite.cloud.plugins.module_utils._transfer import channel

STATE, UUID = "/var/lib/novalite", "6a6f4d3e-1f0b-4f77-9f0e-0b7f0f2b7c11"
OWN = f"{STATE}/instances/{UUID}/disk"
SHARED = f"{STATE}/shares/tank/9b1deb4d-3b7d-4bad-9bdd-2b0d7b3dcb6d"


def disk(device: str, source: str, cache: str | None = "none", more: str = "") -> str:
    driver = f'<driver name="qemu" type="qcow2" cache="{cache}"/>' if cache else "<driver name='qemu' type='qcow2'/>"
    return f'<disk device="disk">{driver}<source {source}/><target dev="{device}" bus="virtio"/>{more}</disk>'


def domain(*disks: str) -> str:
    return f"<domain><devices>{''.join(disks)}</devices></domain>"


def file(path: str) -> str:
    return f'file="{path}"'


def test_sockets_have_the_names_that_a_confined_guest_may_use() -> None:
    # virt-aa-helper's rule for each guest, and what fits into a sockaddr_un
    allowed = re.compile(r"/run/libvirt/.*[^/]\.tunnelmigrate\.dest\.instance-0000002a\Z")
    paths = [os.path.join(channel.directory_of(UUID), name) for name in sockets("instance-0000002a")]
    assert len(set(paths)) == 2 and all(allowed.match(path) and len(path) < 108 for path in paths)


def test_what_is_in_its_own_directory_goes_with_it() -> None:
    xml = domain(
        disk("vda", file(OWN)),
        disk("vdb", file(SHARED)),
        disk("vdc", file(f"{STATE}/instances/{UUID}/disk.config"), more="<readonly/>"),
        disk("vdd", file(f"{STATE}/instances/{UUID}x/disk")),
    )
    assert own_disks(xml, UUID, STATE) == ["vda"]


@pytest.mark.parametrize(
    ("disks", "safe"),
    [
        ((), True),
        ((disk("vdb", file(SHARED)),), True),
        ((disk("vdb", file(SHARED), "directsync"),), True),
        ((disk("vdb", file(SHARED)), disk("vdc", file("/srv/cd.iso"), more="<readonly/>")), True),
        # the other host would read what is not written yet
        ((disk("vdb", file(SHARED), "writethrough"),), False),
        ((disk("vdb", file(SHARED), None),), False),
        # only this host has them
        ((disk("vdb", file(SHARED)), disk("vdc", file(f"{STATE}/volumes/data"))), False),
        ((disk("vdb", file(f"{STATE}/shares-of-old/data")),), False),
        ((disk("vdb", 'dev="/dev/novalite/data"'),), False),
    ],
)
def test_a_disk_may_stay_on_a_share_past_all_caches(disks: tuple[str, ...], safe: bool) -> None:
    assert stay_whole(domain(disk("vda", file(OWN), "writeback"), *disks), UUID, STATE) is safe


def test_what_is_defined_there_is_what_was_planned(monkeypatch: pytest.MonkeyPatch) -> None:
    """CVE-2020-17376: a definition with the devices of the former host would be started at the next boot."""
    names = ("URI", "DEST_XML", "PERSIST_XML", "DISKS_URI", "MIGRATE_DISKS", "BANDWIDTH")
    binding = types.SimpleNamespace(**{f"VIR_MIGRATE_PARAM_{name}": name for name in names})
    monkeypatch.setattr(lifecycle_migrate, "libvirt", binding, raising=False)
    nic = '<interface type="bridge"><mac address="fa:16:3e:00:00:01"/><source bridge="{}"/></interface>'
    before, planned = domain(nic.format("br-here")), domain(nic.format("br-there"))
    parameters = lifecycle_migrate._parameters(before, planned, "ram", "nbd", 0, [])
    assert parameters["PERSIST_XML"] == planned
    assert "br-here" not in str(parameters["DEST_XML"]) and "br-there" in str(parameters["DEST_XML"])


@pytest.mark.parametrize(
    ("kind", "version", "version_in_words"),
    [("qemu", 7002022, "7.2.22"), ("qemu", 8002010, "8.2.10"), ("qemu", 9000000, None), ("kvm", 7002022, None)],
)
def test_guests_are_named_whose_memory_qemu_may_damage(kind: str, version: int, version_in_words: str | None) -> None:
    risk = memory_at_risk(f"<domain type='{kind}'><name>instance-1</name></domain>", version)
    assert risk is None if version_in_words is None else risk is not None and f"(here {version_in_words})" in risk
