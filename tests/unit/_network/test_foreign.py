# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Other programs' rules that a bridge would not survive are told, harmless ones are not."""

from __future__ import annotations

import json

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._network import bridged

DOCKER = """*filter
:FORWARD DROP [0:0]
:DOCKER-USER - [0:0]
-A FORWARD -j DOCKER-USER
-A FORWARD -o docker0 -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A DOCKER-USER -j RETURN
COMMIT
"""


def test_dockers_policy() -> None:
    (warning,) = bridged.in_iptables(DOCKER, "IPv4", ["br100"])
    assert "DROP (Docker sets it)" in warning and "br100" in warning and "\n" not in warning


def test_what_novalite_accepts_in_front_is_enough() -> None:
    accepted = DOCKER.replace(
        "-A FORWARD -j DOCKER-USER",
        "-A FORWARD -j nova-local\n-A FORWARD -j nova-forward\n-A FORWARD -j DOCKER-USER\n"
        "-A nova-forward -i br100 -m comment --comment br100 -j ACCEPT",
    )
    assert bridged.in_iptables(accepted, "IPv4", ["br100"]) == []
    assert bridged.in_iptables(accepted, "IPv4", ["br100", "br101"])


@pytest.mark.parametrize(
    ("rule", "reported"),
    [
        ("FORWARD -j DROP", True),
        ("FORWARD -j REJECT --reject-with icmp-host-prohibited", True),
        ("DOCKER-USER -m comment --comment all -j DROP", True),
        ("FORWARD -i eth7 -j DROP", False),
        ("FORWARD -m conntrack --ctstate INVALID -j DROP", False),
        ("FORWARD ! -i br100 -j DROP", False),
        ("INPUT -j DROP", False),
        ("FORWARD -j ACCEPT", False),
    ],
)
def test_rules(rule: str, reported: bool) -> None:
    text = f"*filter\n:FORWARD ACCEPT [0:0]\n:INPUT ACCEPT [0:0]\n-A {rule}\nCOMMIT\n"
    rule_lines = bridged.in_iptables(text, "IPv4", ["br100"])
    assert bool(rule_lines) == reported
    assert all(f"-A {rule}" in line for line in rule_lines)


def test_nftables() -> None:
    def listed(**chain: str) -> str:
        return json.dumps({"nftables": [{"metainfo": {}}, {"chain": chain}]})

    firewalld = {"family": "inet", "table": "firewalld", "name": "filter_FORWARD", "hook": "forward"}
    assert "inet firewalld filter_FORWARD" in bridged.in_nftables(listed(**firewalld, policy="drop"))[0]
    assert bridged.in_nftables(listed(**firewalld, policy="accept")) == []
    own = {"family": "ip", "table": "filter", "name": "FORWARD", "hook": "forward", "policy": "drop"}
    assert bridged.in_nftables(listed(**own)) == [], "iptables shows that one"
    assert bridged.in_nftables("") == []
