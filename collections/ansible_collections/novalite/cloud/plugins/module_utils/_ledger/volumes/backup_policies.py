# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Policies of backups in the ledger, and the servers whose backups or proofs are due by them."""

from __future__ import annotations

import typing as t

import sqlalchemy as sa

from ..._errors import ConflictError
from ..._json import JsonMapping, JsonObject
from ..._rules import backup_policies as rules
from ..._rules import retention
from ..._rules.backup_policies import Backup, Policy
from ..._rules.records import checked_names
from ..db import clock
from ..db.tables import instance
from ..db.tables_images import backup_policy as table
from ..db.tables_images import server_backup
from ..queries import lookups
from ..queries.counts import is_any
from ..queries.volumes.backup_ages import policies
from ..queries.volumes.server_backup_rows import AVAILABLE, FULL

_AT_REST = ("active", "stopped", "paused", "suspended")  # states in which a server is backed up


class Due(t.NamedTuple):
    """A server of which a backup, or the proof of one, is due by a policy."""

    uuid: str
    policy: Policy


def shown(connection: sa.Connection) -> list[JsonObject]:
    """List the policies as they are shown: with the names of what they are for."""
    known = policies(connection)
    names: dict[str, str] = dict(lookups.project_names(connection))
    servers = [policy.target for policy in known if policy.scope == "server"]
    rows = connection.execute(sa.select(instance.c.uuid, instance.c.name).where(instance.c.uuid.in_(servers)))
    names |= {row.uuid: row.name for row in rows}
    return [
        {
            **{key: getattr(policy, key) for key in ("name", "scope", "every", "keep", "verify_every", "boot_every")},
            "target": names.get(policy.target, policy.target) or None,
        }
        for policy in known
    ]


def ensure(connection: sa.Connection, params: JsonMapping) -> bool:
    """Have the policy that `params` say: `name`, `every`, `verify_every` and `boot_every` (such as `daily` or `12h`;
    the last two also `never`; without a word they are never and weekly), `keep_daily` and its like, and what it is for,
    `server`, `flavor` or `project` by name (none: all servers). Returns whether that changed anything. Raises
    NotFoundError, NovaliteError, ConflictError where another one is for the same."""
    checked_names("policy", [{"name": params["name"]}])
    scope, target = _target(connection, params)
    values: JsonObject = {
        **{"scope": scope, "target": target, "every": rules.seconds_of("every", str(params.get("every") or "daily"))},
        "keep": retention.keep_of(params),
        **{
            option: rules.seconds_or_never(option, str(params.get(option) or usual))
            for option, usual in (("verify_every", rules.NEVER), ("boot_every", "weekly"))
        },
    }
    mine = table.c.name == params["name"]
    if is_any(connection, table.c.scope == scope, table.c.target == target, sa.not_(mine)):
        raise ConflictError(f"another policy is for the same servers ({scope} {target}): change or delete that one")
    before = connection.execute(sa.select(table).where(mine)).mappings().first()
    if before is not None and all(before[key] == value for key, value in values.items()):
        return False
    now = clock.seconds(connection)
    if before is None:
        connection.execute(sa.insert(table).values(name=params["name"], **values, created_at=now, updated_at=now))
    else:
        connection.execute(sa.update(table).where(mine).values(**values, updated_at=now))
    return True


def _target(connection: sa.Connection, params: JsonMapping) -> tuple[str, str]:
    project = params.get("project")
    if params.get("server"):
        owner = lookups.project_by_name(connection, project or lookups.DEFAULT_PROJECT)["id"]
        mine = sa.and_(instance.c.project_id == owner, instance.c.deleted == 0)
        named = sa.or_(instance.c.name == params["server"], instance.c.uuid == params["server"])
        uuid = connection.execute(sa.select(instance.c.uuid).where(mine, named)).scalar()
        if uuid is None:
            raise lookups.unknown_server(connection, owner, params["server"])
        return "server", str(uuid)
    if params.get("flavor"):
        return "flavor", str(lookups.flavor_by_name(connection, params["flavor"], None)["id"])
    return ("project", str(lookups.project_by_name(connection, project)["id"])) if project else ("all", "")


def remove(connection: sa.Connection, name: str) -> bool:
    """Delete a policy; its backups stay. Returns whether there was one."""
    return bool(connection.execute(sa.delete(table).where(table.c.name == name)).rowcount)


def due(connection: sa.Connection) -> tuple[list[Due], list[Due], list[Due]]:
    """Return the servers of which a backup is due, and of the others those whose newest one is to be booted, and those
    whose newest one is to be compared."""
    known, now = policies(connection), clock.seconds(connection)
    if not known:
        return [], [], []
    backups = _backups(connection)
    to_take, to_boot, to_compare = [], [], []
    for row in connection.execute(
        sa.select(instance.c.uuid, instance.c.project_id, instance.c.flavor, instance.c.host)
        .where(instance.c.deleted == 0, instance.c.vm_state.in_(_AT_REST), instance.c.task_state.is_(None))
        .where(instance.c.host.is_not(None), instance.c.adopted.is_(None))
        .order_by(instance.c.id)
    ):
        server = {"server": row.uuid, "project": row.project_id, "flavor": str(row.flavor.get("id"))}
        policy = rules.policy_of(known, server)
        if policy is None:
            continue
        own = backups.get(row.uuid, [])
        if rules.backup_due(policy, own, now):
            to_take.append(Due(row.uuid, policy))
        elif rules.boot_due(policy, own, now):
            to_boot.append(Due(row.uuid, policy))
        elif rules.proof_due(policy, own, now):
            to_compare.append(Due(row.uuid, policy))
    return to_take, to_boot, to_compare


def _backups(connection: sa.Connection) -> dict[str, list[Backup]]:
    columns = server_backup.c
    of_server: dict[str, list[Backup]] = {}
    names = ("instance_uuid", "created_at", "verified_at", "status", "complaint", "kind", "booted_at", "proven_at")
    for row in connection.execute(sa.select(*(columns[name] for name in names))):
        under_way = row.status not in (AVAILABLE, "error")
        whole = row.verified_at is not None and row.complaint is None
        boots = row.kind == FULL, row.booted_at, row.proven_at
        backup = Backup(row.created_at, row.verified_at, row.status == AVAILABLE, under_way, whole, *boots)
        of_server.setdefault(row.instance_uuid, []).append(backup)
    return of_server
