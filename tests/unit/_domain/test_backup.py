# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The copy of a running guest's disk: which disk, when it is at its end, and that no job is left."""

from __future__ import annotations

import typing as t
from xml.etree import ElementTree

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._domain import lifecycle, lifecycle_backup
from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError
from tests.unit._domain.fake_libvirt import FakeError, FakeLibvirt

UUID = "6f1b6a2c-3f0e-4b1d-9a57-0d6c3f5f7c11"
XML = f"""<domain type='qemu'><name>instance-1</name><uuid>{UUID}</uuid><memory>1</memory><devices>
<disk type='file' device='disk'><source file='/i/disk'/><target dev='vda'/></disk>
<disk type='file' device='disk'><source file='/i/disk.eph0'/><target dev='vdb'/></disk></devices></domain>"""
BACKUP, MIGRATION = 9, 2


class Libvirt(FakeLibvirt):
    VIR_DOMAIN_JOB_NONE = 0
    VIR_DOMAIN_JOB_COMPLETED = 3
    VIR_DOMAIN_JOB_STATS_COMPLETED = 1
    VIR_DOMAIN_JOB_OPERATION_BACKUP = BACKUP


class Domain:
    def __init__(self, end: dict[str, t.Any], running: int = 0, steps: int = 2) -> None:
        self.end, self.job, self.steps, self.begun, self.aborted = end, running, steps, "", 0

    def isActive(self) -> bool:
        return True

    def XMLDesc(self, _flags: int) -> str:
        return XML

    def backupBegin(self, xml: str, _checkpoint: None, _flags: int) -> None:
        if self.job:
            raise FakeError(1, "another job is under way")
        self.begun, self.job = xml, BACKUP

    def jobStats(self, flags: int) -> dict[str, t.Any]:
        if flags:
            return self.end
        if self.begun and self.steps == 0:
            self.job = 0
        self.steps -= bool(self.begun)
        return {"type": 2, "operation": self.job} if self.job else {"type": 0}

    def abortJob(self) -> None:
        self.aborted, self.job = self.aborted + 1, 0


class Connection(t.Any):  # stands in for a virConnect
    def __init__(self, domain: Domain) -> None:
        self.domain = domain

    def lookupByUUIDString(self, _uuid: str) -> Domain:
        return self.domain


@pytest.fixture(autouse=True)
def libvirt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lifecycle, "libvirt", Libvirt, raising=False)
    monkeypatch.setattr(lifecycle_backup, "libvirt", Libvirt, raising=False)
    monkeypatch.setattr(lifecycle_backup, "POLL", 0.0)


def copy(domain: Domain, disk: str = "/i/disk", timeout: float = 60.0) -> None:
    lifecycle_backup.backup(Connection(domain), UUID, disk, "/s/new", timeout)


def test_one_disk_is_copied_to_its_end() -> None:
    domain = Domain({"type": 3, "success": True})
    copy(domain)
    root = ElementTree.fromstring(domain.begun)
    (disk,) = root.iterfind("disks/disk")
    assert (root.get("mode"), disk.get("name"), disk.get("backup")) == ("push", "vda", "yes")
    assert [element.attrib for element in disk] == [{"file": "/s/new"}, {"type": "qcow2"}]
    assert domain.job == domain.aborted == 0


@pytest.mark.parametrize("end", [{"type": 4}, {"type": 5}, {"type": 3, "success": False, "errmsg": "no room"}])
def test_a_copy_that_failed_is_none(end: dict[str, t.Any]) -> None:
    with pytest.raises(NovaliteError, match="the copy of its disk failed"):
        copy(Domain(end))


def test_the_job_of_a_killed_run_is_ended_first() -> None:
    domain = Domain({"type": 3}, running=BACKUP)
    copy(domain)
    assert domain.aborted == 1 and domain.begun


def test_another_kind_of_job_is_not() -> None:
    domain = Domain({"type": 3}, running=MIGRATION)
    with pytest.raises(NovaliteError, match="another job is under way"):
        copy(domain)
    assert domain.aborted == 0


def test_a_copy_without_an_end_is_ended() -> None:
    domain = Domain({"type": 3}, steps=10**9)
    with pytest.raises(NovaliteError, match="did not come to an end in time"):
        copy(domain, timeout=0.0)
    assert domain.aborted == 1


def test_a_disk_that_the_guest_has_not() -> None:
    with pytest.raises(NovaliteError, match="has no disk /i/other"):
        copy(Domain({}), "/i/other")
