# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Healing as people see it, and what they decide of it: armed or not, of all hosts or one, and whose death they saw."""

from __future__ import annotations

import sqlalchemy as sa

from ..._errors import ConflictError, NotFoundError
from ..._healing import states
from ..._json import JsonMapping, JsonObject
from ..._model.plain_text import natural
from ..db import clock
from ..db.tables import compute_host, instance
from ..db.tables_migrations import host_watch, watch
from ..healing import watch_rows
from ..queries import lookups
from ..queries.compute.views import instances_by
from .call import Call

WRITE = "cloud:ha:write"
_UNHEALED = (instance.c.ha, instance.c.deleted == 0, instance.c.ha_reason.is_not(None))
_SHOWN = ("state", "epoch", "since", "silent_since", "armed", "means", "switch_armed", "proof", "note", "confirmed_by")


def status(connection: sa.Connection) -> JsonObject:
    """Return whether healing is armed, who watches, how each host is, and which guests do not run, with the reasons;
    `balance` is the plan that is suggested, None without one.

    A host that was never watched is in `hosts` with the state None.
    """
    listed = (
        sa.select(instance.c.uuid, instance.c.name, instance.c.host, instance.c.ha_priority, instance.c.ha_reason)
        .where(*_UNHEALED)
        .order_by(instance.c.ha_priority.desc(), instance.c.id)
    )
    return {**watch_status(connection), "servers": [dict(row) for row in connection.execute(listed).mappings()]}


def unhealed(connection: sa.Connection) -> int:
    """Count the servers that are to run, and do not."""
    return connection.scalar(sa.select(sa.func.count()).select_from(instance).where(*_UNHEALED)) or 0


def watch_status(connection: sa.Connection) -> JsonObject:
    """Return what status() does, without servers."""
    row: JsonMapping = dict(connection.execute(sa.select(watch)).mappings().first() or {})
    hosts, now = _shown(connection), clock.now(connection)
    return {
        "armed": row.get("armed") is not False,
        "controller": row.get("controller"),
        "watching": bool(row.get("controller")) and row["expires"] > now,
        "balance": row.get("balance"),
        "hosts": sorted(hosts, key=lambda host: natural(host["host"])),
    }


def _shown(connection: sa.Connection, name: str | None = None) -> list[JsonObject]:
    """Return how hosts (None: all) are watched; a host that never was has the state None."""
    c = host_watch.c
    columns = [*(c[field] for field in _SHOWN), compute_host.c.name.label("host"), compute_host.c.enabled]
    query = sa.select(*columns).select_from(compute_host.join(host_watch, compute_host.c.name == c.host, isouter=True))
    if name is not None:
        query = query.where(compute_host.c.name == name)
    return [
        {**host, "armed": host["armed"] is not False, "means": host["means"] or []}
        for host in connection.execute(query).mappings()
    ]


def arm(call: Call, armed: bool, host: str | None, by: str) -> bool:
    """Arm healing or disarm it, for all hosts or one; return whether that changes anything. Raises NotFoundError."""
    call.check(WRITE)
    connection = call.connection
    if host is None:
        watch_rows.ensure(connection)
        changed = sa.update(watch).where(watch.c.armed != armed).values(armed=armed)
    else:
        lookups.check_compute_hosts(connection, [host])
        watch_rows.ensure(connection, [host])
        changed = sa.update(host_watch).where(host_watch.c.host == host, host_watch.c.armed != armed)
        changed = changed.values(armed=armed)
    if connection.execute(changed).rowcount == 0:
        return False
    row = watch_rows.rows(connection, [host or ""]).get(host or "", watch_rows.HostRow(host or ""))
    watch_rows.note(connection, row, "armed" if armed else "disarmed", by, f"healing of {host or 'all hosts'}", True)
    return True


def confirm_dead(call: Call, host: str, by: str) -> bool:
    """Record that a person saw that a host is dead; return whether that is news. When it answers, the word is void.

    Raises NotFoundError, and ConflictError for a host that answered the last look.
    """
    call.check(WRITE)
    connection = call.connection
    lookups.check_compute_hosts(connection, [host])
    row = watch_rows.rows(connection, [host]).get(host)
    if row is None:
        raise NotFoundError(f"compute host {host} was never watched: run playbooks/watch.yml first")
    if row.state in (states.UP, states.BACK) and row.silent_since is None:
        raise ConflictError(f"compute host {host} answered the last look: switch it off first, and wait for the next")
    same = (host_watch.c.host == host, host_watch.c.confirmed_heard.is_distinct_from(row.heard))
    said = sa.update(host_watch).where(*same).values(confirmed_by=by, confirmed_heard=row.heard)
    if connection.execute(said).rowcount == 0:
        return False
    watch_rows.note(connection, row, "confirmed dead", by, f"{by} confirmed the death of {host}", True)
    return True


def check_testable(connection: sa.Connection, host: str) -> None:
    """Raise ConflictError unless a host may be switched off for a test: it is disabled, and bears no server."""
    enabled = connection.scalar(sa.select(compute_host.c.enabled).where(compute_host.c.name == host))
    servers = instances_by(connection, hosts=[host])
    if enabled or servers:
        raise ConflictError(
            f"{host} is in service, or bears servers ({len(servers)}): empty it first (novalite.cloud.host_evacuate), "
            "or test with --dry-run"
        )


def armed_everywhere(connection: sa.Connection) -> bool:
    """Tell whether healing is armed for all hosts, which pages say when it is not."""
    disarmed = sa.select(host_watch.c.host).where(host_watch.c.armed.is_(False)).limit(1)
    return watch_rows.is_armed(connection) and connection.execute(disarmed).first() is None


def of_host(connection: sa.Connection, host: str) -> JsonObject | None:
    """Return how a host is watched, and the newest lines of its journal; None for one that never was."""
    shown = next(iter(_shown(connection, host)), None)
    if shown is None or shown["state"] is None:
        return None
    return {**shown, "journal": watch_rows.journal(connection, host, 10)}
