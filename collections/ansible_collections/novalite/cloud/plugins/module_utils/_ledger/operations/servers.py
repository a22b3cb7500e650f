# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Operations on servers, for every door: each looks up its entry of the policy and its rule of states, records what was
asked for, and has hosts do their part.

Servers are passed as UUIDs or rows that the door has found by what its clients know, an id or a name, among those that
the caller may name.
"""

from __future__ import annotations

import typing as t

import sqlalchemy as sa

from ..._errors import ConflictError, ForbiddenError, NovaliteError
from ..._json import JsonMapping, JsonObject
from ..._model.instance import Flavor, Instance
from ..._model.rows import InstanceRow
from ..._rules import hints
from ..._rules.ha_wishes import HaWishes
from ..._scheduling.attributes import FOR_TENANTS
from ..compute import (
    api_created,
    guest_passwords,
    live_resize,
    new_servers,
    rebuilds,
    server_actions,
    server_changes,
    server_choices,
    volume_images,
)
from ..migration.begin import begin_move
from ..queries.catalog.image_views import Details
from ..queries.compute import state_rules
from ..queries.compute.state_rules import RULES, StateRule
from ..queries.jobs.open_jobs import open_job
from ..queries.volumes import volume_views
from .call import OVERRIDE_LOCK, Call


class Begun(t.NamedTuple):
    """Servers with which an action has begun, as they are then, and the ids of the jobs that go on with it."""

    instances: list[Instance]
    jobs: list[str]


def create(call: Call, request: new_servers.CreateRequest) -> new_servers.Created:
    """Record the servers that `request` asks for and have them built. Raises as new_servers.create(), and
    ForbiddenError for a host or hints that the caller may not name."""
    call.check("compute:servers:create")
    if "host" in request.hints:
        call.check("compute:servers:create:forced_host")
    check_hints(call, request.name, request.hints)
    private = call.permits("compute:servers:create:private")
    made = new_servers.create(call.connection, call.project, request, private=private, **call.signature)
    call.enqueue("launch", made.uuids, call.project)
    return made


def rule_of(name: str, details: JsonMapping | None = None) -> StateRule:
    """The states that allow the action `name`, and its entry of the policy."""
    return server_actions.action_of(name, details).rule


def begin(
    call: Call,
    name: str,
    uuids: t.Sequence[str],
    details: JsonMapping | None = None,
    variables: JsonMapping | None = None,
) -> Begun:
    """Begin the action `name` (of server_actions.NAMES) on all of these servers, or on none; return them as they are
    then. `variables` are those of the job. Raises StateError, and ForbiddenError."""
    call.check(rule_of(name, details).policy)
    if name == "unshelve" and "host" in (details or {}):
        call.check("compute:servers:unshelve_to_host")
    begun = server_actions.begin(call.connection, name, uuids, details=details, **call.asker)
    return Begun(begun, _have_done(call, name, begun, variables))


def move(
    call: Call,
    name: str,
    uuids: t.Sequence[str],
    *,
    flavor: Flavor | None = None,
    host: str | None = None,
    reason: str | None = None,
    variables: JsonMapping | None = None,
) -> Begun:
    """Begin a resize, a migration, or the end of one, as begin() does. `flavor` is a resize's new size, `host` the
    destination of one's choice. Raises as begin_move(), and ForbiddenError."""
    call.check(RULES[name].policy)
    if host is not None and name != "evacuate":
        call.check("compute:servers:migrate_to")
    begun = begin_move(call.connection, name, uuids, flavor=flavor, host=host, reason=reason, **call.asker)
    return Begun(begun, _have_done(call, name, begun, variables))


def _have_done(call: Call, name: str, begun: t.Sequence[Instance], variables: JsonMapping | None) -> list[str]:
    """Have hosts go on with what was begun, by a job for each project; return the jobs' ids."""
    uuids: dict[str, list[str]] = {}
    for server in begun:
        uuids.setdefault(server["project"]["id"], []).append(server["uuid"])
    return [call.enqueue(name, of_project, project_id, variables) for project_id, of_project in uuids.items()]


def rebuild(call: Call, row: InstanceRow, request: JsonMapping) -> Begun:
    """Begin to make the server's disks anew, as `request` (rebuilds.ask_rebuild) says."""
    return begin(call, "rebuild", [row.uuid], rebuilds.ask_rebuild(call.connection, row.uuid, request))


def resize_live(call: Call, uuids: t.Sequence[str], flavor: Flavor | None) -> Begun:
    """Begin to give the servers another flavor while they run. Raises as live_resize.begun()."""
    return begin(call, live_resize.NAME, uuids, live_resize.details_of(flavor))


def live_flavors(call: Call, host: str | None, own: Flavor, flavors: t.Iterable[Flavor]) -> list[Flavor]:
    """List those of the flavors for which a server on `host` needs no restart: see live_resize.fitting()."""
    return live_resize.fitting(call.connection, host, own, flavors)


def change_password(call: Call, uuids: t.Sequence[str], password_hash: str | None) -> Begun:
    """Begin to have the agents in these servers set the password with this hash. Raises as guest_passwords.begun()."""
    return begin(call, guest_passwords.NAME, uuids, guest_passwords.details_of(password_hash))


def rescue(call: Call, row: InstanceRow, image_id: str | None, password_hash: str | None) -> Begun:
    """Begin to run the server from a disk of this image (None: of its own one), with its own disk beside it."""
    return begin(call, "rescue", [row.uuid], rebuilds.ask_rescue(call.connection, row.uuid, image_id, password_hash))


def create_image(call: Call, row: InstanceRow, details: Details) -> Begun:
    """Begin to make the image that `details` (image_views.details_of) say: of the server's disk, or of snapshots of
    its volumes if it starts from one. Return the servers whose hosts copy a disk. Raises NovaliteError for one that
    starts from a volume where the image is to be one of Nova's backups."""
    if not volume_views.from_volumes(call.connection, [row.uuid]):
        return begin(call, "createImage", [row.uuid], details)
    call.check(RULES["createImage"].policy)
    if "rotation" in details:
        raise NovaliteError("Backup is not supported for volume-backed instances.")
    snapshots = volume_images.create(call.connection, row.uuid, details, **call.asker)
    job = call.enqueue("volume_snapshot_create", [row.uuid], row.project_id, {"snapshots": snapshots})
    return Begun([], [job])


def delete(call: Call, row: InstanceRow) -> str | None:
    """Mark the server as being deleted and have it removed; None where that is under way, else the job's id."""
    if row.task_state == "deleting" and open_job(call.connection, row.uuid, "terminate") is not None:
        return None
    mark_deleting(call, [{"uuid": row.uuid, "task_state": row.task_state}])
    return call.enqueue("terminate", [row.uuid], row.project_id)


def mark_deleting(call: Call, servers: t.Sequence[api_created.Task | Instance]) -> None:
    """Mark servers as being deleted, for a job or a playbook that has begun. Raises StateError."""
    call.check(RULES["delete"].policy)
    tasks: list[api_created.Task] = [{"uuid": server["uuid"], "task_state": server["task_state"]} for server in servers]
    api_created.mark(
        call.connection,
        tasks,
        call.request_id,
        user_id=call.user_id,
        project_id=call.project_id,
        by_admin=call.permits(OVERRIDE_LOCK),
    )


def set_lock(call: Call, uuid: str, locked: bool, reason: str | None = None) -> bool:
    """Lock the server, or take the lock off; return whether that changed anything."""
    call.check(RULES["lock" if locked else "unlock"].policy)
    return server_actions.set_lock(call.connection, uuid, locked, reason, **call.signature)


def check_cdrom(call: Call, row: InstanceRow) -> None:
    """Raise StateError unless a CD can be put into the server, or taken out of it, now; and ForbiddenError."""
    call.check(RULES["change_cdrom"].policy)
    state_rules.check(call.connection, RULES["change_cdrom"], [row], by_admin=call.permits(OVERRIDE_LOCK))


def change_group(call: Call, row: InstanceRow, name: str, *, joins: bool) -> None:
    """Let the server join a security group of its project, by name or UUID, or leave it."""
    call.check(RULES["change_security_groups"].policy)
    by_admin = call.permits(OVERRIDE_LOCK)
    group = server_changes.change_group(call.connection, row, name, joins=joins, by_admin=by_admin)
    # by ids: when the job runs, the group may be gone, or its name another's
    if row.host is not None or row.vm_state == "building":
        change = {"changed_groups": [group], "changed_members": [row.uuid]}
        call.enqueue("security_groups", [row.uuid], row.project_id, change)


def replace_groups(call: Call, row: InstanceRow, before: t.Collection[str], after: t.Collection[str]) -> None:
    """Let the server leave the groups (UUIDs) that it was in `before`, and be in those `after`. Raises as
    change_group()."""
    for groups, joins in ((set(after) - set(before), True), (set(before) - set(after), False)):
        for uuid in sorted(groups):
            change_group(call, row, uuid, joins=joins)


def change_metadata(
    call: Call, row: InstanceRow, items: t.Mapping[str, str], *, replace: bool = False, remove: t.Collection[str] = ()
) -> dict[str, str]:
    """Change the server's metadata as server_changes.change_metadata() does."""
    call.check(RULES["change_metadata"].policy)
    by_admin = call.permits(OVERRIDE_LOCK)
    return server_changes.change_metadata(
        call.connection, row, items, replace=replace, remove=remove, by_admin=by_admin
    )


def change_tags(call: Call, row: InstanceRow, update: t.Callable[[frozenset[str]], t.Collection[str]]) -> list[str]:
    """Make of the server's tags what `update` makes of them; return them, sorted."""
    call.check(RULES["change_tags"].policy)
    return server_changes.change_tags(call.connection, row, update, by_admin=call.permits(OVERRIDE_LOCK))


def ha_of(connection: sa.Connection, uuid: str) -> JsonObject:
    """Return what is to become of the server when its host dies, as server_changes.ha_of()."""
    return server_changes.ha_of(connection, uuid)


def change_ha(call: Call, uuid: str, wishes: HaWishes) -> tuple[JsonObject, JsonObject]:
    """Change what is to become of the server when its host dies; return what held before and what holds now. Raises as
    server_changes.change_ha()."""
    call.check(RULES["change_ha"].policy)
    return server_changes.change_ha(call.connection, uuid, wishes, **call.asker)


def update(call: Call, row: InstanceRow, values: JsonMapping) -> None:
    """Write what people see of the server: names, descriptions, addresses (columns of `instance`)."""
    call.check(RULES["update"].policy)
    server_changes.change(call.connection, row, values)


def reset_state(call: Call, row: InstanceRow, vm_state: str) -> None:
    """Record the server as `vm_state`, with nothing under way, whatever its host may say."""
    call.check(RULES["reset_state"].policy)
    server_changes.change(call.connection, row, {"vm_state": vm_state, "task_state": None, "rescue_image": None})
    # whatever was under way: what comes of it is not recorded any more
    server_actions.abandon(call.connection, [row.uuid], "the state was reset")


def check_state(call: Call, name: str, row: InstanceRow) -> None:
    """Raise StateError unless the server's state allows the operation `name` of state_rules.RULES."""
    state_rules.check(call.connection, RULES[name], [row], by_admin=call.permits(OVERRIDE_LOCK))


def console_job(call: Call, row: InstanceRow, lines: int | None) -> str:
    """Return the id of the job that asks the server's host for the last `lines` of its console, or for all."""
    if row.host is None:
        raise ConflictError(f"Instance {row.uuid} is not ready")
    variables: JsonObject = {} if lines is None else {"lines": lines}
    # who asks again because it took too long waits for the same answer
    job_id = open_job(call.connection, row.uuid, "console", variables)
    return job_id if job_id is not None else call.enqueue("console", [row.uuid], row.project_id, variables)


# --- What hides in the values of a request for a server ---------------------------------------------------------------


def check_zone(call: Call, zone: str | None) -> None:
    """Raise ForbiddenError for a zone that names a host (Nova's `zone:host:node`), unless the caller may choose one."""
    if zone is not None and ":" in zone:
        call.check("compute:servers:create:forced_host")


def check_hints(call: Call, name: str, checked_hints: JsonMapping) -> None:
    """Raise ForbiddenError for hints of the server `name`, as hints.checked() returns them, that ask about hosts what
    only administrators are told: by asking often enough one learns any of it, and chooses the host."""
    unknown = sorted(hints.attributes_in(dict(checked_hints)) - FOR_TENANTS)
    if unknown and not call.permits("compute:servers:create:host_attributes"):
        raise ForbiddenError(
            f"requirements, rank and hints of '{name}': unknown attribute '{unknown[0][:70]}': "
            f"use {', '.join(sorted(FOR_TENANTS))}"
        )


def check_choices(call: Call, servers: t.Sequence[JsonMapping]) -> None:
    """Raise for what these servers, as module `server` takes them, name and the caller may not: ForbiddenError
    and NotFoundError."""
    for server in servers:
        check_zone(call, server.get("availability_zone"))
        try:
            requested = hints.checked(str(server["name"]), server)
        except NovaliteError:
            continue  # the operation says what they cannot be, as of all else
        check_hints(call, str(server["name"]), requested)
    if servers:  # jobs of no project have none
        server_choices.check(call.connection, call.project, servers, call.permits("compute:servers:create:private"))
