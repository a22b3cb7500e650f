# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Filter for the frames of a guest, as ebtables chains of our own: for hosts that use no libvirt network filters.

The same list as `nova-base` and `nova-ipv6` (see _network/nwfilter.py): what it may send, and the rest is dropped. One
transaction for all guests of a request, where libvirt runs a command for each rule of each guest::

    nat PREROUTING     -j nova-ports
    nova-ports         -i <tap device> -j nova-port-<instance>-<n>
    nova-port-...      ARP, DHCP requests, its addresses under its MAC -> ACCEPT; DROP

Of a port whose security is off, frames with a VLAN tag alone are dropped: on a bridge whose interface carries VLANs,
too, they would be another network's.
"""

from __future__ import annotations

import dataclasses
import functools
import ipaddress
import os
import re
import shutil
import typing as t

from .._errors import NovaliteError
from .._host import rule_races
from .._host.command import CommandError, run
from .._json import JsonMapping
from .rules import host

ROOT = "nova-ports"
PORT = "nova-port-"
_HOOK = f"-j {ROOT}"
_OURS = re.compile(rf"{ROOT}|{PORT}(0|[1-9][0-9]*)-[0-9]+")
_JUMP = re.compile(rf"-i (\S+) -j {PORT}(0|[1-9][0-9]*)-[0-9]+")
_MAC = re.compile(r"[0-9a-f]{2}(:[0-9a-f]{2}){5}")
_DEVICE = re.compile(r"[^\s/!]{1,15}")
_TAGS = ("802_1Q", "0x88a8")  # of VLANs, and of service VLANs around these
# hosts spell them as their /etc/ethertypes does
_SPELLINGS = {"802_1Q": "802_1Q", "0X8100": "802_1Q", **dict.fromkeys(("S-TAG", "802_1AD", "0X88A8"), "0x88a8")}
_TAGGED = re.compile(rf"-p ({'|'.join(_SPELLINGS)}) -j DROP", re.IGNORECASE)

Chains = dict[str, list[str]]


@dataclasses.dataclass(frozen=True)
class Port:
    """A guest's interface: its tap device, MAC, addresses, and further pairs (MAC, range) that it may send from."""

    device: str
    mac: str
    addresses: tuple[str, ...] = ()
    pairs: tuple[tuple[str, str], ...] = ()
    security: bool = True


@dataclasses.dataclass
class Present:
    """Novalite's chains in ebtables' table nat, and what stands in PREROUTING."""

    chains: Chains = dataclasses.field(default_factory=dict)
    prerouting: list[str] = dataclasses.field(default_factory=list)


def parse_port(instance: int, value: JsonMapping) -> Port:
    """Parse one of an instance's `ports`. Raises NovaliteError."""
    device, mac = str(value["device"]), str(value["mac"]).lower()
    if not _DEVICE.fullmatch(device):
        raise NovaliteError(f"instance {instance}: {device!r} is not a name of a network device")
    pairs = [(str(pair["mac"]).lower(), str(pair["cidr"])) for pair in value.get("allowed_pairs") or ()]
    for text in (mac, *(pair_mac for pair_mac, _cidr in pairs)):
        if not _MAC.fullmatch(text):
            raise NovaliteError(f"instance {instance}: {text!r} is not a MAC address; write fa:16:3e:00:00:01")
    addresses = tuple(host(str(address))[1].partition("/")[0] for address in value.get("addresses") or ())
    ranges = tuple((pair_mac, _range(instance, cidr)) for pair_mac, cidr in pairs)
    return Port(device, mac, addresses, ranges, value.get("port_security") is not False)


def rules(port: Port) -> list[str]:
    """A port's chain, as ebtables-save prints it."""
    if not port.security:
        return [f"-p {tag} -j DROP" for tag in _TAGS]
    own = [(port.mac, address) for address in port.addresses]
    v4 = [(mac, cidr) for mac, cidr in (*own, *port.pairs) if ":" not in cidr]
    v6 = [(mac, cidr) for mac, cidr in (*own, *port.pairs) if ":" in cidr]
    lines = [f"-p ARP -s {mac} --arp-ip-src {cidr} --arp-mac-src {mac} -j ACCEPT" for mac, cidr in v4]
    # A DHCP client listens to anyone who speaks to port 68, whatever port that one speaks from.
    lines.append("-p IPv4 --ip-proto udp --ip-dport 68 -j DROP")
    lines += [f"-p IPv4 -s {mac} --ip-src {cidr} -j ACCEPT" for mac, cidr in v4]
    lines.append(
        f"-p IPv4 -s {port.mac} --ip-src 0.0.0.0 --ip-dst 255.255.255.255 --ip-proto udp --ip-sport 68 "
        "--ip-dport 67 -j ACCEPT"
    )
    if v6:
        lines.append("-p IPv6 --ip6-proto ipv6-icmp --ip6-icmp-type router-advertisement -j DROP")
        lines.append("-p IPv6 --ip6-proto ipv6-icmp --ip6-icmp-type redirect -j DROP")
        lines.append("-p IPv6 --ip6-proto udp --ip6-dport 546 -j DROP")
        lines += [f"-p IPv6 -s {mac} --ip6-src {cidr} -j ACCEPT" for mac, cidr in v6]
        # duplicate address detection, MLD
        lines.append(f"-p IPv6 -s {port.mac} --ip6-src :: --ip6-proto ipv6-icmp -j ACCEPT")
    return [*lines, "-j DROP"]


def parse(text: str) -> Present:
    """The output of `ebtables-save -t nat`."""
    present = Present()
    for line in text.splitlines():
        if line.startswith(":"):
            name = line[1:].split(" ")[0]
            if _OURS.fullmatch(name):
                present.chains.setdefault(name, [])
        elif line.startswith("-A "):
            _dash, name, rule = (line + " ").split(" ", 2)
            if name == "PREROUTING":
                present.prerouting.append(rule.strip())
            elif _OURS.fullmatch(name):
                tagged = _TAGGED.fullmatch(rule.strip())
                spelled = f"-p {_SPELLINGS[tagged[1].upper()]} -j DROP" if tagged else rule.strip()
                present.chains.setdefault(name, []).append(spelled)
    return present


def chains_after(
    present: Present, ports: t.Mapping[int, t.Sequence[Port]], instances: t.Container[int], exclusive: bool
) -> Chains:
    """Return all of novalite's chains afterwards: `instances` get those of `ports`, others stay unless `exclusive`."""
    chains: Chains = {}
    jumps: list[str] = []
    taken = {port.device for of_instance in ports.values() for port in of_instance}
    for jump in present.chains.get(ROOT, ()):
        match = _JUMP.fullmatch(jump)
        # A device that is another guest's now leaves its old line, which would come first and win.
        if match and not exclusive and int(match[2]) not in instances and match[1] not in taken:
            name = jump.rpartition(" ")[2]
            if name in present.chains:
                jumps.append(jump)
                chains[name] = present.chains[name]
    for instance in sorted(ports):
        for number, port in enumerate(ports[instance]):
            name = f"{PORT}{instance}-{number}"
            chains[name] = rules(port)
            jumps.append(f"-i {port.device} -j {name}")
    return {**chains, ROOT: sorted(jumps)} if jumps else {}


def delta(present: Present, chains: Chains) -> list[str]:
    """Texts for `ebtables-restore --noflush`, one after the other; none when nothing differs."""
    changed = [name for name in chains if present.chains.get(name) != chains[name]]
    gone = [name for name in present.chains if name not in chains]
    hooks = [place for place, rule in enumerate(present.prerouting) if rule == _HOOK]
    lines = [f":{name} RETURN" for name in changed]
    lines += [f"-A {name} {rule}" for name in changed for rule in chains[name]]
    if hooks != ([0] if chains else []):
        lines += [f"-D PREROUTING {_HOOK}"] * len(hooks)
        lines += [f"-I PREROUTING 1 {_HOOK}"] if chains else []
    texts = []
    if lines:
        texts.append("\n".join(["*nat", *lines, "COMMIT", ""]))
    if gone:
        # Nothing leads to them any more. The root goes last: it is what led to them.
        order = sorted(gone, key=lambda name: name != ROOT)
        texts.append(
            "\n".join(["*nat", *(f"-F {name}" for name in order), *(f"-X {name}" for name in order), "COMMIT", ""])
        )
    return texts


def difference(present: Present, chains: Chains) -> tuple[Chains, Chains]:
    """Chains that delta() changes, before and after."""
    names = [name for name in {**present.chains, **chains} if present.chains.get(name) != chains.get(name)]
    before = {name: present.chains[name] for name in names if name in present.chains}
    after = {name: chains[name] for name in names if name in chains}
    if not names and delta(present, chains):
        before["PREROUTING"], after["PREROUTING"] = present.prerouting, [_HOOK]
    return before, after


def read() -> Present:
    """Raises CommandError without ebtables."""
    return parse(run(["ebtables-save", "-t", "nat"]).stdout)


def restore(texts: t.Iterable[str]) -> None:
    path = os.path.realpath(shutil.which("ebtables-restore", path=f"/usr/sbin:/sbin:{os.defpath}") or "")
    if "legacy" in os.path.basename(path):
        raise NovaliteError(
            "this host's ebtables is the legacy one, which cannot change some chains and leave others alone: switch to "
            "ebtables-nft (update-alternatives --set ebtables /usr/sbin/ebtables-nft), or let libvirt's network "
            "filters do it (antispoof: nwfilter)"
        )
    for text in texts:
        rule_races.again(functools.partial(run, ["ebtables-restore", "--noflush"], stdin=text), _is_race)


def _is_race(error: Exception) -> bool:
    return isinstance(error, CommandError) and "RULE_DELETE failed (No such file or directory)" in error.stderr


def _range(instance: int, cidr: str) -> str:
    try:
        network = ipaddress.ip_network(cidr)
    except ValueError:
        raise NovaliteError(f"instance {instance}: {cidr!r} is not an address or range; write 10.0.0.9/32") from None
    return str(network.network_address) if network.num_addresses == 1 else str(network)
