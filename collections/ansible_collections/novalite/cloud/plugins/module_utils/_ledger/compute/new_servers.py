# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Servers that the API is asked for: named by ids, of any name, recorded for a job to build.

What a playbook asks for by name goes through tasks/server.py. A name there is one server's handle; here it is only
shown, and several servers may have the same, so that each gets a handle of its own.
"""

from __future__ import annotations

import re
import typing as t
import unicodedata
import uuid as uuids
from dataclasses import replace

import sqlalchemy as sa

from ..._errors import ConflictError, NotFoundError, NovaliteError
from ..._json import JsonObject
from ..._model.instance import Flavor, Image
from ..._rules import server_requests, volume_mappings
from ..._rules.server_options import MAX_SERVERS
from ..._rules.server_requests import CreateRequest, NetworkRequest
from ..._rules.volume_asks import IMAGE, VolumeRequest, root_of
from ..db import clock
from ..db.tables import instance, network, security_group
from ..network import network_choices, ports
from ..placement import server_groups
from ..queries import lookups
from ..queries.compute.usage import usage
from ..queries.compute.views import flavor_of, image_of
from ..queries.identity import quota_records
from ..queries.network.subnet_records import range_of
from ..volumes import server_volumes
from .create import NetworkRef, NewInstance, amounts, check_image, networks_to_choose, record_servers

MAX_LABEL = 63  # RFC 1035
FEW = 10  # servers that are written before the quotas are looked at: counted once, they are not counted twice
_NO_LABEL = re.compile(r"[^a-z0-9-]+")

_TAKEN = sa.select(instance.c.name).where(
    instance.c.project_id == sa.bindparam("project_id"),
    instance.c.deleted == 0,
    instance.c.name.in_(sa.bindparam("names", expanding=True)),
)
_NETWORKS_BY_UUID = sa.select(network.c.id, network.c.uuid, network.c.name, network.c.cidr, network.c.owner).where(
    network.c.owner.in_(["", sa.bindparam("project_id")]), network.c.uuid.in_(sa.bindparam("uuids", expanding=True))
)
_GROUPS = sa.select(security_group.c.id, security_group.c.uuid, security_group.c.name).where(
    security_group.c.project_id == sa.bindparam("project_id"),
    sa.or_(
        security_group.c.name.in_(sa.bindparam("names", expanding=True)),
        security_group.c.uuid.in_(sa.bindparam("names", expanding=True)),
    ),
)


class Created(t.NamedTuple):
    uuids: list[str]
    reservation_id: str


def create(
    connection: sa.Connection,
    project_id: str,
    request: CreateRequest,
    *,
    request_id: str,
    user_id: str | None = None,
    private: bool = False,
) -> Created:
    """Record the servers that `request` asks for, all of them BUILD, in a handful of statements. With `private` flavors
    and volume types that the project may not use can be named, too.

    Raises NotFoundError for something that it names and the project does not see, ConflictError for an address in use
    and for a network that is not to be guessed, QuotaError, and NovaliteError for what cannot be.
    """
    # One writer for each project at a time: on PostgreSQL two requests could otherwise both count before one commits.
    lookups.lock_project(connection, project_id)
    now = clock.seconds(connection)
    limits = quota_records.quota_limits(connection, project_id)
    flavor = flavor_of(lookups.flavor_by_id(connection, request.flavor or "", private, project_id))
    request = _with_volumes(connection, project_id, request)
    volumes = server_volumes.resolved(connection, project_id, request.volumes, private)
    image = _image(connection, project_id, request, root_of(volumes))
    check_image(request.name, flavor, image, volumes)
    public_key = None if request.key is None else _public_key(connection, project_id, user_id, request.key)
    nics = _networks(connection, project_id, request.networks, private)
    port_ids = tuple(record.port for record in request.networks or ())
    group_ids = _groups_with_ports(connection, project_id, request, [port for port in port_ids if port is not None])
    count = _count(connection, project_id, request, flavor, len(nics), limits)
    if request.max_count > 1 and any(address for _network, address in nics):
        raise NovaliteError(
            "Failed to launch instances: max_count cannot be greater than 1 if an fixed_ip is specified."
        )
    if request.max_count > 1 and any(port_ids):
        raise NovaliteError("Unable to launch multiple instances with a single configured port ID.")
    made = [str(uuids.uuid4()) for _server in range(count)]
    names = [request.name] if request.max_count == 1 else [f"{request.name}-{number}" for number in range(1, count + 1)]
    hinted = _resolved(connection, project_id, request)
    reservation_id = f"r-{uuids.uuid4().hex[:8]}"
    plans = [
        NewInstance(
            uuid=uuid,
            request=replace(
                request,
                name=handle,
                hostname=hostname,
                chose_hostname=bool(request.hostname),
                flavor=flavor["name"],
                image=image["id"],
                hints=hinted,
            ),
            flavor=flavor,
            image=image,
            public_key=public_key,
            nics=nics,
            group_ids=group_ids,
            ports=port_ids if nics else (),
            labels=request.labels._replace(display_name=name, user_id=user_id, reservation_id=reservation_id),
            volumes=volumes,
        )
        for uuid, name, (handle, hostname) in zip(
            made, names, handles(connection, project_id, names, made, request.hostname)
        )
    ]
    record_servers(connection, project_id, plans, limits, request_id, now, user_id=user_id, open_default_group=True)
    return Created(made, reservation_id)


def _with_volumes(connection: sa.Connection, project_id: str, request: CreateRequest) -> CreateRequest:
    """The request with the volumes that its image names."""
    if not request.image or root_of(request.volumes) is not None:
        return request
    record = lookups.image_by_id(connection, request.image, project_id)
    volumes = volume_mappings.merged(record, request.volumes)
    if not request.image_disk and root_of(volumes) is None:
        raise NovaliteError(volume_mappings.BOOT_SEQUENCE)
    return replace(request, volumes=volumes)


def _image(connection: sa.Connection, project_id: str, request: CreateRequest, root: VolumeRequest | None) -> Image:
    if root is None or root.source == IMAGE:
        of = request.image if root is None else root.of
        return image_of(lookups.image_by_id(connection, of or "", project_id))
    described = image_of(lookups.image_by_id(connection, request.image, project_id)) if request.image else None
    image = server_volumes.image_for(connection, project_id, root, described)
    if not request.image:
        return image
    return {**image, "properties": {**image["properties"], volume_mappings.LAUNCHED_FROM: request.image}}


def label(name: str) -> str:
    """A host name label that is as near to `name` as can be; empty when nothing in it can be part of one."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    return _NO_LABEL.sub("-", plain).strip("-")[:MAX_LABEL].rstrip("-")


def handles(
    connection: sa.Connection, project_id: str, names: t.Sequence[str], made: t.Sequence[str], hostname: str = ""
) -> list[tuple[str, str]]:
    """(handle, host name) for each new server of a shown name and a UUID; no other server of the project has either,
    and both are in lower case. `hostname` is what the user wants it to be
    instead; with several servers it is numbered."""
    labels = [label(name) or f"server-{uuid[:8]}" for name, uuid in zip(names, made)]
    taken = set(connection.execute(_TAKEN, {"project_id": project_id, "names": sorted(set(labels))}).scalars())
    handle_pairs = []
    for number, (handle, uuid) in enumerate(zip(labels, made), 1):
        if handle in taken:
            handle = f"{handle[: MAX_LABEL - 9].rstrip('-')}-{uuid[:8]}"
        taken.add(handle)
        own = handle
        if hostname:
            own = hostname.lower() if len(names) == 1 else f"{hostname.lower()[: MAX_LABEL - 5]}-{number}"
        handle_pairs.append((handle, own))
    return handle_pairs


def _networks(
    connection: sa.Connection, project_id: str, requests: tuple[NetworkRequest, ...] | None, by_admin: bool
) -> tuple[tuple[NetworkRef, str | None], ...]:
    if requests is None:
        seen = networks_to_choose(connection, project_id)
        if not seen:
            raise NotFoundError("Unable to automatically allocate a network: the project sees none")
        if (chosen := server_requests.network_of_choice(seen)) is None:
            raise ConflictError("Multiple possible networks found, use a Network ID to be more specific.")
        return ((chosen, None),)
    if not requests:
        return ()
    uuids_ = [wish.name for wish in requests if wish.port is None]
    rows = connection.execute(_NETWORKS_BY_UUID, {"project_id": project_id, "uuids": uuids_}).all()
    network_by_uuid = {row.uuid: NetworkRef(row.id, row.name, row.cidr) for row in rows}
    owners = {row.uuid: row.owner for row in rows}
    nics: list[tuple[NetworkRef, str | None]] = []
    for wish in requests:
        if wish.port is not None:
            held = ports.attachable(connection, project_id, wish.port)
            nics.append((NetworkRef(held.network_id, held.name, held.cidr), None))
        elif wish.name not in network_by_uuid:
            raise NotFoundError(f"Network {wish.name} could not be found.")
        else:
            choice = {"fixed_ips:ip_address": wish.fixed_ip}
            network_choices.check(wish.name, owners[wish.name], project_id, choice, by_admin)
            within = None if wish.subnet is None else range_of(connection, wish.subnet)
            nics.append((network_by_uuid[wish.name]._replace(within=within), wish.fixed_ip))
    return tuple(nics)


def _groups_with_ports(
    connection: sa.Connection, project_id: str, request: CreateRequest, port_ids: t.Sequence[str]
) -> tuple[int | None, ...]:
    """Groups are a server's: those that were asked for, and those of the ports that it is given. With ports alone and
    no group named, the default group is not added, as in Nova."""
    if not port_ids:
        return _groups(connection, project_id, request.security_groups)
    of_ports: list[int | None] = list(ports.group_ids_of(connection, port_ids))
    alone = len(port_ids) == len(request.networks or ()) and not request.security_groups
    requested_groups = () if alone else _groups(connection, project_id, request.security_groups)
    return tuple(dict.fromkeys([*of_ports, *requested_groups]))


def _groups(connection: sa.Connection, project_id: str, names: tuple[str, ...]) -> tuple[int | None, ...]:
    """Their ids, without repetition; None stands for the default group, which may have to be made first."""
    if not names or set(names) == {"default"}:
        return (None,)
    rows = connection.execute(_GROUPS, {"project_id": project_id, "names": sorted(set(names))}).all()
    id_by_name: dict[str, int | None] = {"default": None}
    id_by_name.update({row.name: row.id for row in rows})
    id_by_name.update({row.uuid: row.id for row in rows})
    for name in names:
        if name not in id_by_name:
            raise NotFoundError(f"Security group {name} not found for project {project_id}.")
    return tuple(dict.fromkeys(id_by_name[name] for name in names))


def _public_key(connection: sa.Connection, project_id: str, user_id: str | None, name: str) -> str:
    try:
        return str(lookups.keypair_by_name(connection, name, project_id, user_id)["public_key"])
    except NotFoundError:
        raise NotFoundError("Invalid key_name provided.") from None


def _resolved(connection: sa.Connection, project_id: str, request: CreateRequest) -> JsonObject:
    """The hints with ids in them. A server that is not the project's is nothing to stay away from, as in Nova."""
    if not request.hints:
        return {}
    requested_hints = dict(request.hints)
    if "different_host" in requested_hints:
        mine = sa.select(instance.c.uuid).where(
            instance.c.project_id == project_id,
            instance.c.deleted == 0,
            instance.c.uuid.in_(requested_hints["different_host"]),
        )
        requested_hints["different_host"] = sorted(connection.execute(mine).scalars())
    if "host" in requested_hints:
        lookups.check_compute_hosts(connection, [requested_hints["host"]])
    return server_groups.resolve_hints(connection, project_id, {request.name: requested_hints}, {})[request.name]


def _count(
    connection: sa.Connection,
    project_id: str,
    request: CreateRequest,
    flavor: Flavor,
    nics: int,
    limits: t.Mapping[str, int],
) -> int:
    """Return the number of servers to make: as many as the quotas allow, if that is enough."""
    if request.min_count == request.max_count <= FEW:
        return request.max_count
    each = amounts([flavor], nics)
    used = usage(connection, project_id, server_requests.limited(each, limits))
    room = [(limits[what] - used[what]) // each[what] for what in used if each[what]]
    count = min([request.max_count, *room])
    if count < request.min_count:
        # multiplied, for min_count may be 10^9: a list of so many flavors takes all memory
        requested_amounts = {what: request.min_count * amount for what, amount in each.items()}
        server_requests.check_quota(requested_amounts, used, limits)
    if count > MAX_SERVERS:
        raise NovaliteError(f"{count} servers in one request: ask for at most {MAX_SERVERS}")
    return count
