# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""`/metrics` for Prometheus: what the processes count together, and what the ledger says at that moment."""

from __future__ import annotations

import os
import time
import typing as t

from flask import Blueprint, Flask, Response, current_app, g, request
from werkzeug.exceptions import NotFound

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import clock
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations import healing
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries import counts
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.placement import status
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.volumes import backup_ages, replica_records
from ansible_collections.novalite.cloud.plugins.module_utils._samples.rings import GUEST, HOST

from ..settings import Settings
from . import policy, proxy
from .ledger import reading_ledger, samples

DIRECTORY = "PROMETHEUS_MULTIPROC_DIR"  # read by the library when it is imported: hence only within functions here
BUCKETS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10)  # seconds
POWER_STATES = {0: "none", 1: "running", 3: "paused", 4: "shutdown", 6: "crashed", 7: "suspended"}  # Nova's numbers
JOBS_DAYS = 1  # jobs that were made within this time are counted


blueprint = Blueprint("metrics", __name__)


def register(app: Flask, settings: Settings) -> None:
    from prometheus_client import CollectorRegistry, Counter, Histogram, multiprocess

    shared = DIRECTORY in os.environ
    counted = CollectorRegistry()  # each application's own: tests make many in one process
    labels = ("method", "route")
    requests = Counter("novalite_api_requests", "Requests, by route and status.", (*labels, "status"), registry=counted)
    seconds = Histogram(
        "novalite_api_request_seconds", "Time to an answer, by route.", labels, registry=counted, buckets=BUCKETS
    )
    shown = CollectorRegistry() if shared else counted
    if shared:
        multiprocess.MultiProcessCollector(shown)
    shown.register(_Ledger())
    app.extensions["metrics"] = shown
    app.extensions["metrics_from"] = proxy.networks(settings.api_metrics_from, "NOVALITE_API_METRICS_FROM")

    def end(response: Response) -> Response:
        # the rule and never the path: those are as many as anybody likes to ask for
        route = request.url_rule.rule if request.url_rule is not None else "none"
        requests.labels(request.method, route, str(response.status_code)).inc()
        # began: logs.py
        seconds.labels(request.method, route).observe(time.perf_counter() - g.get("began", 0))
        return response

    app.after_request(end)
    app.register_blueprint(blueprint)


@blueprint.get("/metrics")
@policy.allows("metrics")
def metrics() -> Response:
    """Serve the metrics, but only to the addresses that NOVALITE_API_METRICS_FROM names: they tell of hosts."""
    from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

    # a proxy on this machine that nobody named as one is this machine's address, whoever asks it
    if proxy.is_told_by_a_stranger(request.environ):
        raise NotFound
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
                parts = (_job_gauges, _instance_gauges, _host_gauges, _healing_gauges, _backup_gauges, _replica_gauges)
                gauges = [gauge for part in parts for gauge in part(connection, GaugeMetricFamily)]
        except NovaliteError:
            up.add_metric([], 0)
            yield up
            return
        up.add_metric([], 1)
        yield up
        yield from gauges
        yield from _measured(GaugeMetricFamily)

    def describe(self) -> list[t.Any]:
        return []  # or the registry would read the ledger once to learn the names


def _measured(gauge: t.Any) -> t.Iterator[t.Any]:
    """Gauges of the newest samples of hosts and guests."""
    texts = {HOST: ("host", "What a compute host uses."), GUEST: ("uuid", "What a guest uses of its host.")}
    families = {
        kind: gauge(f"novalite_{kind}_measured", f"{text} Units are in the documentation.", labels=[label, "measure"])
        for kind, (label, text) in texts.items()
    }
    for (kind, name), values in samples().newest(time.time()).items():
        for measure, value in values.items():
            if value is not None:
                families[kind].add_metric([name, measure], value)
    yield from families.values()


def _job_gauges(connection: Connection, gauge: t.Any) -> t.Iterator[t.Any]:
    jobs = gauge("novalite_jobs", f"Jobs of the last {JOBS_DAYS} days, and all open ones.", labels=["kind", "state"])
    for kind, state, number in counts.jobs_by_state(connection, clock.now(connection) - JOBS_DAYS * 86400):
        jobs.add_metric([kind, state], number)
    yield jobs
    waiting, oldest = counts.queue(connection)
    yield gauge("novalite_queue_length", "Jobs that wait for a worker.", value=waiting)
    age = 0 if oldest is None else max(clock.now(connection) - oldest, 0)
    yield gauge("novalite_queue_age_seconds", "How long the oldest of them has waited.", value=age)


def _instance_gauges(connection: Connection, gauge: t.Any) -> t.Iterator[t.Any]:
    instances = gauge("novalite_instances", "Instances by state.", labels=["vm_state"])
    for state, number in counts.instances_by_state(connection):
        instances.add_metric([state], number)
    yield instances
    guests = gauge("novalite_guests", "Guests of a compute host by power state.", labels=["host", "power_state"])
    for host, power_state, number in counts.guests_by_host(connection):
        guests.add_metric([host, POWER_STATES.get(power_state, "unknown")], number)
    yield guests


def _healing_gauges(connection: Connection, gauge: t.Any) -> t.Iterator[t.Any]:
    now = healing.watch_status(connection)
    if now["controller"] is None:  # nobody ever watched
        return
    yield gauge("novalite_watch_armed", "Whether dead hosts are healed.", value=int(now["armed"]))
    yield gauge("novalite_watch_running", "Whether a controller looks at the hosts.", value=int(now["watching"]))
    of_host = {
        "state": gauge("novalite_watch_host_state", "State of a watched host, which is 1.", labels=["host", "state"]),
        "armed": gauge("novalite_watch_host_armed", "Whether the host is healed if it dies.", labels=["host"]),
    }
    for host in now["hosts"]:
        if host["state"] is not None:
            of_host["state"].add_metric([host["host"], host["state"]], 1)
            of_host["armed"].add_metric([host["host"]], int(host["armed"]))
    yield from of_host.values()
    yield gauge("novalite_watch_unhealed", "Servers with ha: true that do not run.", value=healing.unhealed(connection))


def _replica_gauges(connection: Connection, gauge: t.Any) -> t.Iterator[t.Any]:
    labels = ["uuid", "server"]
    taken = gauge(
        "novalite_replica_newest_timestamp_seconds",
        "When the newest copy of a server's disks on its second host was taken; 0: there is none.",
        labels=labels,
    )
    every = gauge("novalite_replica_every_seconds", "How often a server's disks are to be copied.", labels=labels)
    failed = gauge(
        "novalite_replica_failed",
        "Failure of the last copy of a server's disks to this host, 1 or 0; `novalite replica list` has the reason.",
        labels=[*labels, "host"],
    )
    for each in replica_records.replicas_by(connection):
        failed.add_metric([each.instance_uuid, each.server, each.target or ""], int(each.fault is not None))
        taken.add_metric([each.instance_uuid, each.server], each.taken_at or 0)
        every.add_metric([each.instance_uuid, each.server], each.every)
    yield from (taken, every, failed)


def _backup_gauges(connection: Connection, gauge: t.Any) -> t.Iterator[t.Any]:
    def of_server(name: str, text: str) -> t.Any:
        return gauge(f"novalite_backup_{name}", text, labels=["uuid", "server"])

    newest = of_server("newest_timestamp_seconds", "When the newest backup of a server was taken; 0: there is none.")
    whole = of_server("whole_timestamp_seconds", "The same of the newest one that was found whole.")
    proven = of_server("proven_timestamp_seconds", "The same of the newest one that was booted.")
    every = of_server("every_seconds", "How often its policy wants a backup of a server.")
    verify_every = of_server("verify_every_seconds", "How often its policy wants the newest one compared.")
    boot_every = of_server("boot_every_seconds", "How often its policy wants the newest full one booted.")
    without = sum(number for _state, number in counts.instances_by_state(connection))
    for server in backup_ages.ages(connection):
        without -= bool(server.newest)
        labels = [server.uuid, server.name]
        newest.add_metric(labels, server.newest)
        whole.add_metric(labels, server.whole)
        proven.add_metric(labels, server.proven)
        if server.policy is not None:
            every.add_metric(labels, server.policy.every)
            if server.policy.verify_every is not None:
                verify_every.add_metric(labels, server.policy.verify_every)
            if server.policy.boot_every is not None:
                boot_every.add_metric(labels, server.policy.boot_every)
    yield from (newest, whole, proven, every, verify_every, boot_every)
    yield gauge(
        "novalite_backup_servers_without", "Servers that have no backup, adopted ones among them.", value=without
    )


def _host_gauges(connection: Connection, gauge: t.Any) -> t.Iterator[t.Any]:
    def of_host(name: str, text: str, *more: str) -> t.Any:
        return gauge(name, text, labels=["host", *more])

    up = of_host("novalite_host_up", "Whether a compute host was in order when it was last seen.")
    enabled = of_host("novalite_host_enabled", "Whether a compute host is open to new instances.")
    seen = of_host("novalite_host_last_seen_timestamp_seconds", "When a compute host was last in order.")
    looked = of_host("novalite_host_looked_at_timestamp_seconds", "When reconcile.yml last went over a compute host.")
    differed = of_host("novalite_host_differences", "What reconcile.yml put right on a compute host the last time.")
    capacity = of_host("novalite_host_capacity", "What may be claimed of a compute host in all.", "resource")
    used = of_host("novalite_host_used", "What is claimed of a compute host.", "resource")
    for host in status.hosts(connection):
        name = host["name"]
        up.add_metric([name], int(host["up"]))
        enabled.add_metric([name], int(host["enabled"]))
        seen.add_metric([name], host["last_seen_at"] or 0)
        if host["looked_at"] is not None:
            looked.add_metric([name], host["looked_at"])
            differed.add_metric([name], host["differences"])
        for resource, amounts in host["capacity"].items():
            capacity.add_metric([name, resource], amounts["limit"])
            used.add_metric([name, resource], amounts["used"])
    yield from (up, enabled, seen, looked, differed, capacity, used)
