# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Guests whose frames go through libvirt's rules."""

from __future__ import annotations

from ansible_collections.novalite.cloud.plugins.module_utils._network import nwfilter

SAVED = """*nat
:PREROUTING ACCEPT
:libvirt-I-vnet0 ACCEPT
:libvirt-I-vnet1 ACCEPT
-A PREROUTING -i vnet0 -j libvirt-I-vnet0
-A PREROUTING -i vnet1 -j libvirt-I-vnet1
-A libvirt-I-vnet0 -p ARP -j ACCEPT
-A libvirt-I-vnet0 -j DROP
-A libvirt-I-vnet2 -j DROP
"""


def test_a_chain_is_in_force_when_it_is_hooked_in_and_not_empty() -> None:
    assert nwfilter.in_force(SAVED) == {"vnet0"}
    assert nwfilter.in_force("") == set()
