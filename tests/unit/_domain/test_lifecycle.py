# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Steps on domains, and what is undone, against a libvirt made of dictionaries."""

from __future__ import annotations

import collections
import pathlib
import types
import typing as t

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._domain import lifecycle
from ansible_collections.novalite.cloud.plugins.module_utils._domain.outcome import DomainSpec, diff_of
from ansible_collections.novalite.cloud.plugins.module_utils._errors import ConflictError, NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._host import libvirt_connection, rule_races
from ansible_collections.novalite.cloud.plugins.module_utils._host.module import HostCall
from ansible_collections.novalite.cloud.plugins.modules import domain as domain_module
from ansible_collections.novalite.cloud.plugins.modules import domain_info
from tests.unit._domain.fake_libvirt import Fake, FakeError, FakeLibvirt

RUNNING, PAUSED, SHUTOFF = 1, 3, 5


class Domain:
    def __init__(self, host: Host, uuid: str, name: str, xml: str) -> None:
        self.host, self.uuid, self.title, self.xml = host, uuid, name, xml
        self.code = SHUTOFF
        self.live: str | None = None

    def name(self) -> str:
        return self.title

    def UUIDString(self) -> str:
        return self.uuid

    def isPersistent(self) -> bool:
        return True

    def isActive(self) -> bool:
        return self.code in (RUNNING, PAUSED)

    def state(self) -> list[int]:
        return [self.code, 0]

    def XMLDesc(self, flags: int) -> str:
        return self.xml if flags & 2 or self.live is None else self.live

    def createWithFlags(self, flags: int) -> None:
        self.host.attempts[self.title] += 1
        if self.host.races:
            self.host.races -= 1
            raise FakeError(
                FakeLibvirt.VIR_ERR_INTERNAL_ERROR, "Failed to apply firewall rules", FakeLibvirt.VIR_FROM_FIREWALL
            )
        if self.title in self.host.unstartable:
            raise FakeError(1, f"Cannot get interface MTU\non 'br-{self.title}'")
        booting = [domain.title for domain in self.host.domains.values() if domain.code == RUNNING]
        self.host.starts.append((self.title, booting))
        self.code = SHUTOFF if self.title in self.host.dying else PAUSED if flags else RUNNING
        self.live = self.xml

    def resume(self) -> None:
        if self.code != PAUSED:
            raise FakeError(FakeLibvirt.VIR_ERR_OPERATION_INVALID, "domain is not paused")
        self.code = RUNNING

    def destroy(self) -> None:
        if not self.isActive():
            raise FakeError(FakeLibvirt.VIR_ERR_OPERATION_INVALID, "domain is not running")
        self.code, self.live = SHUTOFF, None

    def undefineFlags(self, flags: int) -> None:
        assert flags == 1 | 2 | 4 | 16
        del self.host.domains[self.uuid]


class Host(Fake):
    """A virConnect, as far as lifecycle uses one."""

    def __init__(self) -> None:
        self.domains: dict[str, Domain] = {}
        self.unstartable: set[str] = set()
        self.dying: set[str] = set()
        self.races = 0  # starts that fail, for another program changes rules at the same moment
        self.attempts: collections.Counter[str] = collections.Counter()
        self.starts: list[tuple[str, list[str]]] = []  # name, and those whose CPUs ran at that moment

    def lookupByUUIDString(self, uuid: str) -> Domain:
        if uuid not in self.domains:
            raise FakeError(FakeLibvirt.VIR_ERR_NO_DOMAIN, "Domain not found")
        return self.domains[uuid]

    def lookupByName(self, name: str) -> Domain:
        for domain in self.domains.values():
            if domain.name() == name:
                return domain
        raise FakeError(FakeLibvirt.VIR_ERR_NO_DOMAIN, "Domain not found")

    def defineXML(self, xml: str) -> Domain:
        model = lifecycle.compare.parse(xml)
        domain = self.domains.setdefault(str(model.uuid), Domain(self, str(model.uuid), model.name, xml))
        domain.xml = xml
        return domain

    def listAllDomains(self, _flags: int = 0) -> list[Domain]:
        return list(self.domains.values())

    def states(self) -> dict[str, int]:
        return {domain.name(): domain.code for domain in self.domains.values()}


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Host:
    for module in (libvirt_connection, lifecycle):
        monkeypatch.setattr(module, "libvirt", FakeLibvirt, raising=False)
    return Host()


def spec(number: int, memory: int = 64) -> DomainSpec:
    uuid, name = f"6f1b6a2c-3f0e-4b1d-9a57-{number:012x}", f"instance-{number:08x}"
    xml = f"<domain type='qemu'><name>{name}</name><uuid>{uuid}</uuid><memory unit='MiB'>{memory}</memory></domain>"
    return DomainSpec(uuid=uuid, name=name, xml=xml)


def actions(outcomes: t.Sequence[t.Any]) -> list[str]:
    return [outcome.action for outcome in outcomes]


def test_missing_ones_are_defined_and_started_once(host: Host) -> None:
    specs = [spec(1), spec(2)]
    outcomes = lifecycle.ensure_running(host, specs)
    assert actions(outcomes) == ["define and start"] * 2
    assert host.states() == {"instance-00000001": RUNNING, "instance-00000002": RUNNING}
    again = lifecycle.ensure_running(host, specs)
    assert [(outcome.changed, outcome.state) for outcome in again] == [(False, "running")] * 2


def test_started_together_none_boots_before_all_are_there(host: Host) -> None:
    specs = [spec(1), spec(2), spec(3)]
    outcomes = lifecycle.ensure_running(host, specs, together=True)
    assert {outcome.action for outcome in outcomes} == {"define and start"}
    assert sorted(host.starts) == [(name["name"], []) for name in specs]
    assert set(host.states().values()) == {RUNNING}
    assert not any(outcome.changed for outcome in lifecycle.ensure_running(host, specs, together=True))


@pytest.mark.parametrize("others", [0, 2])
def test_a_start_together_that_was_cut_off_is_finished(host: Host, others: int) -> None:
    host.defineXML(str(spec(1)["xml"])).createWithFlags(FakeLibvirt.VIR_DOMAIN_START_PAUSED)
    specs = [spec(number) for number in range(1, others + 2)]
    assert actions(lifecycle.ensure_running(host, specs, check_mode=True, together=True))[0] == "resume"
    lifecycle.ensure_running(host, specs, together=True)
    assert list(host.states().values()) == [RUNNING] * len(specs)


def test_none_has_run_when_one_of_those_started_together_fails(host: Host) -> None:
    host.unstartable.add(spec(3)["name"])
    with pytest.raises(NovaliteError, match="instance-00000003 does not start"):
        lifecycle.ensure_running(host, [spec(1), spec(2), spec(3)], together=True)
    assert (host.domains, [booting for _name, booting in host.starts if booting]) == ({}, [])


def test_a_start_is_tried_again_after_a_race_of_filters_alone(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rule_races, "PAUSES", (0.0,) * 5)
    host.races = 5
    lifecycle.ensure_running(host, [spec(1)])
    assert host.attempts[spec(1)["name"]] == 6 and list(host.states().values()) == [RUNNING]
    host.races = 6
    with pytest.raises(NovaliteError, match="instance-00000002 does not start: Failed to apply firewall rules"):
        lifecycle.ensure_running(host, [spec(2)])
    host.races = 0
    host.unstartable.add(spec(3)["name"])
    with pytest.raises(NovaliteError, match="does not start: Cannot get interface MTU"):
        lifecycle.ensure_running(host, [spec(3)])
    assert host.attempts[spec(3)["name"]] == 1


def test_what_was_asked_for_lies_beside_the_disks(host: Host, tmp_path: pathlib.Path) -> None:
    instance, other = spec(1), tmp_path / "elsewhere"
    directory = tmp_path / "instances" / instance["uuid"]
    for place in (directory, other):
        place.mkdir(parents=True)

    def with_disks(memory: int) -> DomainSpec:
        disks = "".join(f"<disk><source file='{place}/disk'/></disk>" for place in (directory, other))
        xml = str(spec(1, memory)["xml"]).replace("</domain>", f"<devices>{disks}</devices></domain>")
        return DomainSpec(uuid=instance["uuid"], name=instance["name"], xml=xml)

    lifecycle.ensure_running(host, [with_disks(64)], check_mode=True)
    assert not list(directory.iterdir())
    for memory in (64, 128):
        lifecycle.ensure_running(host, [with_disks(memory)])
        kept = directory / "libvirt.xml"
        assert (kept.read_text(), kept.stat().st_mode & 0o777) == (with_disks(memory)["xml"], 0o600)
        host.domains[instance["uuid"]].destroy()
    assert not list(other.iterdir())


def test_check_mode_tells_the_same_and_does_nothing(host: Host) -> None:
    outcomes = lifecycle.ensure_running(host, [spec(1)], check_mode=True)
    assert (actions(outcomes), host.domains) == (["define and start"], {})
    lifecycle.ensure_running(host, [spec(1)])
    outcomes = lifecycle.ensure_absent(host, [spec(1)], check_mode=True)
    assert (actions(outcomes), host.states()) == (["remove"], {"instance-00000001": RUNNING})


@pytest.mark.parametrize("code", [RUNNING, PAUSED])
def test_an_active_one_is_left_alone_and_its_differences_told(host: Host, code: int) -> None:
    lifecycle.ensure_running(host, [spec(1)])
    host.domains[spec(1)["uuid"]].code = code
    (outcome,) = lifecycle.ensure_running(host, [spec(1, memory=128)])
    assert outcome.action == "none"
    assert {(d["field"], d["where"]) for d in outcome.differences} == {
        (field, where) for field in ("memory_kib", "current_memory_kib") for where in ("persistent", "live")
    }
    assert host.domains[spec(1)["uuid"]].xml == spec(1)["xml"]


@pytest.mark.parametrize(("memory", "action"), [(64, "start"), (128, "redefine and start")])
def test_one_that_is_shut_off_is_redefined_if_it_differs(host: Host, memory: int, action: str) -> None:
    host.defineXML(str(spec(1)["xml"]))
    (outcome,) = lifecycle.ensure_running(host, [spec(1, memory)])
    assert (outcome.action, outcome.state) == (action, "running")
    assert host.domains[spec(1)["uuid"]].live == spec(1, memory)["xml"]


def test_a_failed_start_undoes_the_whole_call(host: Host) -> None:
    running, shut_off, differing, missing, failing = (spec(number) for number in range(1, 6))
    lifecycle.ensure_running(host, [running])
    host.defineXML(str(shut_off["xml"]))
    host.defineXML(str(differing["xml"]).replace(">64<", ">32<"))
    before = {uuid: (domain.xml, domain.code) for uuid, domain in host.domains.items()}
    host.unstartable.add(failing["name"])
    message = "^domain instance-00000005 does not start: Cannot get interface MTU on 'br-instance-00000005'$"
    with pytest.raises(NovaliteError, match=message):
        lifecycle.ensure_running(host, [running, shut_off, differing, missing, failing])
    assert {uuid: (domain.xml, domain.code) for uuid, domain in host.domains.items()} == before


def test_a_guest_that_ends_at_once_is_a_failure(host: Host) -> None:
    host.dying.add(spec(1)["name"])
    with pytest.raises(NovaliteError, match=r"ended right after its start; see .*/instance-00000001\.log"):
        lifecycle.ensure_running(host, [spec(1)])
    assert host.domains == {}


def test_absent_removes_what_there_is_and_is_idempotent(host: Host) -> None:
    lifecycle.ensure_running(host, [spec(1), spec(3)])
    host.defineXML(str(spec(2)["xml"]))
    outcomes = lifecycle.ensure_absent(host, [spec(1), spec(2), spec(9)])
    assert actions(outcomes) == ["remove", "remove", "none"]
    assert host.states() == {"instance-00000003": RUNNING}
    assert actions(lifecycle.ensure_absent(host, [spec(1), spec(2)])) == ["none", "none"]


def test_a_guest_that_came_back_since_somebody_looked_is_not_removed(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And nothing else either: the disks would be next."""
    lifecycle.ensure_running(host, [spec(1), spec(2)])
    host.defineXML(str(spec(3)["xml"]))
    monkeypatch.setattr(domain_module, "connect", lambda _uri: host)
    params: dict[str, t.Any] = {"state": "absent", "uri": "", "domains": [spec(2), spec(3)]}

    def remove(*only_off: int) -> None:
        uuids = [spec(number)["uuid"] for number in only_off]
        call = types.SimpleNamespace(params={**params, "only_off": uuids}, check_mode=False, diff=False)
        domain_module.run(t.cast(t.Any, call))

    with pytest.raises(ConflictError, match=f"instance {spec(1)['uuid']} runs on this host: it was off, or not there"):
        remove(3, 9, 1)
    assert len(host.states()) == 3
    remove(3, 9)
    assert host.states() == {"instance-00000001": RUNNING}


def test_the_profile_that_libvirt_leaves_goes_with_the_guest(
    host: Host, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lifecycle, "APPARMOR_PROFILES", str(tmp_path))
    ours = [tmp_path / f"libvirt-{spec(number)['uuid']}{suffix}" for number in (1, 2) for suffix in ("", ".files")]
    others = [tmp_path / f"libvirt-{spec(3)['uuid']}", tmp_path / "TEMPLATE.qemu"]
    for path in ours + others:
        path.touch()
    lifecycle.ensure_running(host, [spec(1)])
    lifecycle.ensure_absent(host, [spec(1), spec(2)], check_mode=True)
    assert set(tmp_path.iterdir()) == {*ours, *others}
    lifecycle.ensure_absent(host, [spec(1), spec(2)])  # the second one ran elsewhere in the end
    assert set(tmp_path.iterdir()) == {*others}


def test_a_name_that_belongs_to_another_uuid_is_refused(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(domain_info, "connect", lambda _uri: host)

    def look(_host: Host, domains: list[DomainSpec]) -> None:
        """Before a build makes anything, spawn asks whether the names are free."""
        domain_info.run(HostCall({"uri": "test:///", "domains": domains, "free": True, "addresses": False}))

    other = spec(1)
    host.defineXML(str(other["xml"]))
    desired_spec = spec(2)
    desired_spec = DomainSpec(
        uuid=desired_spec["uuid"],
        name=other["name"],
        xml=str(desired_spec["xml"]).replace(desired_spec["name"], other["name"]),
    )
    for refusing in (lifecycle.ensure_running, lifecycle.ensure_defined, look):
        with pytest.raises(
            ConflictError, match=f"uuid {other['uuid']} and not {desired_spec['uuid']}.*stays as it is"
        ) as refusal:
            refusing(host, [desired_spec])
        assert "undefine" not in str(refusal.value), "the hint must not destroy it"
    assert lifecycle.ensure_running(host, [other])
    look(host, [other, spec(3)])
    assert host.states() == {other["name"]: RUNNING}


def test_a_uuid_that_belongs_to_another_name_is_refused(host: Host) -> None:
    host.defineXML(str(spec(1)["xml"]))
    desired_spec = DomainSpec(
        uuid=spec(1)["uuid"], name="web", xml=str(spec(1)["xml"]).replace("instance-00000001", "web")
    )
    with pytest.raises(ConflictError, match="exists on this host as instance-00000001, not as web"):
        lifecycle.ensure_running(host, [desired_spec])


def test_xml_of_another_domain_is_refused(host: Host) -> None:
    with pytest.raises(NovaliteError, match="describes instance-00000002"):
        lifecycle.ensure_running(host, [DomainSpec(uuid=spec(1)["uuid"], name=spec(1)["name"], xml=spec(2)["xml"])])
    with pytest.raises(NovaliteError, match="is to run but has no xml"):
        lifecycle.ensure_running(host, [DomainSpec(uuid=spec(1)["uuid"], name=spec(1)["name"], xml=None)])
    assert host.domains == {}


def test_inspect_without_xml_tells_the_state_only(host: Host) -> None:
    lifecycle.ensure_running(host, [spec(1)])
    bare = [DomainSpec(uuid=spec(n)["uuid"], name=spec(n)["name"], xml=None) for n in (1, 2)]
    assert [(o.state, o.differences) for o in lifecycle.inspect(host, bare)] == [("running", []), ("missing", [])]


def test_the_diff_shows_fields_and_the_xml_of_new_ones(host: Host) -> None:
    host.defineXML(str(spec(2, memory=32)["xml"]))
    specs = [spec(1), spec(2), spec(3)]
    lifecycle.ensure_running(host, [spec(3)])
    fields, text = diff_of(lifecycle.ensure_running(host, specs, check_mode=True), specs)
    assert set(fields["before"]["domains"]) == set(fields["after"]["domains"]) == {"instance-00000002"}
    assert fields["before"]["domains"]["instance-00000002"]["memory_kib"] == 32 * 1024
    assert fields["after"]["domains"]["instance-00000002"]["memory_kib"] == 64 * 1024
    assert fields["after"]["domains"]["instance-00000002"]["state"] == "running"
    assert (text["before"], text["after"]) == ("", spec(1)["xml"])
    (gone,) = diff_of(lifecycle.ensure_absent(host, [spec(3)]), [spec(3)])
    assert gone["before"]["domains"]["instance-00000003"]["state"] == "running"
    assert gone["after"] == {"domains": {"instance-00000003": None}}
    assert diff_of(lifecycle.ensure_absent(host, [spec(3)]), [spec(3)]) == []
