# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Instances: what there is, why it is where it is, what it said, and what can be done to it."""

from __future__ import annotations

import typing as t

from flask import Response, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from werkzeug.exceptions import NotFound

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NotFoundError
from ansible_collections.novalite.cloud.plugins.module_utils._graph import call_diagram
from ansible_collections.novalite.cloud.plugins.module_utils._json import JsonMapping, JsonObject
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations import (
    consoles,
    server_backups,
    server_replicas,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries import lookups
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.compute import launch_calls, server_history
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.compute.server_listing import (
    instance_row,
    labels_of,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.compute.views import instances_by
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.jobs.job_records import (
    FAILED,
    FINAL,
    SUCCEEDED,
    list_jobs,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.placement import (
    instance_pages,
    silence,
    status,
)
from ansible_collections.novalite.cloud.plugins.module_utils._model.plain_text import natural
from ansible_collections.novalite.cloud.plugins.module_utils._samples.rings import GUEST

from ..v1 import acting, views
from ..web import policy
from ..web.context import current
from ..web.host_names import host_name_mask, veil_faults
from ..web.services import reads, writes
from ..work.calls import calling
from ..work.refusals import refusals_as_bad_requests
from . import graphs, rendering, server_actions, session
from .noun_forms import links
from .routes_jobs import masked, rows_of_jobs
from .session import pages

SEES_HOSTS = "compute:hypervisors:read"
VM_STATES = (
    *("active", "building", "error", "stopped", "paused", "suspended", "rescued", "resized"),
    *("shelved", "shelved_offloaded"),
)
HISTORY = 20  # actions shown


@pages.get("/instances", "compute:servers:index", reads)
def list_instances(connection: Connection) -> str:
    caller = current()
    everywhere = policy.allowed("compute:servers:all_tenants") and request.args.get("all_projects") == "true"
    choice = choice_of(request.args, None if everywhere else caller.project, policy.may(caller, SEES_HOSTS))
    listing = instance_pages.find(connection, choice)
    veil_faults(connection, caller.reach, listing.instances)
    hosts = sorted(lookups.compute_host_names(connection), key=natural) if choice.by_host else []
    return render_template(
        "pages/instances.html", listing=listing, choice=choice, everywhere=everywhere, hosts=hosts, states=VM_STATES
    )


def choice_of(asked: t.Mapping[str, str], project_id: str | None, by_host: bool) -> instance_pages.Choice:
    """The instances that a query asks for. What it cannot mean is passed over; hosts are only told with `by_host`."""
    page = asked.get("page", "")
    sort = asked.get("sort", "")
    known = sort in instance_pages.SORTED_BY and (by_host or sort != "host")
    return instance_pages.Choice(
        project_id,
        text=asked.get("q", "")[: session.MAX_FIELD],
        status=asked.get("status", ""),
        host=asked.get("host", "") if by_host else "",
        project=asked.get("project", "") if project_id is None else "",
        by_host=by_host,
        sort=sort if known else "created",
        rising=known and asked.get("order") == "up",
        page=int(page) if page.isascii() and page.isdigit() and len(page) <= 6 else 1,
    )


@pages.get("/instances/<uuid>", "compute:servers:show", reads)
def show_instance(connection: Connection, uuid: str) -> str:
    caller = current()
    records = instances_by(connection, uuids=[uuid], project_id=caller.reach, deleted=True)
    if not records:
        raise NotFoundError(f"Instance {uuid[:255]} could not be found.")
    veil_faults(connection, caller.reach, t.cast("list[JsonObject]", records))
    (record,) = silence.with_silence(connection, records)
    instance = named(connection, record)
    row = None if record["vm_state"] == "deleted" else instance_row(connection, uuid, caller.reach)
    done = server_history.history(connection, [uuid]).get(uuid, [])
    measured = policy.allowed("compute:servers:samples") and row is not None
    history = masked(connection, done[:HISTORY])
    jobs = list_jobs(connection, project_id=caller.reach, instance_uuid=uuid, limit=10)
    return render_template(
        "pages/instance.html",
        instance=instance,
        ways=links(calling(connection), "instances", uuid) if row is not None else [],
        launched=instance["launched_at"] is not None and any(each["action"] == "create" for each in done),
        offered=server_actions.offered(calling(connection), row) if row is not None else [],
        consoles=consoles.offered(calling(connection), row) if row is not None and rendering.HAS_CONSOLES else (),
        history=history,
        jobs=rows_of_jobs(connection, jobs),
        backups=server_backups.ages(calling(connection), server=uuid) if policy.allowed(server_backups.READ) else [],
        copy=_copy(connection, uuid) if policy.allowed(server_replicas.READ) and row is not None else None,
        use=graphs.use_of(GUEST, uuid, graphs.limits_of_flavor(record["flavor"])) if measured else None,
    )


def _copy(connection: Connection, uuid: str) -> JsonObject | None:
    """The copy of the instance's disks on a second host, as the caller may see it."""
    copy = server_replicas.of_server(calling(connection), uuid)
    if copy is None:
        return None
    hidden = host_name_mask(connection, current().reach)
    said = {name: hidden.over(getattr(copy, name)) for name in ("host", "next_host", "fault")}
    next_at = None if copy.tried_at is None else copy.tried_at + copy.every
    return {**said, "taken_at": copy.taken_at, "every": copy.every, "next_at": next_at}


@pages.post("/instances/<uuid>/<action>", "compute:servers:action", writes)
def act(connection: Connection, uuid: str, action: str) -> ResponseReturnValue:
    if action not in server_actions.ACTIONS:
        raise NotFound
    row = instance_row(connection, uuid, current().reach)
    with refusals_as_bad_requests():
        server_actions.do(calling(connection), row, action, session.field("value").strip())
    return redirect(url_for("pages.show_instance", uuid=uuid), 303)


@pages.get("/instances/<uuid>/delete", "compute:servers:delete", reads)
def confirm_delete(connection: Connection, uuid: str) -> str:
    (record,) = acting.own(connection, [uuid])
    return render_template("pages/delete.html", instance=named(connection, record))


@pages.post("/instances/<uuid>/delete", "compute:servers:delete", writes)
def delete(connection: Connection, uuid: str) -> ResponseReturnValue:
    job = acting.delete(connection, uuid)
    return redirect(url_for("pages.show_job", job_id=job["id"]), 303)


@pages.get("/instances/<uuid>/console", "compute:servers:console_output", reads)
def show_console(connection: Connection, uuid: str) -> str:
    """Show the console output that the last job for it returned. To ask for it anew takes the role member."""
    caller = current()
    (record,) = acting.own(connection, [uuid])
    job_records = list_jobs(connection, project_id=caller.reach, kind="console", instance_uuid=uuid, limit=10)
    jobs = masked(connection, job_records)
    instance = named(connection, record)
    console_job = next((job for job in jobs if job["state"] == SUCCEEDED and _console_of(job, uuid) is not None), None)
    return render_template(
        "pages/console.html",
        instance=instance,
        text=None if console_job is None else _console_of(console_job, uuid),
        at=None if console_job is None else console_job["finished_at"],
        under_way=jobs[0] if jobs and jobs[0]["state"] not in FINAL else None,
        failed=jobs[0] if jobs and jobs[0]["state"] == FAILED else None,
    )


@pages.post("/instances/<uuid>/console", "compute:servers:console_output", writes)
def ask_console(connection: Connection, uuid: str) -> ResponseReturnValue:
    caller = current()
    (record,) = acting.own(connection, [uuid])
    waiting = list_jobs(connection, project_id=caller.reach, kind="console", instance_uuid=uuid, limit=1)
    if not waiting or waiting[0]["state"] in FINAL:
        job_request = {"kind": "console", "instances": [record["uuid"]]}
        acting.trigger(connection, job_request)
    return redirect(url_for("pages.show_console", uuid=uuid), 303)


@pages.get("/instances/<uuid>/placement", "compute:servers:placement", reads)
def show_placement(connection: Connection, uuid: str) -> str:
    caller = current()
    placement = status.placement(connection, uuid, caller.reach)
    (instance,) = acting.own(connection, [uuid])
    return render_template(
        "pages/placement.html",
        placement={**placement, "explanation": views.explanation(placement["explanation"])},
        instance=named(connection, instance),
    )


@pages.get("/instances/<uuid>/launch.svg", "compute:servers:placement", reads)
def show_call_diagram(connection: Connection, uuid: str) -> ResponseReturnValue:
    """Draw how it was launched, with the names of hosts; for those who may see these."""
    (record,) = acting.own(connection, [uuid])
    launch = launch_calls.of_instance(connection, record["uuid"])
    if launch is None:
        raise NotFoundError(f"Instance {uuid[:255]} was not launched here.")
    return Response(call_diagram.svg(launch), mimetype="image/svg+xml")


def named(connection: Connection, instance: JsonMapping) -> JsonObject:
    """The instance with what the page says of it beside what every view has."""
    row = labels_of(connection, instance["uuid"])
    return {
        **instance,
        "shown": row.display_name or instance["name"],
        "description": row.description,
        "locked": row.locked,
        "locked_reason": row.locked_reason,
    }


def _console_of(job: JsonMapping, uuid: str) -> str | None:
    texts = (job["result"] or {}).get("console")
    text = texts.get(uuid) if isinstance(texts, dict) else None
    return text if isinstance(text, str) else None
