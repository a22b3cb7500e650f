# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Slices of the ledger that are kept on compute hosts: the rows that an instance, or a host, stands on.

A ledger that is lost is put together again out of them (tasks/ledger_rebuild.py). A slice is JSON:

    {"version": 1, "revision": "0013", "ledger": "<identity>", "host": "hv1", "uuid": "<instance>" | null,
     "written_at": 1700000000, "withheld": ["user_data"], "tables": {"instance": [{...}], "project": [...], ...}}

Each is complete by itself. An instance's has the project, flavor, image, key, groups, networks and volumes that it
uses; a host's has what the projects with instances there have besides, and the volumes that lie there. The pseudo-table
`pool` says which addresses networks and pools of floating IPs have, as ranges.

CARRIED is all that a slice may have, and all that is believed of one. Who may do what is in none, nor what only guests
may know, nor a path of the controller: whoever has taken over one host speaks for that host's guests, and for no more.
"""

from __future__ import annotations

import functools
import json
import typing as t

import netaddr
import sqlalchemy as sa

from ..._guest.image_properties import public_properties, without_host_mount
from ..._json import Json, JsonObject
from ..._rules import pools
from ..._rules.noun_options import NETWORK_COLUMNS
from ..db import clock, tables
from ..db.engine import HEAD
from ..db.ledger_identity import ledger_id
from ..db.tables import server_group, server_group_member
from ..db.tables_addresses import HELD, host_owner
from ..db.tables_ec2 import ec2_instance
from ..db.tables_images import server_snapshot
from ..db.tables_migrations import OPEN, migration
from ..db.tables_networking import port, router, router_interface, subnet
from ..db.tables_volumes import volume, volume_attachment, volume_snapshot, volume_type

VERSION = 1
WITHHELD = ("user_data", "files", "password_hash")  # columns of an instance that may hold secrets
POOL = "pool"
# Table -> the columns that a host is told, and may tell. Two are no columns of the ledger's: the name of a claim's
# `host`, whose row is not the host's to tell, and the `ranges` of POOL.
CARRIED: t.Mapping[str, frozenset[str]] = {
    table: frozenset(columns.split())
    for table, columns in {
        "instance": (
            "id uuid project_id name display_name description hostname flavor image key_name public_key "
            "availability_zone metadata host vm_state task_state power_state fault attempts launched_at terminated_at "
            "config_drive password_optional user_id reservation_id locked locked_reason tags access_ip_v4 "
            "access_ip_v6 disk_config rescue_image disk_image cdroms adopted ha ha_priority ha_rebuild deleted "
            "created_at updated_at"
        ),
        "instance_action": "id instance_uuid action request_id started_at finished_at user_id project_id details",
        "instance_security_group": "instance_id group_id",
        "ec2_instance": (
            "instance_uuid client_token launch_index disable_api_termination disable_api_stop http_tokens "
            "shutdown_behavior"
        ),
        "allocation": "instance_uuid vcpus memory_mb disk_gb created_at numa host",
        "migration": (
            "id uuid instance_uuid type status source_host dest_host old_flavor new_flavor old_vm_state reason "
            "user_id project_id created_at updated_at"
        ),
        "server_group": "id project_id name policy max_server_per_host user_id",
        "server_group_member": "instance_uuid group_id",
        "vif": "id instance_uuid network_id position mac ipv6 status allowed_address_pairs port_security_enabled",
        "port": (
            "vif_id project_id kept name description admin_state_up device_id device_owner extra_dhcp_opts binding "
            "created_at updated_at"
        ),
        "fixed_ip": "network_id ip owner reserved released_at last_owner further_of",
        "floating_ip": "id pool address project_id vif_id released_at description further_ip router_id",
        "floating_pool": (
            "name cidr interface uuid display_name description port_security_enabled mtu isolated subnet_name gateway"
        ),
        POOL: "network_id floating_pool ranges",
        "network": (
            "id uuid owner name display_name description tenant routes admin_state_up created_at updated_at "
            # where other projects' servers go, no host says
            f"{' '.join(name for name in NETWORK_COLUMNS if name != 'is_default')}"
        ),
        "subnet": (
            "id network_id version position name description gateway pools enable_dhcp ra_mode address_mode cidr dns "
            "routes created_at updated_at"
        ),
        "router": "id project_id name description admin_state_up external_pool enable_snat created_at updated_at",
        "router_interface": "vif_id router_id network_id version subnet_id",
        "security_group": "id uuid project_id name description",
        "security_group_rule": (
            "id group_id direction ethertype protocol port_min port_max cidr protocol_said cidr_said remote_group_id "
            "description"
        ),
        "volume": (
            "id project_id user_id name display_name description size_gb new_size_gb type_id format host "
            "availability_zone status bootable readonly multiattach image source_volume_id snapshot_id metadata fault "
            "made_at created_at updated_at"
        ),
        "volume_attachment": (
            "id volume_id instance_uuid device boot_index tag delete_on_termination readonly created_at attached_at"
        ),
        "volume_snapshot": (
            "id volume_id project_id user_id name display_name description size_gb status metadata fault created_at "
            "updated_at"
        ),
        "server_snapshot": (
            "id instance_uuid name description status host consistency size image_id volumes fault user_id created_at "
            "updated_at"
        ),
        "volume_type": "id name description backend options extra_specs is_public created_at",
        "project": "id name created_at description enabled domain_id display_name parent_id extra",
        "quota": "project_id resource hard_limit",
        "keypair": "project_id name user_id type public_key fingerprint created_at",
        "flavor": "id name vcpus memory_mb root_gb ephemeral_gb swap_mb extra_specs flavorid is_public description",
        "image": (
            "id owner name display_name status visibility disk_format container_format checksum md5 size virtual_size "
            "kernel ramdisk cmdline min_disk_gb min_ram_mb properties tags protected os_hidden created_at updated_at"
        ),
    }.items()
}
# (table, column) of what tells of an image, or of a file of one, which may be anywhere on the controller
IMAGES = {("instance", name) for name in ("image", "rescue_image", "disk_image", "cdroms")} | {("volume", "image")}
_OWN = (volume_attachment, server_snapshot)
FILES = {("image", "kernel"), ("image", "ramdisk")}

Row = JsonObject
Rows = dict[str, list[Row]]


class Slicer:
    """Reads slices out of one view of the ledger. What instances share is read once."""

    def __init__(self, connection: sa.Connection) -> None:
        self._connection = connection
        self._ledger = ledger_id(connection)
        self._now = clock.seconds(connection)
        self._read: dict[tuple[str, Json], list[Row]] = {}

    def of_instances(self, uuids: t.Collection[str], host: str | None = None) -> dict[str, str]:
        """UUID -> the text of its slice. `host`: where they are going, if the ledger does not say so yet."""
        rows_by_uuid = self._own(sorted(set(uuids)), host)
        return {
            uuid: self._text(host or rows["instance"][0]["host"], uuid, rows) for uuid, rows in rows_by_uuid.items()
        }

    def of_host(self, host: str) -> str:
        """The text of the slice of the compute host `host`."""
        i = tables.instance
        here = self._rows(i, sa.and_(i.c.host == host, i.c.deleted == 0))
        volumes = self._rows(volume, volume.c.host == host)
        projects = {row["project_id"] for row in (*here, *volumes)}
        vifs = self._rows(tables.vif, tables.vif.c.instance_uuid.in_([row["uuid"] for row in here]))
        networks = {row["network_id"] for row in vifs}
        networks |= {row["id"] for row in self._rows(tables.network, tables.network.c.owner.in_(sorted(projects)))}
        groups = self._rows(tables.security_group, tables.security_group.c.project_id.in_(sorted(projects)))
        rows: Rows = {}
        users = sorted({row["user_id"] for row in here if row["user_id"]})
        self._add(rows, "keypair", self._rows(tables.keypair, tables.keypair.c.user_id.in_(users)))
        self._add(rows, "volume", volumes)
        of_these = volume_snapshot.c.volume_id.in_([row["id"] for row in volumes])
        self._add(rows, "volume_snapshot", self._rows(volume_snapshot, of_these))
        for table in (tables.quota, tables.keypair, server_group):
            self._add(rows, table.name, self._rows(table, table.c.project_id.in_(sorted(projects))))
        self._shared(rows, host, projects, networks, {row["id"] for row in groups}, volumes)
        return self._text(host, None, rows)

    def _own(self, uuids: list[str], host: str | None) -> dict[str, Rows]:
        """UUID -> the rows of that instance, and of what it uses."""
        i, links, action = tables.instance, tables.instance_security_group, tables.instance_action
        mine = {row["uuid"]: row for row in self._rows(i, sa.and_(i.c.uuid.in_(uuids), i.c.deleted == 0))}
        by_id = {row["id"]: uuid for uuid, row in mine.items()}
        rows_by_uuid: dict[str, Rows] = {uuid: {"instance": [row]} for uuid, row in mine.items()}
        only = {migration: migration.c.status.in_(OPEN), action: action.c.action == "create"}
        for table in (tables.vif, tables.allocation, server_group_member, ec2_instance, *_OWN, *only):
            of_these = table.c.instance_uuid.in_(sorted(mine))
            for row in self._rows(table, sa.and_(of_these, only.get(table, sa.true()))):
                if table is tables.allocation:
                    row = {**row, "host": self._host_name(row["compute_host_id"])}
                self._add(rows_by_uuid[row["instance_uuid"]], table.name, [row])
        for row in self._rows(links, links.c.instance_id.in_(sorted(by_id))):
            self._add(rows_by_uuid[by_id[row["instance_id"]]], links.name, [row])
        vifs = {row["id"]: uuid for uuid, rows in rows_by_uuid.items() for row in rows.get("vif", ())}
        self._addressed(rows_by_uuid, vifs)
        attached = [row["volume_id"] for rows in rows_by_uuid.values() for row in rows.get("volume_attachment", ())]
        volumes = {row["id"]: row for row in self._rows(volume, volume.c.id.in_(sorted(set(attached))))}
        for rows in rows_by_uuid.values():
            own = rows["instance"][0]
            mounted = [volumes[row["volume_id"]] for row in rows.get("volume_attachment", ())]
            self._add(rows, "volume", mounted)
            self._shared(
                rows,
                host or own["host"],
                {own["project_id"]},
                {row["network_id"] for row in rows.get("vif", ())},
                {row["group_id"] for row in rows.get(links.name, ())},
                mounted,
            )
            self._add(rows, "keypair", self._keys(own))
            members = [row["group_id"] for row in rows.get(server_group_member.name, ())]
            self._add(rows, server_group.name, self._of(server_group, server_group.c.id, members))
        return rows_by_uuid

    def _addressed(self, rows_by_uuid: dict[str, Rows], vifs: t.Mapping[str, str]) -> None:
        """Add the fixed and floating IPs, and the ports, of these interfaces (id -> instance)."""
        fixed, floating = tables.fixed_ip, tables.floating_ip
        owners = {f"vif:{vif}": uuid for vif, uuid in vifs.items()}
        for row in self._rows(fixed, tables.vif.c.id.in_(sorted(vifs)), tables.vif.join(fixed, HELD)):
            self._add(rows_by_uuid[owners[row["owner"]]], fixed.name, [row])
        for row in self._rows(fixed, fixed.c.further_of.in_(sorted(vifs))):
            self._add(rows_by_uuid[vifs[row["further_of"]]], fixed.name, [row])
        for table, column in ((floating, floating.c.vif_id), (port, port.c.vif_id)):
            for row in self._rows(table, column.in_(sorted(vifs))):
                self._add(rows_by_uuid[vifs[row["vif_id"]]], table.name, [row])

    def _shared(
        self,
        rows: Rows,
        host: str | None,
        projects: set[str],
        networks: set[int],
        groups: set[int],
        volumes: t.Sequence[Row],
    ) -> None:
        """Add what these ids lead to: rows that several instances have."""
        instances = rows.get("instance", [])
        flavors = {row["flavor"]["name"] for row in instances}
        kept = [row[of] or {} for row in instances for of in ("image", "disk_image")]
        images = {image.get("id") for image in (*kept, *((row["image"] or {}) for row in volumes))}
        self._groups(rows, groups)
        self._networks(rows, networks, host)
        owners = {row["owner"] for row in rows.get("network", ())} | {
            row["project_id"]
            for name in ("security_group", "volume", "router", "port", "floating_ip")
            for row in rows.get(name, ())
        }
        project_ids = projects | {owner for owner in owners if owner}
        self._add(rows, "project", self._of(tables.project, tables.project.c.id, project_ids))
        self._add(rows, "flavor", self._of(tables.flavor, tables.flavor.c.name, flavors))
        self._add(rows, "image", self._of(tables.image, tables.image.c.id, images - {None, ""}))
        types = {row["type_id"] for row in volumes}
        self._add(rows, "volume_type", self._of(volume_type, volume_type.c.id, types))
        pool_names = {row["pool"] for row in rows.get("floating_ip", ())} | {
            row["external_pool"] for row in rows.get("router", ())
        }
        for name in sorted(pool_names - {None}):
            self._add(rows, "floating_pool", self._of(tables.floating_pool, tables.floating_pool.c.name, [name]))
            self._add(rows, POOL, self._once(("floating", name), functools.partial(self._floating_ranges, name)))

    def _keys(self, own: Row) -> list[Row]:
        if own["key_name"] is None:
            return []
        key, k = (own["project_id"], own["user_id"], own["key_name"]), tables.keypair
        project, user, name = key
        mine = sa.and_(k.c.name == name, k.c.user_id.in_(["", user or ""]), k.c.project_id.in_(["", project]))
        return self._once(("keypair", key), functools.partial(self._rows, k, mine))

    def _groups(self, rows: Rows, groups: set[int]) -> None:
        """Add these groups, those that their rules name, and the rules of all."""
        rule = tables.security_group_rule
        known: set[int] = set()
        waiting = set(groups)
        while waiting:
            known |= waiting
            for number in sorted(waiting):
                self._add(rows, rule.name, self._of(rule, rule.c.group_id, [number]))
            named = {row["remote_group_id"] for row in rows.get(rule.name, ())} - {None}
            waiting = named - known
        self._add(rows, "security_group", self._of(tables.security_group, tables.security_group.c.id, known))

    def _networks(self, rows: Rows, networks: set[int], host: str | None) -> None:
        """Add these networks with their subnets, pools, routers, and the addresses that the host has in them."""
        fixed = tables.fixed_ip
        for number in sorted(networks):
            self._add(rows, "network", self._of(tables.network, tables.network.c.id, [number]))
            self._add(rows, subnet.name, self._of(subnet, subnet.c.network_id, [number]))
            self._add(rows, POOL, self._once(("ranges", number), functools.partial(self._ranges, number)))
            if host is not None:
                positions = {0, *(row["position"] for row in self._of(subnet, subnet.c.network_id, [number]))}
                own = fixed.c.owner.in_([host_owner(host, position) for position in sorted(positions)])
                read = functools.partial(self._rows, fixed, sa.and_(fixed.c.network_id == number, own))
                self._add(rows, fixed.name, self._once((f"hosted.{host}", number), read))
            for interface in self._of(router_interface, router_interface.c.network_id, [number]):
                self._add(rows, router_interface.name, [interface])
                self._add(rows, "router", self._of(router, router.c.id, [interface["router_id"]]))
                self._add(rows, "vif", self._of(tables.vif, tables.vif.c.id, [interface["vif_id"]]))
                self._add(rows, "port", self._of(port, port.c.vif_id, [interface["vif_id"]]))
                its = tables.vif.c.id == interface["vif_id"]
                self._add(rows, fixed.name, self._rows(fixed, its, tables.vif.join(fixed, HELD)))

    def _host_name(self, number: int) -> str:
        [row] = self._of(tables.compute_host, tables.compute_host.c.id, [number])
        return str(row["name"])

    def _ranges(self, number: int) -> list[Row]:
        """The addresses of a network by what they are reserved for, as [first, last, role]. Those that are reserved for
        nothing are not read: a pool has all addresses of its network's ranges."""
        fixed, by_role = tables.fixed_ip, dict[str, list[int]]()
        query = sa.select(fixed.c.ip, fixed.c.reserved).where(
            fixed.c.network_id == number, fixed.c.reserved.is_not(None)
        )
        for ip, role in self._connection.execute(query):
            by_role.setdefault(role, []).append(ip)
        ranges: list[list[Json]] = [
            [first, last, role] for role, ips in by_role.items() for first, last in pools.bounds(ips)
        ]
        own = self._of(tables.network, tables.network.c.id, [number])
        rows = (*own, *self._of(subnet, subnet.c.network_id, [number]))
        whole = netaddr.IPSet(row["cidr"] for row in rows if row["cidr"])
        kept = netaddr.IPSet(ip for ips in by_role.values() for ip in ips)
        ranges += [[around.first, around.last, None] for around in (whole - kept).iter_ipranges()]
        return [{"network_id": number, "ranges": sorted(ranges, key=lambda bounds: int(bounds[0] or 0))}]

    def _floating_ranges(self, name: str) -> list[Row]:
        f = tables.floating_ip
        addresses = self._connection.execute(sa.select(f.c.address).where(f.c.pool == name)).scalars()
        return [{"floating_pool": name, "ranges": [[first, last, None] for first, last in pools.bounds(addresses)]}]

    def _of(self, table: sa.Table, column: sa.ColumnElement[Json], values: t.Iterable[Json]) -> list[Row]:
        """The rows whose `column` has one of `values`, each read once."""
        rows: list[Row] = []
        for value in sorted(set(values)):
            read = functools.partial(self._rows, table, column == value)
            rows += self._once((f"{table.name}.{column.key}", value), read)
        return rows

    def _once(self, key: tuple[str, Json], read: t.Callable[[], list[Row]]) -> list[Row]:
        if key not in self._read:
            self._read[key] = read()
        return self._read[key]

    def _rows(self, table: sa.Table, condition: sa.ColumnElement[bool], of: sa.FromClause | None = None) -> list[Row]:
        """The rows of a table, or of a join (`of`) with it, that meet `condition`; by their keys."""
        query = sa.select(table).select_from(table if of is None else of).where(condition)
        rows = ({str(key): value for key, value in row.items()} for row in self._connection.execute(query).mappings())
        # not in the database: to read them in this order, SQLite would take the key in place of the right index
        return sorted(rows, key=lambda row: [row[column.name] for column in table.primary_key.columns])

    @staticmethod
    def _add(rows: Rows, name: str, more: t.Iterable[Row]) -> None:
        there = rows.setdefault(name, [])
        there += [row for row in more if row not in there]

    def _text(self, host: str | None, uuid: str | None, rows: Rows) -> str:
        public_rows = {name: [_public(name, row) for row in of_table] for name, of_table in rows.items() if of_table}
        withheld = [field for field in WITHHELD for row in rows.get("instance", ()) if row[field]]
        document = {
            "version": VERSION,
            "revision": HEAD,
            "ledger": self._ledger,
            "host": host,
            "uuid": uuid,
            "written_at": self._now,
            "withheld": withheld,
            "tables": public_rows,
        }
        return json.dumps(document, sort_keys=True) + "\n"


def _public(name: str, row: Row) -> Row:
    """`row` as a host keeps it: without what is only history, too."""
    if name == "instance_action":
        row = {**row, "details": {"hints": row["details"].get("hints")}}
    return {column: without_paths(name, column, row[column]) for column in row if column in CARRIED[name]}


def without_paths(table: str, column: str, value: Json) -> Json:
    """The value of a column without what only the controller may know or decide: where an image's files are, and
    whether hosts may mount it."""
    if isinstance(value, list) and (table, column) in IMAGES:
        return [without_paths(table, column, item) if isinstance(item, dict) else None for item in value]
    if value is None or (table, column) not in IMAGES | FILES:
        return _properties(value) if (table, column) == ("image", "properties") else value
    files = {kind: {**value[kind], "source": ""} for kind in ("kernel", "ramdisk") if value.get(kind)}
    properties = {"properties": _properties(value["properties"])} if "properties" in value else {}
    return {**value, "source": "", **files, **properties}


def _properties(properties: JsonObject) -> JsonObject:
    return without_host_mount(public_properties(properties))
