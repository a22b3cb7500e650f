# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""CPUs and memory of a guest that runs: its XML, the comparison, and libvirt itself with a guest of 61 bytes.

That guest hears nothing of CPUs and has no balloon: QEMU plugs CPUs in without it, and what it shall give up stays.
"""

from __future__ import annotations

import dataclasses
import json
import pathlib
import subprocess
import sys
import tempfile
import typing as t
import xml.etree.ElementTree as ElementTree

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._domain import compare
from ansible_collections.novalite.cloud.plugins.module_utils._domain.guest import guest_of, render
from tests.api.dashboard.consoles import SECTOR, daemon, read, virsh, wait
from tests.support.patience import GENEROUS
from tests.unit._domain.test_guest import FACTS, UUID, instance

SYSTEM_PYTHON = "/usr/bin/python3"  # libvirt's binding belongs to it
COLLECTIONS = pathlib.Path(sys.modules[compare.__name__].__file__ or "").parents[6]
STEP = """
import json, sys
import libvirt
from ansible_collections.novalite.cloud.plugins.module_utils._domain import lifecycle_size
uri, domains, check, timeout = json.load(sys.stdin)
done = lifecycle_size.ensure(libvirt.open(uri), domains, check, timeout)
print(json.dumps([[str(size.before), str(size.after), size.changed, size.error] for size in done]))
"""


def flavor(vcpus: int, memory_mb: int, **specs: object) -> dict[str, t.Any]:
    return {"name": f"{vcpus}x{memory_mb}", "vcpus": vcpus, "memory_mb": memory_mb, "extra_specs": specs}


def sized(vcpus: int, memory_mb: int) -> dict[str, t.Any]:
    return flavor(vcpus, memory_mb, **{"novalite:max_vcpus": "4", "novalite:max_ram": "128"})


def model(of: dict[str, t.Any], **changes: t.Any) -> compare.DomainModel:
    return compare.parse(render(dataclasses.replace(guest_of(instance(flavor=of), FACTS), **changes)))


def test_the_xml_has_what_it_starts_with_and_places_for_the_rest() -> None:
    root = ElementTree.fromstring(render(guest_of(instance(flavor=sized(2, 64)), FACTS)))
    vcpu = root.find("vcpu")
    assert vcpu is not None and (vcpu.text, vcpu.get("current")) == ("4", "2")
    assert (root.findtext("memory"), root.findtext("currentMemory")) == ("128", "64")
    marks = [(cpu.get("enabled"), cpu.get("hotpluggable")) for cpu in root.iterfind("vcpus/vcpu")]
    assert marks == [("yes", "no"), ("yes", "yes"), ("no", "yes"), ("no", "yes")]
    plain = ElementTree.fromstring(render(guest_of(instance(flavor=flavor(2, 64)), FACTS)))
    assert plain.find("vcpus") is None and plain.find("currentMemory") is None


def test_the_comparison_knows_what_runs_and_what_is_the_guests_own_affair() -> None:
    small, large = model(sized(1, 64)), model(sized(3, 128))
    assert {(row["field"], row["where"]) for row in compare.differences(large, small, small)} == {
        *(("current_vcpus", where) for where in ("persistent", "live")),
        *(("current_memory_kib", where) for where in ("persistent", "live")),
        *(("metadata.flavor", where) for where in ("persistent", "live")),
    }
    # while it boots, it has all of its balloon
    booting = dataclasses.replace(small, current_memory_kib=128 << 10)
    assert compare.differences(small, small, booting) == []
    assert [row["field"] for row in compare.differences(small, booting, None)] == ["current_memory_kib"]


class Host:
    """libvirt of nobody's, and the step on its guest."""

    def __init__(self, directory: pathlib.Path) -> None:
        self.directory, self.uri, self.vcpus, self.memory_mb = directory, "", 4, 128

    def xml(self, vcpus: int, memory_mb: int) -> str:
        """The domain's XML as novalite renders it, with what a session of nobody's cannot have left out."""
        of = flavor(
            vcpus, memory_mb, **{"novalite:max_vcpus": str(self.vcpus), "novalite:max_ram": str(self.memory_mb)}
        )
        guest = guest_of(instance(flavor=of, nics=[], image={"id": "8b", "name": "echo"}), FACTS)
        disk, log = str(self.directory / "disk"), str(self.directory / "log")
        changes: dict[str, t.Any] = {"disk": disk, "disk_format": "raw", "console_log": log, "video": None}
        return render(dataclasses.replace(guest, **changes))

    def virsh(self, *words: str) -> str:
        return virsh(self.uri, *words)

    def start(self, vcpus: int, memory_mb: int) -> None:
        (self.directory / "guest.xml").write_text(self.xml(vcpus, memory_mb))
        self.virsh("define", str(self.directory / "guest.xml"))
        self.virsh("start", UUID)
        wait(lambda: b">" in read(self.directory / "log"))

    def resize(self, vcpus: int, memory_mb: int, check: bool = False, timeout: float = 10) -> tuple[t.Any, ...]:
        domain = {"uuid": UUID, "name": "instance-00000007", "xml": self.xml(vcpus, memory_mb)}
        done = subprocess.run(
            [SYSTEM_PYTHON, "-c", STEP],
            input=json.dumps([self.uri, [domain], check, timeout]),
            env={"PYTHONPATH": str(COLLECTIONS)},
            check=True,
            timeout=GENEROUS,
            capture_output=True,
            text=True,
        )
        ((before, after, changed, error),) = json.loads(done.stdout)
        return before, after, changed, error

    def models(self) -> tuple[compare.DomainModel, compare.DomainModel]:
        """The domain as it is defined, and as it runs."""
        return compare.parse(self.virsh("dumpxml", UUID, "--inactive")), compare.parse(self.virsh("dumpxml", UUID))


@pytest.fixture
def host() -> t.Iterator[Host]:
    # pytest's own directories are closed to others
    with tempfile.TemporaryDirectory(prefix="guest-") as place:
        made = Host(pathlib.Path(place))
        (made.directory / "disk").write_bytes(SECTOR.ljust(1 << 20, b"\0"))
        with daemon(made.directory) as made.uri:
            yield made


def test_cpus_are_plugged_into_a_guest_that_runs(host: Host) -> None:
    host.start(1, 128)
    assert host.resize(3, 128, check=True) == ("1 vCPUs, 128 MiB", "3 vCPUs, 128 MiB", True, None)
    assert [seen.current_vcpus for seen in host.models()] == [1, 1]
    assert host.resize(3, 128) == ("1 vCPUs, 128 MiB", "3 vCPUs, 128 MiB", True, None)
    persistent, live = host.models()
    assert compare.differences(compare.parse(host.xml(3, 128)), persistent, live) == []
    assert dict(live.metadata)["flavor"] == "3x128"
    plugged = json.loads(host.virsh("qemu-monitor-command", UUID, '{"execute":"query-hotpluggable-cpus"}'))
    assert sum("qom-path" in cpu for cpu in plugged["return"]) == 3
    assert host.resize(3, 128) == ("3 vCPUs, 128 MiB", "3 vCPUs, 128 MiB", False, None)

    # Linux would let go
    before, after, _changed, error = host.resize(1, 128)
    assert (before, after) == ("3 vCPUs, 128 MiB", "1 vCPUs, 128 MiB")
    assert error.startswith("domain instance-00000007 cannot be resized while it runs: ")
    assert [seen.current_vcpus for seen in host.models()] == [3, 3]


def test_a_guest_without_a_balloon_keeps_its_memory_and_gets_no_cpus(host: Host) -> None:
    host.start(1, 128)
    _before, _after, _changed, error = host.resize(2, 64, timeout=1)
    assert "did not take to 2 vCPUs, 64 MiB in 1 s: its balloon does not answer" in error
    persistent, live = host.models()
    assert compare.differences(compare.parse(host.xml(1, 128)), persistent, live) == []


def test_what_it_was_not_started_for_is_refused(host: Host) -> None:
    host.start(1, 128)
    host.vcpus = 8
    assert "was started with 4 vCPUs, 128 MiB at most, not with 8 vCPUs, 128 MiB" in host.resize(5, 128)[3]
    host.vcpus = 4
    host.virsh("destroy", UUID)
    assert "does not run on this host" in host.resize(2, 128)[3]
