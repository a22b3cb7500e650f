"""The same cases of PCI devices for our fit: "refused", None (no fit), or the nodes and devices that it gets and what
the host weighs then. First what it hands out, and what it weighs."""

from __future__ import annotations

import typing as t

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._model import numa, pci
from ansible_collections.novalite.cloud.plugins.module_utils._scheduling.options import Options
from ansible_collections.novalite.cloud.plugins.module_utils._scheduling.rows import HostState, Request
from ansible_collections.novalite.cloud.plugins.module_utils._scheduling.weighers.pci import weigh
from tests.parity import pci_cases

REFUSED, NOTHING = "refused", "nothing"


def answer(case: pci_cases.Case) -> list[t.Any]:
    there = [pci.Device(**row) for row in case["found"]]
    offered = pci.handed_out(there, case["facts"]["pci_device_spec"])
    facts = {**case["facts"], pci.DEVICES: [device.row for device in offered]}
    pci.check("hv1", facts)
    host = HostState("hv1", 64, 2**14, 100, cpu_ratio=4.0, ram_ratio=1.5, facts=facts)
    cards = {device.address: device.parent or device.address for device in there}
    answers: list[t.Any] = [sorted(device.address for device in offered), _weight(host)]
    claims: dict[str, numa.Claim] = {}
    for number, request in enumerate(case["requests"]):
        flavor = {"name": "f", **{key: request[key] for key in ("vcpus", "memory_mb", "extra_specs")}}
        image = {"name": "i", "properties": request["properties"]}
        try:
            topology, devices = numa.numa_of(flavor, image), pci.asked_of(flavor, image)
        except NovaliteError:
            answers.append(REFUSED)
            continue
        if topology is None and devices is None:
            answers.append(NOTHING)
            continue
        claim = host.own_fit(topology, devices, claims)
        if isinstance(claim, str):
            answers.append(None)
            continue
        claims[str(number)] = claim
        # virtual functions of one card are alike
        nodes = [cell.node for cell in claim.cells]
        answers.append([nodes, [cards[device.address] for device in claim.devices], _weight(host, claims)])
    return answers


def _weight(host: HostState, claims: t.Mapping[str, numa.Claim] | None = None) -> float:
    (weight,) = weigh([host._replace(claims=claims or {})], Request("u", "web", 1, 1, 1), Options())
    return weight
