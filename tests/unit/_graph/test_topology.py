# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The picture of a cloud, drawn by graphviz itself and read back out of its SVG."""

from __future__ import annotations

import re
import subprocess
import typing as t
import xml.etree.ElementTree as ET

from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.novalite.cloud.plugins.module_utils._graph import topology
from tests.support.patience import GENEROUS

SVG = "{http://www.w3.org/2000/svg}"
ODD = '<b>&"\\n x\x1b]>'


def host(name: str = "hv1", **changes: t.Any) -> dict[str, t.Any]:
    fill = {"vcpus": [8, 32], "memory_mb": [60000, 64000], "disk_gb": [0, 400]}
    return {"name": name, "zone": "nova", "up": True, "enabled": True, **fill, **changes}


def server(name: str = "web", **changes: t.Any) -> dict[str, t.Any]:
    state = {"vm_state": "active", "task_state": None, "host": "hv1", "project": "demo"}
    there = {"ip": "10.20.0.3", "floating_ips": [], "networks": [1], "security_groups": [1]}
    return {"name": name, **state, **there, **changes}


def network(number: int = 1, **changes: t.Any) -> dict[str, t.Any]:
    wire = {"bridge": "br100", "vlan": None, "vni": None, "isolated": False}
    return {"id": number, "name": "private", "cidr": "10.20.0.0/24", "used": 3, "size": 252, **wire, **changes}


def group(number: int = 1, **changes: t.Any) -> dict[str, t.Any]:
    return {"id": number, "name": "default", "project": "demo", "members": 1, "rules": [rule()], **changes}


def rule(**changes: t.Any) -> dict[str, t.Any]:
    port = {"protocol": "tcp", "port_min": 22, "port_max": 22}
    far = {"cidr": "0.0.0.0/0", "remote_group_id": None}
    return {"id": "r", "direction": "ingress", "ethertype": "IPv4", **port, **far, **changes}


def drawn(*parts: t.Sequence[t.Any]) -> ET.Element:
    done = subprocess.run(
        ["dot", "-Tsvg"], input=topology.dot(*parts), capture_output=True, text=True, check=True, timeout=GENEROUS
    )
    assert done.stderr == ""
    return ET.fromstring(done.stdout)


def words(svg: ET.Element) -> list[str]:
    return ["".join(text.itertext()).replace("\xa0", " ").strip() for text in svg.iter(f"{SVG}text")]


def test_everything_is_in_it() -> None:
    db = group(2, name="db", rules=[rule(port_min=5432, port_max=5432, cidr=None, remote_group_id=1)])
    changes = {"host": "hv2", "vm_state": "stopped", "security_groups": [1, 2], "floating_ips": ["192.0.2.7"]}
    servers = [server(), server("db", **changes)]
    hosts = [host(), host("hv2", up=False), host("hv3", enabled=False)]
    drawn_words = words(drawn(hosts, [network()], servers, [group(), db]))
    for said in (
        "hv1",
        "nova · down",
        "nova · disabled",
        "8 of 32",
        "58.6 of 62.5 GiB",
        "web",
        "10.20.0.3",
        "3 of 252",
        "10.20.0.3 192.0.2.7",
        "stopped",
        "private",
        "10.20.0.0/24, br100",
        "default",
        "tcp 22",
        "tcp 5432",
        "anyone",
        "no instance",
        "3 hosts, 2 instances",
        "1 active",
        "1 stopped",
    ):
        assert said in drawn_words, said
    assert drawn_words.count("A") == 3  # the network's own, and on each instance
    assert drawn_words.count("2") == 2


def test_what_is_on_no_host_has_a_card_of_its_own() -> None:
    drawn_words = words(drawn([host()], [], [server(host=None, vm_state="error", networks=[], security_groups=[])], []))
    assert "on no host" in drawn_words
    assert "error" in drawn_words


def test_of_many_on_one_host_the_rest_is_counted() -> None:
    drawn_words = words(drawn([host()], [network()], [server(f"web-{number}") for number in range(20)], [group()]))
    assert f"and {20 - topology.SHOWN} more" in drawn_words
    assert sum(word.startswith("web-") for word in drawn_words) == topology.SHOWN


def test_an_empty_cloud_is_a_picture_too() -> None:
    assert "0 hosts, 0 instances" in words(drawn([], [], [], []))


def test_a_bar_is_as_long_as_what_is_used() -> None:
    text = topology.dot([host(vcpus=[8, 32], memory_mb=[0, 10], disk_gb=[20, 10])], [], [], [])
    assert re.findall(r'height="9" fixedsize="true" bgcolor="([^"]*)"', text) == [
        "#4f9d69;0.250:#e6e6e6",
        "#e6e6e6",
        "#c8373a",
    ]


def test_names_are_only_names() -> None:
    parts = ([host(ODD, zone=ODD)], [network(name=ODD)], [server(ODD, host=ODD, project=ODD)], [group(name=ODD)])
    assert '<b>&"\\n x?]>' in words(drawn(*parts))


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 30), st.integers(0, 40), st.booleans())
def test_any_number_can_be_drawn(hosts: int, servers: int, several: bool) -> None:
    everyone = [
        server(f"vm-{number}", host=f"hv{number % 7}", project=f"p{number % 2 if several else 0}")
        for number in range(servers)
    ]
    drawn_words = words(drawn([host(f"hv{number}") for number in range(hosts)], [network()], everyone, [group()]))
    assert {f"hv{number}" for number in range(hosts)} <= set(drawn_words)
