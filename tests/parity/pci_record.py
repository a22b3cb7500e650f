"""Ask nova 34.0.0 about every case of pci_cases.py, and write down what it answers, as numa_record.py does.

    .cache/nova-venv/bin/python -m tests.parity.pci_record

Device specs, aliases, requests, pools and the fit are Nova's own code on Nova's own objects. What is left out: libvirt,
which finds the devices, and sysfs, which says which of them are physical functions.
"""

from __future__ import annotations

import gzip
import importlib.metadata
import json
import logging
import pathlib
import types
import typing as t
from unittest import mock

import nova.conf
from nova import exception, objects
from nova.pci import request as pci_request
from nova.pci import stats, whitelist
from nova.scheduler.weights.pci import PCIWeigher
from nova.virt import hardware

from tests.parity import numa_record, pci_cases

EXPECTED = pathlib.Path(__file__).with_name("pci_expected.json.gz")
REFUSED, NOTHING = "refused", "nothing"
CONF = nova.conf.CONF


def answer(case: pci_cases.Case) -> list[t.Any]:
    physical = {row["address"] for row in case["found"] if row["type"] == "type-PF"}
    CONF.set_override("device_spec", [json.dumps(spec) for spec in case["facts"]["pci_device_spec"]], "pci")
    CONF.set_override("alias", [json.dumps(alias) for alias in case["facts"]["pci_alias"]], "pci")
    pci_request.get_alias_from_config.cache_clear()
    with mock.patch("nova.pci.utils.is_physical_function", lambda *parts: "{}:{}:{}.{}".format(*parts) in physical):
        allowed = whitelist.Whitelist(CONF.pci.device_spec)
    offered = [device for device in _devices(case["found"]) if allowed.get_devspec(device)]
    pools = stats.PciDeviceStats(None, dev_filter=allowed)
    for device in offered:
        pools.add_device(device)
    host = numa_record._host(case["facts"])
    answers: list[t.Any] = [sorted(device.address for device in offered), _weight(pools)]
    for request in case["requests"]:
        flavor = objects.Flavor(
            name="f", vcpus=request["vcpus"], memory_mb=request["memory_mb"], extra_specs=request["extra_specs"]
        )
        try:
            image = objects.ImageMeta.from_dict({"name": "i", "properties": dict(request["properties"])})
            topology = hardware.numa_get_constraints(flavor, image)
            policy = hardware.get_pci_numa_policy_constraint(flavor, image)
            requests = pci_request.get_pci_requests_from_flavor(flavor, policy).requests
        except (exception.NovaException, ValueError):
            answers.append(REFUSED)
            continue
        if topology is None and not requests:
            answers.append(NOTHING)
            continue
        cells: list[t.Any] = []
        if topology is not None:
            limits = objects.NUMATopologyLimits(cpu_allocation_ratio=4.0, ram_allocation_ratio=1.5)
            got = hardware.numa_fit_instance_to_host(host, topology, None, limits, requests, pools)
            if got is None:
                answers.append(None)
                continue
            host, cells = hardware.numa_usage_from_instance_numa(host, got), got.cells
        elif not pools.support_requests(requests, None):
            answers.append(None)
            continue
        taken = pools.consume_requests(requests, cells)
        cards = [device.parent_addr or device.address for device in taken]
        answers.append([[cell.id for cell in cells], cards, _weight(pools)])
    return answers


def _weight(pools: stats.PciDeviceStats) -> int:
    return t.cast(int, PCIWeigher()._weigh_object(types.SimpleNamespace(pci_stats=pools), None))


def _devices(rows: list[dict[str, t.Any]]) -> list[t.Any]:
    """Nova's devices, those that depend on each other tied as its manager ties them."""
    devices = {}
    for number, row in enumerate(rows):
        device = devices[row["address"]] = objects.PciDevice(
            **{"id": number, "compute_node_id": 1, "status": "available", "extra_info": {}, "request_id": None},
            **{key: row[key] for key in ("address", "vendor_id", "product_id", "numa_node")},
            dev_type=row["type"],
            parent_addr=row["parent"],
        )
        device.child_devices, device.parent_device = [], devices.get(row["parent"])
        if device.parent_device is not None:
            device.parent_device.child_devices.append(device)
    return list(devices.values())


def main() -> None:
    logging.disable(logging.CRITICAL)
    objects.register_all()
    CONF([], project="nova", default_config_files=[])
    answers = [answer(pci_cases.case(seed)) for seed in range(pci_cases.COUNT)]
    document = {"nova": importlib.metadata.version("nova"), "digest": pci_cases.digest(), "answers": answers}
    EXPECTED.write_bytes(gzip.compress(json.dumps(document, separators=(",", ":")).encode(), 9, mtime=0))
    print(f"{len(answers)} cases; {EXPECTED.stat().st_size} bytes")


if __name__ == "__main__":
    main()
