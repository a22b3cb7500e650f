"""launch.*, terminate.ten: launch.yml and terminate.yml on one host beside a bare shell script that does the same
steps one instance after another.

launch.one_cpu_s is the controller's CPU seconds of one launch, its reference the goal. launch.to_ssh ends when the
guest's ssh server says its first word, after a boot on an emulated processor, which is most of both times.
"""

from __future__ import annotations

import hashlib
import pathlib
import statistics
import typing as t

from tests.bench.cloud import IMAGES, REPOSITORY, Cloud

REFERENCE = REPOSITORY / "tests/bench/launch_reference.sh"
SIZES = {"launch.one": (1, 5), "launch.ten": (10, 3), "launch.fifty": (50, 1)}  # instances, rounds
GOAL_CPU_S = 1.5  # of the controller, for one launch


def run(prefix: str) -> t.Iterator[dict[str, t.Any]]:
    sizes = {name: size for name, size in SIZES.items() if name.startswith(prefix)}
    others = {"launch.unchanged10_s": _unchanged, "launch.one_cpu_s": _cpu, "launch.to_ssh": _to_ssh}
    others["terminate.ten"] = _terminate
    with Cloud(instances=max([count for count, _rounds in sizes.values()] + [10])) as cloud:
        warm_up(cloud)
        for name, (count, rounds) in sizes.items():
            ours, reference = [], []
            for _round in range(rounds):
                ours.append(_launch(cloud, count))
                terminate(cloud, count)
                reference.append(by_script(cloud, "up", count))
                by_script(cloud, "down", count)
            yield figure(name, statistics.median(ours), statistics.median(reference), "s")
        for name, measure in others.items():
            if name.startswith(prefix):
                yield measure(cloud)


def _cpu(cloud: Cloud) -> dict[str, t.Any]:
    spent = []
    for _round in range(5):
        _launch(cloud, 1)
        spent.append(cloud.cpu_seconds)
        terminate(cloud, 1)
    return figure("launch.one_cpu_s", statistics.median(spent), GOAL_CPU_S, "s")


def _to_ssh(cloud: Cloud) -> dict[str, t.Any]:
    ours, reference = [], []
    for _round in range(3):
        ours.append(_launch(cloud, 1, wait_for="ssh"))
        terminate(cloud, 1)
        reference.append(by_script(cloud, "up", 1) + by_script(cloud, "answer", 1))
        by_script(cloud, "down", 1)
    return figure("launch.to_ssh", statistics.median(ours), statistics.median(reference), "s")


def _terminate(cloud: Cloud) -> dict[str, t.Any]:
    ours, reference = [], []
    for _round in range(3):
        _launch(cloud, 10)
        ours.append(terminate(cloud, 10))
        by_script(cloud, "up", 10)
        reference.append(by_script(cloud, "down", 10))
    return figure("terminate.ten", statistics.median(ours), statistics.median(reference), "s")


def _unchanged(cloud: Cloud) -> dict[str, t.Any]:
    """An unchanged second run: `ours` is the time over an empty playbook, whose own time is the reference.

    Beside ten guests that have booted: while they boot, they have the processors to themselves.
    """
    _launch(cloud, 10, wait_for="ssh")
    again = statistics.median(_launch(cloud, 10) for _round in range(5))
    empty = statistics.median(cloud.playbook("tests/bench/empty.yml") for _round in range(5))
    terminate(cloud, 10)
    return figure("launch.unchanged10_s", again - empty, empty, "s")


def figure(name: str, ours: float, reference: float, unit: str) -> dict[str, t.Any]:
    return {
        "bench": name,
        "ours": round(ours, 3),
        "reference": round(reference, 3),
        "ratio": round(ours / reference, 3),
        "unit": unit,
    }


def _launch(cloud: Cloud, count: int, wait_for: str = "running") -> float:
    return cloud.playbook(
        "playbooks/launch.yml",
        name="bench",
        count=count,
        flavor="m1.nano",
        image="ami-tiny",
        key="test",
        wait_for=wait_for,  # "running": the reference ends with the domain's start, too
    )


def terminate(cloud: Cloud, count: int) -> float:
    return cloud.playbook("playbooks/terminate.yml", name="bench", count=count)


def warm_up(cloud: Cloud) -> None:
    """Fill the image cache and hand the reference what it needs."""
    _launch(cloud, 1)
    terminate(cloud, 1)
    cloud.on_host("tee", "/root/launch_reference.sh", stdin=REFERENCE)
    cloud.on_host("tee", "/root/key.pub", stdin=cloud.home / "lab/test_key.pub")


def by_script(cloud: Cloud, action: str, count: int) -> float:
    base, kernel, ramdisk = (
        f"/var/lib/novalite/_base/{_sha256(IMAGES / name)}.raw" for name in ("ami-tiny.qcow2", "kernel", "ramdisk")
    )
    return cloud.on_host(
        "bash", "/root/launch_reference.sh", action, str(count), "/root/key.pub", base, kernel, ramdisk
    )


def _sha256(path: pathlib.Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
