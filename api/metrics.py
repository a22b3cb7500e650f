# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""`/metrics` for Prometheus: what the processes count together, and what the ledger says at that moment."""

from __future__ import annotations

import os
import time
import typing as t

import sqlalchemy as sa
from flask import Blueprint, Flask, Response, current_app, g, request
from werkzeug.exceptions import NotFound

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.tables_jobs import job

from . import policy, proxy
from .ledger import reading_ledger
from .settings import Settings

DIRECTORY = "PROMETHEUS_MULTIPROC_DIR"  # read by the library when it is imported: hence only within functions here
BUCKETS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10)  # seconds
JOBS_DAYS = 1  # jobs that were made within this time are counted

policy.grant({"metrics": "public"})

blueprint = Blueprint("metrics", __name__)


def register(app: Flask, settings: Settings) -> None:
    from prometheus_client import CollectorRegistry, Counter, Histogram, multiprocess

    shared = DIRECTORY in os.environ
    counted = CollectorRegistry()  # each application's own: tests make many in one process
    labels = ("method", "route")
    requests = Counter(
        "novalite_api_requests", "Requests, by route and status.", (*labels, "status"), registry=counted
    )
    seconds = Histogram(
        "novalite_api_request_seconds", "Time to an answer, by route.", labels, registry=counted, buckets=BUCKETS
    )
    shown = CollectorRegistry() if shared else counted
    if shared:
        multiprocess.MultiProcessCollector(shown)
    shown.register(_Ledger())
    app.extensions["metrics"] = shown
    app.extensions["metrics_from"] = proxy.networks(settings.api_metrics_from, "NOVALITE_API_METRICS_FROM")

    def begin() -> None:
        g.metrics_began = time.perf_counter()

    def end(response: Response) -> Response:
        # the rule and never the path: those are as many as anybody likes to ask for
        route = request.url_rule.rule if request.url_rule is not None else "none"
        requests.labels(request.method, route, str(response.status_code)).inc()
        seconds.labels(request.method, route).observe(time.perf_counter() - g.get("metrics_began", 0))
        return response

    app.before_request(begin)
    app.after_request(end)
    app.register_blueprint(blueprint)


@blueprint.get("/metrics")
@policy.allows("metrics")
def metrics() -> Response:
    """For those addresses only that NOVALITE_API_METRICS_FROM names: they tell of hosts."""
    from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

    if not proxy.within(request.remote_addr, current_app.extensions["metrics_from"]):
        raise NotFound
    return Response(generate_latest(current_app.extensions["metrics"]), content_type=CONTENT_TYPE_LATEST)


class _Ledger:
    """Gauges that are read from the ledger whenever somebody asks."""

    def collect(self) -> t.Iterator[t.Any]:
        from prometheus_client.core import GaugeMetricFamily

        up = GaugeMetricFamily("novalite_ledger_up", "Whether the ledger could be read.")
        try:
            with reading_ledger() as connection:
                found = list(_gauges(connection, GaugeMetricFamily))
        except NovaliteError:
            up.add_metric([], 0)
            yield up
            return
        up.add_metric([], 1)
        yield up
        yield from found

    def describe(self) -> list[t.Any]:
        return []  # or the registry would read the ledger once to learn the names


def _gauges(connection: sa.Connection, gauge: t.Any) -> t.Iterator[t.Any]:
    count = sa.func.count()
    jobs = gauge("novalite_jobs", f"Jobs of the last {JOBS_DAYS} days, and all open ones.", labels=["kind", "state"])
    recent = sa.or_(job.c.created_at > time.time() - JOBS_DAYS * 86400, job.c.state.in_(["queued", "running"]))
    for kind, state, number in connection.execute(
        sa.select(job.c.kind, job.c.state, count).where(recent).group_by(job.c.kind, job.c.state)
    ):
        jobs.add_metric([kind, state], number)
    yield jobs
    table = tables.instance
    instances = gauge("novalite_instances", "Instances by state.", labels=["vm_state"])
    for state, number in connection.execute(
        sa.select(table.c.vm_state, count).where(table.c.deleted == 0).group_by(table.c.vm_state)
    ):
        instances.add_metric([state], number)
    yield instances
    host = tables.compute_host
    up = gauge("novalite_host_up", "Whether a compute host reported itself fit.", labels=["host"])
    total = gauge("novalite_host_capacity", "What may be claimed of a host.", labels=["host", "resource"])
    used = gauge("novalite_host_used", "What is claimed of a host.", labels=["host", "resource"])
    for row in connection.execute(sa.select(host)).mappings():
        up.add_metric([row["name"]], int(row["up"] and row["enabled"]))
        for resource, ratio in (("vcpus", "cpu_ratio"), ("memory_mb", "ram_ratio"), ("disk_gb", "disk_ratio")):
            free = (row[resource] - row[f"reserved_{resource}"]) * row[ratio]
            total.add_metric([row["name"], resource], free)
            used.add_metric([row["name"], resource], row[f"{resource}_used"])
    yield from (up, total, used)
