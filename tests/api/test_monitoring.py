# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What Prometheus is told of the cloud, and the alert rules that stand on it."""

from __future__ import annotations

import pathlib
import re
import subprocess
import time
import typing as t

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.drift.difference_reports import difference_report
from api import create_app
from api.settings import Settings
from tests.api.conftest import Cloud

MONITORING = pathlib.Path(__file__).parents[2] / "api" / "monitoring"


@pytest.fixture
def read(cloud: Cloud) -> t.Iterator[t.Callable[[], dict[str, float]]]:
    """Reads /metrics: the value of each sample, by its name with labels."""
    app = create_app(Settings(home=str(cloud.home)), ["identity"])

    def samples() -> dict[str, float]:
        text = app.test_client().get("/metrics").get_data(as_text=True)
        lines = [line for line in text.splitlines() if not line.startswith("#")]
        return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines)}

    yield samples
    app.extensions["ledger"].close()


def change_host(cloud: Cloud, name: str, **values: t.Any) -> None:
    with transaction(cloud.engine) as connection:
        connection.execute(sa.update(tables.compute_host).where(tables.compute_host.c.name == name).values(**values))


def test_a_host_in_maintenance_is_up_and_not_enabled(
    cloud: Cloud, read: t.Callable[[], dict[str, float]]
) -> None:
    cloud.host("hv1")
    cloud.host("hv2")
    change_host(cloud, "hv1", enabled=False, last_seen_at=1000)
    change_host(cloud, "hv2", up=False)
    samples = read()
    assert [samples[f'novalite_host_up{{host="{name}"}}'] for name in ("hv1", "hv2")] == [1, 0]
    assert [samples[f'novalite_host_enabled{{host="{name}"}}'] for name in ("hv1", "hv2")] == [0, 1]
    assert samples['novalite_host_last_seen_timestamp_seconds{host="hv1"}'] == 1000


def test_capacity_is_what_may_be_claimed_and_used_what_is(
    cloud: Cloud, read: t.Callable[[], dict[str, float]]
) -> None:
    cloud.host("hv1")
    change_host(cloud, "hv1", reserved_memory_mb=96, ram_ratio=2.0, memory_mb_used=500)
    samples = read()
    assert samples['novalite_host_capacity{host="hv1",resource="memory_mb"}'] == 8000
    assert samples['novalite_host_used{host="hv1",resource="memory_mb"}'] == 500


def test_the_last_look_is_told_host_by_host(cloud: Cloud, read: t.Callable[[], dict[str, float]]) -> None:
    for name in ("hv1", "hv2", "hv3"):
        cloud.host(name)
    bridge = {"bridge": {"changed": True, "diff": {"before": {}, "after": {}}}}
    hosts = {"hv1": {"rows": [], "steps": bridge}, "hv2": {"rows": [], "steps": {}}, "hv3": {"failed": "no answer"}}
    params = {"corrections": [], "deletions": [], "failures": [], "hosts": hosts, "repaired": True}
    with transaction(cloud.engine) as connection:
        difference_report(connection, params)
    samples = read()
    assert samples['novalite_host_differences{host="hv1"}'] == 1
    assert samples['novalite_host_differences{host="hv2"}'] == 0
    assert abs(samples['novalite_host_looked_at_timestamp_seconds{host="hv1"}'] - time.time()) < 60
    assert 'novalite_host_looked_at_timestamp_seconds{host="hv3"}' not in samples  # nobody got through with it


def test_the_queue_has_a_length_and_an_age(cloud: Cloud, read: t.Callable[[], dict[str, float]]) -> None:
    assert (read()["novalite_queue_length"], read()["novalite_queue_age_seconds"]) == (0, 0)


def test_the_alert_rules_fire_when_they_should() -> None:
    done = subprocess.run(
        ["promtool", "test", "rules", "alerts_test.yml"], cwd=MONITORING, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_alert_rules_stand_on_metrics_that_there_are(
    cloud: Cloud, read: t.Callable[[], dict[str, float]]
) -> None:
    cloud.host("hv1")
    change_host(cloud, "hv1", looked_at=1, differences=0)
    known = {name.partition("{")[0] for name in read()} | {"novalite_instances"}  # there are none here
    named = set(re.findall(r"\bnovalite_[a-z_]+", (MONITORING / "alerts.yml").read_text()))
    assert named and named <= known
