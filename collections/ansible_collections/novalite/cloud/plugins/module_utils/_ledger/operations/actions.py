# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Actions on servers, asked for in the words of module `server_action`: by names."""

from __future__ import annotations

import typing as t

from ..._json import JsonMapping
from ..._model.instance import Flavor, Instance
from ..compute import (
    guest_passwords,
    live_resize,
    migrations,
    reimage,
    server_actions,
    server_backups,
    server_snapshots,
)
from ..instances.actions import last_details
from ..queries import lookups
from ..queries.catalog import image_views
from ..queries.compute.instance_rows import instance_row, locked_rows
from ..queries.compute.views import flavor_of, instances_by
from . import servers
from .call import Call

NAMES = frozenset(server_actions.NAMES)


def begin(
    call: Call, name: str, request: JsonMapping, instances: t.Sequence[Instance], details: JsonMapping | None = None
) -> list[Instance]:
    """Begin `name` (of NAMES) on each of these servers, as `request` says, with `details` (servers.begin) where it has
    no request of its own; return those that their hosts act on. Of the image of a server that starts from volumes,
    snapshots are to be taken (reimage.snapshots_to_take)."""
    if name in server_snapshots.ACTIONS:
        details = server_snapshots.details_of(name, request)
    if name in server_backups.ACTIONS:
        details = server_backups.details_of(name, request)
    if name not in reimage.ACTIONS:
        uuids = [instance["uuid"] for instance in instances]
        if name in migrations.ACTIONS:
            return servers.move(call, name, uuids, flavor=_flavor(call, request)).instances
        if name == guest_passwords.NAME:
            return servers.change_password(call, uuids, request.get("password_hash")).instances
        if name == live_resize.NAME:
            return servers.resize_live(call, uuids, _flavor(call, request)).instances
        return servers.begin(call, name, uuids, details).instances
    names = reimage.image_names(request, instances) if name == reimage.SNAPSHOT else {}
    begun: list[Instance] = []
    for instance in instances:
        row = instance_row(call.connection, instance["uuid"])
        if name == reimage.SNAPSHOT:
            details = image_views.details_of(names[row.uuid], request.get("properties"))
            begun += servers.create_image(call, row, details).instances
        elif name == "rescue":
            image = request.get("image")
            image_id = image and lookups.image_by_name(call.connection, image, row.project_id)["id"]
            begun += servers.rescue(call, row, image_id, request.get("password_hash")).instances
        else:
            rebuild_request = {**reimage.looked_up(call.connection, row, request), "reimage": True}
            begun += servers.rebuild(call, row, rebuild_request).instances
    return begun


def begin_again(call: Call, name: str, uuids: t.Collection[str]) -> list[str]:
    """Begin `name` (of NAMES) once more on those of these servers that are there, with the details of the last time;
    return their UUIDs. The caller's rights count as if they asked for the first time: another may have asked before, or
    they themselves with more rights. Raises as servers.begin() and servers.move(), and NotFoundError for a flavor that
    the caller does not see any more."""
    left = [server["uuid"] for server in instances_by(call.connection, uuids=uuids)]
    locked_rows(call.connection, left)  # all of them before any project, as where one asks for the first time
    details_by_uuid = last_details(call.connection, name, left)
    for uuid in left:
        details = details_by_uuid.get(uuid, {})
        if name in migrations.ACTIONS:
            servers.move(call, name, [uuid], flavor=_flavor(call, details), host=details.get("host"))
            continue
        if name == live_resize.NAME:
            details = live_resize.details_of(_flavor(call, {"flavor": details["new_flavor"]["name"]}))
        servers.begin(call, name, [uuid], details)
    return left


def _flavor(call: Call, request: JsonMapping) -> Flavor | None:
    """The flavor that a resize is asked for with, by its name among those that the caller may use."""
    if request.get("flavor") is None:
        return None
    project_id = None if call.permits("compute:flavors:private") else call.project_id
    return flavor_of(lookups.flavor_by_name(call.connection, request["flavor"], project_id))
