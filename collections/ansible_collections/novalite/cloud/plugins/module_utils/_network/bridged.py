# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Bridged packets in iptables: unless the kernel shows them there, every chain here is bypassed.

The kernel asks two switches, one of the host (`net.bridge.bridge-nf-call-iptables`) and one of each bridge
(`nf_call_iptables`), and is content with either. The host's is its operator's: it decides about other people's bridges,
too, whose packets a FORWARD that drops (Docker's) would stop. novalite turns on that of the bridges its guests are on.

With that even frames between two ports of one bridge pass FORWARD. What other programs (Docker, firewalld & co.) have
put there that a bridge would not survive is found and told, never changed.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import typing as t

from .._errors import NovaliteError
from .._host.command import CommandError, run
from .._host.files import read_text
from .._host.locks import locked
from .._json import JsonObject
from . import additions, ownership
from .additions import Additions

DIRECTORY = "/proc/sys/net/bridge"
SWITCHES = ("bridge-nf-call-iptables", "bridge-nf-call-ip6tables")
_LOADED_ON = (*SWITCHES, "bridge-nf-call-arptables")  # what br_netfilter turns on for the whole host

ACCEPTED = "nova-forward"  # the module `router` puts what it accepts here
_CHAINS = ("FORWARD", "DOCKER-USER")
_COMMANDS = {"IPv4": "iptables-save", "IPv6": "ip6tables-save"}
# What does not narrow a rule down to some devices, addresses or protocols.
_HARMLESS = {"-j", "--reject-with", "-m", "--comment"}


def missing(check_mode: bool = False, directory: str = DIRECTORY, bridges: t.Collection[str] = ()) -> dict[str, str]:
    """The switches that are not 1, with their value ("absent" without br_netfilter, which is loaded if possible): those
    of `bridges` that are there, where the host's is not on; without `bridges`, the host's."""
    load(check_mode, directory, quietly=bool(bridges))
    values = {f"net.bridge.{name}": _read(os.path.join(directory, name)) for name in SWITCHES}
    wrong = {name: value for name, value in values.items() if value != "1"}
    if "absent" in wrong.values() or not wrong or not bridges:
        return wrong
    own = {bridge: _of_bridge(bridge) for bridge in bridges}
    differing: dict[str, str] = {}
    for name in wrong:
        option = name.rpartition(".")[2].replace("bridge-", "").replace("-", "_")
        differing |= {
            f"{bridge}/{option}": switches[option]
            for bridge, switches in own.items()
            if switches and switches[option] != "1"
        }
    return differing


def load(check_mode: bool = False, directory: str = DIRECTORY, quietly: bool = True) -> None:
    """Load br_netfilter if possible, `quietly` without what it turns on for every bridge of the host."""
    if os.path.isdir(directory) or check_mode:
        return
    with contextlib.suppress(CommandError):
        run(["modprobe", "br_netfilter"])
        for name in _LOADED_ON if quietly else ():
            _write(os.path.join(directory, name), "0")


def show(
    bridges: t.Collection[str], before: JsonObject, after: JsonObject, check_mode: bool, mark: ownership.Mark
) -> None:
    """Have the packet filter see what goes over the guests' bridges, for as long as guests are on them. Not before it
    has the rules: on a host that drops what nobody accepts, other people's packets there would be dropped until then.
    """
    wrong = missing(check_mode, bridges=bridges)
    if wrong:
        before["sysctl"], after["sysctl"] = wrong, dict.fromkeys(wrong, "1")
    if check_mode:
        return
    for name in wrong:
        bridge, slash, switch = name.partition("/")
        if slash:
            with locked("bridge"):
                added = additions.read(bridge, mark) | Additions(switches=(switch,))
                additions.write(bridge, mark, added)
    ensure(wrong)


def hide(bridges: t.Iterable[str], mark: ownership.Mark) -> None:
    """The reverse, for the bridges that the last instance leaves, and before the rules go."""
    for bridge in bridges:
        with locked("bridge"):
            added = additions.read(bridge, mark)
            for switch in added.switches:
                with contextlib.suppress(CommandError):  # the bridge is gone
                    run(command(bridge, switch, "0"))
            if added.switches:
                additions.write(bridge, mark, dataclasses.replace(added, switches=()))


def command(bridge: str, switch: str, value: str) -> list[str]:
    """The command that sets a switch of a bridge's own, by its name in iproute2."""
    return ["ip", "link", "set", bridge, "type", "bridge", switch, value]


def ensure(wrong: t.Mapping[str, str], directory: str = DIRECTORY) -> None:
    """Set the named switches to 1 and read them back. Raises NovaliteError when one stays off."""
    for name in wrong:
        bridge, slash, option = name.partition("/")
        if slash:
            run(command(bridge, option, "1"))
            value = _of_bridge(bridge).get(option, "absent")
        else:
            path = os.path.join(directory, name.rpartition(".")[2])
            _write(path, "1")
            value = _read(path)
        if value != "1":
            raise NovaliteError(
                f"{name} is {value} and cannot be set to 1: bridged packets would bypass every security group; "
                "load br_netfilter and set it to 1 on this host"
            )


def _of_bridge(bridge: str) -> dict[str, str]:
    """Return a bridge's own switches by their names in iproute2; none where it does not exist, or is not a bridge."""
    # not of /sys, which shows the devices of the namespace that it was mounted in
    with contextlib.suppress(CommandError, ValueError, KeyError, IndexError):
        data = json.loads(run(["ip", "-d", "-j", "link", "show", "dev", bridge]).stdout)[0]["linkinfo"]["info_data"]
        return {option: str(data[option]) for option in ("nf_call_iptables", "nf_call_ip6tables")}
    return {}


def _write(path: str, value: str) -> None:
    with contextlib.suppress(OSError), open(path, "w", encoding="ascii") as handle:
        handle.write(f"{value}\n")


def _read(path: str) -> str:
    return (read_text(path) or "absent").strip()


# --- what other programs drop ---


def warnings(bridges: t.Sequence[str]) -> list[str]:
    """List the warnings, one line for each thing that drops what goes over the bridges."""
    if not bridges:
        return []
    texts = []  # type: list[str]
    for family, command in _COMMANDS.items():
        with contextlib.suppress(CommandError):
            texts += in_iptables(run([command, "-t", "filter"]).stdout, family, bridges)
    with contextlib.suppress(CommandError, ValueError):
        texts += in_nftables(run(["nft", "-j", "list", "chains"]).stdout)
    return texts


def in_iptables(text: str, family: str, bridges: t.Sequence[str]) -> list[str]:
    """Warnings out of `iptables-save -t filter`: a policy or a rule that drops everything that is not accepted before,
    unless novalite's own rules in front of it accept what belongs to the bridges."""
    rules = {}  # type: dict[str, list[list[str]]]
    policy = "ACCEPT"
    looked_at = tuple(f"-A {name} " for name in (*_CHAINS, ACCEPTED))  # of a host with thousands of guests, not theirs
    for line in text.splitlines():
        if line.startswith(":FORWARD "):
            policy = line.split()[1]
        elif line.startswith(looked_at):
            words = line.split()
            rules.setdefault(words[1], []).append(words[2:])
    accepted = {rule[1] for rule in rules.get(ACCEPTED, ()) if rule[:1] == ["-i"] and rule[-2:] == ["-j", "ACCEPT"]}
    first = rules.get("FORWARD", [])[:2]
    if ["-j", ACCEPTED] in first and accepted.issuperset(bridges):
        return []
    names = ", ".join(bridges)
    docker = " (Docker sets it)" if "\n:DOCKER" in text else ""
    dropping = {chain: next(filter(_drops_all, rules.get(chain, ())), None) for chain in _CHAINS}
    texts = [
        f"the {family} rule `-A {chain} {' '.join(rule)}` drops what guests on {names} send to each other across hosts "
        "and to other networks; let it pass these bridges"
        for chain, rule in dropping.items()
        if rule
    ]
    if policy == "DROP":
        texts.append(
            f"the {family} policy of FORWARD is DROP{docker}: what guests on {names} send to each other across hosts "
            "and to other networks is dropped unless a rule of this host accepts it"
        )
    return texts


def in_nftables(text: str) -> list[str]:
    """Warnings out of `nft -j list chains`: base chains of other programs in the forward hook that drop by policy."""
    texts = []
    for entry in json.loads(text or "{}").get("nftables", ()):
        chain = entry.get("chain", {})
        place = tuple(str(chain.get(key)) for key in ("family", "table", "name"))
        # What iptables-nft shows as its own was looked at as such.
        ours = place in (("ip", "filter", "FORWARD"), ("ip6", "filter", "FORWARD"))
        if chain.get("hook") == "forward" and chain.get("policy") == "drop" and not ours:
            texts.append(
                f"the nftables chain {' '.join(place)} drops by policy what is forwarded, and guests' packets with it; "
                "let it accept what belongs to the bridges"
            )
    return texts


def _drops_all(rule: t.Sequence[str]) -> bool:
    if "-j" not in rule or rule[list(rule).index("-j") + 1] not in ("DROP", "REJECT"):
        return False
    options = {word for word in rule if word.startswith("-")}
    return not (options - _HARMLESS) and "!" not in rule
