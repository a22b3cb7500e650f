# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Operation `server`: servers that a project is to have, or not.

It is what Nova's API does before it casts to the conductor: everything is looked up and checked first, then written in
one go, and the quota is counted once more over what was written.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
import typing as t

import sqlalchemy as sa

from ..._addressing.macs import MAC_PREFIX
from ..._errors import ConflictError, NotFoundError, NovaliteError
from ..._json import JsonMapping, JsonObject
from ..._model.instance import Image, Instance
from ..._model.rows import InstanceRow
from ..._rules import guest_requests, server_requests, volume_mappings
from ..._rules.build_states import BUILD_TIMEOUT
from ..._rules.server_requests import NO_LABELS, Asked, NetworkRequest, ServerRequest
from ..._rules.volume_asks import IMAGE, SNAPSHOT, VOLUME, root_of
from ..compute import api_created
from ..compute.create import (
    NetworkRef,
    NewInstance,
    amounts,
    asked_for,
    begin_again,
    check_image,
    networks_to_choose,
    record_servers,
)
from ..compute.server_states import record_deleted
from ..db import clock
from ..db.tables import instance
from ..identity.new_ids import new_uuids
from ..instances import actions
from ..operations import servers as operations
from ..operations.call import by_playbook
from ..placement import server_groups
from ..queries import lookups
from ..queries.compute.instance_rows import instance_rows
from ..queries.compute.usage import usage
from ..queries.compute.views import flavor_of, image_of, instances_by
from ..queries.identity import quota_records
from ..volumes import server_volumes

_SUMMARY: t.Final = ("vm_state", "task_state", "host", "availability_zone", "metadata")


def prepare_server(_engine: sa.Engine, params: JsonMapping) -> JsonObject:
    """The same `params` without passwords: a hash takes a while, and only the hash is recorded."""
    return {**params, "servers": guest_requests.with_hashes(params.get("servers") or [])}


def server(connection: sa.Connection, params: JsonMapping) -> JsonObject:
    """Operation `server`: see the module's documentation for `params` and what is returned. Raises NovaliteError for
    the first thing that is wrong with any server; nothing was written then."""
    absent = (params.get("state") or "present") == "absent"
    if params.get("uuids") is not None:
        carry_on = api_created.leaving if absent else api_created.to_build_and_existing
        result = carry_on(connection, params["uuids"])
    else:
        # One writer for each project at a time: else two runs could both count before either commits (PostgreSQL).
        owner = lookups.project_by_name(connection, params.get("project") or lookups.DEFAULT_PROJECT, lock=True)
        result = _absent(connection, owner["id"], params) if absent else _present(connection, owner, params)
    return {"to_build": [], "existing": [], "differences": [], "to_delete": [], **result}


def _present(connection: sa.Connection, owner: JsonMapping, params: JsonMapping) -> JsonObject:
    now = clock.seconds(connection)
    requests = server_requests.expand(params.get("servers") or [])
    stored = _stored(connection, owner["id"], requests)
    uuids = dict(zip((request.name for request in requests), new_uuids(connection, len(requests))))
    requests = _with_hints_resolved(connection, owner["id"], requests, stored, uuids)
    before = _discard_failed_with_new_spec(connection, owner["id"], requests, stored, now)
    patience = BUILD_TIMEOUT if params.get("build_timeout") is None else params["build_timeout"]
    dead_since = math.inf if params.get("takeover") else clock.before(connection, patience)
    rest, again = _split_existing(stored.values(), now, dead_since)
    new = [request for request in requests if request.name not in stored]
    new_instances = _new_instances(connection, owner, new, uuids, params.get("user_id"))
    limits = quota_records.quota_limits(connection, owner["id"])
    requested_amounts = amounts([plan.flavor for plan in new_instances], sum(len(plan.nics) for plan in new_instances))
    used = usage(connection, owner["id"], server_requests.limited(requested_amounts, limits))
    server_requests.check_quota(requested_amounts, used, limits)

    request_id = actions.new_request_id()
    before += instances_by(connection, uuids=[row.uuid for row in again])
    passwords = {request.name: request.guest.password_hash for request in requests if request.guest.password_hash}
    begin_again(connection, again, passwords, request_id, now)
    mac_prefix = params.get("mac_prefix") or MAC_PREFIX
    unnamed = record_servers(connection, owner["id"], new_instances, limits, request_id, now, mac_prefix=mac_prefix)

    to_build = instances_by(connection, uuids=[row.uuid for row in again] + [plan.uuid for plan in new_instances])
    result: JsonObject = {
        "changed": bool(to_build),
        "to_build": to_build,
        "existing": instances_by(connection, uuids=[row.uuid for row in rest]),
        "differences": [
            difference
            for request in requests
            if (row := stored.get(request.name)) is not None
            for difference in server_requests.differences(request, row.flavor, row.image, row.key_name)
        ],
    }
    if unnamed:
        result["warnings"] = [
            f"server '{row.hostname}' has no name in the DNS of network '{row.network}', where that name is another "
            "server's, or nobody's: it is known there by its address, as host-192-0-2-1 would be"
            for row in unnamed
        ]
    if to_build:
        result["request_id"] = request_id
        result["diff"] = {"before": _summaries(before), "after": _summaries(to_build)}
    return result


def _stored(connection: sa.Connection, project_id: str, requests: list[ServerRequest]) -> dict[str, InstanceRow]:
    """The rows of those requested servers that are there already, by name. Raises ConflictError when another server has
    the host name of a new one: DHCP and DNS know one owner of a name."""
    # by two indexes: OR would read all of the project's
    of_project = sa.select(instance.c.id).where(instance.c.project_id == project_id, instance.c.deleted == 0)
    same = sa.union(
        of_project.where(instance.c.name.in_([request.name for request in requests])),
        of_project.where(instance.c.hostname.in_([request.hostname for request in requests])),
    )
    rows = instance_rows(connection, instance.c.id.in_(same))
    owners = {row.hostname: row.name for row in rows}
    by_name = {row.name: row for row in rows}
    for request in requests:
        if request.name not in by_name and request.hostname in owners:
            raise ConflictError(
                f"server '{request.name}' would get the host name '{request.hostname}', which server "
                f"'{owners[request.hostname]}' has: choose another name or hostname"
            )
    return {request.name: by_name[request.name] for request in requests if request.name in by_name}


def _discard_failed_with_new_spec(
    connection: sa.Connection, owner_id: str, requests: list[ServerRequest], stored: dict[str, InstanceRow], now: int
) -> list[Instance]:
    """Take out of `stored`, and record as deleted, servers that failed before they ran and are wanted differently now.
    Otherwise a request that no host can hold would haunt its name: corrected, it would be tried as it first was."""
    failed = {name: row for name, row in stored.items() if row.vm_state == "error" and row.launched_at is None}
    failed = {name: row for name, row in failed.items() if row.task_state is None and row.host is None}
    records = {
        record["name"]: record for record in instances_by(connection, uuids=[row.uuid for row in failed.values()])
    }
    asked = asked_for(connection, [row.uuid for row in failed.values()])
    discarded = [
        stored.pop(request.name)
        for request in requests
        if request.name in records
        and (
            server_requests.differs_from(
                request,
                records[request.name],
                _as_named_now(connection, owner_id, request, asked.get(stored[request.name].uuid, Asked())),
            )
            or guest_requests.differs_from(request.guest, stored[request.name])
        )
    ]
    record_deleted(connection, discarded, now)
    return [records[row.name] for row in discarded]


def _as_named_now(connection: sa.Connection, owner_id: str, request: ServerRequest, asked: Asked) -> Asked:
    """Return what was asked for with the flavor and the image that the request names, as far as they are there."""
    flavor, image = None, None
    with contextlib.suppress(NotFoundError):
        flavor = request.flavor and flavor_of(lookups.flavor_by_name(connection, request.flavor))
    with contextlib.suppress(NovaliteError):  # also one that nobody can start: begun again, a server has its copy
        from_image = getattr(root_of(request.volumes), "source", IMAGE) == IMAGE
        image = from_image and request.image and image_of(lookups.image_by_name(connection, request.image, owner_id))
    return dataclasses.replace(asked, flavor=flavor or None, image=image or None)


def _split_existing(
    rows: t.Iterable[InstanceRow], now: int, dead_since: float
) -> tuple[list[InstanceRow], list[InstanceRow]]:
    """Split rows into those to leave alone and those to build again. A build that gave no sign of life after
    `dead_since` is nobody's. Raises ConflictError if another run is at one."""
    rest: list[InstanceRow] = []
    again: list[InstanceRow] = []
    for row in rows:
        age = max(0, now - row.updated_at)
        if row.task_state == "deleting":
            raise ConflictError(
                f"'{row.name}' is being deleted since {age} s: bring that to its end with state=absent first"
            )
        if row.vm_state == "building" and row.updated_at > dead_since:
            raise ConflictError(
                f"'{row.name}' is being built by another run since {age} s: wait for it, "
                "or, if that run was killed, set takeover=true"
            )
        if row.vm_state == "error" and row.host is not None:
            # it ran, and what is left of it is there: a build elsewhere would make a second one
            raise ConflictError(f"'{row.name}' is in error on {row.host}: rebuild it, or delete it first")
        (again if row.vm_state in ("building", "error") else rest).append(row)
    return rest, again


def _with_hints_resolved(
    connection: sa.Connection,
    project_id: str,
    requests: list[ServerRequest],
    stored: t.Mapping[str, InstanceRow],
    uuids: t.Mapping[str, str],
) -> list[ServerRequest]:
    """The requests with ids in their hints. Those of a server that is there are left: what they name may be gone."""
    to_make = {
        request.name: request
        for request in requests
        if request.name not in stored or stored[request.name].vm_state == "error"
    }
    hinted = server_groups.resolve_hints(
        connection, project_id, {name: request.hints for name, request in to_make.items()}, uuids
    )
    return [dataclasses.replace(request, hints=hinted.get(request.name, request.hints)) for request in requests]


def _new_instances(
    connection: sa.Connection,
    owner: JsonMapping,
    requests: list[ServerRequest],
    uuids: t.Mapping[str, str],
    user_id: str | None,
) -> list[NewInstance]:
    """Look up, once each, everything that the requests name, and check what can be checked without writing."""
    owner_id = owner["id"]
    asked_volumes = {request.name: request.volumes for request in requests}
    with_image = [request for request in requests if getattr(root_of(request.volumes), "source", IMAGE) == IMAGE]
    flavors = {name: flavor_of(lookups.flavor_by_name(connection, name)) for name in _named(requests, "flavor")}
    images = {name: image_of(lookups.image_by_name(connection, name, owner_id)) for name in _named(with_image, "image")}
    requests = [
        dataclasses.replace(request, volumes=volume_mappings.merged(images[request.image or ""], request.volumes))
        if request in with_image and root_of(request.volumes) is None
        else request
        for request in requests
    ]
    key_names = _named(requests, "key", False)
    keys = {name: lookups.keypair_by_name(connection, name, owner_id, user_id) for name in key_names}
    group_names = dict.fromkeys(name for request in requests for name in request.security_groups if name != "default")
    group_records = lookups.security_groups_by_name(connection, list(group_names), owner_id) if group_names else []
    groups = {record["name"]: record["id"] for record in group_records}
    network_names = dict.fromkeys(nic.name for request in requests for nic in request.networks or ())
    network_records = lookups.networks_by_name(connection, list(network_names), owner_id) if network_names else []
    networks = {record["name"]: NetworkRef(record["id"], record["name"], record["cidr"]) for record in network_records}
    alone: tuple[NetworkRequest, ...] = ()
    if lone := next((request for request in requests if request.networks is None), None):
        only = _network_of_choice(connection, owner, lone.name)
        networks[only.name] = only
        alone = (NetworkRequest(only.name),)

    new_instances = []
    for request in requests:
        nics = alone if request.networks is None else request.networks
        flavor = flavors[request.flavor or ""]
        volumes = server_volumes.resolved(connection, owner_id, request.volumes, private_types=True)
        root = root_of(volumes)
        image: Image
        if root is not None and root.source in (SNAPSHOT, VOLUME):
            image = server_volumes.image_for(connection, owner_id, root)
        else:
            image = images[request.image or ""]
        check_image(request.name, flavor, image, volumes)
        new_instances.append(
            NewInstance(
                uuid=uuids[request.name],
                request=request,
                flavor=flavor,
                image=image,
                public_key=None if request.key is None else keys[request.key]["public_key"],
                nics=tuple((networks[nic.name], nic.fixed_ip) for nic in nics),
                # None stands for the project's default group, which may have to be made first
                group_ids=tuple(groups.get(name) for name in request.security_groups),
                volumes=volumes,
                asked_volumes=asked_volumes[request.name],
                labels=NO_LABELS._replace(user_id=user_id),
            )
        )
    return new_instances


def _named(requests: list[ServerRequest], field: str, required: bool = True) -> list[str]:
    names: dict[str, None] = {}
    for request in requests:
        name = getattr(request, field)
        if name is None and required:
            raise NovaliteError(f"server '{request.name}' does not exist yet and names no {field}: give one")
        if name is not None:
            names[name] = None
    return list(names)


def _network_of_choice(connection: sa.Connection, owner: JsonMapping, name: str) -> NetworkRef:
    seen = networks_to_choose(connection, owner["id"])
    if not seen:
        raise NotFoundError(f"'{name}' needs a network, and project '{owner['name']}' sees none: create one first")
    if (chosen := server_requests.network_of_choice(seen)) is None:
        shown = ", ".join(each.name for each in seen[:5])
        raise NovaliteError(
            f"'{name}' names no network, and project '{owner['name']}' sees {len(seen)} ({shown}): name one in "
            "networks, or let one be the default (is_default of the module network)"
        )
    return chosen


def _absent(connection: sa.Connection, project_id: str, params: JsonMapping) -> JsonObject:
    names = server_requests.expand_names(params.get("servers") or [])
    to_delete = instances_by(connection, names=names, project_id=project_id)
    if not to_delete:
        return {"changed": False}
    call = by_playbook(connection)
    operations.mark_deleting(call, to_delete)
    return {
        "changed": True,
        "to_delete": instances_by(connection, uuids=[record["uuid"] for record in to_delete]),
        "request_id": call.request_id,
        "diff": {"before": _summaries(to_delete), "after": {}},
    }


def _summaries(instances: t.Iterable[Instance]) -> dict[str, JsonObject]:
    """Return the fields of each instance that a diff shows, by name."""
    return {
        record["name"]: {
            **{field: record[field] for field in _SUMMARY},
            "flavor": record["flavor"]["name"],
            "image": record["image"]["name"],
            "key": None if record["key"] is None else record["key"]["name"],
            "networks": [nic["network"]["name"] for nic in record["nics"]],
            "security_groups": [group["name"] for group in record["security_groups"]],
        }
        for record in instances
    }
