# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Words of peers: what a host gets from others that are up, refuse, drop everything, or are not there."""

from __future__ import annotations

import socket
import subprocess
import time
import typing as t

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._host.module import HostCall
from ansible_collections.novalite.cloud.plugins.module_utils._steps import peer_look
from tests.unit.conftest import Lan

pytestmark = pytest.mark.root


def words(hosts: list[dict[str, t.Any]], timeout: int = 1) -> dict[str, bool]:
    """Return what the step says of each host."""
    complete = [{"port": 22, **host} for host in hosts]
    result = peer_look.run(HostCall({"hosts": complete, "timeout": timeout}))
    assert result["changed"] is False
    assert [word["host"] for word in result["words"]] == [host["name"] for host in hosts]
    return {word["host"]: word["reached"] for word in result["words"]}


def in_namespace(name: str, *argv: str) -> None:
    subprocess.run(["ip", "netns", "exec", name, *argv], check=True, capture_output=True)


@pytest.mark.parametrize("lan", [3], indirect=True)
def test_each_sign_of_life_is_enough(lan: Lan) -> None:
    _up, deaf, cut = lan.hosts
    # no ICMP, and a port that answers; and one that drops all that comes
    in_namespace(deaf, "iptables", "-A", "INPUT", "-p", "icmp", "-j", "DROP")
    in_namespace(cut, "iptables", "-P", "INPUT", "DROP")
    hosts = [{"name": name, "address": f"10.99.0.{number}"} for number, name in enumerate(("up", "deaf", "cut"), 5)]
    hosts += [{"name": "gone", "address": "10.99.0.99"}, {"name": "six", "address": "fd99::5"}]
    with lan.enter(lan.hypervisor):
        began = time.monotonic()
        assert words(hosts) == {"up": True, "deaf": True, "cut": False, "gone": False, "six": True}
        assert time.monotonic() - began < 6  # all at once, and each by both ways at once
    with lan.enter(deaf):
        listener = socket.create_server(("10.99.0.6", 22))
    with listener, lan.enter(lan.hypervisor):
        assert words(hosts[1:2]) == {"deaf": True}
        # a daemon that is frozen has its kernel take the connection: it is there, and not dead
        assert words([{"name": "deaf", "address": "10.99.0.6", "port": 22}]) == {"deaf": True}


def test_a_link_that_is_down_reaches_nobody(lan: Lan) -> None:
    with lan.enter(lan.hypervisor):
        assert words([{"name": "hv2", "address": "10.99.0.5"}]) == {"hv2": True}
        in_namespace(lan.hypervisor, "ip", "link", "set", "br0", "down")
        assert words([{"name": "hv2", "address": "10.99.0.5"}]) == {"hv2": False}


def test_what_is_no_address_is_told_with_its_host() -> None:
    with pytest.raises(NovaliteError, match=r"'nowhere\.invalid' of host hv2 is not an address"):
        words([{"name": "hv2", "address": "nowhere.invalid"}])


@pytest.mark.parametrize("timeout", [0, 61])
def test_a_look_has_its_time(timeout: int) -> None:
    with pytest.raises(NovaliteError, match="choose 1 to 60 seconds"):
        words([{"name": "hv2", "address": "127.0.0.1"}], timeout)
