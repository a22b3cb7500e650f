# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Steps of operation `server_action` for snapshots, rebuilds and rescues, beyond those of every action."""

from __future__ import annotations

import typing as t

import sqlalchemy as sa

from ..._errors import NovaliteError
from ..._guest import image_properties
from ..._json import JsonMapping, JsonObject
from ..._model.instance import GuestRecord, Instance
from ..._model.rows import InstanceRow
from ..._plan.host_plan import Plan
from ..._rules import guest_requests, volume_mappings
from ..catalog import image_snapshots
from ..instances import actions
from ..queries import lookups
from ..queries.volumes.volume_views import Volume, snapshots_by
from ..volumes import volume_plans
from . import rebuilds, server_backups, server_snapshots
from .plans import plan_hosts

SNAPSHOT = "createImage"
ACTIONS = (SNAPSHOT, "rebuild", "rescue")  # those with a request of their own
# After these a guest may run that did not
STARTS = ("rebuild", "rescue", "unrescue", server_snapshots.REVERT, server_backups.RESTORE)


def with_hash(request: JsonMapping) -> JsonObject:
    """The request of a playbook with `password_hash` in the place of `admin_password`."""
    fields = {field: value for field, value in request.items() if value is not None}
    password = fields.pop("admin_password", None)
    if password is not None:
        fields["password_hash"] = guest_requests.hashed("this server", password)
    return fields


def settled(connection: sa.Connection, params: JsonMapping, servers: t.Sequence[Instance]) -> list[Instance]:
    """List those of the servers whose image, snapshot or backup was made before, or whose snapshot or backup was
    deleted."""
    if params["action"] in server_snapshots.ACTIONS:
        return server_snapshots.settled(connection, params["action"], params.get("request") or {}, servers)
    if params["action"] in server_backups.ACTIONS:
        return server_backups.settled(connection, params["action"], params.get("request") or {}, servers)
    if params["action"] != SNAPSHOT:
        return []
    names = image_names(params.get("request") or {}, servers)
    return [
        server
        for server in servers
        if image_snapshots.made_of(connection, server["project"]["id"], server["uuid"], names[server["uuid"]])
    ]


def snapshots_to_take(connection: sa.Connection, params: JsonMapping, servers: t.Sequence[Instance]) -> list[str]:
    """Return the ids of the snapshots that the images of these servers name, and that are to be taken yet."""
    if params["action"] != SNAPSHOT:
        return []
    names = image_names(params.get("request") or {}, servers)
    made = [
        image
        for server in servers
        for image in image_snapshots.made_of(connection, server["project"]["id"], server["uuid"], names[server["uuid"]])
    ]
    ids = [volume.of or "" for image in made for volume in volume_mappings.volumes_of(image)]
    return [snapshot.id for snapshot in snapshots_by(connection, ids=ids) if snapshot.status == "creating"]


def plans(connection: sa.Connection, params: JsonMapping, instances: t.Sequence[Instance]) -> dict[str, Plan]:
    """`{host: plan}` as the role `spawn` takes it, with `results`, what is to be recorded of a success. Of a rebuild,
    `running` has the `domains` and `guests` that are to run when it is done; of a rescue, `domains` are those of the
    rescue, with its disk, image and injection."""
    name = params["action"]
    kind, existing = "keep", list(instances)
    anew = rebuilds.volumes_anew(connection, [server["uuid"] for server in instances]) if name == "rebuild" else {}
    if name == "rebuild":
        kind, existing = "build", []
        instances = [_with_fresh_root(server) if server["uuid"] in anew else server for server in instances]
    elif name == "rescue":
        chosen = rebuilds.rescue_images(connection, [server["uuid"] for server in instances])
        existing = [_rescued(server, chosen[server["uuid"]]) for server in instances]
    built = instances if kind == "build" else ()
    made = plan_hosts(connection, params["state_dir"], instances=built, existing=existing).rendered()
    hosts = {host: {**of_host[kind], "starts": True} for host, of_host in made.items() if kind in of_host}
    running = rebuilds.running_after(connection, [server["uuid"] for server in instances])
    stopped = {server["name"] for server in instances if server["uuid"] not in running}
    for plan in hosts.values():
        plan["running"] = {
            "domains": [domain for domain in plan["domains"] if domain["uuid"] in running],
            "guests": [guest for guest in plan["guests"] if guest["name"] not in stopped],
        }
        plan["results"] = [{"uuid": uuid} for uuid in plan["uuids"]]  # of what goes well
        plan["rescue_disks"] = [{"uuid": uuid, "rescue": True} for uuid in plan["uuids"]]
        if name == "rebuild":
            _add_volumes_anew(plan, {uuid: anew[uuid] for uuid in plan["uuids"] if uuid in anew})
    return hosts


def _with_fresh_root(server: Instance) -> Instance:
    """The instance with a root volume that nobody can have written to when things are injected into it."""
    fresh = {"made_at": None, "copied": False, "image": server["image"]["id"]}
    volumes = [{**volume, **fresh} if volume["boot_index"] == 0 else volume for volume in server["volumes"]]
    return t.cast(Instance, {**server, "volumes": volumes})


def _add_volumes_anew(plan: Plan, roots: t.Mapping[str, Volume]) -> None:
    """Add to a host's plan the root volumes that are made anew, as step volume_disk takes them, and their images."""
    plan["volumes_anew"] = []
    for root in roots.values():
        data = volume_plans.data_of(root)
        for image in volume_plans.image_files(root):
            source = {"checksum": image["checksum"]}
            plan["volumes_anew"].append({**data, "instance_uuid": None, "create": True, "source": source})
            plan["images"].append(image)


def add_snapshots(connection: sa.Connection, hosts: t.Mapping[str, Plan], servers: t.Iterable[Instance]) -> None:
    """Give each host's plan what step disk_snapshot takes."""
    uuids = [uuid for plan in hosts.values() for uuid in plan["uuids"]]
    details = actions.open_details(connection, SNAPSHOT, uuids)
    quiesce = {server["uuid"]: image_properties.require_quiesce(server["image"]) for server in servers}
    for plan in hosts.values():
        plan["snapshots"] = [
            {"uuid": uuid, "image_id": details[uuid]["image_id"], "quiesce": quiesce[uuid]} for uuid in plan["uuids"]
        ]


def image_names(request: JsonMapping, servers: t.Sequence[Instance]) -> dict[str, str]:
    """UUID -> the name of its image: the one that was asked for, with the server's own where there are several."""
    name = request.get("image_name")
    if not name:
        raise NovaliteError("an image needs a name: give image_name")
    return {server["uuid"]: name if len(servers) == 1 else f"{name}-{server['name']}" for server in servers}


def looked_up(connection: sa.Connection, row: InstanceRow, request: JsonMapping) -> JsonObject:
    """The request of a playbook, with records where it has names; keys are those of the server's user, as in Nova."""
    fields = dict(request)
    if "image" in fields:
        fields["image"] = lookups.image_by_name(connection, fields["image"], row.project_id)
    if "key" in fields:
        key = fields["key"]
        fields["key"] = lookups.keypair_by_name(connection, key, row.project_id, row.user_id) if key else None
    return fields


def _rescued(server: Instance, chosen: rebuilds.Rescue) -> Instance:
    """The instance with the rescue's image in the place of its own one; with a config drive, if nothing may be written
    into that."""
    drive = server["config_drive"] or not image_properties.host_mount(chosen.image)
    guest: GuestRecord = {}
    if chosen.password_hash:
        guest = {"password_hash": chosen.password_hash, "password_optional": True}
    return {**server, "image": chosen.image, "rescue": True, "config_drive": drive, "guest": guest}
