"""Cases of PCI devices: a host with some, and requests that come to it one after the other. Plain data."""

from __future__ import annotations

import hashlib
import json
import random
import typing as t

from tests.parity import numa_cases

COUNT = 2000  # of those that are recorded

Case = dict[str, t.Any]
_GPU, _NIC, _VF = ("10de", "1eb8"), ("8086", "10fb"), ("8086", "10ed")


def case(seed: int) -> Case:
    rng = random.Random(f"pci {seed}")
    facts = numa_cases._facts(rng)
    there = _devices(rng, len(facts["numa"]))
    facts["pci_device_spec"] = _specs(rng, there)
    facts["pci_alias"] = _aliases(rng)
    return {"facts": facts, "found": there, "requests": [_request(rng) for _number in range(rng.randint(1, 6))]}


def digest() -> str:
    text = json.dumps([case(seed) for seed in range(COUNT)], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _devices(rng: random.Random, nodes: int) -> list[dict[str, t.Any]]:
    """Return what libvirt finds: cards, and network cards with virtual functions."""
    there: list[dict[str, t.Any]] = []

    def add(bus: int, function: int, ids: tuple[str, str], kind: str, node: int | None, parent: str | None) -> str:
        address = f"0000:{bus:02x}:00.{function}"
        row = {"address": address, "vendor_id": ids[0], "product_id": ids[1], "type": kind, "numa_node": node}
        there.append({**row, "parent": parent})
        return address

    for bus in range(1, 1 + rng.randint(1, 6)):
        node = rng.choice([None, *range(nodes), *range(nodes)])
        if rng.random() < 0.5:
            for function in range(rng.randint(1, 2)):
                add(bus, function, _GPU, "type-PCI", node, None)
        else:
            physical = add(bus, 0, _NIC, "type-PF", node, None)
            for function in range(1, rng.randint(1, 4)):
                add(bus, function, _VF, "type-VF", node, physical)
    return there


def _specs(rng: random.Random, there: list[dict[str, t.Any]]) -> list[dict[str, str]]:
    choices: list[dict[str, str]] = [
        {"vendor_id": "10de"},
        {"vendor_id": "8086", "product_id": "10ed"},
        {"vendor_id": "8086", "product_id": "10fb"},
        {"address": "*:01:00.*"},
        {"address": ":02:"},
        {"address": rng.choice(there)["address"]},
        {"vendor_id": "*", "product_id": "*"},
    ]
    return rng.sample(choices, rng.randint(2, 4))


def _aliases(rng: random.Random) -> list[dict[str, str]]:
    def alias(name: str, ids: tuple[str, str], kind: str) -> dict[str, str]:
        row = {"name": name, "vendor_id": ids[0], "product_id": ids[1], "device_type": kind}
        return row | ({"numa_policy": policy} if (policy := policies[name]) else {})

    policies = {name: rng.choice(["", "required", "legacy", "preferred"]) for name in ("gpu", "vf", "pf")}
    aliases = [alias("gpu", _GPU, "type-PCI"), alias("vf", _VF, "type-VF"), alias("pf", _NIC, "type-PF")]
    if rng.random() < 0.2:
        del aliases[0]["device_type"]  # as most say it
    elif rng.random() < 0.3:
        aliases.append(alias("gpu", ("10de", "ffff"), "type-PCI"))
    return aliases


def _request(rng: random.Random) -> dict[str, t.Any]:
    vcpus, memory_mb = rng.choice([1, 2, 2, 4]), rng.choice([48, 64, 96])
    specs: dict[str, str] = {}
    properties: dict[str, str] = {}
    if rng.random() < 0.9:
        # not both kinds of functions: Nova forgets that the one takes the other away (README.md)
        names = ["gpu", rng.choice(["vf", "pf"])]
        asks = [f"{name}:{rng.randint(1, 2)}" for name in names if rng.random() < 0.6]
        if asks:
            specs["pci_passthrough:alias"] = rng.choice([",", ", "]).join(asks)
    for say_to, name in ((specs, "hw:pci_numa_affinity_policy"), (properties, "hw_pci_numa_affinity_policy")):
        if rng.random() < 0.2:
            say_to[name] = rng.choice(["required", "legacy", "preferred", "near"])
    if rng.random() < 0.5:
        specs["hw:cpu_policy"] = "dedicated"
    if rng.random() < 0.5:
        specs["hw:numa_nodes"] = rng.choice(["1", "1", "2"])
    return {"vcpus": vcpus, "memory_mb": memory_mb, "extra_specs": specs, "properties": properties}
