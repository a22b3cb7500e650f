# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""New servers, whoever asks for them: what each may be, how many a project may have, all rows that record them,
and builds that are begun again.

The playbooks' door (tasks/server.py) looks up what is called by names, and a server's name is its handle; the
APIs' (new_servers.py) looks up ids, and a name is only shown. Both end here.
"""

from __future__ import annotations

import time
import typing as t
from dataclasses import asdict, dataclass

import sqlalchemy as sa

from ..._addressing import pools
from ..._addressing.macs import MAC_PREFIX
from ..._errors import ConflictError, NovaliteError
from ..._guest import image_properties
from ..._json import JsonObject
from ..._model import hardware
from ..._model.instance import Flavor, Image
from ..._model.rows import InstanceRow
from ..._rules import ha_wishes
from ..._rules.guest_requests import wants_config_drive
from ..._rules.ha_wishes import HaWishes
from ..._rules.server_requests import (
    NO_LABELS,
    Asked,
    Labels,
    ServerRequest,
    check_fits,
    check_own_quota,
    check_quota,
    limited,
)
from ..._rules.volume_asks import VolumeRequest, root_of
from ..db.tables import instance, instance_action, instance_security_group, network, vif
from ..db.tables_addresses import OF_VIF
from ..identity.new_ids import new_uuids
from ..instances import actions
from ..instances.actions import swap
from ..network import dns_names
from ..network.addresses import release_addresses
from ..network.dns_names import Unnamed
from ..network.pool_claims import claim_free, claim_one
from ..network.preexisting_ports import give, interfaces_to_release
from ..network.vifs import insert_vifs
from ..placement.claims import release_claims
from ..placement.server_groups import join
from ..queries.compute import launch_calls
from ..queries.compute.usage import usage
from ..queries.counts import is_any
from ..queries.identity.projects import project_wishes
from ..queries.placement.zones import in_zone
from ..security.security_groups import ensure_default_group
from ..volumes import ha_disks, server_volumes
from .cdroms import at_start, check_root

_INSERT = sa.insert(instance).returning(instance.c.uuid, instance.c.id)


class NetworkRef(t.NamedTuple):
    """Id, name and CIDR of a network, for its addresses and for messages."""

    id: int
    name: str
    cidr: str | None  # None: it has no subnet, and record_servers() refuses it
    is_default: bool = False
    within: str | None = None  # the range that an address is to be of, where the network has several


@dataclass(frozen=True)
class NewInstance:
    """Instance to be written: its request, with everything that it names looked up."""

    uuid: str
    request: ServerRequest
    flavor: Flavor
    image: Image
    public_key: str | None
    nics: tuple[tuple[NetworkRef, str | None], ...]  # with the IPv4 address that was asked for
    group_ids: tuple[int | None, ...]  # None: the project's default group
    labels: Labels = NO_LABELS
    volumes: tuple[VolumeRequest, ...] = ()  # with ids in them
    asked_volumes: tuple[VolumeRequest, ...] | None = None  # as they were named, before all was looked up
    ports: tuple[str | None, ...] = ()  # beside `nics`: the port that is taken; None: an interface is made


def networks_to_choose(connection: sa.Connection, project_id: str) -> list[NetworkRef]:
    """Return the networks that the project sees and that have addresses: network_of_choice() decides among them."""
    seen = sa.select(network.c.id, network.c.name, network.c.cidr, network.c.is_default).where(
        network.c.owner.in_(["", project_id]), network.c.cidr.is_not(None)
    )
    return [NetworkRef(*row) for row in connection.execute(seen.order_by(network.c.name))]


def _check_places(connection: sa.Connection, plans: t.Sequence[NewInstance]) -> None:
    """Raise NovaliteError for a network without a subnet, and for a zone that no compute host is in."""
    for of_network, _address in (nic for plan in plans for nic in plan.nics):
        if of_network.cidr is None:
            raise NovaliteError(f"Network {of_network.name} requires a subnet in order to boot instances on.")
    # "zone:host" names a host besides: the scheduler says whether there is such a one
    for zone in {_zone_and_host(plan)[0] for plan in plans} - {None}:
        if not is_any(connection, in_zone(connection, str(zone))):
            raise NovaliteError(f"The requested availability zone is not available: no compute host is in '{zone}'")


def _zone_and_host(plan: NewInstance) -> tuple[str | None, str | None]:
    """Return the zone and the host that are asked for; a hint names the host or, as in Nova, the zone does."""
    zone, _colon, host = (plan.request.availability_zone or "").partition(":")
    return zone or None, plan.request.hints.get("host") or host or None


def check_image(name: str, flavor: Flavor, image: Image, volumes: t.Sequence[VolumeRequest]) -> None:
    """Raise NovaliteError for an image that a server cannot start from: now, and not when a host is to build it."""
    # the volume that it starts from is looked at when that is recorded
    check_fits(name, flavor if root_of(volumes) is None else {**flavor, "root_gb": 0}, image)
    if root_of(volumes) is None:
        check_root(name, flavor["root_gb"], image)
    image_properties.check(image)
    hardware.checked(flavor, image)


def amounts(flavors: t.Sequence[Flavor], nics: int) -> dict[str, int]:
    """Return the quota usage of servers of these flavors, one for each, with so many interfaces in all."""
    return {
        "instances": len(flavors),
        "cores": sum(flavor["vcpus"] for flavor in flavors),
        "ram": sum(flavor["memory_mb"] for flavor in flavors),
        "fixed_ips": nics,
    }


def record_servers(
    connection: sa.Connection,
    project_id: str,
    plans: list[NewInstance],
    limits: t.Mapping[str, int],
    request_id: str,
    now: int,
    *,
    mac_prefix: str = MAC_PREFIX,
    user_id: str | None = None,
    open_default_group: bool = False,
) -> list[Unnamed]:
    """Insert what `plans` say, in a handful of statements whatever their number. With `open_default_group`, a default
    group that is made for them lets its own members in. Returns those that have no name on one of their networks.

    Raises ConflictError when a name, a host name that the user chose, or an address that was asked for, is taken,
    NovaliteError for an address that the network does not have, a network without a subnet and an unknown zone, and
    QuotaError. The project's quotas are looked at
    after the writes: what was counted before may have grown since, where the database lets two transactions read at
    once.
    """
    if not plans:
        return []
    _check_places(connection, plans)
    calls: list[launch_calls.Call] = []
    for plan in plans:
        check_own_quota(plan.request, limits)
    asked_at = time.time()
    with launch_calls.timed(calls, "server"):
        _insert_rows(connection, project_id, plans, now, open_default_group)
        fixed, chosen_here = _give_interfaces(connection, plans, mac_prefix)
        chosen = {plan.uuid for plan in plans if plan.request.chose_hostname}
        unnamed = dns_names.claim(connection, [plan.uuid for plan in plans], chosen)
    for plan in plans:
        if plan.volumes:
            zone, host = _zone_and_host(plan)
            server_volumes.give(
                connection, project_id, plan.uuid, plan.volumes, image=plan.image, user_id=user_id, zone=zone, host=host
            )
    kept: JsonObject = {"asked_at": round(asked_at, 3), "calls": calls}
    ha_disks.check(connection, [plan.uuid for plan in plans])
    details: dict[str, JsonObject] = {
        plan.uuid: {"hints": plan.request.hints, "fixed_ips": fixed[plan.uuid], **kept} for plan in plans
    }
    for plan in plans:
        if chosen_here[plan.uuid]:
            details[plan.uuid]["chosen_here"] = chosen_here[plan.uuid]
        if plan.asked_volumes is not None:
            details[plan.uuid]["volumes"] = [asdict(volume) for volume in plan.asked_volumes]
    whose = None if user_id is None else project_id
    actions.start(connection, "create", details, request_id, now, user_id=user_id, project_id=whose)
    requested_amounts = amounts([plan.flavor for plan in plans], sum(len(plan.nics) for plan in plans))
    used = usage(connection, project_id, limited(requested_amounts, limits))
    check_quota(requested_amounts, {what: used[what] - requested_amounts[what] for what in used}, limits)
    return unnamed


def _insert_rows(
    connection: sa.Connection, project_id: str, plans: list[NewInstance], now: int, open_default_group: bool
) -> None:
    """Insert the instances, and their memberships in security groups and in server groups."""
    inside = {plan.image["id"]: at_start(connection, project_id, plan.image) for plan in plans}
    of_project = project_wishes(connection, project_id)
    rows = [{**_row(plan, project_id, now, of_project), "cdroms": inside[plan.image["id"]]} for plan in plans]
    try:
        made = connection.execute(_INSERT, rows).all()
    except sa.exc.IntegrityError as error:
        raise ConflictError("another run made a server of one of these names just now: run again") from error
    ids: dict[str, int] = {row.uuid: row.id for row in made}
    default = None
    if any(None in plan.group_ids for plan in plans):
        default = ensure_default_group(connection, project_id, open_to_members=open_default_group)
    links = [
        {"instance_id": ids[plan.uuid], "group_id": default if group is None else group}
        for plan in plans
        for group in plan.group_ids
    ]
    if links:
        connection.execute(sa.insert(instance_security_group), links)
    groups = {plan.uuid: plan.request.hints["group"] for plan in plans if "group" in plan.request.hints}
    join(connection, project_id, groups)


def _give_interfaces(
    connection: sa.Connection, plans: list[NewInstance], mac_prefix: str
) -> tuple[dict[str, dict[str, str]], dict[str, list[str]]]:
    """Make or take the interfaces; return of each server those with an address of their own, and which of them got one
    that was chosen here, as nobody asked for any but a range."""
    new: list[JsonObject] = []
    claims: list[tuple[str, str, NetworkRef, str | None]] = []  # server, interface, and the address that it is to have
    made = iter(new_uuids(connection, sum(len(plan.nics) for plan in plans)))
    for plan in plans:
        ports = plan.ports or (None,) * len(plan.nics)
        for position, ((of_network, address), port) in enumerate(zip(plan.nics, ports)):
            number = port or next(made)
            if port is None:
                own = {"instance_uuid": plan.uuid, "network_id": of_network.id, "position": position}
                new.append({"id": number, **own})
            else:
                give(connection, port, plan.uuid, position)
            if address is not None or of_network.within is not None:
                claims.append((plan.uuid, number, of_network, address))
    insert_vifs(connection, new, mac_prefix)
    fixed: dict[str, dict[str, str]] = {plan.uuid: {} for plan in plans}
    chosen_here: dict[str, list[str]] = {plan.uuid: [] for plan in plans}
    for server, number, of_network, address in claims:
        # taken now, not when the server has a host: who comes second hears of it before anything is built
        owner = OF_VIF + number
        if address is not None:
            claim_one(connection, of_network, owner, pools.to_int(address))
        else:
            ((_owner, ip, _released_at),) = claim_free(connection, of_network, [owner], [of_network.within or ""])
            address = pools.to_text(ip)
            chosen_here[server].append(number)
        fixed[server][number] = address
    return fixed, chosen_here


def _row(plan: NewInstance, project_id: str, now: int, of_project: HaWishes) -> JsonObject:
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
        **ha_wishes.resolved(plan.request.ha, ha_wishes.of_flavor(plan.flavor), of_project),
        **plan.labels._asdict(),
        "tags": sorted(plan.labels.tags),
    }


def asked_for(connection: sa.Connection, uuids: t.Collection[str]) -> dict[str, Asked]:
    """The requests for these servers, as far as they are kept, by UUID."""
    action = instance_action.c
    query = sa.select(action.instance_uuid, action.details).where(
        action.instance_uuid.in_(sorted(uuids)), action.action == "create"
    )
    asked = {}
    for row in connection.execute(query.order_by(action.id)):
        details = row.details
        if "fixed_ips" in details:  # that of a build that was begun again says nothing
            chosen_here = details.get("chosen_here", ())
            addresses = {number: ip for number, ip in details["fixed_ips"].items() if number not in chosen_here}
            asked[row.instance_uuid] = Asked(addresses, details.get("volumes"))
    return asked


def begin_again(
    connection: sa.Connection, rows: t.Sequence[InstanceRow], passwords: t.Mapping[str, str], request_id: str, now: int
) -> None:
    """Make failed builds, and those of a run that died, new ones: same id, UUID, MACs, and what they were made with. Of
    a password there is no telling whether it is another one: the hash that is given now (by name) counts."""
    failed = [row.uuid for row in rows if row.vm_state == "error"]
    release_claims(connection, failed)
    release_addresses(connection, interfaces_to_release(connection, failed), now)
    for row in rows:
        values = {
            "vm_state": "building",
            "task_state": "scheduling",
            "power_state": 0,
            # A run that died may have left a guest that runs: only on that same host will it be found and kept.
            "host": row.host if row.vm_state == "building" else None,
            "fault": None,
            "attempts": [],
            "password_hash": passwords.get(row.name, row.password_hash),
            "updated_at": now,
        }
        same_task = instance.c.task_state.is_not_distinct_from(row.task_state)
        if not swap(connection, row.uuid, values, instance.c.vm_state == row.vm_state, same_task):
            raise ConflictError(f"'{row.name}' was changed by another run just now: run again")
    uuids = [row.uuid for row in rows]
    actions.abandon(connection, uuids, "ended without a result; begun again", now)
    requested_addresses = _requested_addresses(connection, failed)
    actions.start(connection, "create", {uuid: {} for uuid in uuids}, request_id, now)
    for vif_id, where, address in requested_addresses:
        claim_one(connection, where, f"vif:{vif_id}", pools.to_int(address))


def _requested_addresses(connection: sa.Connection, uuids: list[str]) -> list[tuple[str, NetworkRef, str]]:
    """(interface, network, address) for each address that these servers were asked for with."""
    fixed_ips = connection.execute(
        sa.select(instance_action.c.details["fixed_ips"]).where(
            instance_action.c.instance_uuid.in_(uuids), instance_action.c.action == "create"
        )
    ).scalars()
    address_by_vif = {vif_id: address for addresses in fixed_ips for vif_id, address in (addresses or {}).items()}
    rows = connection.execute(
        sa.select(vif.c.id.label("vif_id"), network.c.id, network.c.name, network.c.cidr)
        .join(network, network.c.id == vif.c.network_id)
        .where(vif.c.id.in_(sorted(address_by_vif)))
    )
    return [(row.vif_id, NetworkRef(row.id, row.name, row.cidr), address_by_vif[row.vif_id]) for row in rows]
