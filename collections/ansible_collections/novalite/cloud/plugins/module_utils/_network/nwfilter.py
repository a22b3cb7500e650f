# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""libvirt network filters: what a guest may put on the wire. One connection for all of a host's filters.

Nova refers to five of libvirt's stock filters. libvirt forks one ebtables for each rule and seven for each sub-chain
whenever a guest starts, so that costs 0.9 s per start on a small machine; `nova-base` says the same in one chain of
seven rules for 0.3 s. It lists what a guest may send and drops the rest, which also stops what Nova's lets through:
IPv6 under a foreign address, VLAN tags (behind which no filter can see), spanning tree, rogue router advertisements.

Only frames that come from the guest are filtered here; what may reach it is the firewall's matter. The counterpart of
Nova's `nova-no-nd-reflection` is missing on purpose: it is for bridges in hairpin mode, which novalite does not use.

libvirt writes a filter's rules when a guest starts, and when the filter changes. Whoever flushes ebtables afterwards
lets the guests spoof, and nothing tells: a filter that is defined once more, the same, is no change to libvirt.
"""

from __future__ import annotations

import contextlib
import functools
import ipaddress
import re
import time
import typing as t
from xml.etree import ElementTree

from .._domain.compare import OPEN_FILTER
from .._errors import ConflictError, NotFoundError, NovaliteError
from .._host.command import CommandError, run
from .._host.libvirt_connection import connect, with_filters
from .._host.locks import locked
from .._host.module import compared
from .._json import JsonMapping, JsonObject
from .ownership import NO_LEDGER, Mark

with contextlib.suppress(ImportError):  # connect() reports it
    import libvirt

_IN_USE_PAUSES = (0.1, 0.2, 0.4, 0.8)  # seconds; a guest's end and its filter's release are not one step in libvirt

_MAC = re.compile(r"[0-9A-Fa-f]{2}(:[0-9A-Fa-f]{2}){5}")
_ACTIVE = 1  # VIR_CONNECT_LIST_DOMAINS_ACTIVE
_JUMP = re.compile(r"-A PREROUTING -i (\S+) -j (libvirt-[A-Z]-\S+)")
_RULE = re.compile(r"-A (libvirt-[A-Z]-\S+) ")

_Node = tuple[str, list[tuple[str, str]], list["_Node"]]  # tag, attributes, children
_Rule = tuple[str, int, str, dict[str, str]]  # action, priority, protocol, what it matches

_TO_EVERYBODY = {"srcipaddr": "0.0.0.0", "dstipaddr": "255.255.255.255"}
_DHCP_REQUEST = {"protocol": "udp", "srcportstart": "68", "dstportstart": "67"}
# Parameters: MAC (libvirt's own), IP (one value or several). Every accept names the MAC, so that a pair of an
# instance's own (another MAC with another address) can stand beside these. [@1] lets IP run through its values by
# itself: libvirt walks variables of one iterator in parallel and refuses lists that differ in length.
_BASE: tuple[_Rule, ...] = (
    ("accept", -800, "arp", {"srcmacaddr": "$MAC", "arpsrcmacaddr": "$MAC", "arpsrcipaddr": "$IP[@1]"}),
    # A DHCP client listens to anyone who speaks to port 68, whatever port that one speaks from.
    ("drop", -700, "ip", {"protocol": "udp", "dstportstart": "68"}),
    ("accept", -600, "ip", {"srcmacaddr": "$MAC", "srcipaddr": "$IP[@1]"}),
    ("accept", -500, "ip", {"srcmacaddr": "$MAC", **_TO_EVERYBODY, **_DHCP_REQUEST}),
    ("drop", 1000, "mac", {}),
)
# For instances with IPv6, beside nova-base. Parameter IPV6: all its addresses, the link-local one too.
_IPV6: tuple[_Rule, ...] = (
    ("drop", -390, "ipv6", {"protocol": "icmpv6", "type": "134"}),  # router advertisement
    ("drop", -385, "ipv6", {"protocol": "icmpv6", "type": "137"}),  # redirect
    ("drop", -380, "ipv6", {"protocol": "udp", "dstportstart": "546"}),
    ("accept", -370, "ipv6", {"srcmacaddr": "$MAC", "srcipaddr": "$IPV6[@1]"}),
    # duplicate address detection, MLD
    ("accept", -360, "ipv6", {"srcmacaddr": "$MAC", "srcipaddr": "::", "protocol": "icmpv6"}),
)
# For interfaces whose port security is off, in the place of an instance's own filter. A frame with a VLAN tag, or with
# a service VLAN's around one, would be another network's where the bridge's interface carries VLANs, too.
_OPEN: tuple[_Rule, ...] = (
    ("drop", 100, "mac", {"protocolid": "0x8100"}),
    ("drop", 101, "mac", {"protocolid": "0x88a8"}),
)
# Before nova-base's and nova-ipv6's accepts, behind their drops.
_PAIR_ARP, _PAIR_IP, _PAIR_IPV6 = -790, -650, -375


class Filter(t.NamedTuple):
    """A filter of the chain `root`: its own rules (all for frames from the guest), or references, or both. `beside` are
    filters of further interfaces of the same guest, `instance` is the UUID of that."""

    name: str
    rules: tuple[_Rule, ...] = ()
    references: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()
    instance: str | None = None


SECURED = {"nova-base": Filter("nova-base", _BASE), "nova-ipv6": Filter("nova-ipv6", _IPV6)}
STATIC = {**SECURED, OPEN_FILTER: Filter(OPEN_FILTER, _OPEN)}


def to_xml(filter_: Filter, uuid: str | None = None) -> str:
    """libvirt's XML. A filter that exists can be redefined only under its own `uuid`."""
    root = ElementTree.Element("filter", {"name": filter_.name, "chain": "root"})
    if uuid:
        ElementTree.SubElement(root, "uuid").text = uuid
    for reference in filter_.references:
        ElementTree.SubElement(root, "filterref", {"filter": reference})
    for action, priority, protocol, matches in filter_.rules:
        rule = ElementTree.SubElement(root, "rule", {"action": action, "direction": "out", "priority": str(priority)})
        ElementTree.SubElement(rule, protocol, matches)
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode") + "\n"


def meaning(xml: str) -> _Node:
    """A filter's XML as data that compares equal when the filters do the same; its uuid is not part of it."""

    def node(element: ElementTree.Element) -> _Node:
        children = [node(child) for child in element if child.tag != "uuid"]
        # Rules work in the order of their priority, wherever they stand.
        return element.tag, sorted(element.attrib.items()), sorted(children)

    return node(ElementTree.fromstring(xml))


def parse(values: t.Iterable[JsonMapping]) -> list[Filter]:
    """The module's `filters`. Raises NovaliteError for one of novalite's static names."""
    filters = []
    for value in values:
        if value["name"] in STATIC:
            raise NovaliteError(f"{value['name']} is made by this module itself; give another name")
        pairs = tuple(rule for pair in value.get("allowed_pairs") or () for rule in _pair(pair["mac"], pair["cidr"]))
        references, beside = (tuple(value.get(key) or ()) for key in ("references", "beside"))
        filters.append(Filter(str(value["name"]), pairs, references, beside, value.get("uuid")))
    return filters


def _pair(mac: str, cidr: str) -> t.Iterator[_Rule]:
    """Rules that let a guest also send under another address, or a range of them, and under another MAC if need be."""
    try:
        network = ipaddress.ip_network(cidr)
    except ValueError:
        raise NovaliteError(f"allowed address pair: {cidr!r} is not an address or range; write 10.0.0.9/32") from None
    if not _MAC.fullmatch(mac):
        raise NovaliteError(f"allowed address pair: {mac!r} is not a MAC address; write fa:16:3e:00:00:01")
    mac, address, mask = mac.lower(), str(network.network_address), str(network.prefixlen)
    if network.version == 6:
        yield "accept", _PAIR_IPV6, "ipv6", {"srcmacaddr": mac, "srcipaddr": address, "srcipmask": mask}
        return
    sender = {"arpsrcmacaddr": mac, "arpsrcipaddr": address, "arpsrcipmask": mask}
    yield "accept", _PAIR_ARP, "arp", {"srcmacaddr": mac, **sender}
    yield "accept", _PAIR_IP, "ip", {"srcmacaddr": mac, "srcipaddr": address, "srcipmask": mask}


def ensure(
    filters: t.Sequence[Filter],
    state: str,
    uri: str,
    check_mode: bool = False,
    renew: t.Sequence[str] = (),
    mark: Mark = NO_LEDGER,
) -> JsonObject:
    """Define (`present`) or undefine (`absent`) the filters. Returns `changed` and, when it is true, `diff`.

    A filter has no place for a mark but its UUID, which follows from the ledger, the name and the instance. One with a
    random UUID, or one without the instance, is from before there were such marks. Raises NovaliteError (ConflictError
    for a filter of another ledger or instance); filters that this call added are gone again then.
    """
    lock = contextlib.nullcontext() if check_mode else locked("nwfilter")
    with lock, contextlib.closing(connect(uri)) as connection:
        try:
            if state == "present":
                before, after = _define(connection, filters, check_mode, mark)
                if renew:
                    before |= {f"rules of {device}": "not in force" for device in renew}
                    after |= {f"rules of {device}": "written anew" for device in renew}
                    if not check_mode:
                        renew_rules(connection, renew)
            else:
                before, after = _undefine(connection, filters, check_mode, mark)
        except libvirt.libvirtError as error:
            raise NovaliteError(f"libvirt refused a network filter: {error.get_error_message()}") from error
    return compared(before, after)


def _define(
    connection: libvirt.virConnect, filters: t.Sequence[Filter], check_mode: bool, mark: Mark
) -> tuple[dict[str, str], dict[str, str]]:
    before, after = {}, {}  # type: dict[str, str], dict[str, str]
    present = set(connection.listNWFilters())
    referenced = dict.fromkeys(reference for filter_ in filters for reference in (*filter_.references, *filter_.beside))
    known = {*STATIC, *present, *(filter_.name for filter_ in filters)}
    unknown = [name for name in referenced if name not in known]
    if unknown:
        raise NotFoundError(f"the network filter {unknown[0]} does not exist on this host; give nova-base")
    added: list[libvirt.virNWFilter] = []
    try:
        for filter_ in [*(STATIC[name] for name in referenced if name in STATIC), *filters]:
            name, static = filter_.name, filter_.name in STATIC
            uuid = None if static else mark.uuid_of(name, filter_.instance)
            if name in present:
                old = connection.nwfilterLookupByName(name)
                old_xml, uuid = old.XMLDesc(0), old.UUIDString()
                if not static and _is_others(old, filter_, mark):
                    raise ConflictError(
                        f"the network filter {name} on this host is another ledger's, or another instance's, whose "
                        "guest has the same name: take another host, and run playbooks/ledger_rebuild.yml if this "
                        "ledger was restored"
                    )
                if meaning(old_xml) == meaning(to_xml(filter_)):
                    continue
                if static and _is_strange(old_xml):
                    raise ConflictError(
                        f"the network filter {name} on this host is not novalite's (OpenStack has one of this name): "
                        "remove it, or take another host"
                    )
                before[name] = old_xml
            after[name] = to_xml(filter_, uuid)
            if not check_mode:
                made = with_filters(functools.partial(connection.nwfilterDefineXML, after[name]))
                if name not in present:
                    added.append(made)
    except BaseException:
        for made in reversed(added):
            with contextlib.suppress(libvirt.libvirtError):
                made.undefine()
        raise
    return before, after


def _undefine(
    connection: libvirt.virConnect, filters: t.Sequence[Filter], check_mode: bool, mark: Mark
) -> tuple[dict[str, str], dict[str, str]]:
    present = set(connection.listNWFilters())
    before: dict[str, str] = {}
    for filter_ in {filter_.name: filter_ for filter_ in filters if filter_.name in present}.values():
        nwfilter = connection.nwfilterLookupByName(filter_.name)
        if not _is_others(nwfilter, filter_, mark):
            before[nwfilter.name()] = nwfilter.XMLDesc(0)
            if not check_mode:
                _undefine_one(nwfilter)
    return before, {}


def _is_others(nwfilter: libvirt.virNWFilter, filter_: Filter, mark: Mark) -> bool:
    return mark.is_others(nwfilter.UUIDString(), filter_.name, filter_.instance)


def _is_strange(xml: str) -> bool:
    """Tell whether another program made a filter of one of our static names: ours have no references."""
    return ElementTree.fromstring(xml).find("filterref") is not None


def _undefine_one(nwfilter: libvirt.virNWFilter) -> None:
    for pause in (*_IN_USE_PAUSES, None):
        try:
            nwfilter.undefine()
            return
        except libvirt.libvirtError as error:
            code = error.get_error_code()
            if code == libvirt.VIR_ERR_NO_NWFILTER:
                return
            if code != libvirt.VIR_ERR_OPERATION_INVALID:
                raise
            if pause is None:
                raise NovaliteError(
                    f"the network filter {nwfilter.name()} is still in use; end the guest that refers to it first"
                ) from error
        time.sleep(pause)


# --- the rules that libvirt made of filters, for running guests ---


def in_force(text: str | None = None) -> set[str] | None:
    """The devices whose frames go through rules of libvirt's, by `text` of ebtables-save; None where nobody can say."""
    if text is None:
        try:
            text = run(["ebtables-save"]).stdout
        except CommandError:
            return None
    lines = text.splitlines()
    filled = {match[1] for match in map(_RULE.match, lines) if match}
    jumps = {match[1]: match[2] for match in map(_JUMP.match, lines) if match}
    return {device for device, chain in jumps.items() if chain in filled}


def renew_rules(connection: libvirt.virConnect, devices: t.Iterable[str]) -> None:
    """Have libvirt write the rules of these devices anew; a guest is without them for a moment, as it was before.
    Raises NotFoundError for a device that is no running guest's, and libvirt's errors."""
    nics = {}
    for domain in connection.listAllDomains(_ACTIVE):
        root = ElementTree.fromstring(domain.XMLDesc())
        for nic in root.findall("./devices/interface"):
            target, reference, mac = nic.find("target"), nic.find("filterref"), nic.find("mac")
            if target is not None and reference is not None and mac is not None:
                nics[target.get("dev")] = _binding(domain, str(target.get("dev")), str(mac.get("address")), reference)
    for device in devices:
        if device not in nics:
            raise NotFoundError(f"{device} is the device of no running guest that has a network filter")
        try:
            connection.nwfilterBindingLookupByPortDev(device).delete()
        except libvirt.libvirtError as error:
            if error.get_error_code() != libvirt.VIR_ERR_NO_NWFILTER_BINDING:
                raise
        with_filters(functools.partial(connection.nwfilterBindingCreateXML, nics[device]))


def _binding(domain: libvirt.virDomain, device: str, mac: str, reference: ElementTree.Element) -> str:
    binding = ElementTree.Element("filterbinding")
    owner = ElementTree.SubElement(binding, "owner")
    ElementTree.SubElement(owner, "name").text = domain.name()
    ElementTree.SubElement(owner, "uuid").text = domain.UUIDString()
    ElementTree.SubElement(binding, "portdev", {"name": device})
    ElementTree.SubElement(binding, "mac", {"address": mac})
    binding.append(reference)
    return ElementTree.tostring(binding, encoding="unicode")
