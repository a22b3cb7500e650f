"""Cases of NUMA, pinning and pages: a host, and requests that come to it one after the other. Plain data."""

from __future__ import annotations

import hashlib
import json
import random
import typing as t

COUNT = 2500  # of those that are recorded

Case = dict[str, t.Any]


def case(seed: int) -> Case:
    rng = random.Random(f"numa {seed}")
    return {"facts": _facts(rng), "requests": [_request(rng) for _number in range(rng.randint(1, 6))]}


def digest() -> str:
    text = json.dumps([case(seed) for seed in range(COUNT)], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _facts(rng: random.Random) -> dict[str, t.Any]:
    threads, cores, nodes = rng.choice([1, 1, 2, 2, 4]), rng.randint(1, 4), rng.randint(1, 3)
    numa: list[dict[str, t.Any]] = []
    for node in range(nodes):
        first = node * cores * threads
        memory_mb = rng.choice([1024, 2048, 4096])
        huge = rng.choice([0, 64, 256, 512])
        numa.append(
            {
                "id": node,
                "cpus": f"{first}-{first + cores * threads - 1}",
                "siblings": [f"{cpu}-{cpu + threads - 1}" for cpu in range(first, first + cores * threads, threads)],
                "memory_mb": memory_mb,
                "pages": {"4": (memory_mb - 2 * huge) * 256, "2048": huge},
            }
        )
    cpus = list(range(nodes * cores * threads))
    if rng.random() < 0.5:  # whole cores, as operators are told to
        kept = [cpu for cpu in cpus if cpu // threads % rng.randint(2, 4)]
    else:
        kept = [cpu for cpu in cpus if rng.random() < 0.7]
    dedicated = kept or cpus
    shared = [cpu for cpu in cpus if cpu not in dedicated]
    reserved = [{"node": rng.randrange(nodes), "size": 2048, "count": rng.choice([1, 32])}] * (rng.random() < 0.3)
    return {
        "numa": numa,
        "cpu_dedicated_set": ",".join(map(str, dedicated)),
        "cpu_shared_set": ",".join(map(str, shared)),
        "reserved_huge_pages": reserved,
    }


def _request(rng: random.Random) -> dict[str, t.Any]:
    vcpus, memory_mb = rng.choice([1, 2, 2, 3, 4, 4, 6, 8]), rng.choice([48, 64, 96, 128, 256, 510])
    specs: dict[str, str] = {}
    properties: dict[str, str] = {}

    def say(key: str, values: t.Sequence[str], often: float, image: float = 0.03) -> None:
        if rng.random() < often:
            specs[f"hw:{key}"] = rng.choice(values)
        if rng.random() < image:
            properties[f"hw_{key}"] = rng.choice(values)

    say("cpu_policy", ["dedicated", "dedicated", "shared"], 0.7)
    pinned = specs.get("hw:cpu_policy") == "dedicated"  # others are refused these: few of them ask
    say("cpu_thread_policy", ["prefer", "isolate", "require"], 0.4 if pinned else 0.05, 0.02)
    if rng.random() < (0.3 if pinned else 0.05):
        specs["hw:emulator_threads_policy"] = rng.choice(["share", "isolate"])
    say("mem_page_size", ["small", "large", "any", "2048", "2MB", "4", "1GB"], 0.4)
    say("numa_nodes", ["1", "2", "2", "3"], 0.4)
    if rng.random() < 0.15:
        say_to, prefix = (specs, "hw:") if rng.random() < 0.7 else (properties, "hw_")
        parts = rng.randint(1, min(2, vcpus))
        for node in range(parts):
            say_to[f"{prefix}numa_cpus.{node}"] = ",".join(map(str, range(node, vcpus, parts)))
            say_to[f"{prefix}numa_mem.{node}"] = str(memory_mb // parts)
        if rng.random() < 0.8:
            specs["hw:numa_nodes"] = str(parts)
    return {"vcpus": vcpus, "memory_mb": memory_mb, "extra_specs": specs, "properties": properties}
