"""Clusters and requests out of a seed, as plain data: the same for Nova's side (record.py) and for ours.

Runs in both environments, so it imports nothing but the standard library. All dice are `random()`: of a seeded
generator, Python promises its sequence from one version to the next, and of nothing else.
"""

from __future__ import annotations

import hashlib
import json
import random
import typing as t

COUNT = 1400
Case = dict[str, t.Any]

# what is enabled on both sides: ours -> Nova's, in the order in which Nova's weights are summed
FILTERS = {
    "compute": "ComputeFilter",
    "compute_capabilities": "ComputeCapabilitiesFilter",
    "image_properties": "ImagePropertiesFilter",
    "server_group_anti_affinity": "ServerGroupAntiAffinityFilter",
    "server_group_affinity": "ServerGroupAffinityFilter",
    "same_host": "SameHostFilter",
    "different_host": "DifferentHostFilter",
    "simple_cidr_affinity": "SimpleCIDRAffinityFilter",
    "io_ops": "IoOpsFilter",
    "aggregate_io_ops": "AggregateIoOpsFilter",
    "num_instances": "NumInstancesFilter",
    "aggregate_num_instances": "AggregateNumInstancesFilter",
    "isolated_hosts": "IsolatedHostsFilter",
    "aggregate_instance_extra_specs": "AggregateInstanceExtraSpecsFilter",
    "aggregate_image_properties_isolation": "AggregateImagePropertiesIsolation",
    "aggregate_multitenancy_isolation": "AggregateMultiTenancyIsolation",
    "aggregate_type_affinity": "AggregateTypeAffinityFilter",
    "json": "JsonFilter",
    "metrics": "MetricsFilter",
}
WEIGHERS = {
    "cpu": "CPUWeigher",
    "ram": "RAMWeigher",
    "disk": "DiskWeigher",
    "io_ops": "IoOpsWeigher",
    "build_failure": "BuildFailureWeigher",
    "soft_affinity": "ServerGroupSoftAffinityWeigher",
    "soft_anti_affinity": "ServerGroupSoftAntiAffinityWeigher",
    "num_instances": "NumInstancesWeigher",
    "hypervisor_version": "HypervisorVersionWeigher",
    "metrics": "MetricsWeigher",
}
# Nova 34's own defaults, less NUMA and PCI
DEFAULT_FILTERS = (
    "compute",
    "compute_capabilities",
    "image_properties",
    "server_group_anti_affinity",
    "server_group_affinity",
)
HINTS = {
    "same_host": "same_host",
    "different_host": "different_host",
    "simple_cidr_affinity": "build_near_host_ip",
    "json": "query",
}
TRAITS = ["HW_CPU_X86_AVX2", "HW_CPU_X86_SSE42", "COMPUTE_NODE", "CUSTOM_SSD", "CUSTOM_GOLD"]
ZONES = ["west", "east"]
FLAVORS = ["small", "large", "gold"]
PROJECTS = ["alpha", "beta", "gamma"]
METRICS = ["cpu.frequency", "cpu.user.time"]  # Nova takes only names that it knows, and whole numbers
IMAGES = ["image-1", "image-2"]


class Dice:
    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed).random

    def choice(self, values: t.Sequence[t.Any]) -> t.Any:
        return values[int(self._random() * len(values))]

    def number(self, low: int, high: int) -> int:
        return low + int(self._random() * (high - low + 1))

    def chance(self, share: float) -> bool:
        return self._random() < share

    def some(self, values: t.Sequence[t.Any], share: float) -> list[t.Any]:
        return [value for value in values if self.chance(share)]


def case(seed: int) -> Case:
    """One cluster, one request of 1 to 6 instances, and the options."""
    dice = Dice(seed)
    aggregates = [_aggregate(dice, number) for number in range(dice.number(0, 4))]
    zones = [{"name": f"zone-{zone}", "zone": zone, "metadata": {}} for zone in ZONES if dice.chance(0.6)]
    # one cluster in three is of equal machines: ties everywhere
    alike = _machine(dice) if dice.chance(0.33) else None
    hosts = [_host(dice, number, aggregates, zones, alike) for number in range(dice.number(1, 24))]
    enabled = list(dict.fromkeys([*DEFAULT_FILTERS, *dice.some(list(FILTERS), dice.choice([0, 0.1, 0.1, 0.4]))]))
    request = _request(dice, hosts)
    # a hint without its filter is ignored: mostly, let it have it
    needed_filters = [name for name, hint in HINTS.items() if hint in request["hints"] and dice.chance(0.8)]
    if "os_distro" in request["image"]["properties"] and dice.chance(0.5):
        needed_filters.append("aggregate_image_properties_isolation")
    enabled = list(dict.fromkeys([*enabled, *needed_filters]))
    if "aggregate_io_ops" in enabled and "io_ops" in enabled:
        enabled.remove("io_ops")
    return {"seed": seed, "options": _options(dice, hosts, enabled), "hosts": hosts, "request": request}


def digest() -> str:
    """Of all cases: tells that expectations were recorded for other cases than these."""
    together = hashlib.sha256()
    for seed in range(COUNT):
        together.update(json.dumps(case(seed), sort_keys=True).encode())
    return together.hexdigest()


def of_weights(weights: t.Iterable[float]) -> str:
    """A short name for a list of weights, to the last bit."""
    return hashlib.sha256(" ".join(repr(float(weight)) for weight in weights).encode()).hexdigest()[:8]


def metadata_of(aggregate: dict[str, t.Any]) -> dict[str, str]:
    """As Nova keeps it: the zone is metadata, too."""
    zone = {"availability_zone": aggregate["zone"]} if aggregate["zone"] else {}
    return {**aggregate["metadata"], **zone}


def _aggregate(dice: Dice, number: int) -> dict[str, t.Any]:
    metadata: dict[str, str] = {}
    if dice.chance(0.3):
        metadata["ssd"] = dice.choice(["true", "false", "true,false"])
    if dice.chance(0.2):
        metadata["speed"] = dice.choice(["1", "5", "10"])
    if dice.chance(0.25):
        metadata["instance_type"] = dice.choice(["gold", "small, large", "large"])
    if dice.chance(0.25):
        metadata["filter_tenant_id"] = dice.choice(PROJECTS)
    if dice.chance(0.1):
        metadata["filter_tenant_id2"] = ",".join(dice.some(PROJECTS, 0.5))
    if dice.chance(0.25):
        metadata["os_distro"] = dice.choice(["debian", "windows", "debian, fedora"])
    if dice.chance(0.25):
        metadata["max_io_ops_per_host"] = dice.choice(["1", "3", "9", "many"])
    if dice.chance(0.25):
        metadata["max_instances_per_host"] = dice.choice(["2", "5", "20", ""])
    for weigher in WEIGHERS:
        if dice.chance(0.06):
            metadata[f"{weigher}_weight_multiplier"] = dice.choice(["2.0", "-1.5", "0", "0.1", "no number"])
    return {"name": f"aggregate-{number}", "zone": None, "metadata": metadata}


def _machine(dice: Dice) -> dict[str, t.Any]:
    kvm = dice.chance(0.6)
    arch = dice.choice(["x86_64", "x86_64", "x86_64", "aarch64"])
    arches = [arch, "i686"] if arch == "x86_64" else [arch]
    kinds = ["kvm", "qemu"] if kvm else ["qemu"]
    return {
        "vcpus": dice.choice([4, 8, 16, 48]),
        "memory_mb": dice.choice([4096, 15900, 65536, 128000]),
        "disk_gb": dice.choice([40, 931, 1800, 4000]),
        "cpu_ratio": dice.choice([1.0, 4.0, 16.0, 0.9]),
        "ram_ratio": dice.choice([1.0, 1.5, 0.8]),
        "disk_ratio": dice.choice([1.0, 2.0, 1.1]),
        "reserved_vcpus": dice.choice([0, 0, 1, 2]),
        "reserved_memory_mb": dice.choice([512, 0, 2048]),
        "reserved_disk_gb": dice.choice([0, 0, 10]),
        "traits": dice.some(TRAITS, 0.5),
        "facts": {
            "arch": arch,
            "cpu_model": dice.choice(["Skylake", "EPYC"]),
            "hypervisor_type": "QEMU",
            "hypervisor_version": dice.choice([7002000, 8000000, 10001005]),
            "supported_instances": [[architecture, kind, "hvm"] for architecture in arches for kind in kinds],
            "cpu_info": {
                "arch": arch,
                "model": dice.choice(["Skylake", "EPYC"]),
                "topology": {"cores": dice.choice([4, 8])},
            },
            "rack": dice.choice(["a1", "a2", "b1"]),
            "grade": dice.choice(["1", "2.5", "30"]),
        },
    }


def _host(
    dice: Dice, number: int, aggregates: list[t.Any], zones: list[t.Any], alike: dict[str, t.Any] | None
) -> dict[str, t.Any]:
    machine = alike or _machine(dice)
    busy = dice.choice([0, 0.3, 0.6]) if alike is None else dice.choice([0, 0, 0.3])
    zone = dice.choice([None, *zones]) if zones else None
    instances = [f"instance-{number}-{place}" for place in range(dice.number(0, 4))]
    return {
        **machine,
        "name": f"hv{number:02d}",
        "up": not dice.chance(0.08),
        "enabled": not dice.chance(0.08),
        "zone": zone["zone"] if zone else "nova",
        "aggregates": [*dice.some(aggregates, 0.4), *([zone] if zone else [])],
        "vcpus_used": int(machine["vcpus"] * machine["cpu_ratio"] * busy * dice.number(0, 10) / 8),
        "memory_mb_used": int(machine["memory_mb"] * busy * dice.number(0, 10) / 8),
        "disk_gb_used": int(machine["disk_gb"] * busy * dice.number(0, 10) / 8),
        "instances": instances,
        "num_instances": len(instances) + (dice.number(0, 55) if dice.chance(0.1) else 0),
        "num_io_ops": dice.number(0, 9) if dice.chance(0.3) else 0,
        "failed_builds": dice.number(1, 3) if dice.chance(0.1) else 0,
        "metrics": {name: dice.number(0, 100) for name in METRICS if dice.chance(0.8)},
        "address": f"10.0.{dice.number(0, 3)}.{number + 1}",
    }


def _options(dice: Dice, hosts: list[t.Any], enabled: list[str]) -> dict[str, t.Any]:
    options: dict[str, t.Any] = {"enabled_filters": enabled}
    for weigher in WEIGHERS:
        if dice.chance(0.12):
            options[f"{weigher}_weight_multiplier"] = dice.choice(
                [0.0, 0.3, 2.0] if weigher.startswith("soft") else [-1.0, 0.0, 0.3, 2.0, 7.0]  # Nova refuses the others
            )
    if dice.chance(0.1):
        options["host_subset_size"] = dice.choice([2, 3, 50])
    if dice.chance(0.3):
        options["max_io_ops_per_host"] = dice.number(1, 9)
        options["max_instances_per_host"] = dice.number(3, 12)
    if dice.chance(0.3):
        options["isolated_images"] = dice.some(IMAGES, 0.5)
        options["isolated_hosts"] = [host["name"] for host in hosts if dice.chance(0.4)]
        options["restrict_isolated_hosts_to_isolated_images"] = dice.chance(0.6)
    if dice.chance(0.15):
        options["metrics_weight_setting"] = {METRICS[0]: dice.choice([-1.0, 2.0]), METRICS[1]: dice.choice([0.5, -3.0])}
        options["metrics_required"] = "metrics" in enabled and dice.chance(0.5)
    return options


def _extra_specs(dice: Dice) -> dict[str, str]:
    wishes = [
        ("capabilities:vcpus_total", ["= 8", ">= 16", "== 4", "!= 8", "<= 16"]),
        ("capabilities:free_ram_mb", [">= 4000", "<= 60000"]),
        ("capabilities:hypervisor_type", ["QEMU", "s== QEMU", "s!= QEMU", "<or> KVM <or> QEMU"]),
        ("capabilities:cpu_info:model", ["EPYC", "<in> lake", "<or> EPYC <or> Opteron"]),
        ("capabilities:cpu_info:model", ["s< F", "s>= EPYC", "s<= EPYC", "s> EPYC"]),
        ("capabilities:cpu_info:topology:cores", ["= 8", "4", "<or> 4 <or> 8"]),
        ("capabilities:cpu_info", ["<all-in> arch model", "<all-in> arch nothing"]),
        ("capabilities:rack", ["a1", "<or> a1 <or> b1", "<in> a", "s!= b1", "s> a1"]),
        ("capabilities:rack", [">= 2"]),
        ("capabilities:grade", [">= 2", "== 2.5", "= 30", "!= 1"]),
        ("capabilities:absent", ["1"]),
        ("rack", ["a1", "<in> a"]),
        ("speed", [">= 5", "5"]),
        ("aggregate_instance_extra_specs:ssd", ["true", "<or> true <or> maybe", "s!= false"]),
        ("aggregate_instance_extra_specs:speed", [">= 5", "== 10", "<= 1"]),
        ("hw:cpu_sockets", ["2"]),
        *((f"trait:{trait}", ["required", "forbidden"]) for trait in TRAITS),
    ]
    return {key: dice.choice(values) for key, values in dice.some(wishes, dice.choice([0.03, 0.08]))}


def _properties(dice: Dice) -> dict[str, str]:
    wishes = [
        ("hw_architecture", ["x86_64", "x86_64", "aarch64", "i686"]),
        ("architecture", ["AMD64", "i386"]),
        ("img_hv_type", ["kvm", "qemu", "qemu"]),
        ("hw_vm_mode", ["hvm", "hv", "xen"]),
        ("img_hv_requested_version", [">=8", ">=7.2,<10", "<8.0.0", "!=7.2", "==10.1.5"]),
        ("os_distro", ["debian", "windows"]),
        ("os_distro", ["fedora", "windows"]),
        ("trait:CUSTOM_SSD", ["required"]),
    ]
    return {key: dice.choice(values) for key, values in dice.some(wishes, 0.15)}


def _request(dice: Dice, hosts: list[t.Any]) -> dict[str, t.Any]:
    count = dice.choice([1, 1, 2, 3, 6])
    present = [uuid for host in hosts for uuid in host["instances"]] or ["instance-none"]
    hints: dict[str, list[str]] = {}
    for name in ("same_host", "different_host"):
        if dice.chance(0.1):
            hints[name] = [dice.choice(present) for _pick in range(dice.number(1, 3))]
    if dice.chance(0.1):
        hints["build_near_host_ip"] = [f"10.0.{dice.number(0, 3)}.77"]
        hints.update({"cidr": [dice.choice(["/24", "/23", "/16"])]} if dice.chance(0.7) else {})
    if dice.chance(0.2):
        hints["query"] = [json.dumps(_query(dice))]
    flavor = {
        "name": dice.choice(FLAVORS),
        "vcpus": dice.choice([1, 1, 2, 4]),
        "memory_mb": dice.choice([512, 512, 1000, 4096]),
        "root_gb": dice.choice([0, 1, 10, 20]),
        "ephemeral_gb": dice.choice([0, 0, 5]),
        "swap_mb": 1500 if dice.chance(0.12) else 0,
        "extra_specs": _extra_specs(dice) if dice.chance(0.6) else {},
    }
    return {
        "count": count,
        "project_id": dice.choice(PROJECTS),
        "flavor": flavor,
        "image": {
            "id": dice.choice(IMAGES),
            "min_ram_mb": dice.choice([0, 0, 0, 512, 1024]) if dice.chance(0.2) else 0,
            "min_disk_gb": dice.choice([0, 1, 5]) if dice.chance(0.2) else 0,
            "properties": _properties(dice) if dice.chance(0.4) else {},
        },
        "availability_zone": dice.choice([*ZONES, *ZONES, "nova"]) if dice.chance(0.2) else None,
        "requested_host": dice.choice(hosts)["name"] if dice.chance(0.05) else None,
        "ignore_hosts": [
            name.upper() if dice.chance(0.2) else name for name in dice.some([host["name"] for host in hosts], 0.2)
        ]
        if dice.chance(0.15)
        else [],
        "hints": hints,
        "group": _group(dice, hosts) if dice.chance(0.4) else None,
    }


def _group(dice: Dice, hosts: list[t.Any]) -> dict[str, t.Any]:
    policy = dice.choice(["affinity", "anti-affinity", "soft-affinity", "soft-anti-affinity"])
    if policy == "affinity":  # a group that keeps its policy is on one host
        host = dice.choice(hosts)
        members = dict.fromkeys(dice.some(host["instances"], 0.4), host["name"])
    else:
        members = {uuid: host["name"] for host in hosts for uuid in dice.some(host["instances"], 0.3)}
    most = dice.choice([1, 1, 2, 3]) if policy == "anti-affinity" else 1
    return {"policy": policy, "max_server_per_host": most, "members": members}


def _query(dice: Dice) -> list[t.Any]:
    simple: list[list[t.Any]] = [
        [">=", "$free_ram_mb", 4000],
        ["<", "$vcpus_used", 4],
        ["=", "$hypervisor_hostname", "hv01"],
        ["in", "$host", "hv00", "hv01", "hv02", "hv03"],
        ["<=", "$num_instances", 2],
        [">", "$free_disk_mb", 40 * 1024],
        ["=", "$stats.rack", "a1"],
        ["=", "$absent", 1],
        [">=", 3],
        ["not", ["=", "$stats.rack", "b1"]],
    ]
    term, other = dice.choice(simple), dice.choice(simple)
    return dice.choice(
        [term, ["and", term, other], ["or", term, other], ["not", ["and", term, other]], ["not", term, other]]
    )
