# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Addresses and numbers that hosts have: whose they are, and, where no record tells that, nobody's to take."""

from __future__ import annotations

import ipaddress
import typing as t

import sqlalchemy as sa

from ..._addressing.pools import to_text
from ..._json import Json
from ..._model.look import Kept
from ..._network import ownership
from ..compute.slices import Row
from ..db import tables
from ..db.tables_addresses import OF_VIF, SEEN
from ..db.text import raise_number
from .shared_rows import Report
from .slices_on_hosts import OUR_DOMAIN, Slice

_GIVEN = ("owner", "further_of", "released_at", "last_owner")  # of an address that somebody has
_FLOATING = ("project_id", "vif_id", "description", "further_ip")
# By how much a host may raise the numbers: one that lies could use them all up, and names have eight digits for them
_FURTHEST = 1 << 20


class Addresses:
    """Gives addresses to those that have them; `ghosts` are instances of which no host has anything (UUIDs)."""

    def __init__(self, connection: sa.Connection, ghosts: t.Collection[str], report: Report, now: int) -> None:
        self._connection = connection
        self._ghosts = ghosts
        self._report = report
        self._now = now

    def take(self, reported: t.Iterable[Row]) -> None:
        """Give fixed IPs to those that hosts say have them, but for what another one has who is there."""
        fixed = tables.fixed_ip
        for row in reported:
            owner = str(row.get("owner"))
            mine = sa.and_(fixed.c.network_id == row["network_id"], fixed.c.ip == row["ip"])
            here = self._connection.execute(sa.select(fixed.c.owner).where(mine)).first()
            if here is None or here.owner == owner or not self.is_held(owner):
                continue
            if here.owner is not None and self.is_held(here.owner):
                self._report.disputed.append(
                    f"the address {to_text(row['ip'])} is {self._whose(here.owner)}'s here, and {self._whose(owner)}'s "
                    "on a host: end the one that came later"
                )
                continue
            held = sa.and_(fixed.c.network_id == row["network_id"], fixed.c.owner == owner)
            self._connection.execute(sa.update(fixed).where(held).values(owner=None, released_at=self._now))
            values = {name: row.get(name) for name in _GIVEN}
            self._connection.execute(sa.update(fixed).where(mine).values(reserved=None, **values))
            self._report.added["addresses"] += 1

    def lead(self, reported: t.Iterable[Row]) -> None:
        """Have floating IPs lead where hosts say they lead."""
        f = tables.floating_ip
        for row in reported:
            here = self._connection.execute(sa.select(f).where(f.c.address == row["address"])).mappings().first()
            if here is None or not self.is_held(f"{OF_VIF}{row['vif_id']}"):
                continue
            if here["vif_id"] not in (None, row["vif_id"]) and self.is_held(f"{OF_VIF}{here['vif_id']}"):
                other, mine = (self._whose(f"{OF_VIF}{number}") for number in (here["vif_id"], row["vif_id"]))
                self._report.disputed.append(
                    f"the floating IP {to_text(row['address'])} leads to {other} here, and to {mine} on a host"
                )
                continue
            values = {name: row.get(name) for name in _FLOATING} | {"description": row.get("description") or ""}
            if any(here[name] != value for name, value in values.items()):
                self._connection.execute(sa.update(f).where(f.c.address == row["address"]).values(**values))
                self._report.added["floating_ip"] += 1

    def is_held(self, owner: str) -> bool:
        """Tell whether an owner of addresses is there: a host, or an interface that is not a ghost's."""
        if owner.startswith(SEEN):
            return False
        if not owner.startswith(OF_VIF):
            return True
        vif = tables.vif.c
        query = sa.select(vif.instance_uuid).where(vif.id == owner[len(OF_VIF) :].partition("/")[0])
        holder = self._connection.execute(query).first()
        return holder is not None and holder.instance_uuid not in self._ghosts

    def _whose(self, owner: str) -> str:
        i, vif = tables.instance.c, tables.vif.c
        query = sa.select(i.name).join(tables.vif, vif.instance_uuid == i.uuid)
        number = owner.removeprefix(OF_VIF).partition("/")[0]
        return str(self._connection.execute(query.where(vif.id == number)).scalar() or owner)

    def keep_back(self, hosts: t.Sequence[Kept], ledger: str, complete: bool) -> None:
        """Let nobody have an address that is seen on a host and has no owner here; with `complete`, free those that
        were kept back before, and are on no host any more."""
        fixed, network = tables.fixed_ip, tables.network
        kept: set[tuple[int, int]] = set()
        instances = sa.select(tables.instance.c.id, tables.instance.c.uuid)
        known: dict[int, str] = dict(tuple(row) for row in self._connection.execute(instances))
        bridges = dict(tuple(row) for row in self._connection.execute(sa.select(network.c.bridge, network.c.id)))
        for host in hosts:
            for ip, bridge, what in _seen(host, ledger, known):
                here = [fixed.c.ip == ip, *([fixed.c.network_id == bridges[bridge]] if bridge in bridges else [])]
                if bridge is not None and bridge not in bridges:
                    continue  # of a network that the ledger has not: it has no such address to give
                columns = (fixed.c.network_id, fixed.c.ip, fixed.c.owner, fixed.c.reserved)
                for row in self._connection.execute(sa.select(*columns).where(*here)).all():
                    if row.owner == f"{SEEN}{to_text(ip)}":
                        kept.add((row.network_id, ip))
                    elif row.owner is None and row.reserved is None:
                        kept.add((row.network_id, ip))
                        mine = sa.and_(fixed.c.network_id == row.network_id, fixed.c.ip == ip)
                        owner = f"{SEEN}{to_text(ip)}"
                        self._connection.execute(sa.update(fixed).where(mine).values(owner=owner))
                        self._report.reserved.append(f"{to_text(ip)}: {what} on {host['name']} has it")
        if complete:
            before = sa.select(fixed.c.network_id, fixed.c.ip).where(fixed.c.owner.startswith(SEEN))
            for network_id, ip in self._connection.execute(before).all():
                if (network_id, ip) not in kept:
                    mine = sa.and_(fixed.c.network_id == network_id, fixed.c.ip == ip)
                    self._connection.execute(sa.update(fixed).where(mine).values(owner=None, released_at=self._now))
                    self._report.reserved.append(f"{to_text(ip)}: no host has it any more, and it is free")


def _seen(host: Kept, ledger: str, known: t.Mapping[int, str]) -> t.Iterator[tuple[int, str | None, str]]:
    """(address, its bridge or None, what has it): what a host has of addresses, beside the chains of the instances that
    are `known` (number -> UUID)."""
    look = host["found"]
    ours = ownership.Mark(ledger)
    for entries in look.get("dhcp_networks", ()):
        bridge = str(entries["bridge"])
        if ours.owner(look.get("dhcp_owners", {}).get(bridge)) is ownership.Owner.OTHER_LEDGER:
            continue
        for entry in t.cast("list[Row]", entries.get("hosts") or []):
            if (ip := _ipv4(entry.get("ip"))) is not None:
                yield ip, bridge, f"a DHCP entry ({entry.get('mac')})"
    for chain in look["chains"]:
        if chain["id"] not in known or chain["uuid"] not in (None, known[chain["id"]]):
            for address in chain.get("addresses", ()):
                if (ip := _ipv4(address)) is not None:
                    yield ip, None, f"the chain nova-inst-{chain['id']}"


def _ipv4(address: Json) -> int | None:
    try:
        return int(ipaddress.IPv4Address(str(address)))
    except ValueError:
        return None


def raise_numbers(
    connection: sa.Connection, hosts: t.Sequence[Kept], slices: t.Sequence[Slice], report: Report
) -> None:
    """See to it that no number that any host knows is given to another: also those of what is left over there."""
    highest = {"instance": 0, "security_group": 0, "network": 0, "flavor": 0, "migration": 0, "instance_action": 0}
    for host in hosts:
        look = host["found"]
        numbers = [chain["id"] for chain in look["chains"]]
        names = [domain["name"] for domain in look["domains"]]
        # what others call their domains, adopted ones too, is no number of ours
        numbers += [int(name[-8:], 16) for name in (*look["filters"], *names) if OUR_DOMAIN.fullmatch(name[-17:])]
        highest["instance"] = max(highest["instance"], *numbers, 0)
    for each in slices:
        for name in highest:
            highest[name] = max(highest[name], *(row["id"] for row in each.tables.get(name, ())), 0)
    for name, number in highest.items():
        table = tables.metadata.tables[name]
        limit = (connection.execute(sa.select(sa.func.max(table.c.id))).scalar() or 0) + _FURTHEST
        if number > limit:
            what = f"the {name.replace('_', ' ')} number {number}"
            report.disputed.append(f"{what}, which a host tells of, is too high to be true")
        raise_number(connection, name, number if number <= limit else 0)
