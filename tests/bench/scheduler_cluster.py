"""The cluster that both sides of scheduler.* decide on, as a case of tests/parity. Standard library only."""

from __future__ import annotations

import typing as t

from tests.parity.cases import Case, Dice


def case(hosts: int, instances: int) -> Case:
    """So many machines of several sizes, partly used; so many instances of a small flavor; Nova's default options."""
    dice = Dice(hosts)
    return {
        "options": {},
        "hosts": [_host(dice, number) for number in range(hosts)],
        "request": {
            "count": instances,
            "project_id": "alpha",
            "flavor": {
                "name": "small",
                "vcpus": 1,
                "memory_mb": 512,
                "root_gb": 1,
                "ephemeral_gb": 0,
                "swap_mb": 0,
                "extra_specs": {},
            },
            "image": {"id": "image-1", "min_ram_mb": 0, "min_disk_gb": 0, "properties": {}},
            "availability_zone": None,
            "requested_host": None,
            "ignore_hosts": [],
            "hints": {},
            "group": None,
        },
    }


def _host(dice: Dice, number: int) -> dict[str, t.Any]:
    vcpus, memory_gb, disk_gb = dice.choice([(16, 64, 500), (32, 128, 1000), (64, 256, 1000), (128, 512, 4000)])
    used = dice.number(0, 60) / 100
    return {
        "name": f"hv{number:05d}",
        "vcpus": vcpus,
        "memory_mb": memory_gb * 1024,
        "disk_gb": disk_gb,
        "up": True,
        "enabled": True,
        "zone": "nova",
        "aggregates": [],
        "traits": ["COMPUTE_NODE"],
        "vcpus_used": int(vcpus * 4 * used),
        "memory_mb_used": int(memory_gb * used) * 1024,
        "disk_gb_used": int(disk_gb * used * dice.number(5, 10) / 10),
        "reserved_vcpus": 0,
        "reserved_memory_mb": 512,
        "reserved_disk_gb": 0,
        "cpu_ratio": 4.0,
        "ram_ratio": 1.0,
        "disk_ratio": 1.0,
        "instances": [],
        "num_instances": int(vcpus * used),
        "num_io_ops": dice.choice([0, 0, 0, 1, 2]),
        "failed_builds": 0,
        "metrics": {},
        "address": None,
        "facts": {
            "arch": "x86_64",
            "cpu_model": "EPYC",
            "hypervisor_type": "QEMU",
            "hypervisor_version": dice.choice([7002000, 8000000]),
            "supported_instances": [["x86_64", "kvm", "hvm"], ["x86_64", "qemu", "hvm"], ["i686", "kvm", "hvm"]],
            "cpu_info": {"arch": "x86_64"},
            "rack": "a1",
            "grade": "1",
        },
    }
