# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""launch.thousand_s, launch.thousand_cpu_s: one launch.yml of 1,000 guests over 100 throwaway hosts.

One machine cannot run so many guests. libvirt's binding on the hosts is a stand-in that records what it is asked for
(recording/libvirt.py); ssh, modules, disks, bridges, dnsmasq, ipsets and iptables are real, and so are the ledger and
the scheduler. Guests get their keys by config drive: hosts may not mount the file system of this image.

The references are the goals. In the first figure, hosts and controller share the processors; the second counts the
controller's own processes alone, with its ssh clients.
"""

from __future__ import annotations

import pathlib
import statistics
import typing as t

from tests.bench.cloud import IMAGES, Cloud

STAND_IN = pathlib.Path(__file__).with_name("recording") / "libvirt.py"
HOSTS, GUESTS, ROUNDS = 100, 1000, 3
GOALS = {"launch.thousand_s": 60.0, "launch.thousand_cpu_s": 60.0}
SEED = {
    "images": [{"name": "unmounted", "source": str(IMAGES / "disk-tiny.qcow2"), "disk_format": "qcow2"}],
    "networks": [{"name": "wide", "cidr": "10.64.0.0/16", "bridge": "br200", "bridge_interface": "eth1", "dhcp": True}],
}


def run(prefix: str) -> t.Iterator[dict[str, t.Any]]:
    if not any(name.startswith(prefix) for name in GOALS):
        return
    seconds, cpu_seconds = [], []
    with Cloud(GUESTS, hosts=HOSTS, up=["--login", "none", "--libvirt", str(STAND_IN)], seed=SEED) as cloud:
        for _round in range(ROUNDS):
            seconds.append(_launch(cloud))
            cpu_seconds.append(cloud.cpu_seconds)
            cloud.playbook("playbooks/terminate.yml", name="bench", count=GUESTS)
    for (name, goal), figures in zip(GOALS.items(), (seconds, cpu_seconds), strict=True):
        ours = statistics.median(figures)
        yield {"bench": name, "ours": round(ours, 3), "reference": goal, "ratio": round(ours / goal, 3), "unit": "s"}


def _launch(cloud: Cloud) -> float:
    return cloud.playbook(
        "playbooks/launch.yml",
        name="bench",
        count=GUESTS,
        flavor="m1.nano",
        image="unmounted",
        networks=["wide"],
        wait_for="running",
    )
