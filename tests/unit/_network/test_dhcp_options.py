# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""DHCP options of single guests, as dnsmasq reads them."""

from __future__ import annotations

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._network import dhcp_hosts, dhcp_options, dnsmasq

HOSTS = [
    {
        "mac": "fa:16:3e:00:00:01",
        "ip": "10.20.0.5",
        "hostname": "a",
        "options": [
            {"name": "bootfile-name", "value": "pxelinux.0, or not"},
            {"name": "150", "value": "192.0.2.1,192.0.2.2"},
            {"name": "dns-server", "value": "[fd00::1]", "version": 6},
            {"name": "59", "value": "http://x/y", "version": 6},
        ],
    },
    {"mac": "fa:16:3e:00:00:02", "ip": "10.20.0.6", "hostname": "b"},
]
NETWORK = {"name": "n", "bridge": "br100", "listen": "10.20.0.2", "cidr": "10.20.0.0/24"}


def test_a_guest_has_a_tag_and_its_options_have_that() -> None:
    (network,) = dnsmasq.parse([{**NETWORK, "hosts": HOSTS}])
    hosts, options = dhcp_hosts.hosts_text(network.hosts, "novalocal"), dhcp_hosts.options_text(network.hosts)
    assert hosts.splitlines() == [
        "fa:16:3e:00:00:01,set:port-fa163e000001,a.novalocal,10.20.0.5",
        "fa:16:3e:00:00:02,b.novalocal,10.20.0.6",
    ]
    assert options.splitlines() == [
        "tag:port-fa163e000001,option:bootfile-name,pxelinux.0, or not",
        "tag:port-fa163e000001,150,192.0.2.1,192.0.2.2",
        "tag:port-fa163e000001,option6:dns-server,[fd00::1]",
        "tag:port-fa163e000001,option6:59,http://x/y",
    ]
    assert dhcp_hosts.read_hosts(hosts, options) == list(network.hosts)
    assert "dhcp-optsfile=/d/opts" in dnsmasq.config(network, "/d", options=True).splitlines()
    assert "optsfile" not in dnsmasq.config(network, "/d")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("router", "10.0.0.1\ndhcp-script=/bin/sh"),
        ("router", "10.0.0.1\n"),
        ("router", "10.0.0.1\r"),
        ("router", ""),
        ("router", " 10.0.0.1"),
        ("router", 'a"b'),
        ("router", "a\\b"),
        ("router", "a #b"),
        ("router", "ä"),
        ("router", "a" * 256),
        ("router,10.0.0.1", "x"),
        ("router\n", "x"),
        ("tag:other", "x"),
        ("", "x"),
        ("0", "x"),
        ("255", "x"),
        ("a" * 65, "x"),
    ],
)
def test_what_could_leave_its_line_is_refused(name: str, value: str) -> None:
    with pytest.raises(NovaliteError, match=r"option|value"):
        dhcp_options.parse_all("x", [{"name": name, "value": value}])


def test_a_guest_has_so_many_and_no_more() -> None:
    options = [{"name": str(number + 1), "value": "x"} for number in range(33)]
    assert len(dhcp_options.parse_all("x", options[:32])) == 32
    with pytest.raises(NovaliteError, match="more than 32"):
        dhcp_options.parse_all("x", options)
