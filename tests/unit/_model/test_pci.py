# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""PCI devices by Nova's names: values that are refused by name, and what the inventory hands out."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._model import pci
from ansible_collections.novalite.cloud.plugins.module_utils._model.hardware import checked
from ansible_collections.novalite.cloud.plugins.module_utils._model.pci import Ask, Asked, Device

GPU = {"name": "gpu", "vendor_id": "10de", "product_id": "1eb8"}


def asked(alias: str, properties: dict[str, str] | None = None, **specs: str) -> Asked | None:
    extra_specs = {pci.ALIAS: alias, **{"hw:" + key: value for key, value in specs.items()}}
    flavor = {"name": "f", "vcpus": 1, "memory_mb": 64, "extra_specs": extra_specs}
    image = {"name": "i", "properties": properties or {}}
    checked(flavor, image)
    return pci.asked_of(flavor, image)


def test_aliases_are_counted_and_the_policy_is_the_flavor_s_or_the_image_s() -> None:
    assert asked("gpu:2, nic:1") == Asked((Ask("gpu", 2), Ask("nic", 1)))
    assert asked("gpu:1", pci_numa_affinity_policy="required") == Asked((Ask("gpu", 1),), "required")
    assert asked("gpu:1", {"hw_pci_numa_affinity_policy": "preferred"}) == Asked((Ask("gpu", 1),), "preferred")


@pytest.mark.parametrize(
    ("alias", "properties", "policy", "message"),
    [
        ("gpu", {}, None, "flavor 'f': extra spec pci_passthrough:alias is 'gpu'; use name:count"),
        ("gpu:0", {}, None, "is 'gpu:0'; use name:count"),
        ("gpu:1,", {}, None, "is 'gpu:1,'; use name:count"),
        ("gpu:1", {}, "near", "hw:pci_numa_affinity_policy is 'near'; use required, legacy, preferred$"),
        ("gpu:1", {}, "socket", "Which NUMA nodes share a socket is not known here"),
        ("gpu:1", {"hw_pci_numa_affinity_policy": "near"}, None, "its property hw_pci_numa_affinity_policy is 'near'"),
        ("gpu:1", {"hw_pci_numa_affinity_policy": "legacy"}, "required", "take the one from the flavor or the other"),
    ],
)
def test_values_are_refused_by_name(alias: str, properties: dict[str, str], policy: str | None, message: str) -> None:
    with pytest.raises(NovaliteError, match=message):
        asked(alias, properties, **({"pci_numa_affinity_policy": policy} if policy else {}))


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ({pci.SPEC: [{"devname": "eth0"}]}, "devname is not known here; use vendor_id, product_id, address"),
        ({pci.SPEC: [{"vendor_id": "8"}]}, "vendor_id is '8'; give four hexadecimal digits"),
        ({pci.SPEC: [{"address": "0000:0a:20.0"}]}, "its address is '0000:0a:20.0'; use one such as 0000:0a:00.1"),
        ({pci.SPEC: [{"address": "1:2:3:4.5"}]}, "its address is '1:2:3:4.5'"),
        ({pci.SPEC: [{"managed": "perhaps"}]}, "managed is 'perhaps'; use true or false"),
        ({pci.ALIASES: [{**GPU, "name": "a:b"}]}, "give it a name without colon and comma"),
        ({pci.ALIASES: [{"name": "gpu", "vendor_id": "10de"}]}, "product_id is 'None'; give four"),
        ({pci.ALIASES: [{**GPU, "live_migratable": "yes"}]}, "live_migratable is not known here"),
        ({pci.ALIASES: [{**GPU, "numa_policy": "socket"}]}, "numa_policy is 'socket'; use required, legacy, preferred"),
        ({pci.ALIASES: [{**GPU, "device_type": "PCI"}]}, "device_type is 'PCI'; use type-PCI, type-PF, type-VF"),
        ({pci.ALIASES: [GPU, {**GPU, "numa_policy": "required"}]}, "another numa_policy for the same name"),
        ({pci.ALIASES: [GPU, {**GPU, "device_type": "type-VF"}]}, "another device_type for the same name"),
    ],
)
def test_an_inventory_that_makes_no_sense_is_refused(facts: dict[str, t.Any], message: str) -> None:
    with pytest.raises(NovaliteError, match=rf"compute host 'hv1': pci_(device_spec|alias) has .*{message}"):
        pci.check("hv1", facts)


def test_what_the_inventory_names_is_handed_out_with_what_it_says_of_it() -> None:
    physical = Device("0000:03:00.0", "8086", "10fb", type=pci.PF)
    virtual = Device("0000:03:00.1", "8086", "10ed", type=pci.VF, parent=physical.address)
    card, other = Device("0000:0a:00.0", "10de", "1eb8"), Device("0000:0b:00.0", "10de", "1eb8")
    there = [physical, virtual, card, other]
    assert pci.handed_out(there, []) == []
    assert pci.handed_out(there, [{"address": "0000:03:00.0"}]) == [physical, virtual]
    assert pci.handed_out(there, [{"address": "0000:03:00.1"}]) == [virtual]
    specs: list[t.Any] = [
        {"address": "*:a:*.*", "managed": False, "traits": "CUSTOM_A, CUSTOM_B"},
        {"vendor_id": "10DE"},
    ]
    first, second = pci.handed_out(there, specs)
    assert (first.address, first.managed, first.traits) == ("0000:0a:00.0", False, ("CUSTOM_A", "CUSTOM_B"))
    assert (second.address, second.managed, second.traits) == ("0000:0b:00.0", True, ())
    facts = {pci.ALIASES: [{**GPU, "traits": "CUSTOM_B"}], pci.DEVICES: [first.row, second.row]}
    alias = pci.aliases_of(facts)["gpu"]
    assert [device.address for device in pci.devices_of(facts) if alias.covers(device)] == ["0000:0a:00.0"]
