# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import subprocess
import typing as t

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._firewall import look
from ansible_collections.novalite.cloud.plugins.module_utils._firewall.policy import Instance

pytestmark = pytest.mark.root


@pytest.mark.parametrize(
    ("there", "also"),
    [
        (["10.98.0.1/24"], []),
        (["10.98.0.250/24", "10.98.0.1/24"], ["10.98.0.250"]),
        (["192.0.2.1/24", "10.98.0.250/24", "10.98.0.1/24"], ["192.0.2.1", "10.98.0.250"]),
        (["10.98.0.1/24", "10.98.0.250/24"], []),
        (["192.0.2.1/24"], []),
    ],
)
@pytest.mark.parametrize("lan", [0], indirect=True)
def test_a_server_answers_from_the_first_address_of_its_bridge(lan: t.Any, there: list[str], also: list[str]) -> None:
    def ip(*words: str) -> None:
        subprocess.run(["ip", "-n", lan.hypervisor, *words], check=True)

    ip("link", "add", "br98", "type", "bridge")
    for address in there:
        ip("address", "add", address, "dev", "br98")
    instance = Instance(id=1, dhcp_servers=("10.98.0.1", "fe80::1"))
    with lan.enter(lan.hypervisor):
        assert look.with_sources([instance])[0].dhcp_servers == ("10.98.0.1", *also, "fe80::1")
