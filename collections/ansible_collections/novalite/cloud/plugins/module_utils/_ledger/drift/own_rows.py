# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Bringing instances up to date, out of slices that hosts kept: where they are, with their claims, interfaces,
addresses, volumes and moves.

A slice counts where it is newer than the ledger: its instance was changed later, or it was written after all that the
ledger remembers. What two instances that are there both claim is left as it is here, and said.
"""

from __future__ import annotations

import typing as t

import sqlalchemy as sa

from ..._addressing.pools import to_text
from ..._json import Json
from ..compute.migrations import open_moves
from ..compute.slices import CARRIED, IMAGES, Row, Rows
from ..db import tables
from ..db.tables_addresses import OF_HOST, OF_VIF
from ..db.tables_ec2 import ec2_instance
from ..db.tables_migrations import OPEN, migration
from ..db.tables_networking import port, router_interface
from ..db.tables_volumes import volume, volume_attachment
from ..network.addresses import release_addresses
from ..placement import departures
from .addresses_of_hosts import Addresses
from .shared_rows import Report, SharedRows, unique
from .slices_on_hosts import Slice

_SHOWN = ("name", "host", "vm_state")  # columns of an instance whose changes are reported with their values
_HIGHEST = 1 << 32  # of an instance's number: its domain's name has eight digits
# the tables that are an instance's own by its UUID, parents first
# what an instance may have of its own project alone: by the column that leads there
_OF_PROJECT = {
    "volume_attachment": (volume, "volume_id"),
    "instance_security_group": (tables.security_group, "group_id"),
    "server_group_member": (tables.server_group, "group_id"),
}
_BY_UUID = (tables.vif, tables.allocation, tables.server_group_member, ec2_instance, volume_attachment, migration)


class OwnRows:
    """Writes what slices say of instances; `ghosts` are those of which no host has anything (UUIDs)."""

    def __init__(
        self,
        connection: sa.Connection,
        shared: SharedRows,
        addresses: Addresses,
        ghosts: t.Collection[str],
        report: Report,
        now: int,
    ) -> None:
        self._connection = connection
        self._shared = shared
        self._addresses = addresses
        self._ghosts = ghosts
        self._report = report
        self._now = now
        self._hosts = dict(
            tuple(row) for row in connection.execute(sa.select(tables.compute_host.c.name, tables.compute_host.c.id))
        )

    def newer(self, slices: t.Sequence[Slice], disputed: t.Container[str]) -> list[Slice]:
        """List those of these slices that know more than the ledger does."""
        i, last = tables.instance.c, _last_written(self._connection)
        columns = (i.uuid, i.updated_at, i.deleted, i.host, i.project_id)
        known = {row.uuid: row for row in self._connection.execute(sa.select(*columns))}
        moves = open_moves(self._connection, [each.uuid for each in slices if each.uuid is not None])
        newer = []
        for each in slices:
            row, later = known.get(each.uuid or ""), each.written_at > last
            if each.uuid is None or row is None:
                if each.uuid is not None or later:
                    newer.append(each)
                continue
            reported, move = each.tables["instance"][0], moves.get(each.uuid)
            arrived = move is not None and reported["host"] == move.dest_host != row.host
            later = (
                later
                or reported["updated_at"] > row.updated_at
                or (reported["updated_at"] == row.updated_at and arrived)
            )
            if not later or row.deleted or each.uuid in disputed:
                continue
            if reported["project_id"] != row.project_id:
                self._report.disputed.append(
                    f"whose {reported['name']} ({each.uuid}) is: {each.host} tells of another project"
                )
                continue
            newer.append(each)
        return newer

    def write(self, slices: t.Sequence[Slice]) -> None:
        """Record what these slices say; the shared rows are there. All that is given up goes first: an address, or an
        interface, may have come from one to another."""
        desired = {each.uuid: self._desired(each) for each in slices if each.uuid is not None}
        before = {uuid: self._current(uuid) for uuid in desired}
        for uuid, rows in desired.items():
            if rows["instance"] and before[uuid]["instance"]:
                self._give_up(before[uuid], rows)
        for uuid, rows in desired.items():
            if rows["instance"] and self._instance(rows["instance"][0], bool(before[uuid]["instance"])):
                for table in (*_BY_UUID, tables.instance_security_group, port, tables.instance_action):
                    for row in rows[table.name]:
                        self._put(table, row)
                self._volumes(rows["volume"])
        for each in slices:
            rows = each.tables if each.uuid is None else desired[each.uuid]
            self._addresses.take(rows.get("fixed_ip", ()))
            self._addresses.lead(rows.get("floating_ip", ()))
        for uuid in desired:
            self._tell(before[uuid], self._current(uuid))

    # --- What there is, and what there is to be ---

    def _current(self, uuid: str) -> Rows:
        """The rows of an instance that the ledger has."""
        i, fixed, floating = tables.instance, tables.fixed_ip.c, tables.floating_ip.c
        rows: Rows = {table.name: self._rows(table, table.c.instance_uuid == uuid) for table in _BY_UUID}
        rows["migration"] = [row for row in rows["migration"] if row["status"] in OPEN]
        rows["instance"] = self._rows(i, i.c.uuid == uuid)
        vifs = [row["id"] for row in rows["vif"]]
        held = sa.or_(fixed.owner.in_([OF_VIF + vif for vif in vifs]), fixed.further_of.in_(vifs))
        rows["fixed_ip"] = self._rows(tables.fixed_ip, held)
        rows["floating_ip"] = self._rows(tables.floating_ip, floating.vif_id.in_(vifs))
        rows["port"] = self._rows(port, port.c.vif_id.in_(vifs))
        numbers = [row["id"] for row in rows["instance"]]
        links = tables.instance_security_group
        rows[links.name] = self._rows(links, links.c.instance_id.in_(numbers))
        return rows

    def _rows(self, table: sa.Table, condition: sa.ColumnElement[bool]) -> list[Row]:
        query = sa.select(table).where(condition).order_by(*table.primary_key.columns)
        return [{str(key): value for key, value in row.items()} for row in self._connection.execute(query).mappings()]

    def _desired(self, each: Slice) -> Rows:
        """The rows of its instance that a slice tells of, with the ids of this ledger."""
        reported, instance = each.tables, each.tables["instance"][0]
        project = str(instance["project_id"])
        rows: Rows = {}
        for table in (*_BY_UUID, tables.instance_security_group, port, tables.instance_action, volume):
            mapped = (self._mapped(table, original) for original in reported.get(table.name, ()))
            rows[table.name] = [row for row in mapped if row is not None and self._is_open_to(project, table, row)]
        rows["allocation"] = [
            {**{name: value for name, value in row.items() if name != "host"}, "compute_host_id": self._hosts[host]}
            for row in reported.get("allocation", ())
            if (host := str(row["host"])) in self._hosts
        ]
        rows["vif"] = [row for row in rows["vif"] if row.get("instance_uuid") is not None]
        networks = {row["id"]: row["network_id"] for row in rows["vif"]}
        rows["port"] = [row for row in rows["port"] if row["vif_id"] in networks]
        attached = {row["volume_id"] for row in rows["volume_attachment"]}
        rows["volume"] = [row for row in rows["volume"] if row["id"] in attached]
        rows["floating_ip"] = [
            row
            for row in reported.get("floating_ip", ())
            if row.get("vif_id") in networks and row.get("project_id") == project
        ]
        # its own, and those of hosts and routers on networks that it is on
        holders = {row["id"]: row["network_id"] for row in reported.get("vif", ()) if row.get("instance_uuid") is None}
        holders |= networks
        rows["fixed_ip"] = [
            row
            for row in reported.get("fixed_ip", ())
            for owner in (str(row.get("owner")),)
            if owner.startswith(OF_HOST)
            or holders.get(owner.removeprefix(OF_VIF).partition("/")[0]) == row["network_id"]
        ]
        there = self._exists(tables.project.c.id == project)
        rows["instance"] = [self._with_files("instance", instance)] if there and 0 < instance["id"] < _HIGHEST else []
        return rows

    def _mapped(self, table: sa.Table, original: Row) -> Row | None:
        """The row with the ids that this ledger has; its instance and interface need not be there yet."""
        own: Row = {name: original[name] for name in ("instance_uuid", "instance_id", "vif_id") if name in original}
        row = self._shared.here(table, {name: value for name, value in original.items() if name not in own})
        return None if row is None else {**row, **own}

    def _is_open_to(self, project: str, table: sa.Table, row: Row) -> bool:
        """Tell whether an instance of the project may have what the row gives it: a host could name anybody's."""
        if table.name in _OF_PROJECT:
            target, column = _OF_PROJECT[table.name]
            allowed = self._exists(target.c.id == row[column], target.c.project_id == project)
        elif table is tables.vif:
            network, vif = tables.network.c, tables.vif.c
            allowed = self._exists(network.id == row["network_id"], network.owner.in_(["", project]))
            if self._exists(
                vif.id == row["id"], vif.instance_uuid.is_(None)
            ):  # a port that no server has, or a router's
                free = (port.c.vif_id == row["id"], port.c.project_id == project)
                allowed &= self._exists(*free) and not self._exists(router_interface.c.vif_id == row["id"])
        else:
            allowed = table not in (port, volume) or row["project_id"] == project
        if not allowed:
            self._report.disputed.append(f"a {table.name} of another project than its instance's: it is left alone")
        return allowed

    def _exists(self, *conditions: sa.ColumnElement[bool]) -> bool:
        return self._connection.execute(sa.select(sa.literal(1)).where(*conditions).limit(1)).first() is not None

    def _with_files(self, table: str, row: Row) -> Row:
        def with_file(kept: Json) -> Json:
            if isinstance(kept, list):
                return [with_file(item) for item in kept]
            return kept and self._shared.files.of_copy(kept)

        return {**row, **{name: with_file(row[name]) for of, name in IMAGES if of == table and row.get(name)}}

    # --- Writing ---

    def _give_up(self, current: Rows, desired: Rows) -> None:
        """Take from an instance what it has no more."""
        kept = {row["id"] for row in desired["vif"]}
        made = {row["vif_id"] for row in current["port"] if row["kept"]}
        for vif in (row["id"] for row in current["vif"] if row["id"] not in kept):
            if vif in made:  # it outlives the server that it was attached to
                free = sa.update(tables.vif).where(tables.vif.c.id == vif)
                self._connection.execute(free.values(instance_uuid=None, position=None))
            else:
                release_addresses(self._connection, [vif], self._now)
                self._connection.execute(sa.delete(tables.vif).where(tables.vif.c.id == vif))
        host = desired["instance"][0]["host"]
        for table in (*_BY_UUID[1:], tables.instance_security_group, tables.fixed_ip, tables.floating_ip):
            keys = [column.name for column in table.primary_key.columns]
            if table is tables.floating_ip:
                keys = ["address"]
            there = {tuple(row[key] for key in keys) for row in desired[table.name]}
            for row in current[table.name]:
                if tuple(row[key] for key in keys) in there:
                    continue
                mine = sa.and_(*(table.c[key] == row[key] for key in keys))
                status = "completed" if host == row.get("dest_host") else "cancelled"
                values: dict[str, Row] = {  # what stays, and is no more the instance's
                    "migration": {"status": status, "updated_at": self._now},
                    "fixed_ip": {"owner": None, "further_of": None, "released_at": self._now},
                    "floating_ip": {"vif_id": None, "further_ip": None},
                }
                if table.name in values:
                    self._connection.execute(sa.update(table).where(mine).values(**values[table.name]))
                else:
                    self._connection.execute(sa.delete(table).where(mine))
                if table is volume_attachment and not self._exists(volume_attachment.c.volume_id == row["volume_id"]):
                    free = sa.update(volume).where(volume.c.id == row["volume_id"], volume.c.status == "in-use")
                    self._connection.execute(free.values(status="available"))

    def _instance(self, reported: Row, exists: bool) -> bool:
        """Write the instance's own row; False where that cannot be."""
        table = tables.instance
        row = {name: reported[name] for name in CARRIED["instance"] if name in reported}
        same = (table.c.project_id == row["project_id"], table.c.name == row["name"], table.c.deleted == 0)
        other = self._connection.execute(
            sa.select(table.c.id, table.c.uuid).where(*same, table.c.uuid != row["uuid"])
        ).first()
        if other is not None and other.uuid in self._ghosts:
            # its name in the DNS, too
            gone = {"name": f"{row['name']}-gone-{other.id}", "hostname": f"gone-{other.id}"}
            self._connection.execute(sa.update(table).where(table.c.id == other.id).values(gone))
            self._report.gone.append(f"the name {row['name']!r} of {other.uuid}, which is {row['uuid']}'s by now")
        elif other is not None:
            self._report.disputed.append(f"the name {row['name']!r}: {other.uuid} has it, and {row['uuid']} on a host")
            row["name"] = f"{row['name']}-{row['id']}"
        if exists:
            changed = {name: value for name, value in row.items() if name not in ("id", "uuid", "deleted")}
            self._connection.execute(sa.update(table).where(table.c.uuid == row["uuid"]).values(**changed))
        elif self._connection.execute(sa.select(table.c.id).where(table.c.id == row["id"])).first() is not None:
            self._report.disputed.append(f"the number {row['id']}: {row['name']} ({row['uuid']}) has it on a host")
            return False
        else:
            self._connection.execute(sa.insert(table), [row])
            self._report.added[table.name] += 1
        # What is left on the host where it was stays: nobody wrote down that it left there, and this is no proof
        departures.arrive(self._connection, [row["uuid"]], row["host"])
        return True

    def _put(self, table: sa.Table, row: Row) -> None:
        """Insert a row, or bring the one with its key in line. What belongs to an instance that is gone is taken from
        it; what another one has that is there stays with it."""
        keys = tuple(column.name for column in table.primary_key.columns)
        mine = sa.and_(*(table.c[key] == row[key] for key in keys))
        whose = row.get("instance_uuid")
        for columns in (keys, *unique(table)):
            if any(row.get(column) is None for column in columns):
                continue
            same = sa.and_(*(table.c[column] == row[column] for column in columns))
            same = same if columns == keys else sa.and_(same, sa.not_(mine))
            other = self._connection.execute(sa.select(table).where(same)).mappings().first()
            holder = None if other is None else other.get("instance_uuid")
            if other is None or (columns == keys and holder in (None, whose)):
                continue
            if holder is None or holder not in (whose, *self._ghosts):
                shown = ", ".join(f"{column} {row[column]}" for column in columns)
                other_name = holder or "something else"
                self._report.disputed.append(f"{table.name} {shown}: {other_name} has it here, and {whose} on a host")
                return
            self._connection.execute(sa.delete(table).where(same))
        there = self._connection.execute(sa.select(table).where(mine)).mappings().first()
        if there is None:
            self._connection.execute(sa.insert(table), [row])
            self._report.added[table.name] += 1
        elif any(there[name] != value for name, value in row.items()) and table is not tables.instance_action:
            self._connection.execute(sa.update(table).where(mine).values(**row))

    def _volumes(self, reported: t.Sequence[Row]) -> None:
        """Bring volumes that the ledger had in line with what its hosts tell of them."""
        for row in reported:
            after = {
                name: value
                for name, value in self._with_files("volume", row).items()
                if name not in ("id", "project_id", "name")
            }
            known = sa.and_(volume.c.id == row["id"], volume.c.project_id == row["project_id"])
            self._connection.execute(sa.update(volume).where(known).values(**after))

    # --- What is said of it ---

    def _tell(self, before: Rows, after: Rows) -> None:
        if not before["instance"] or not after["instance"]:
            return
        was, now = before["instance"][0], after["instance"][0]
        words = [f"{name} {was[name]} -> {now[name]}" for name in _SHOWN if was[name] != now[name]]
        if was["flavor"]["name"] != now["flavor"]["name"]:
            words.append(f"flavor {was['flavor']['name']} -> {now['flavor']['name']}")
        others = [name for name in was if name not in (*_SHOWN, "flavor", "updated_at") and was[name] != now[name]]
        words += [", ".join(others)] if others else []
        for name in sorted(before.keys() - {"instance", "instance_action"}):
            if before[name] != after[name]:
                words.append(f"{name} {_short(name, before[name])} -> {_short(name, after[name])}")
        if words:
            self._report.updated.append(f"{was['name']} ({was['uuid']}): {'; '.join(words)}")


def _short(name: str, rows: t.Sequence[Row]) -> str:
    """A few words for rows of a table, for people."""
    addresses = {"fixed_ip": "ip", "floating_ip": "address"}
    if name in addresses:
        return ", ".join(to_text(row[addresses[name]]) for row in rows) or "none"
    words = {"vif": "mac", "volume_attachment": "device", "migration": "status"}
    return ", ".join(str(row[words[name]]) for row in rows) or "none" if name in words else str(len(rows))


def _last_written(connection: sa.Connection) -> float:
    """Return when the ledger was last written to, as far as it shows: what a host was told later is newer."""
    latest: list[Json] = [0]
    for name in sorted({*(CARRIED.keys() & tables.metadata.tables.keys()), "compute_host"}):
        times = [column for column in tables.metadata.tables[name].columns if column.name.endswith("_at")]
        if times:
            row = connection.execute(sa.select(*map(sa.func.max, times))).one()
            latest += [value for value in row if value is not None]
    return float(max(latest))
