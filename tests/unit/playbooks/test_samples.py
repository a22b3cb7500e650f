# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The playbook that measures: one trip for each host, and what the home holds afterwards."""

from __future__ import annotations

import json
import pathlib
import shutil
import time
import typing as t

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import open_ledger, transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries import lookups
from ansible_collections.novalite.cloud.plugins.module_utils._samples.rings import Samples
from tests.support.rows import add_host, add_instance
from tests.unit.playbooks.answering import Hosts

FOREIGN = "00000000-0000-0000-0000-00000000000f"


def counted(clock: float, seconds: float, *uuids: str) -> dict[str, t.Any]:
    entry = {"run": "1", "clock": clock, "values": {"cpu": seconds, "memory": 2**20}}
    return {"host": entry, "guests": [{**entry, "uuid": uuid} for uuid in uuids], "complaints": ["x hangs"]}


def test_hosts_are_measured_by_one_trip_each(seeded: pathlib.Path, tmp_path: pathlib.Path) -> None:
    hosts = Hosts(tmp_path)
    shutil.rmtree(hosts.home)
    shutil.copytree(seeded, hosts.home)
    engine = open_ledger(str(hosts.home))
    with transaction(engine) as connection:
        for host in ("hv1", "hv2"):
            add_host(connection, host)
        demo = lookups.project_by_name(connection, "demo")["id"]
        uuid = add_instance(connection, "g1", host="hv1", project_id=demo)
    engine.dispose()

    def measure(clock: float, seconds: float, *words: str) -> tuple[str, dict[tuple[str, str], t.Any]]:
        (tmp_path / "counted").write_text(json.dumps({"hv1": counted(clock, seconds, uuid, FOREIGN)}))
        done = hosts.play("samples.yml", *words)
        return done.stdout + done.stderr, Samples(str(hosts.home)).newest(time.time())

    output, newest = measure(100, 50, "--check")
    assert "measured 1 hosts and 1 guests; hv2 did not answer; hv1: x hangs" in output and newest == {}
    assert not (hosts.home / "samples").exists()
    assert hosts.trips() == [("hv1", ["counters"])]
    measure(100, 50)
    output, newest = measure(160, 80)
    assert newest.keys() == {("host", "hv1"), ("guest", uuid)}, output
    assert newest["host", "hv1"]["cpu"] == newest["guest", uuid]["cpu"] == 0.5
