# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Network filters against a small stand-in for libvirt: a healthy one does not refuse on demand.

The molecule scenarios run the same code against the real libvirt.
"""

from __future__ import annotations

import re
import typing as t
import uuid
from xml.etree import ElementTree

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._errors import ConflictError, NotFoundError, NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._host import libvirt_connection
from ansible_collections.novalite.cloud.plugins.module_utils._network import nwfilter
from ansible_collections.novalite.cloud.plugins.module_utils._network.ownership import Mark
from tests.unit._domain.fake_libvirt import FakeError

WANTED = nwfilter.parse(
    [
        {"name": "nova-instance-a", "references": ["nova-base"]},
        {"name": "nova-instance-b", "references": ["nova-base", "nova-ipv6"]},
    ]
)


class FakeFilter:
    def __init__(self, host: FakeLibvirt, name: str) -> None:
        self.host, self._name = host, name

    def name(self) -> str:
        return self._name

    def UUIDString(self) -> str:
        return self.host.uuids[self._name]

    def XMLDesc(self, _flags: int) -> str:
        # libvirt indents and quotes its own way.
        return self.host.filters[self._name].replace('"', "'").replace("\n", "\n\n  ")

    def undefine(self) -> None:
        if self.host.busy.get(self._name, 0) > 0:
            self.host.busy[self._name] -= 1
            raise FakeError(self.host.VIR_ERR_OPERATION_INVALID, "nwfilter is in use")
        del self.host.filters[self._name]


class FakeLibvirt:
    """The module and its one connection."""

    libvirtError = FakeError
    VIR_ERR_OPERATION_INVALID = 55
    VIR_FROM_FIREWALL = 59
    VIR_ERR_NO_NWFILTER = 62

    def __init__(self) -> None:
        self.filters: dict[str, str] = {}
        self.uuids: dict[str, str] = {}
        self.busy: dict[str, int] = {}
        self.refused: set[str] = set()
        self.defined: list[str] = []
        self.open_connections = 0

    def open(self, _uri: str) -> FakeLibvirt:
        self.open_connections += 1
        return self

    def close(self) -> None:
        self.open_connections -= 1

    def listNWFilters(self) -> list[str]:
        return list(self.filters)

    def nwfilterLookupByName(self, name: str) -> FakeFilter:
        if name not in self.filters:
            raise FakeError(self.VIR_ERR_NO_NWFILTER, f"no nwfilter {name}")
        return FakeFilter(self, name)

    def nwfilterDefineXML(self, xml: str) -> FakeFilter:
        root = ElementTree.fromstring(xml)
        name, own = root.attrib["name"], root.findtext("uuid")
        if name in self.refused:
            raise FakeError(1, f"{name} refused")
        if name in self.filters and own != self.uuids[name]:
            raise FakeError(9, f"filter '{name}' already exists with uuid {self.uuids[name]}")
        for reference in root.iterfind("filterref"):
            assert reference.attrib["filter"] in self.filters
        self.uuids[name] = own or str(uuid.uuid4())
        self.filters[name] = xml
        self.defined.append(name)
        return FakeFilter(self, name)


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch, tmp_path: t.Any) -> FakeLibvirt:
    fake = FakeLibvirt()
    for module in (libvirt_connection, nwfilter):
        monkeypatch.setattr(module, "libvirt", fake, raising=False)
    monkeypatch.setattr(nwfilter, "connect", fake.open)
    monkeypatch.setattr(nwfilter.time, "sleep", lambda _seconds: None)
    locked = nwfilter.locked
    monkeypatch.setattr(nwfilter, "locked", lambda name: locked(name, directory=str(tmp_path)))
    return fake


def ensure(filters: t.Sequence[nwfilter.Filter], state: str = "present", check_mode: bool = False) -> dict[str, t.Any]:
    return nwfilter.ensure(filters, state, "test:///", check_mode)


def test_present_and_present_again(host: FakeLibvirt) -> None:
    planned = ensure(WANTED, check_mode=True)
    assert (planned["changed"], host.filters) == (True, {})
    assert ensure(WANTED) == planned
    assert host.defined == ["nova-base", "nova-ipv6", "nova-instance-a", "nova-instance-b"]
    assert ensure(WANTED) == {"changed": False}
    assert len(host.defined) == 4
    assert host.open_connections == 0


def test_a_filter_that_differs_keeps_its_uuid(host: FakeLibvirt) -> None:
    ensure(WANTED)
    before = host.uuids["nova-base"]
    host.filters["nova-base"] = "<filter name='nova-base' chain='root'/>"
    result = ensure(WANTED)
    assert host.defined[4:] == ["nova-base"]
    assert host.uuids["nova-base"] == before
    assert set(result["diff"]["before"]) == set(result["diff"]["after"]) == {"nova-base"}
    assert ensure(WANTED) == {"changed": False}


def test_what_was_added_is_gone_after_a_failure(host: FakeLibvirt) -> None:
    host.refused = {"nova-instance-b"}
    with pytest.raises(NovaliteError, match="nova-instance-b refused"):
        ensure(WANTED)
    assert host.filters == {}
    assert host.open_connections == 0


def test_absent_waits_for_a_guest_that_is_ending(host: FakeLibvirt) -> None:
    ensure(WANTED)
    host.busy = {"nova-instance-a": 3}
    result = ensure(WANTED, "absent")
    assert set(result["diff"]["before"]) == {"nova-instance-a", "nova-instance-b"}
    assert set(host.filters) == {"nova-base", "nova-ipv6"}
    assert ensure(WANTED, "absent") == {"changed": False}


def test_absent_names_a_filter_that_stays_in_use(host: FakeLibvirt) -> None:
    ensure(WANTED)
    host.busy = {"nova-instance-a": 99}
    with pytest.raises(NovaliteError, match="nova-instance-a is still in use"):
        ensure(WANTED, "absent")


def test_absent_in_check_mode(host: FakeLibvirt) -> None:
    ensure(WANTED)
    assert ensure(WANTED, "absent", check_mode=True)["changed"]
    assert len(host.filters) == 4


def test_an_unknown_reference_is_refused(host: FakeLibvirt) -> None:
    with pytest.raises(NotFoundError, match="nova-bass"):
        ensure(nwfilter.parse([{"name": "nova-instance-a", "references": ["nova-bass"]}]))
    with pytest.raises(NovaliteError, match="nova-base"):
        nwfilter.parse([{"name": "nova-base"}])


def test_order_and_blanks_are_no_difference_but_rules_are() -> None:
    xml = nwfilter.to_xml(nwfilter.STATIC["nova-base"])
    rules = re.findall(r"<rule.*?</rule>", xml, re.DOTALL)
    assert len(rules) == 5
    turned = f"<filter chain='root'  name='nova-base'><uuid>x</uuid>{''.join(reversed(rules))}</filter>"
    assert nwfilter.meaning(turned) == nwfilter.meaning(xml)
    for rule in rules:
        assert nwfilter.meaning(xml.replace(rule, "")) != nwfilter.meaning(xml)
    assert nwfilter.meaning(xml.replace("accept", "drop", 1)) != nwfilter.meaning(xml)


def test_allowed_pairs_come_before_the_accepts_and_behind_the_drops() -> None:
    (parsed,) = nwfilter.parse(
        [
            {
                "name": "nova-instance-a",
                "references": ["nova-base", "nova-ipv6"],
                "allowed_pairs": [
                    {"mac": "00:00:5E:00:01:01", "cidr": "10.0.0.0/24"},
                    {"mac": "fa:16:3e:00:00:01", "cidr": "fd00::9"},
                ],
            }
        ]
    )
    assert [(rule[2], rule[3]) for rule in parsed.rules] == [
        (
            "arp",
            {
                "srcmacaddr": "00:00:5e:00:01:01",
                "arpsrcmacaddr": "00:00:5e:00:01:01",
                "arpsrcipaddr": "10.0.0.0",
                "arpsrcipmask": "24",
            },
        ),
        ("ip", {"srcmacaddr": "00:00:5e:00:01:01", "srcipaddr": "10.0.0.0", "srcipmask": "24"}),
        ("ipv6", {"srcmacaddr": "fa:16:3e:00:00:01", "srcipaddr": "fd00::9", "srcipmask": "128"}),
    ]
    drops = [rule[1] for filter_ in nwfilter.SECURED.values() for rule in filter_.rules if rule[0] == "drop"]
    dhcp, advertisement, redirect, dhcpv6, _everything = sorted(drops)
    assert dhcp < parsed.rules[1][1] < advertisement <= redirect <= dhcpv6 < parsed.rules[2][1]


@pytest.mark.parametrize(
    "pair", [{"mac": "fa:16", "cidr": "10.0.0.1"}, {"mac": "fa:16:3e:00:00:01", "cidr": "10.0.0.1/8"}]
)
def test_a_pair_that_is_none_is_refused(pair: dict[str, str]) -> None:
    with pytest.raises(NovaliteError, match="allowed address pair"):
        nwfilter.parse([{"name": "nova-instance-a", "allowed_pairs": [pair]}])


def test_both_filters_together_end_in_a_drop_of_everything_and_accept_no_foreign_mac() -> None:
    rules = sorted((rule for filter_ in nwfilter.SECURED.values() for rule in filter_.rules), key=lambda rule: rule[1])
    assert all(rule[3].get("srcmacaddr") == "$MAC" for rule in rules if rule[0] == "accept")
    assert rules[-1][:1] + rules[-1][2:] == ("drop", "mac", {})
    priorities = [rule[1] for rule in rules]
    assert len(set(priorities)) == len(priorities)
    # What a rogue server would say is dropped before its address is looked at.
    order = [(rule[0], tuple(sorted(rule[3].items()))) for rule in rules]
    assert order.index(("drop", (("dstportstart", "68"), ("protocol", "udp")))) < order.index(
        ("accept", (("srcipaddr", "$IP[@1]"), ("srcmacaddr", "$MAC")))
    )
    assert order.index(("drop", (("protocol", "icmpv6"), ("type", "134")))) < order.index(
        ("accept", (("srcipaddr", "$IPV6[@1]"), ("srcmacaddr", "$MAC")))
    )


MINE, THEIRS = (Mark(f"{number}f5c8a52-9d2e-4a53-8c53-9a1d3c2b7e11") for number in "01")


def of_ledger(mark: Mark, state: str = "present") -> dict[str, t.Any]:
    return nwfilter.ensure(WANTED, state, "test:///", mark=mark)


def test_another_ledgers_filter_of_the_same_name_stays_as_it_is(host: FakeLibvirt) -> None:
    of_ledger(MINE)
    assert of_ledger(MINE) == {"changed": False}
    before = dict(host.filters)
    with pytest.raises(ConflictError, match="nova-instance-a on this host is another ledger's, or another instance's"):
        of_ledger(THEIRS)
    assert of_ledger(THEIRS, "absent") == {"changed": False} and host.filters == before
    of_ledger(MINE, "absent")
    assert set(host.filters) == {"nova-base", "nova-ipv6"}


def test_a_filter_from_before_there_were_marks_is_ours(host: FakeLibvirt) -> None:
    of_ledger(MINE)
    host.uuids["nova-instance-a"] = str(uuid.uuid4())
    assert of_ledger(THEIRS, "absent")["changed"] and "nova-instance-a" not in host.filters
    assert "nova-instance-b" in host.filters


def test_openstacks_filter_of_that_name_stays(host: FakeLibvirt) -> None:
    strange = "<filter name='nova-base' chain='root'><filterref filter='no-mac-spoofing'/></filter>"
    host.filters["nova-base"], host.uuids["nova-base"] = strange, str(uuid.uuid4())
    with pytest.raises(ConflictError, match="nova-base on this host is not novalite's"):
        of_ledger(MINE)
    assert host.filters == {"nova-base": strange}
