# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Fixed IPs: one row for each address of a network's pool, taken and given back by guarded writes.

Nova's lifecycle without its race (`fixed_ip_associate` lacked `instance_uuid IS NULL`): free, then owned, then free
again with the time of its release. Who had an address gets it again; otherwise the one that was free for longest goes
out first, so that one which a guest may still hold (a lease, an ARP cache) is the last choice.
"""

from __future__ import annotations

import dataclasses
import typing as t

import netaddr
import sqlalchemy as sa

from ..._addressing import pools
from ..._addressing.places import host_takes
from ..._errors import ConflictError, NotFoundError, NovaliteError, PoolExhaustedError
from ..._model.instance import Instance, Nic
from ..._model.instance import Network as NicNetwork
from ..._rules.records import Changes
from ..db import clock
from ..db.tables import fixed_ip as pool_table
from ..db.tables import instance, network, vif
from ..db.tables_addresses import OF_VIF, host_owner
from ..db.tables_migrations import UNDER_WAY, migration
from ..db.tables_networking import MOST_RANGES
from ..queries.network import host_networks
from ..queries.network.host_networks import Further, Ipv4Range, OwnAddresses
from ..queries.network.network_records import Network
from .ipv6_claims import take_ipv6
from .pool_claims import claim_again, claim_free, claim_one, held_by

CLAIM_ATTEMPTS = 3
_NETWORKS = sa.select(network).where(network.c.id.in_(sa.bindparam("ids", expanding=True)))


@dataclasses.dataclass(frozen=True)
class Addressed:
    """Instances whose interfaces have their addresses."""

    instances: list[Instance]
    taken: int  # how many addresses are new
    changes: Changes  # the new addresses, by instance and network
    warnings: list[str]  # what was taken out of quarantine


def give_addresses(connection: sa.Connection, instances: t.Sequence[Instance]) -> Addressed:
    """Have an address for each interface of these instances, or for none.

    An interface that has an address keeps it; one that names one (`ip`, `requested_ip`) gets that one; one that had one
    gets it again; the others get what was free for longest. On a network with DHCP, or without a gateway, each compute
    host gets an address of its own (Nova's multi_host), returned as `dhcp_server`. IPv6 addresses are made as the
    network says.

    Raises NovaliteError when a pool has too few addresses left, and three different errors for an address that was
    asked for: outside of the network, reserved, in use.
    """
    now = clock.seconds(connection)
    interfaces_and_hosts = _interfaces_and_hosts(instances)
    networks = _networks(connection, interfaces_and_hosts)
    further = host_networks.further_ranges(connection, interfaces_and_hosts)
    warnings: list[str] = []
    texts: dict[int, dict[str, str]] = {}  # network -> owner -> address
    taken: dict[int, set[str]] = {}
    for network_id in sorted(interfaces_and_hosts):
        row, (interfaces, hosts) = networks[network_id], interfaces_and_hosts[network_id]
        if network_id in further:
            with connection.begin_nested():  # for all of them, or for none
                owned, new = _claim_in_ranges(connection, row, further[network_id], interfaces, hosts, now, warnings)
        else:
            owners = _own_addresses(_named(hosts)) | interfaces if _host_serves(row, row.dhcp) else interfaces
            owned, new = claim_addresses(connection, row, owners, now, warnings)
        texts[network_id] = {owner: pools.to_text(number) for owner, number in owned.items()}
        taken[network_id] = set(new)
    ipv6 = take_ipv6(connection, networks, [nic for server in instances for nic in server["nics"]])
    changes = Changes()
    serving = {host for number in further for host in interfaces_and_hosts[number][1] if host}
    host_ranges = _HostRanges(networks, further, host_networks.addresses(connection, list(further), serving, further))
    filled = [_filled(server, texts, ipv6, taken, changes, host_ranges) for server in instances]
    return Addressed(filled, sum(map(len, taken.values())), changes, warnings)


class _HostRanges(t.NamedTuple):
    """Networks of several ranges, with all addresses that hosts have there."""

    networks: t.Mapping[int, Network]
    further: Further
    addresses: OwnAddresses


Hosts = dict["str | None", set[str]]  # host -> the owners that are its guests


def _claim_in_ranges(
    connection: sa.Connection,
    row: Network,
    further: t.Sequence[Ipv4Range],
    interfaces: t.Mapping[str, str | None],
    hosts: Hosts,
    now: int,
    warnings: list[str],
) -> tuple[dict[str, int], list[str]]:
    """Claim addresses as claim_addresses() does, in a network of several ranges: its hosts get an address in each range
    in which their guests have one. In the first they get one, too, while it has some: what a host's guests know it by
    is to stay when others come."""
    names = _named(hosts)
    cidrs = [row.cidr or "", *(each.cidr for each in further)]
    owned, new = claim_addresses(connection, row, interfaces, now, warnings, cidrs)
    numbers = [owner[len(OF_VIF) :] for owner in interfaces]
    more = sa.select(pool_table.c.further_of, pool_table.c.ip).where(pool_table.c.further_of.in_(numbers))
    held = [*owned.items(), *((OF_VIF + number, ip) for number, ip in connection.execute(more))]
    dhcp = {0: row.dhcp, **{each.position: each.dhcp for each in further}}
    for position, cidr in zip(dhcp, cidrs):
        if not _host_serves(row, dhcp[position]):
            continue
        around = netaddr.IPNetwork(cidr)
        here = {owner for owner, ip in held if around.first <= ip <= around.last}
        for host in names:
            if not hosts[host] & here and position:
                continue
            own: dict[str, str | None] = {host_owner(host, position): None}
            try:
                of_host, added = claim_addresses(connection, row, own, now, warnings, [cidr])
            except PoolExhaustedError:
                if hosts[host] & here:
                    raise
                continue  # the first range is full, and none of its guests is in that
            owned, new = {**owned, **of_host}, [*new, *added]
    return owned, new


def _interfaces_and_hosts(instances: t.Sequence[Instance]) -> dict[int, tuple[dict[str, str | None], Hosts]]:
    """Per network: the interfaces as owners with the address that each names; the hosts, each with those there."""
    interfaces_and_hosts: dict[int, tuple[dict[str, str | None], Hosts]] = {}
    for server in instances:
        for nic in server["nics"]:
            owners, hosts = interfaces_and_hosts.setdefault(nic["network"]["id"], ({}, {}))
            owner = OF_VIF + nic["id"]
            owners[owner] = nic.get("ip") or nic.get("requested_ip")
            if not server.get("host"):
                hosts[None] = {server["name"]}
            else:
                hosts.setdefault(server["host"], set()).add(owner)
    return interfaces_and_hosts


def _networks(connection: sa.Connection, network_ids: t.Collection[int]) -> dict[int, Network]:
    network_by_id = {
        row["id"]: Network.of(row) for row in connection.execute(_NETWORKS, {"ids": sorted(network_ids)}).mappings()
    }
    for network_id in network_ids:
        if network_id not in network_by_id:
            raise NotFoundError(f"the ledger has no network with the id {network_id}: it was deleted meanwhile")
    return network_by_id


def _host_serves(row: Network, dhcp: bool) -> bool:
    return host_takes(dhcp, row.gateway, row.cidr_v6, row.gateway_v6)


def _named(hosts: Hosts) -> list[str]:
    for name in hosts.get(None, ()):
        raise NovaliteError(f"'{name}' has no compute host yet: run the scheduler before fixed_ip")
    return [host for host in hosts if host]


def _own_addresses(hosts: t.Iterable[str]) -> dict[str, str | None]:
    return {host_owner(host): None for host in hosts}


def claim_addresses(
    connection: sa.Connection,
    row: Network,
    owners: t.Mapping[str, str | None],
    now: int,
    warnings: list[str],
    ranges: t.Sequence[str] = (),
) -> tuple[dict[str, int], list[str]]:
    """Give each of `owners` in the network `row` the address that it names, or (None) any: of the first of these
    `ranges` of the network that has one, or of all that it has. All of them, or none.

    Returns (the address of each, those that had none before); appends to `warnings` what was taken out of quarantine.
    """
    if connection.dialect.name == "sqlite":  # nobody else writes until the end of this transaction
        return _claim_once(connection, row, owners, now, warnings, ranges)
    for _attempt in range(CLAIM_ATTEMPTS):
        try:
            with connection.begin_nested():
                return _claim_once(connection, row, owners, now, warnings, ranges)
        except sa.exc.IntegrityError:  # another run took an address for the same owner: a host's own, mostly
            continue
    raise ConflictError(f"other runs take addresses in network '{row.name}' for the same owners: run again")


def _claim_once(
    connection: sa.Connection,
    row: Network,
    owners: t.Mapping[str, str | None],
    now: int,
    warnings: list[str],
    ranges: t.Sequence[str],
) -> tuple[dict[str, int], list[str]]:
    owned, had = held_by(connection, row.id, list(owners))
    missing = [owner for owner in owners if owner not in owned]
    for owner, address in owners.items():
        if address is None:
            continue
        number = pools.to_int(address)
        if owner not in owned:
            claim_one(connection, row, owner, number)
            owned[owner] = number
        elif owned[owner] != number:
            raise ConflictError(
                f"interface {owner[4:]} has {pools.to_text(owned[owner])} in network '{row.name}' and cannot get "
                f"{address} as well: release the one first"
            )
    if had:
        around = [netaddr.IPNetwork(cidr) for cidr in ranges]
        had = {
            owner: number
            for owner, number in had.items()
            if owner not in owned and (not around or any(each.first <= number <= each.last for each in around))
        }
        owned.update(claim_again(connection, row.id, had))
    rest = [owner for owner in missing if owner not in owned]
    for owner, number, released_at in claim_free(connection, row, rest, ranges):
        owned[owner] = number
        if released_at > now - row.quarantine_seconds:
            warnings.append(
                f"network '{row.name}': {pools.to_text(number)} was released {now - released_at} s ago, within its "
                f"quarantine of {row.quarantine_seconds} s, for no other address is free"
            )
    return owned, missing


def _filled(
    server: Instance,
    texts: t.Mapping[int, t.Mapping[str, str]],
    ipv6: t.Mapping[str, str],
    taken: t.Mapping[int, t.Collection[str]],
    changes: Changes,
    host_ranges: _HostRanges,
) -> Instance:
    """An instance with the addresses of its interfaces; those that are new are noted in `changes`."""
    nics: list[Nic] = []
    new: dict[str, str] = {}
    host = server.get("host") or ""
    for nic in server["nics"]:
        of_network, owner = nic["network"], OF_VIF + nic["id"]
        of_owners = texts[of_network["id"]]
        address = of_owners[owner]
        if owner in taken[of_network["id"]]:
            new[of_network["name"]] = address
        of_host = of_owners.get(host_owner(host))
        if of_network["id"] in host_ranges.further:
            row, ranges = host_ranges.networks[of_network["id"]], host_ranges.further[of_network["id"]]
            by_row = {key: getattr(row, key) for key in host_networks.OF_RANGE}
            of_network = t.cast(NicNetwork, {**of_network, **by_row})
            own = host_ranges.addresses.get((row.id, host), {})
            of_network, of_host = host_networks.on_host(of_network, ranges, own, address)
        nics.append({**nic, "network": of_network, "ip": address, "ipv6": ipv6.get(nic["id"]), "dhcp_server": of_host})
    if new:
        name = server["name"]  # another project may have one of the same name in the same call
        changes.before[name] = {**changes.before.get(name, {}), **dict.fromkeys(new)}
        changes.after[name] = {**changes.after.get(name, {}), **new}
    return {**server, "nics": nics}


def release_addresses(connection: sa.Connection, vif_ids: t.Iterable[str], now: int | None = None) -> int:
    """Give back the addresses of these network interfaces and return how many there were.

    `now` (seconds since the epoch; default: the clock) starts their quarantine. Works whether or not the rows of
    the interfaces are still there; an interface without an address is no error.
    """
    owners = sorted({f"vif:{vif_id}" for vif_id in vif_ids})
    if not owners:
        return 0
    now = clock.seconds(connection) if now is None else now
    free = {"owner": None, "further_of": None, "last_owner": pool_table.c.owner, "released_at": now}
    released = connection.execute(
        sa.update(pool_table)
        # naming the networks lets the unique key (network, owner) find the rows instead of reading whole pools
        .where(pool_table.c.network_id.in_(sa.select(network.c.id)), pool_table.c.owner.in_(owners))
        .values(**free)
    )
    numbers = [owner[len(OF_VIF) :] for owner in owners]
    further = connection.execute(sa.update(pool_table).where(pool_table.c.further_of.in_(numbers)).values(**free))
    return released.rowcount + further.rowcount


def release_host_address(connection: sa.Connection, network_id: int, host: str, now: int | None = None) -> bool:
    """Give back the addresses of `host` itself in a network (DHCP server, gateway) when no instance there needs them.

    True when they were given back; false when the host had none, or an instance on it, or one that is on its way to it,
    still has an address of the network. The guard is in the write, so an instance that arrives at the same time keeps
    its gateway. In a network of several ranges it keeps all that it has as long: its bridge has them, too.
    """
    owners = [host_owner(host, position) for position in range(MOST_RANGES)]
    own = sa.and_(pool_table.c.network_id == network_id, pool_table.c.owner.in_(owners))
    # On PostgreSQL a statement sees what was committed when it began: whoever uses this address is waited for here, so
    # that the next one sees what they did
    connection.execute(sa.select(pool_table.c.ip).where(own).with_for_update()).all()
    holds = pool_table.alias("holds")
    guests = (
        sa.select(sa.literal(1))
        .select_from(
            vif.join(instance, instance.c.uuid == vif.c.instance_uuid).join(
                holds, sa.and_(holds.c.network_id == vif.c.network_id, holds.c.owner == OF_VIF + vif.c.id)
            )
        )
        .where(vif.c.network_id == network_id)
    )
    coming = sa.select(migration.c.instance_uuid).where(
        migration.c.status.in_(UNDER_WAY), sa.or_(migration.c.source_host == host, migration.c.dest_host == host)
    )
    # two questions, each of which has an index
    needed = sa.or_(
        guests.where(instance.c.host == host).exists(), guests.where(vif.c.instance_uuid.in_(coming)).exists()
    )
    released = connection.execute(
        sa.update(pool_table)
        .where(own, ~needed)
        .values(
            owner=None, last_owner=pool_table.c.owner, released_at=clock.seconds(connection) if now is None else now
        )
    )
    return released.rowcount > 0
