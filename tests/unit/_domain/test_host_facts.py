# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import errno
import os
import typing as t
from pathlib import Path

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._domain.capabilities import Capabilities
from ansible_collections.novalite.cloud.plugins.module_utils._drift import host_facts as facts
from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._host import kvm

BOTH = Capabilities("x86_64", None, "/usr/bin/qemu-system-x86_64", "pc", ("qemu", "kvm"))
QEMU_ONLY = Capabilities("x86_64", None, "/usr/bin/qemu-system-x86_64", "pc", ("qemu",))


class Probe:
    def __init__(self, fault: str | None) -> None:
        self.fault = fault
        self.runs = 0

    def __call__(self, arch: str, user: tuple[int, int] | None) -> str | None:
        self.runs += 1
        return self.fault


@pytest.mark.parametrize(("fault", "chosen"), [(None, "kvm"), ("interprets guests", "qemu")])
def test_the_probe_decides_and_is_asked_once_a_boot(
    fault: str | None, chosen: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    probe = Probe(fault)
    monkeypatch.setattr(facts, "kvm_fault", probe)
    known = str(tmp_path / "state" / "facts")
    for key, runs in (("boot-1 qemu-7", 1), ("boot-1 qemu-7", 1), ("boot-2 qemu-7", 2), ("boot-2 qemu-8", 3)):
        answer = facts.choose_domain_type("auto", BOTH, key, known, remember=True)
        assert (answer, probe.runs) == ((chosen, fault), runs)


def test_check_mode_reads_what_is_known_and_keeps_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    probe = Probe(None)
    monkeypatch.setattr(facts, "kvm_fault", probe)
    known = tmp_path / "facts"
    assert facts.choose_domain_type("auto", BOTH, "key", str(known), remember=False) == ("kvm", None)
    assert not known.exists()
    known.write_text('{"kvm": {"key": "key", "fault": "hangs"}}')
    assert facts.choose_domain_type("auto", BOTH, "key", str(known), remember=False) == ("qemu", "hangs")
    assert probe.runs == 1


@pytest.mark.parametrize("content", ["", "[]", '{"kvm": 3}', '{"kvm": {"key": "key"}}'])
def test_a_spoilt_memory_is_no_answer(content: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(facts, "kvm_fault", Probe("hangs"))
    known = tmp_path / "facts"
    known.write_text(content)
    assert facts.choose_domain_type("auto", BOTH, "key", str(known), remember=True) == ("qemu", "hangs")


def test_what_is_not_asked_needs_no_probe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    probe = Probe(None)
    monkeypatch.setattr(facts, "kvm_fault", probe)
    known = str(tmp_path / "facts")
    for asked_type in ("qemu", "kvm"):
        assert facts.choose_domain_type(asked_type, BOTH, "key", known, remember=True)[0] == asked_type
    chosen, reason = facts.choose_domain_type("auto", QEMU_ONLY, "key", known, remember=True)
    assert (chosen, reason) == ("qemu", "libvirt offers no kvm on this host")
    assert probe.runs == 0


@pytest.mark.parametrize(
    ("answer", "fault"), [("works", None), ("exit reason 9", "exit reason 9"), ("", "interprets guests")]
)
def test_a_probe_in_a_child_is_understood(answer: str, fault: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kvm, "_probe_x86_64", lambda: answer)
    reported_fault = kvm.kvm_fault("x86_64")
    assert reported_fault is None if fault is None else fault in str(reported_fault)


def test_a_probe_that_cannot_even_begin_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    def probe() -> t.NoReturn:
        raise FileNotFoundError(errno.ENOENT, "No such file or directory", "/dev/kvm")

    monkeypatch.setattr(kvm, "_probe_x86_64", probe)
    assert "No such file or directory" in str(kvm.kvm_fault("x86_64"))


def test_a_probe_that_uses_up_its_cpu_time_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    def probe() -> t.NoReturn:
        while True:
            pass

    monkeypatch.setattr(kvm, "_probe_x86_64", probe)
    monkeypatch.setattr(kvm, "WALL_SECONDS", 120.0)  # on a busy machine it takes long to have had that much
    assert "did not end within 1 s of CPU time" in str(kvm.kvm_fault("x86_64"))


def test_a_probe_that_hangs_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kvm, "_probe_x86_64", lambda: os.read(os.pipe()[0], 1).decode())
    monkeypatch.setattr(kvm, "WALL_SECONDS", 0.05)
    assert "did not end within 0.05 s" in str(kvm.kvm_fault("x86_64"))


def test_disk_facts_of_a_directory_that_does_not_exist_yet(tmp_path: Path) -> None:
    file_system = os.statvfs(tmp_path)
    later = str(tmp_path / "var" / "lib" / "novalite")
    assert facts.disk_gb(later) == file_system.f_blocks * file_system.f_frsize // 1024**3
    assert facts.disk_cache(later) in ("none", "writethrough")
    assert list(tmp_path.iterdir()) == []


def test_without_o_direct_the_cache_writes_through(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(fd: int, data: t.Any) -> int:
        raise OSError(errno.EINVAL, "Invalid argument")

    monkeypatch.setattr(facts.os, "write", refuse)
    assert facts.disk_cache(str(tmp_path)) == "writethrough"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("writer", ["genisoimage", "mkisofs", "xorrisofs"])
def test_any_program_that_writes_a_config_drive_will_do(
    writer: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(facts, "_SBIN", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "genisoimage or mkisofs or xorrisofs" in facts.missing_commands()
    for name in [group[0] for group in facts.COMMANDS[:-1]] + [writer]:
        (tmp_path / name).touch(mode=0o755)
    assert facts.missing_commands() == []
    (tmp_path / "virsh").unlink()
    assert facts.missing_commands() == ["virsh"]


def test_a_host_without_libvirtd_is_down_and_known_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def connect(uri: str) -> t.NoReturn:
        raise NovaliteError(f"libvirtd on this host does not answer at {uri}: {'x' * 500}")

    monkeypatch.setattr(facts, "connect", connect)
    record = facts.gather("hv1", str(tmp_path))
    assert (record["name"], record["up"]) == ("hv1", False)
    assert record["down_reason"].startswith("libvirtd on this host does not answer at qemu:///system")
    assert len(record["down_reason"]) == 255  # the ledger's column
    assert record["vcpus"] >= 1 and record["memory_mb"] >= 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="changes its user")
def test_the_probe_runs_as_qemu_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    private = tmp_path / "kvm"
    private.write_text("")
    private.chmod(0o600)

    def probe() -> str:
        with open(private, encoding="utf-8") as handle:
            handle.read()
        return "works"

    monkeypatch.setattr(kvm, "_probe_x86_64", probe)
    assert kvm.kvm_fault("x86_64") is None
    assert "Permission denied" in str(kvm.kvm_fault("x86_64", (65534, 65534)))
