# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What other programs have put into a host's packet filter that a bridge would not survive: Docker, firewalld & co.

With br_netfilter even frames between two ports of one bridge pass FORWARD. Found and told, never changed.
"""

from __future__ import annotations

import contextlib
import json
import typing as t

from .._command import CommandError, run

ACCEPTED = "nova-forward"  # the module `router` puts what it accepts here
_CHAINS = ("FORWARD", "DOCKER-USER")
_COMMANDS = {"IPv4": "iptables-save", "IPv6": "ip6tables-save"}
# What does not narrow a rule down to some devices, addresses or protocols.
_HARMLESS = {"--reject-with", "-m", "--comment"}


def warnings(bridges: t.Sequence[str]) -> list[str]:
    """One line for each thing that drops what goes over the bridges."""
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
    texts = []
    for chain in _CHAINS:
        for rule in rules.get(chain, ()):
            if _drops_all(rule):
                texts.append(
                    f"the {family} rule `-A {chain} {' '.join(rule)}` drops what guests on {names} send to each other "
                    "across hosts and to other networks; let it pass these bridges"
                )
                break
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
        if chain.get("hook") == "forward" and chain.get("policy") == "drop":
            # What iptables-nft shows as its own was looked at as such.
            if chain.get("family") in ("ip", "ip6") and (chain.get("table"), chain.get("name")) == (
                "filter",
                "FORWARD",
            ):
                continue
            texts.append(
                f"the nftables chain {chain.get('family')} {chain.get('table')} {chain.get('name')} drops by policy "
                "what is forwarded, and guests' packets with it; let it accept what belongs to the bridges"
            )
    return texts


def _drops_all(rule: t.Sequence[str]) -> bool:
    if "-j" not in rule or rule[list(rule).index("-j") + 1] not in ("DROP", "REJECT"):
        return False
    rest = list(rule)
    place = rest.index("-j")
    rest[place : place + 2] = []
    options = {word for word in rest if word.startswith("-")}
    return not (options - _HARMLESS) and "!" not in rest
