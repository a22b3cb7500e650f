# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Metrics of the cloud for Prometheus, and the alert rules that stand on them."""

from __future__ import annotations

import pathlib
import re
import subprocess
import time
import typing as t
import uuid

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.compute.power_states import follow
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables, tables_images
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.tables_migrations import host_watch, watch
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.steps.drift_report import drift_report
from ansible_collections.novalite.cloud.plugins.module_utils._samples.rings import Samples
from api import create_app
from api.settings import Settings
from tests.api.conftest import Cloud
from tests.support.patience import GENEROUS

MONITORING = pathlib.Path(__file__).parents[3] / "api" / "monitoring"


@pytest.fixture
def read(cloud: Cloud) -> t.Iterator[t.Callable[[], dict[str, float]]]:
    """Reads /metrics: the value of each sample, by its name with labels."""
    app = create_app(Settings(home=str(cloud.home)), ["openstack.identity"])

    def samples() -> dict[str, float]:
        text = app.test_client().get("/metrics").get_data(as_text=True)
        lines = [line for line in text.splitlines() if not line.startswith("#")]
        return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines)}

    yield samples
    app.extensions["ledger"].close()


def test_a_host_in_maintenance_is_up_and_not_enabled(cloud: Cloud, read: t.Callable[[], dict[str, float]]) -> None:
    cloud.host("hv1")
    cloud.host("hv2")
    cloud.change_host("hv1", enabled=False, last_seen_at=1000)
    cloud.change_host("hv2", up=False)
    samples = read()
    assert [samples[f'novalite_host_up{{host="{name}"}}'] for name in ("hv1", "hv2")] == [1, 0]
    assert [samples[f'novalite_host_enabled{{host="{name}"}}'] for name in ("hv1", "hv2")] == [0, 1]
    assert samples['novalite_host_last_seen_timestamp_seconds{host="hv1"}'] == 1000


def test_capacity_is_what_may_be_claimed_and_used_what_is(cloud: Cloud, read: t.Callable[[], dict[str, float]]) -> None:
    cloud.host("hv1")
    cloud.change_host("hv1", reserved_memory_mb=96, ram_ratio=2.0, memory_mb_used=500)
    samples = read()
    assert samples['novalite_host_capacity{host="hv1",resource="memory_mb"}'] == 8000
    assert samples['novalite_host_used{host="hv1",resource="memory_mb"}'] == 500


def test_the_last_look_is_told_host_by_host(cloud: Cloud, read: t.Callable[[], dict[str, float]]) -> None:
    for name in ("hv1", "hv2", "hv3"):
        cloud.host(name)
    bridge = {"module": "bridge", "result": {"changed": True, "diff": {"before": {}, "after": {}}}}
    hosts = {"hv1": {"rows": [], "steps": [bridge]}, "hv2": {"rows": [], "steps": []}, "hv3": {"failed": "no answer"}}
    params = {"corrections": [], "deletions": [], "failures": [], "hosts": hosts, "repaired": True}
    with transaction(cloud.engine) as connection:
        drift_report(connection, params)
    samples = read()
    assert samples['novalite_host_differences{host="hv1"}'] == 1
    assert samples['novalite_host_differences{host="hv2"}'] == 0
    assert abs(samples['novalite_host_looked_at_timestamp_seconds{host="hv1"}'] - time.time()) < 60
    assert 'novalite_host_looked_at_timestamp_seconds{host="hv3"}' not in samples  # nobody got through with it


def test_the_newest_samples_are_told(cloud: Cloud, read: t.Callable[[], dict[str, float]]) -> None:
    assert not any("measured" in name for name in read())
    rings, now = Samples(str(cloud.home)), time.time()
    for at in (0, 60):
        entry = {"run": "1", "clock": at, "values": {"cpu": 2 * at, "memory": 4096}}
        answer = {"host": entry, "guests": [{**entry, "uuid": "a-guest"}], "complaints": []}
        rings.record({"hv1": answer}, {"a-guest"}, now - 60 + at)
    assert {name: value for name, value in read().items() if "measured" in name} == {
        'novalite_host_measured{host="hv1",measure="cpu"}': 2,
        'novalite_host_measured{host="hv1",measure="memory"}': 4096,
        'novalite_guest_measured{measure="cpu",uuid="a-guest"}': 2,
        'novalite_guest_measured{measure="memory",uuid="a-guest"}': 4096,
    }


def test_the_queue_has_a_length_and_an_age(cloud: Cloud, read: t.Callable[[], dict[str, float]]) -> None:
    assert (read()["novalite_queue_length"], read()["novalite_queue_age_seconds"]) == (0, 0)
    ages = {"queued": (60, 3600, 600), "running": (90000,), "succeeded": (86000, 90000), "failed": (172800,)}
    usual = {"kind": "reconcile", "variables": {}, "timeout_seconds": 60}
    jobs = [
        {**usual, "id": str(uuid.uuid4()), "state": state, "created_at": time.time() - age}
        for state, made in ages.items()
        for age in made
    ]
    with transaction(cloud.engine) as connection:
        connection.execute(sa.insert(tables.tables_jobs.job), jobs)
    samples = read()
    assert samples["novalite_queue_length"] == 3  # the one that runs does not wait
    assert 3600 <= samples["novalite_queue_age_seconds"] < 3660
    counted = {sample: value for sample, value in samples.items() if sample.startswith("novalite_jobs{")}
    assert counted == {
        f'novalite_jobs{{kind="reconcile",state="{state}"}}': number
        for state, number in (("queued", 3), ("running", 1), ("succeeded", 1))
    }


def test_instances_are_counted_by_state_and_guests_by_what_their_host_saw(
    cloud: Cloud, read: t.Callable[[], dict[str, float]]
) -> None:
    cloud.host("hv1")
    cloud.host("hv2")
    demo, other = cloud.project("demo"), cloud.project("other")
    seen = cloud.instance(demo, "seen", "hv1", power_state=1)
    cloud.instance(other, "web", "hv1", power_state=1)
    cloud.instance(other, "paused", "hv2", vm_state="paused", power_state=3)
    cloud.instance(demo, "failed", None, vm_state="error", power_state=0)
    cloud.instance(demo, "new", "hv2", power_state=5)  # a number that Nova has no word for
    cloud.delete(cloud.instance(demo, "gone", "hv1", power_state=1))
    look = {"domains": [{"uuid": seen, "state": "shutoff"}], "updated_at": {seen: 0}}
    with transaction(cloud.engine) as connection:
        follow(connection, [look])

    def about(name: str) -> dict[str, float]:
        return {sample: value for sample, value in read().items() if sample.startswith(name)}

    states = {"active": 2, "stopped": 1, "paused": 1, "error": 1}
    assert about("novalite_instances") == {
        f'novalite_instances{{vm_state="{state}"}}': number for state, number in states.items()
    }
    on_hosts = [("hv1", "running"), ("hv1", "shutdown"), ("hv2", "paused"), ("hv2", "unknown")]
    assert about("novalite_guests") == {
        f'novalite_guests{{host="{host}",power_state="{state}"}}': 1 for host, state in on_hosts
    }


def watched(cloud: Cloud, **columns: object) -> None:
    cloud.write(
        sa.insert(host_watch).values(host="hv1", **columns),
        sa.insert(watch).values(id=1, controller="ctl", term=1, expires=4 * 10**9),
    )


def test_the_watch_is_told_once_somebody_watches(cloud: Cloud, read: t.Callable[[], dict[str, float]]) -> None:
    cloud.host("hv1")
    cloud.host("hv2")
    assert not [name for name in read() if name.startswith("novalite_watch")]
    watched(cloud, state="fencing", armed=False)
    assert {name: value for name, value in read().items() if name.startswith("novalite_watch")} == {
        "novalite_watch_armed": 1,
        "novalite_watch_running": 1,
        'novalite_watch_host_state{host="hv1",state="fencing"}': 1,
        'novalite_watch_host_armed{host="hv1"}': 0,
        "novalite_watch_unhealed": 0,
    }


def test_the_alert_rules_fire_when_they_should() -> None:
    done = subprocess.run(
        ["promtool", "test", "rules", "alerts_test.yml"],
        cwd=MONITORING,
        capture_output=True,
        text=True,
        timeout=GENEROUS,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_copies_that_fail_are_told_with_their_host(cloud: Cloud, read: t.Callable[[], dict[str, float]]) -> None:
    project = cloud.project("demo")
    for host, fault in (("hv2", None), ("hv3", "hv3 is down")):
        copied = cloud.instance(project, f"of-{host}", "hv1")
        of_copy = {"every": 300, "former": [], "host": host, "fault": fault, "created_at": 1, "updated_at": 1}
        cloud.insert(tables_images.replica, instance_uuid=copied, **of_copy)
    failed = {name: value for name, value in read().items() if name.startswith("novalite_replica_failed")}
    assert sorted((re.findall(r'host="(\w+)"', name)[0], value) for name, value in failed.items()) == [
        ("hv2", 0),
        ("hv3", 1),
    ]


def test_the_alert_rules_stand_on_metrics_that_there_are(cloud: Cloud, read: t.Callable[[], dict[str, float]]) -> None:
    cloud.host("hv1")
    cloud.change_host("hv1", looked_at=1, differences=0)
    watched(cloud)
    web = cloud.instance(cloud.project("demo"), "web", "hv1")
    cloud.insert(tables_images.replica, instance_uuid=web, every=300, former=[], created_at=1, updated_at=1)
    of_all = {
        "name": "nightly",
        "scope": "all",
        "target": "",
        "every": 86400,
        "keep": {},
        **dict.fromkeys(("verify_every", "boot_every"), 7 * 86400),
    }
    cloud.insert(tables_images.backup_policy, **of_all, created_at=1, updated_at=1)
    known = {name.partition("{")[0] for name in read()} | {"novalite_instances"}  # there are none here
    named = set(re.findall(r"\bnovalite_[a-z_]+", (MONITORING / "alerts.yml").read_text()))
    assert named and named <= known
