"""Ask nova 34.0.0 about every case of numa_cases.py, and write down what it answers, as record.py does.

    .cache/nova-venv/bin/python -m tests.parity.numa_record

Constraints, fit and usage are Nova's own code on Nova's own objects. What is left out: the capabilities of libvirt that
Nova's driver reads its NUMATopology from.
"""

from __future__ import annotations

import gzip
import importlib.metadata
import json
import logging
import pathlib
import typing as t

import nova.conf
from nova import exception, objects
from nova.virt import hardware

from tests.parity import numa_cases

EXPECTED = pathlib.Path(__file__).with_name("numa_expected.json.gz")
REFUSED, NO_TOPOLOGY = "refused", "no topology"


def answer(case: numa_cases.Case) -> list[t.Any]:
    host = _host(case["facts"])
    limits = objects.NUMATopologyLimits(cpu_allocation_ratio=4.0, ram_allocation_ratio=1.5)
    answers: list[t.Any] = []
    for request in case["requests"]:
        flavor = objects.Flavor(
            name="f", vcpus=request["vcpus"], memory_mb=request["memory_mb"], extra_specs=request["extra_specs"]
        )
        try:
            image = objects.ImageMeta.from_dict({"name": "i", "properties": dict(request["properties"])})
            asked = hardware.numa_get_constraints(flavor, image)
        except (exception.NovaException, ValueError):
            answers.append(REFUSED)
            continue
        if asked is None:
            answers.append(NO_TOPOLOGY)
            continue
        got = hardware.numa_fit_instance_to_host(host, asked, provider_mapping=None, limits=limits)
        if got is None:
            answers.append(None)
            continue
        host = hardware.numa_usage_from_instance_numa(host, got)
        answers.append([_cell(cell) for cell in got.cells])
    return answers


def _cell(cell: t.Any) -> list[t.Any]:
    pins = sorted((cell.cpu_pinning or {}).items())
    return [cell.id, [list(pin) for pin in pins], sorted(cell.cpuset_reserved or ()), cell.pagesize]


def _host(facts: t.Mapping[str, t.Any]) -> t.Any:
    shared = hardware.parse_cpu_spec(facts["cpu_shared_set"])
    dedicated = hardware.parse_cpu_spec(facts["cpu_dedicated_set"])
    reserved = {(row["node"], row["size"]): row["count"] for row in facts["reserved_huge_pages"]}
    cells = []
    for node in facts["numa"]:
        cpus = hardware.parse_cpu_spec(node["cpus"])
        siblings = [hardware.parse_cpu_spec(text) & (shared | dedicated) for text in node["siblings"]]
        cells.append(
            objects.NUMACell(
                id=node["id"],
                cpuset=cpus & shared,
                pcpuset=cpus & dedicated,
                memory=node["memory_mb"],
                cpu_usage=0,
                memory_usage=0,
                pinned_cpus=set(),
                socket=0,
                siblings=[core for core in siblings if core],
                mempages=[
                    objects.NUMAPagesTopology(
                        size_kb=int(size), total=total, used=0, reserved=reserved.get((node["id"], int(size)), 0)
                    )
                    for size, total in node["pages"].items()
                ],
            )
        )
    return objects.NUMATopology(cells=cells)


def main() -> None:
    logging.disable(logging.CRITICAL)
    objects.register_all()
    nova.conf.CONF([], project="nova", default_config_files=[])
    answers = [answer(numa_cases.case(seed)) for seed in range(numa_cases.COUNT)]
    version = importlib.metadata.version("nova")
    document = {"nova": version, "digest": numa_cases.digest(), "answers": answers}
    EXPECTED.write_bytes(gzip.compress(json.dumps(document, separators=(",", ":")).encode(), 9, mtime=0))
    print(f"{len(answers)} cases; {EXPECTED.stat().st_size} bytes")


if __name__ == "__main__":
    main()
