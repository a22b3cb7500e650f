# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The copy of a running guest's disk: which disk, when it is at its end, and that no job is left."""

from __future__ import annotations

import typing as t
from xml.etree import ElementTree

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._domain import lifecycle, lifecycle_backup
from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError
from tests.unit._domain.fake_libvirt import Fake, FakeError, FakeLibvirt

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


class Connection(Fake):
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


class Agent(Domain):
    """A guest whose agent freezes and thaws; `deaf` is what it does not hear."""

    def __init__(self, end: dict[str, t.Any], deaf: tuple[str, ...] = ()) -> None:
        super().__init__(end)
        self.deaf, self.said = deaf, []  # type: tuple[str, ...], list[str]

    def agentSetResponseTimeout(self, seconds: int, _flags: int) -> None:
        assert 0 < seconds < 60

    def fsFreeze(self) -> None:
        self._hear("freeze")

    def fsThaw(self) -> None:
        self._hear("thaw")

    def _hear(self, word: str) -> None:
        self.said.append(word)
        if word in self.deaf:
            raise FakeError(1, "Guest agent is not responding")

    def backupBegin(self, xml: str, checkpoint: None, flags: int) -> None:
        super().backupBegin(xml, checkpoint, flags)
        self.said.append("begin")


def copy_all(domain: Agent, at_once: t.Callable[[], None] = lambda: None) -> bool:
    copies = {"/i/disk": "/s/disk", "/i/disk.eph0": "/s/disk.eph0"}
    return lifecycle_backup.backup_all(Connection(domain), UUID, copies, at_once, 60.0)


def test_all_disks_are_copied_while_the_file_systems_are_frozen() -> None:
    domain = Agent({"type": 3, "success": True})
    assert copy_all(domain, lambda: domain.said.append("at once")) is True
    assert domain.said == ["freeze", "begin", "at once", "thaw"]
    disks = ElementTree.fromstring(domain.begun).iterfind("disks/disk")
    assert [(disk.get("name"), disk[0].get("file")) for disk in disks] == [("vda", "/s/disk"), ("vdb", "/s/disk.eph0")]


def test_a_guest_without_an_agent_is_copied_as_it_is_and_thawed_in_case() -> None:
    domain = Agent({"type": 3, "success": True}, ("freeze",))
    assert copy_all(domain) is False and domain.said == ["freeze", "thaw", "begin"]


def test_a_guest_is_thawed_though_the_copy_does_not_begin() -> None:
    domain = Agent({"type": 3, "success": True})
    domain.job = MIGRATION
    with pytest.raises(NovaliteError, match="another job is under way"):
        copy_all(domain)
    assert domain.said == ["freeze", "thaw"] and domain.aborted == 0


def test_a_guest_that_is_not_thawed_is_said_to_be_frozen() -> None:
    domain = Agent({"type": 3, "success": True}, ("thaw",))
    with pytest.raises(NovaliteError, match="not responding"):
        copy_all(domain)
    assert domain.said.count("thaw") == lifecycle_backup.THAW_ATTEMPTS and domain.aborted == 1 and domain.job == 0


def test_what_a_killed_run_left_is_ended_and_thawed() -> None:
    domain = Agent({"type": 3})
    domain.job = BACKUP
    lifecycle_backup.release(Connection(domain), UUID)
    assert domain.aborted == 1 and domain.said == ["thaw"]
