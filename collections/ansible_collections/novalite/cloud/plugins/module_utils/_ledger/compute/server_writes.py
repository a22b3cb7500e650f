# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Writing new instances: rows, interfaces with their MACs, addresses asked for, groups, the record of the action."""

from __future__ import annotations

import typing as t
import uuid
from dataclasses import dataclass

import sqlalchemy as sa

from ..._addressing import pools
from ..._addressing.macs import MAC_PREFIX
from ..._errors import ConflictError
from ..._json import JsonObject
from ..._model.instance import Flavor, Image
from ..._rules.guest_requests import wants_config_drive
from ..._rules.volume_asks import VolumeRequest, root_of
from ..db.tables import instance, instance_security_group
from ..network.pool_claims import claim_one
from ..network.preexisting_ports import give
from ..network.vifs import insert_vifs
from ..placement.server_groups import join
from ..queries import actions
from ..security.security_groups import ensure_default_group
from ..volumes import server_volumes
from .server_requests import ServerRequest

_INSERT = sa.insert(instance).returning(instance.c.uuid, instance.c.id)


class NetworkRef(t.NamedTuple):
    """What it takes to find a network's addresses, and to speak of it."""

    id: int
    name: str
    cidr: str


class Labels(t.NamedTuple):
    """What the APIs show of an instance, and playbooks do not ask for."""

    display_name: str | None = None
    description: str | None = None
    user_id: str | None = None
    reservation_id: str | None = None
    tags: tuple[str, ...] = ()
    access_ip_v4: str | None = None
    access_ip_v6: str | None = None
    disk_config: str = "MANUAL"


NO_LABELS = Labels()


@dataclass(frozen=True)
class NewInstance:
    """One instance to be written: its request with everything that it names looked up."""

    uuid: str
    request: ServerRequest
    flavor: Flavor
    image: Image
    public_key: str | None
    nics: tuple[tuple[NetworkRef, str | None], ...]  # with the IPv4 address that was asked for
    group_ids: tuple[int | None, ...]  # None: the project's default group
    labels: Labels = NO_LABELS
    volumes: tuple[VolumeRequest, ...] = ()  # with ids in them
    ports: tuple[str | None, ...] = ()  # beside `nics`: the port that is taken; None: an interface is made


def write(
    connection: sa.Connection,
    project_id: str,
    plans: list[NewInstance],
    request_id: str,
    now: int,
    mac_prefix: str = MAC_PREFIX,
    user_id: str | None = None,
) -> None:
    """Insert what `plans` say, in a handful of statements whatever their number.

    Raises ConflictError when a name, or an address that was asked for, is taken, and NovaliteError for an address that
    the network does not have.
    """
    if not plans:
        return
    try:
        made = connection.execute(_INSERT, [_row(plan, project_id, now) for plan in plans]).all()
    except sa.exc.IntegrityError as error:
        raise ConflictError("another run made a server of one of these names just now: run again") from error
    ids: dict[str, int] = {row.uuid: row.id for row in made}
    default = None
    if any(None in plan.group_ids for plan in plans):
        default = ensure_default_group(connection, project_id)
    links = [
        {"instance_id": ids[plan.uuid], "group_id": default if group is None else group}
        for plan in plans
        for group in plan.group_ids
    ]
    if links:
        connection.execute(sa.insert(instance_security_group), links)
    hints = {plan.uuid: plan.request.hints for plan in plans}
    join(connection, project_id, {hint: hints[hint]["group"] for hint in hints if "group" in hints[hint]})
    new: list[JsonObject] = []
    asked: list[tuple[str, str, NetworkRef, str]] = []  # server, interface, and the address that it is to have
    for plan in plans:
        ports = plan.ports or (None,) * len(plan.nics)
        for position, ((network, address), port) in enumerate(zip(plan.nics, ports)):
            number = port or str(uuid.uuid4())
            if port is None:
                own = {"instance_uuid": plan.uuid, "network_id": network.id, "position": position}
                new.append({"id": number, **own})
            else:
                give(connection, port, plan.uuid, position)
            if address is not None:
                asked.append((plan.uuid, number, network, address))
    insert_vifs(connection, new, mac_prefix)
    fixed: dict[str, dict[str, str]] = {plan.uuid: {} for plan in plans}
    for server, number, network, address in asked:
        # taken now, not when the server has a host: who comes second hears of it before anything is built
        claim_one(connection, network, f"vif:{number}", pools.to_int(address))
        fixed[server][number] = address
    for plan in plans:
        if plan.volumes:
            server_volumes.give(
                connection,
                project_id,
                plan.uuid,
                plan.volumes,
                image=plan.image,
                user_id=user_id,
                zone=plan.request.availability_zone,
                host=plan.request.hints.get("host"),
            )
    details = {plan.uuid: {"hints": plan.request.hints, "fixed_ips": fixed[plan.uuid]} for plan in plans}
    whose = None if user_id is None else project_id
    actions.start(connection, "create", details, request_id, now, user_id=user_id, project_id=whose)


def _row(plan: NewInstance, project_id: str, now: int) -> JsonObject:
    request = plan.request
    return {
        "uuid": plan.uuid,
        "project_id": project_id,
        "name": request.name,
        "hostname": request.hostname,
        "flavor": plan.flavor,
        "image": plan.image,
        "key_name": request.key,
        "public_key": plan.public_key,
        "availability_zone": request.availability_zone,
        "metadata": request.metadata,
        "vm_state": "building",
        "task_state": "scheduling",
        "attempts": [],
        "created_at": now,
        "updated_at": now,
        "user_data": request.guest.user_data,
        "config_drive": wants_config_drive(request.guest, plan.image, root_of(plan.volumes) is not None),
        "files": request.guest.file_records,
        "password_hash": request.guest.password_hash,
        "password_optional": request.guest.password_optional,
        **plan.labels._asdict(),
        "tags": sorted(plan.labels.tags),
    }
