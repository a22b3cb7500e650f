# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Bring a host's routing for its networks to what was asked: transits, translation, floating IPs."""

from __future__ import annotations

import contextlib
import dataclasses
import ipaddress
import json
import socket
import struct
import typing as t

from .._addressing.places import Place, conflict_of_addresses
from .._errors import ConflictError, NotFoundError, NovaliteError
from .._host.command import run
from .._host.libvirt_connection import DEFAULT_URI
from .._host.locks import locked
from .._host.module import compared
from .._json import JsonObject
from . import additions, links, namespaces, router, rules, sysctl, users
from .links import Link, ip
from .namespaces import TRANSIT, entered, forget_flows, transit_name
from .ownership import NO_LEDGER, Mark, Owner
from .router import Router

_WAIT = "20"  # seconds for the xtables lock of other programs
_BROADCAST = b"\xff" * 6
_ADDED = "floating-addresses"  # where additions are remembered: longer than any bridge's name (IFNAMSIZ)


@dataclasses.dataclass
class _Run:
    """State of one call: what it found, did and can take back."""

    check_mode: bool
    root: dict[str, dict[str, list[str]]]
    links: dict[str, Link]
    places: tuple[Place, ...] = ()
    mark: Mark = NO_LEDGER
    before: JsonObject = dataclasses.field(default_factory=dict)
    after: JsonObject = dataclasses.field(default_factory=dict)
    warnings: list[str] = dataclasses.field(default_factory=list)
    # device -> the host's address that it is to have
    transits: dict[str, str] = dataclasses.field(default_factory=dict)
    undo: contextlib.ExitStack = dataclasses.field(default_factory=contextlib.ExitStack)

    def command(self, argv: list[str], undo: list[str] | None = None) -> None:
        self.before.setdefault("commands", [])
        self.after.setdefault("commands", []).append(" ".join(argv))
        if not self.check_mode:
            run(argv)
            if undo is not None:
                self.undo.callback(_quietly, run, undo)

    def swap(self, kind: str, verb: str, undo: str, words: str) -> None:
        """`ip <kind> <verb> <words>`, which the verb `undo` takes back."""
        self.command(["ip", kind, verb, *words.split()], ["ip", kind, undo, *words.split()])

    def write(self, current: rules.Tables, desired: rules.Tables, namespace: str | None) -> None:
        """Our chains in one namespace."""
        for table in rules.CHAINS:
            have, want = current.get(table, {}), desired.get(table, {})
            text = rules.delta(table, have, want)
            if not text:
                continue
            key = f"{table} in {namespace}" if namespace else table
            self.before[key], self.after[key] = rules.difference(table, have, want)
            if not self.check_mode:
                self.undo.callback(_quietly, _put_back, table, rules.owned(table, have), namespace)
                _restore(text, namespace)


def ensure(
    routers: t.Sequence[Router],
    state: str,
    check_mode: bool = False,
    exclusive: bool = False,
    mark: Mark = NO_LEDGER,
    uri: str = DEFAULT_URI,
) -> JsonObject:
    """Bring the routing of these networks to `state`; with `exclusive` no other network of this ledger's keeps any on
    this host. `withdrawn` takes away the floating IPs that are given, and nothing else; so does `absent` where a bridge
    has users. Another ledger's stays.

    Returns `changed`, `kept` (bridges with users), `warnings` and `diff`. Raises NovaliteError; what this call did is
    taken back then.
    """
    kept: dict[str, list[str]] = {}
    with contextlib.ExitStack() as locks:
        if state == "absent":
            kept = locks.enter_context(users.alone([vrouter.bridge for vrouter in routers], uri, check_mode))
        if not check_mode:
            locks.enter_context(locked("router"))
        host = links.look()
        work = _Run(check_mode, _read(None), host.links, host.places, mark)
        with work.undo:
            going = [vrouter for vrouter in routers if state == "absent" and vrouter.bridge not in kept]
            staying = [vrouter for vrouter in routers if vrouter not in going]
            if state != "present":
                staying = _without_floating(work, staying)
            changing = _carry_out(work, staying, going, exclusive and state == "present")
            work.undo.pop_all()
        if not check_mode:
            work.warnings += forget_flows(changing)
    return compared(work.before, work.after, kept=kept, warnings=work.warnings)


def _without_floating(work: _Run, routers: t.Iterable[Router]) -> list[Router]:
    """List those of the routers that this host has, as it has them, without the floating IPs that are given: others may
    have come since it was decided that these go."""
    nat = work.root.get("nat", {})
    left = []
    for vrouter in routers:
        if vrouter.bridge in router.owners(work.root.values()) and not _is_others(work, vrouter.bridge):
            gone = {each.floating for each in vrouter.floating}
            interfaces = router.interfaces_of(nat, vrouter.bridge) if vrouter.namespace is None else dict(_proxied())
            floating = [
                router.Floating(fixed, address, interfaces[address])
                for address, fixed in _floating_now(work, vrouter.bridge, vrouter.namespace).items()
                if address not in gone and address in interfaces
            ]
            left.append(dataclasses.replace(vrouter, floating=tuple(floating)))
    return left


def _carry_out(
    work: _Run, staying: t.Sequence[Router], going: t.Sequence[Router], exclusive: bool
) -> list[tuple[str | None, str]]:
    """Returns the (namespace, floating IP) pairs whose connections are to be cut: what leads to nobody any more, or to
    somebody else; and what was begun before an address was there, which is never translated."""
    working_routers = [vrouter for vrouter in staying if router.works(vrouter)]
    names = {vrouter.bridge for vrouter in (*staying, *going)}
    leaving = {
        vrouter.bridge: vrouter.namespace
        for vrouter in (*staying, *going)
        if vrouter not in working_routers and not _is_others(work, vrouter.bridge)
    }
    if exclusive:
        strangers = [bridge for bridge in router.owners(work.root.values()) - names if not _is_others(work, bridge)]
        leaving.update((bridge, f"{namespaces.PREFIX}{bridge}") for bridge in strangers)
    if working_routers:
        _forward(work, working_routers)
    inner, chains, gone = {}, [], []  # type: dict[str, tuple[str, str]], list[router.TablesOf], list[tuple[str | None, str]]
    old, arrived = {}, []  # type: dict[str, dict[str, str]], list[tuple[Router, router.Floating]]
    _check_addresses(work, working_routers)
    for vrouter in working_routers:
        for each in vrouter.floating:
            if each.interface not in work.links:
                raise NotFoundError(
                    f"floating IP {each.floating} of network {vrouter.network!r}: there is no interface "
                    f"{each.interface} on this host; name the one that leads outside in the floating pool"
                )
        if vrouter.namespace is not None:
            inner[vrouter.bridge] = _transit(work, vrouter)
    for bridge, namespace in [*leaving.items(), *((vrouter.bridge, vrouter.namespace) for vrouter in working_routers)]:
        old[bridge] = _floating_now(work, bridge, namespace)
    for vrouter in working_routers:
        now = {each.floating: each.fixed for each in vrouter.floating}
        gone += [
            (vrouter.namespace, address) for address, fixed in old[vrouter.bridge].items() if now.get(address) != fixed
        ]
        arrived += [
            (vrouter, each) for each in vrouter.floating if old[vrouter.bridge].get(each.floating) != each.fixed
        ]
        if vrouter.namespace is not None:
            outer, own = inner[vrouter.bridge]
            inner_tables = router.merged({}, [router.inner_rules(vrouter, outer, own)], bridges=False)
            work.write(_read(vrouter.namespace), inner_tables, vrouter.namespace)
        chains.append(router.root_rules(vrouter, inner[vrouter.bridge][1] if vrouter.bridge in inner else None))
    gone += [(leaving[bridge], address) for bridge in leaving for address in old[bridge]]
    served = {each.floating for vrouter in working_routers for each in vrouter.floating}
    touched = {*leaving, *(vrouter.bridge for vrouter in working_routers)}
    # before their rules: what is not translated any more must not be the host's own
    _withdraw(work, {address for _namespace, address in gone} - served)
    work.write(work.root, router.merged(work.root, chains, touched.__contains__), None)
    for vrouter in working_routers:
        for each in vrouter.floating:
            _offer(work, vrouter, each, inner.get(vrouter.bridge))
    for bridge, namespace in leaving.items():
        _close(work, bridge, namespace)
    if not work.check_mode:
        for _router, each in arrived:
            _announce(each, work.links[each.interface].mac)
    return [*gone, *((vrouter.namespace, each.floating) for vrouter, each in arrived)]


def _is_others(work: _Run, bridge: str) -> bool:
    """Tell whether the bridge serves another ledger: it carries that one's mark, or has additions of that one."""
    link = work.links.get(bridge)
    owner = work.mark.owner(link.alias if link else None)
    adding = additions.owners(bridge)
    return owner is Owner.OTHER_LEDGER or (owner is Owner.NOT_MARKED and bool(adding) and work.mark.text not in adding)


def _claim(work: _Run, bridges: t.Iterable[str], settings: t.Mapping[str, str]) -> None:
    """Settings of the host, for as long as these bridges are there."""
    for bridge in bridges:
        user = additions.user_of(bridge, work.mark)
        if additions.claim(user, settings):
            work.undo.callback(_quietly, additions.release, user)


def _forward(work: _Run, routers: t.Sequence[Router]) -> None:
    setting = {"ipv4/ip_forward": "1"}
    wrong = sysctl.wrong(setting)
    if not work.check_mode:
        _claim(work, [vrouter.bridge for vrouter in routers], setting)
    if wrong:
        work.before["net"], work.after["net"] = wrong, setting
        if not work.check_mode:
            # It sets every device's own switch, and those of isolated networks are off.
            isolated = [device for device in work.links if namespaces.port_name(device) in work.links]
            sysctl.put({f"ipv4/conf/{device}/forwarding": "0" for device in isolated})


def _check_addresses(work: _Run, routers: t.Sequence[Router]) -> None:
    """Raise ConflictError for a floating IP that is the host's own address: its traffic would go to a guest, and the
    address would go with the floating IP. Ours are remembered, or translated by a rule of ours."""
    nat = work.root.get("nat", {})
    ours = {floating.partition("/")[0] for floating in additions.read(_ADDED, work.mark).addresses}
    ours.update(floating for bridge in router.owners([nat]) for floating in router.floating_of(nat, bridge))
    devices = {text.partition("/")[0]: link.name for link in work.links.values() for text in link.addresses}
    for each in (floating for routing in routers for floating in routing.floating):
        if each.floating in devices and each.floating not in ours:
            raise ConflictError(
                f"floating IP {each.floating} is an address of this host ({devices[each.floating]}): take it out of "
                "the floating pool, or delete the address if it was left here by mistake"
            )
        number = int(ipaddress.IPv4Address(each.floating))
        place = conflict_of_addresses([(number, number)], each.interface, work.places)
        if place is not None and each.floating not in ours:
            raise ConflictError(
                f"with the floating IP {each.floating} this host would lose {place.text}: take it out of the floating "
                "pool"
            )


def _transit(work: _Run, vrouter: Router) -> tuple[str, str]:
    """The veth pair out of a namespace, with its addresses and default route. Returns (host's, namespace's) address."""
    namespace, name = t.cast(str, vrouter.namespace), transit_name(vrouter.bridge)
    if not namespaces.exists(namespace) and not work.check_mode:
        raise NotFoundError(
            f"network {vrouter.network!r} has no namespace {namespace} on this host; make its bridge first"
        )
    inside: dict[str, Link] = {}
    if namespaces.exists(namespace):
        inside = links.read_links(run(ip(namespace, "-d", "-j", "addr", "show")).stdout)
    veth, there = work.links.get(name), inside.get(TRANSIT)
    if veth is not None and work.mark.owner(veth.alias) is Owner.OTHER_LEDGER:
        raise ConflictError(
            f"network {vrouter.network!r}: another ledger ({veth.alias}) made {name} on this host; give the network "
            "another bridge"
        )
    have = veth.addresses[0].partition("/")[0] if veth and veth.addresses else None
    outer, inner = router.transit_pair(vrouter.bridge, have, _taken(work, name))
    work.transits[name] = outer
    if veth is not None and there is None:
        work.command(["ip", "link", "del", name])  # it leads into a namespace that is gone
        veth = None
    if veth is None:
        work.command(
            ["ip", "link", "add", "name", name, "type", "veth", "peer", "name", TRANSIT, "netns", namespace],
            ["ip", "link", "del", name],
        )
        if not work.check_mode:
            for where, device in ((None, name), (namespace, TRANSIT)):
                no_ipv6 = {f"ipv6/conf/{device}/disable_ipv6": "1"}
                sysctl.put(dict.fromkeys(sysctl.wrong(no_ipv6, where), "1"), where)
    for where, device, link, address in ((None, name, veth, outer), (namespace, TRANSIT, there, inner)):
        there_now, shall = (link.addresses if link is not None else ()), f"{address}/31"
        for text in (*(old for old in there_now if old != shall), *(() if shall in there_now else (shall,))):
            add, delete = (ip(where, "addr", verb, text, "dev", device) for verb in ("add", "del"))
            work.command(*((add, delete) if text == shall else (delete, add)))
        if link is None or not link.up or link.alias is None:
            work.command(ip(where, "link", "set", "dev", device, "up", "alias", work.mark.text))
    if there is None or not _routes(namespace, "default", outer):
        work.command(ip(namespace, "route", "replace", "default", "via", outer, "dev", TRANSIT))
    return outer, inner


def _taken(work: _Run, name: str) -> set[str]:
    """Addresses that the transit `name` must not have: other devices' of the host, and those that this call has chosen
    for other transits. Were two alike, one network's answers would go into the other's namespace."""
    ends = {link.name: [text.partition("/")[0] for text in link.addresses] for link in work.links.values()}
    ends.update((device, [address]) for device, address in work.transits.items())
    return {address for device, addresses in ends.items() if device != name for address in addresses}


def _offer(work: _Run, vrouter: Router, each: router.Floating, inner: tuple[str, str] | None) -> None:
    """Be there for a floating IP: as an address of this host, or as the router to the namespace that has it."""
    holders = [link.name for link in work.links.values() if f"{each.floating}/32" in link.addresses]
    if inner is None:
        if each.interface not in holders:
            if not work.check_mode:
                added = additions.Additions(addresses=(f"{each.floating}/32",))
                additions.write(_ADDED, work.mark, additions.read(_ADDED, work.mark) | added)
            work.swap("addr", "add", "del", f"{each.floating}/32 dev {each.interface}")
        return
    for name in holders:
        work.command(["ip", "addr", "del", f"{each.floating}/32", "dev", name])
    if not _routes(None, f"{each.floating}/32", inner[1]):
        way = f"{each.floating}/32 via {inner[1]} dev {transit_name(vrouter.bridge)}"
        work.swap("route", "replace", "del", way)
    # The kernel would let who asks for it wait for up to 0.8 s.
    delay = {f"ipv4/neigh/{each.interface}/proxy_delay": "0"}
    for key, value in sysctl.wrong(delay).items():
        work.before.setdefault("net", {})[key], work.after.setdefault("net", {})[key] = value, "0"
    if not work.check_mode:
        _claim(work, [vrouter.bridge], delay)
    # An address of its own would make the host take the packets for itself; so it answers for the namespace.
    if (each.floating, each.interface) not in _proxied():
        work.swap("neigh", "add", "del", f"proxy {each.floating} dev {each.interface}")


def _withdraw(work: _Run, addresses: t.Collection[str]) -> None:
    """Be there no more for floating IPs, in whichever way this host was."""
    for address in sorted(addresses):
        for link in work.links.values():
            if f"{address}/32" in link.addresses:
                work.swap("addr", "del", "add", f"{address}/32 dev {link.name}")
        for row in _rows(["ip", "-j", "route", "show", f"{address}/32"]):
            if row.get("dev", "").startswith(transit_name("")):
                work.swap("route", "del", "replace", f"{address}/32 via {row['gateway']} dev {row['dev']}")
    for address, device in sorted(_proxied() if addresses else ()):
        if address in addresses:
            work.swap("neigh", "del", "add", f"proxy {address} dev {device}")
    added = additions.read(_ADDED, work.mark)
    staying = tuple(text for text in added.addresses if text.partition("/")[0] not in addresses)
    if staying != added.addresses and not work.check_mode:
        additions.write(_ADDED, work.mark, dataclasses.replace(added, addresses=staying))


def _close(work: _Run, bridge: str, namespace: str | None) -> None:
    transit = work.links.get(transit_name(bridge))
    if transit is not None and work.mark.owner(transit.alias) is not Owner.OTHER_LEDGER:
        work.command(["ip", "link", "del", transit_name(bridge)])
    if namespace is not None and namespaces.exists(namespace):
        work.write(_read(namespace), {}, namespace)


def _floating_now(work: _Run, bridge: str, namespace: str | None) -> dict[str, str]:
    floating = router.floating_of(work.root.get("nat", {}), bridge)
    if namespace is not None and namespaces.exists(namespace):
        floating.update(router.floating_of(_read(namespace).get("nat", {}), bridge))
    return floating


def _read(namespace: str | None) -> dict[str, dict[str, list[str]]]:
    if namespace is not None and not namespaces.exists(namespace):
        return {}
    with entered(namespace):
        return {table: rules.parse(run(["iptables-save", "-t", table]).stdout) for table in rules.CHAINS}


def _restore(text: str, namespace: str | None) -> None:
    with entered(namespace):
        run(["iptables-restore", "--noflush", "--wait", _WAIT], stdin=text)


def _put_back(table: str, old: rules.Table, namespace: str | None) -> None:
    _restore(rules.delta(table, _read(namespace).get(table, {}), old), namespace)


def _quietly(work: t.Callable[..., object], *words: object) -> None:
    with contextlib.suppress(NovaliteError, OSError):
        work(*words)


def _rows(argv: list[str]) -> list[JsonObject]:
    return t.cast("list[JsonObject]", json.loads(run(argv).stdout or "[]"))


def _routes(namespace: str | None, to: str, via: str) -> bool:
    if namespace is not None and not namespaces.exists(namespace):
        return False
    return any(row.get("gateway") == via for row in _rows(ip(namespace, "-j", "route", "show", to)))


def _proxied() -> set[tuple[str, str]]:
    return {(row["dst"], row["dev"]) for row in _rows(["ip", "-j", "neigh", "show", "proxy"]) if "dev" in row}


def _announce(each: router.Floating, mac: str) -> None:
    """Tell the neighbours who has the address now (RFC 5227): they may remember another host's MAC for it."""
    own = bytes.fromhex(mac.replace(":", ""))
    address = socket.inet_aton(each.floating)
    if len(own) != 6:
        return  # no Ethernet
    with contextlib.suppress(OSError), socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as sender:
        sender.bind((each.interface, 0))
        for operation, target in ((1, bytes(6)), (2, _BROADCAST)):  # some listen to requests, some to replies
            arp = struct.pack("!HHBBH6s4s6s4s", 1, 0x0800, 6, 4, operation, own, address, target, address)
            sender.send(_BROADCAST + own + struct.pack("!H", 0x0806) + arp)
