# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Power states that a domain comes to, each from each, and what it costs, against a libvirt made of dictionaries."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._domain import lifecycle, lifecycle_power
from ansible_collections.novalite.cloud.plugins.module_utils._domain.outcome import Outcome, PowerSpec
from ansible_collections.novalite.cloud.plugins.module_utils._host import libvirt_connection
from tests.unit._domain.fake_libvirt import Fake, FakeError, FakeLibvirt

OFF, RUNNING, PAUSED = 5, 1, 3
UUIDS = [f"00000000-0000-4000-8000-{number:012}" for number in range(4)]


class Clock:
    """Time passes when somebody sleeps."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


class Domain:
    """`deaf`: does not hear the power button; otherwise it shuts down `slow` seconds after the first one it hears."""

    def __init__(self, host: Host, number: int, code: int = RUNNING, deaf: bool = False, slow: float = 2) -> None:
        self.host, self.uuid, self.title, self.code = host, UUIDS[number], f"instance-{number:08x}", code
        self.deaf, self.slow = deaf, slow
        self.off_at: float | None = None
        self.saved = False
        self.xml = xml(number)
        self.calls: list[str] = []
        self.broken: str | None = None
        host.domains[self.uuid] = self

    def name(self) -> str:
        return self.title

    def UUIDString(self) -> str:
        return self.uuid

    def isPersistent(self) -> bool:
        return True

    def isActive(self) -> bool:
        if self.off_at is not None and self.host.clock.now >= self.off_at:
            self.code, self.off_at = OFF, None
        return self.code != OFF

    def state(self) -> list[int]:
        self.isActive()
        return [self.code, 0]

    def XMLDesc(self, flags: int) -> str:
        return self.xml

    def hasManagedSaveImage(self, flags: int) -> bool:
        return self.saved

    def shutdownFlags(self, flags: int) -> None:
        self.calls.append(f"button at {self.host.clock.now:.0f}")
        if not self.deaf and self.off_at is None:
            self.off_at = self.host.clock.now + self.slow

    def _do(self, what: str, allowed: bool) -> None:
        self.calls.append(what)
        if self.broken == what or not allowed:
            raise FakeError(55, f"{what} is not possible")

    def destroy(self) -> None:
        self._do("destroy", self.isActive())
        self.code = OFF

    def createWithFlags(self, flags: int) -> None:
        assert not flags
        self.create()

    def create(self) -> None:
        self._do("restore" if self.saved else "create", not self.isActive())
        self.code, self.saved = RUNNING, False

    def suspend(self) -> None:
        self._do("suspend", self.isActive())
        self.code = PAUSED

    def resume(self) -> None:
        self._do("resume", self.code == PAUSED)
        self.code = RUNNING

    def managedSave(self, flags: int) -> None:
        assert flags == 2
        self._do("save", self.isActive())
        self.code, self.saved = OFF, True

    def managedSaveRemove(self, flags: int) -> None:
        self._do("forget", self.saved)
        self.saved = False


class Host(Fake):
    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.domains: dict[str, Domain] = {}

    def lookupByUUIDString(self, uuid: str) -> Domain:
        if uuid not in self.domains:
            raise FakeError(42, "no domain")
        return self.domains[uuid]

    def lookupByName(self, name: str) -> Domain:
        for domain in self.domains.values():
            if domain.title == name:
                return domain
        raise FakeError(42, "no domain")

    def defineXML(self, text: str) -> Domain:
        number = next(number for number, uuid in enumerate(UUIDS) if uuid in text)
        domain = self.domains.get(UUIDS[number]) or Domain(self, number, OFF)
        domain.xml = text
        domain.calls.append("define")
        return domain


def xml(number: int, memory: int = 96) -> str:
    return (
        f"<domain type='qemu'><name>instance-{number:08x}</name><uuid>{UUIDS[number]}</uuid>"
        f"<memory unit='MiB'>{memory}</memory><vcpu>1</vcpu><os><type arch='x86_64' machine='pc'>hvm</type></os>"
        "<devices/></domain>"
    )


def spec(number: int = 0, **more: t.Any) -> PowerSpec:
    spec_fields = {"xml": xml(number), "hard": False, "shutdown_timeout": None, **more}
    return t.cast(PowerSpec, {"uuid": UUIDS[number], "name": f"instance-{number:08x}", **spec_fields})


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Host:
    clock = Clock()
    monkeypatch.setattr(libvirt_connection, "libvirt", FakeLibvirt, raising=False)
    for module in (lifecycle, lifecycle_power):
        monkeypatch.setattr(module, "libvirt", FakeLibvirt, raising=False)
        monkeypatch.setattr(module, "time", clock)
    monkeypatch.setattr(lifecycle_power, "POLL", 0.25)  # adds up without a remainder
    return Host(clock)


def domain(host: Host, before: str, **more: t.Any) -> Domain:
    made = Domain(host, 0, {"running": RUNNING, "paused": PAUSED}.get(before, OFF), **more)
    made.saved = before == "saved"
    return made


def ensure(host: Host, state: str, *specs: PowerSpec, **more: t.Any) -> list[Outcome]:
    return lifecycle_power.ensure(host, specs or (spec(),), state, **more)


CASES = [
    ("running", "running", [], "running"),
    ("paused", "running", ["resume"], "running"),
    ("shutoff", "running", ["create"], "running"),
    ("saved", "running", ["restore"], "running"),
    ("running", "paused", ["suspend"], "paused"),
    ("paused", "paused", [], "paused"),
    ("running", "stopped", ["button at 0"], "shutoff"),
    ("paused", "stopped", ["destroy"], "shutoff"),
    ("shutoff", "stopped", [], "shutoff"),
    ("saved", "stopped", ["forget"], "shutoff"),
    ("running", "suspended", ["save"], "saved"),
    ("paused", "suspended", ["save"], "saved"),
    ("saved", "suspended", [], "saved"),
    ("running", "rebooted", ["button at 0", "create"], "running"),
    ("paused", "rebooted", ["destroy", "create"], "running"),
    ("shutoff", "rebooted", ["create"], "running"),
    ("saved", "rebooted", ["forget", "create"], "running"),
]


@pytest.mark.parametrize(("before", "state", "calls", "afterwards"), CASES)
def test_from_each_state_to_each(host: Host, before: str, state: str, calls: list[str], afterwards: str) -> None:
    guest = domain(host, before)
    (planned,) = ensure(host, state, check_mode=True)
    assert guest.calls == []
    (outcome,) = ensure(host, state)
    # what is off already is told so, which changes nothing
    assert [call for call in guest.calls if call != "destroy" or before == "paused"] == calls
    assert (outcome.state, outcome.changed, outcome.error) == (afterwards, bool(calls), None)
    assert (planned.state, planned.action) == (outcome.state, outcome.action)
    assert outcome.action in lifecycle_power.ACTIONS
    if outcome.changed:
        diff = lifecycle_power.diff_of([outcome])
        assert diff["before"] == {guest.title: before} and afterwards in diff["after"][guest.title]
    if state != "rebooted":
        assert not ensure(host, state)[0].changed


@pytest.mark.parametrize(("before", "state"), [("shutoff", "paused"), ("saved", "paused"), ("shutoff", "suspended")])
def test_what_cannot_be_done_is_an_error(host: Host, before: str, state: str) -> None:
    guest = domain(host, before)
    (outcome,) = ensure(host, state)
    assert outcome.error == f"domain {guest.title} is {before}, and cannot be {state} from there"
    assert not outcome.changed and guest.calls == [] and outcome.state == before


def test_a_missing_domain_is_defined_where_it_is_to_run(host: Host) -> None:
    for state in ("stopped", "paused", "suspended"):
        assert "is missing" in str(ensure(host, state)[0].error)
    assert "has no xml" in str(ensure(host, "running", spec(xml=None))[0].error)
    (outcome,) = ensure(host, "running")
    assert (outcome.action, outcome.state) == ("define and start", "running")


def test_guests_that_do_not_hear_take_one_timeout_in_all(host: Host) -> None:
    for number in range(4):
        Domain(host, number, deaf=number > 0, slow=25)
    outcomes = ensure(host, "stopped", *(spec(number) for number in range(3)), spec(3, shutdown_timeout=5))
    assert [outcome.state for outcome in outcomes] == ["shutoff"] * 4
    assert 60 <= host.clock.now < 61
    calls = [host.domains[uuid].calls for uuid in UUIDS]
    buttons = [f"button at {second}" for second in (0, 10, 20)]
    assert [call for call in calls[0] if call != "destroy"] == buttons
    assert calls[1] == [*buttons, "button at 30", "button at 40", "button at 50", "destroy"]
    assert calls[3] == ["button at 0", "destroy"]


def test_no_time_to_shut_down_asks_nobody(host: Host) -> None:
    guest = domain(host, "running")
    ensure(host, "stopped", shutdown_timeout=0)
    assert guest.calls == ["destroy"] and host.clock.now == 0


@pytest.mark.parametrize("state", ["stopped", "rebooted"])
def test_a_guest_that_does_not_hear_keeps_its_power_when_nobody_waits_for_it_any_more(
    host: Host, nobody_reads: None, state: str
) -> None:
    """The controller was killed: nobody would go on from there, and start the guest again."""
    guest = domain(host, "running", deaf=True)
    (outcome,) = ensure(host, state)
    assert outcome.state == "running" and "nobody waits for it any more" in str(outcome.error)
    assert "destroy" not in guest.calls


def test_a_guest_that_hears_is_rebooted_to_the_end_also_when_nobody_waits_for_it_any_more(
    host: Host, nobody_reads: None
) -> None:
    guest = domain(host, "running")
    assert ensure(host, "rebooted")[0].state == "running"
    assert guest.calls[-1] == "create"


def test_a_hard_reboot_starts_from_the_new_definition_at_once(host: Host) -> None:
    guest = domain(host, "running")
    (outcome,) = ensure(host, "rebooted", spec(hard=True, xml=xml(0, memory=128)))
    assert guest.calls == ["destroy", "define", "create"] and guest.xml == xml(0, memory=128)
    assert outcome.action == "power off and redefine and start"


DISPLAY = '<devices><graphics type="vnc"/><video><model type="virtio"/></video></devices>'


@pytest.mark.parametrize("state", ["running", "rebooted"])
def test_a_guest_of_before_gets_its_display_when_it_starts_anew(host: Host, state: str) -> None:
    guest = domain(host, "running")
    shown = xml(0).replace("<devices/>", DISPLAY)
    (outcome,) = ensure(host, state, spec(hard=True, xml=shown))
    assert outcome.differences == []
    assert guest.calls == {"running": [], "rebooted": ["destroy", "define", "create"]}[state]
    (outcome,) = ensure(host, "rebooted", spec(hard=True, xml=shown))
    assert (outcome.action == "power off and start") is (state == "rebooted")


def test_a_start_that_fails_leaves_the_former_definition(host: Host) -> None:
    guest = domain(host, "shutoff")
    guest.broken = "create"
    (outcome,) = ensure(host, "running", spec(xml=xml(0, memory=128)))
    assert "instance-00000000 does not start: create is not possible" in str(outcome.error)
    assert guest.xml == xml(0) and outcome.state == "shutoff" and outcome.changed


def test_one_that_fails_keeps_no_other_from_it(host: Host) -> None:
    for number in range(3):
        Domain(host, number)
    host.domains[UUIDS[1]].broken = "save"
    outcomes = ensure(host, "suspended", *(spec(number) for number in range(3)))
    assert [outcome.state for outcome in outcomes] == ["saved", "running", "saved"]
    assert [bool(outcome.error) for outcome in outcomes] == [False, True, False]
    assert outcomes[1].error == "domain instance-00000001 cannot be suspended: save is not possible"


def test_somebody_elses_domain_is_left_alone(host: Host) -> None:
    guest = domain(host, "running")
    guest.title = "mine"
    (outcome,) = ensure(host, "stopped")
    assert "exists on this host as mine" in str(outcome.error) and guest.calls == []
