# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Clouds of any size that differ in their size alone, and what an operation costs over one.

Rows are written by the ledger's own tables, many at a time. What does not grow are networks, what one of the first
hosts has, and what one group but the first has.
"""

from __future__ import annotations

import contextlib
import dataclasses
import ipaddress
import itertools
import random
import re
import sqlite3
import time
import typing as t
import uuid

import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.catalog import volume_types
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables, tables_migrations, tables_volumes
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.catalog import volume_type_records
from ansible_collections.novalite.cloud.plugins.module_utils._ledger_module import operation_of
from tests.support.cloud import checked
from tests.support.rows import DEMO, GIB, QEMU, a_flavor, a_host, add_image, add_network, an_image, an_instance

Result = dict[str, t.Any]
GUESTS = 20  # on each host
QUIET = 7  # hosts that always have as many guests
NEAR = 10  # servers, the first ones, that are always on hv0
NETWORKS, GROUPS = 4, 20
LONG_AGO = 1_000_000
FACTS = {
    **QEMU,
    **{"domain_type": "qemu", "machine": "pc", "emulator": "/usr/bin/qemu-system-x86_64", "disk_cache": "none"},
}
_LIST = re.compile(r"\(\?(?:, \?)+\)")
STATE_DIR = "/var/lib/novalite"
ELSEWHERE: Result = {"sights": {}, "volumes": {}, "silent": []}  # all other hosts were asked, and have nothing
STEP = 10  # of SQLite's machine, between two looks at it


@dataclasses.dataclass(frozen=True)
class Grown:
    """A grown cloud. Its servers are `g<number>`; a tenth of them (`g0`, `g10`, ...) are in the group `everybody`. The
    group `watchers`, which names it, is on five hosts, however large the cloud is."""

    hosts: int
    instances: int
    uuids: tuple[str, ...]


def grow(engine: sa.Engine, hosts: int, crowd: int = GUESTS, prefix: int = 17) -> Grown:
    """Fill a ledger with `hosts` of GUESTS each, but for those after the first QUIET ones, which have a `crowd`, all of
    the project `demo`; and with the rows of as many instances that were deleted. The networks have this `prefix`."""
    on_hosts = [GUESTS if host < QUIET else crowd for host in range(hosts)]
    places = [f"hv{host}" for host, guests in enumerate(on_hosts) for _guest in range(guests)]
    count = len(places)
    chance = random.Random(42)  # the same cloud each time
    chance.shuffle(places)  # as a scheduler spreads them
    for number in range(NEAR):
        far = max(index for index, host in enumerate(places) if host == "hv0")
        places[number], places[far] = places[far], places[number]
    numbers = (uuid.UUID(int=chance.getrandbits(128), version=4) for _ in itertools.count())
    uuids = [str(next(numbers)) for _ in range(count)]
    with transaction(engine) as connection:
        _of_everybody(connection)
        names = [f"net{number}" for number in range(NETWORKS)]
        # as many addresses in each cloud: what grows is who has them
        networks = [add_network(connection, name, f"10.{20 + index}.0.0/{prefix}") for index, name in enumerate(names)]
        _write(connection, tables.compute_host, (_host(number, guests) for number, guests in enumerate(on_hosts)))
        keys = dict(connection.execute(sa.select(tables.compute_host.c.name, tables.compute_host.c.id)).all())
        made = [_instance(number, uuids[number], places[number]) for number in range(count)]
        dead = [
            {**_instance(number, str(next(numbers)), None), "vm_state": "deleted", "deleted": number + 1}
            for number in range(count)
        ]
        shuffled = [*made, *({**row, "name": f"gone{index}"} for index, row in enumerate(dead))]
        chance.shuffle(shuffled)
        _write(connection, tables.instance, ({"deleted": 0, **row} for row in shuffled))
        ids = dict(connection.execute(sa.select(tables.instance.c.uuid, tables.instance.c.id)).all())
        _write(connection, tables.vif, (_vif(row, number, networks) for number, row in enumerate(made)))
        for index, network in enumerate(networks):
            connection.execute(
                sa.update(tables.fixed_ip)
                .where(tables.fixed_ip.c.network_id == network["id"], tables.fixed_ip.c.ip == sa.bindparam("address"))
                .values(owner=sa.bindparam("holder")),
                [
                    {"address": _address(network, number), "holder": f"vif:{uuids[number]}"}
                    for number in range(index, count, NETWORKS)
                ],
            )
        claim = {"vcpus": 1, "memory_mb": 512, "disk_gb": 1, "created_at": LONG_AGO}
        _write(
            connection,
            tables.allocation,
            ({"instance_uuid": row["uuid"], "compute_host_id": keys[row["host"]], **claim} for row in made),
        )
        actions = {"action": "create", "request_id": "req-1", "started_at": 1, "finished_at": 2}
        _write(
            connection,
            tables.instance_action,
            ({"instance_uuid": row["uuid"], "details": {"hints": {}}, **actions} for row in shuffled),
        )
        c = tables.instance_action.c
        event = {"event": "compute_build", "host": "hv0", "started_at": 1, "finished_at": 2, "result": "Success"}
        _write(
            connection,
            tables.instance_action_event,
            ({"action_id": key, **event} for (key,) in connection.execute(sa.select(c.id)).all()),
        )
        _write(connection, tables_migrations.migration, (_move(row) for row in made[::10]))
        _volumes(connection, made[::4])
        _groups(connection, [ids[row["uuid"]] for row in made], places)
    return Grown(hosts, count, tuple(uuids))


def _write(connection: sa.Connection, table: sa.Table, rows: t.Iterable[t.Mapping[str, t.Any]]) -> None:
    connection.execute(sa.insert(table), [dict(row) for row in rows])


def _of_everybody(connection: sa.Connection) -> None:
    """A project without limits, a flavor, an image and a key."""
    _write(connection, tables.project, [{"id": DEMO, "name": "demo", "created_at": 0}])
    limits = ("instances", "cores", "ram", "fixed_ips", "security_groups", "security_group_rules")
    unlimited = [{"project_id": DEMO, "resource": name, "hard_limit": -1} for name in limits]
    _write(connection, tables.quota, unlimited)
    _write(connection, tables.flavor, [a_flavor()])
    add_image(connection, properties={"os_host_mount": "yes"}, virtual_size=GIB)
    key = {"public_key": "ssh-ed25519 AAAA test", "fingerprint": "00", "created_at": 1}
    _write(connection, tables.keypair, [{"project_id": DEMO, "name": "test", **key}])


def _host(number: int, guests: int) -> dict[str, t.Any]:
    address = str(ipaddress.IPv4Address("192.168.0.1") + number)
    used = {"vcpus_used": guests, "memory_mb_used": guests * 512, "disk_gb_used": guests, "num_instances": guests}
    size = {"vcpus": 4096, "memory_mb": 4096 * 512, "disk_gb": 4096, "last_seen_at": LONG_AGO}
    return a_host(f"hv{number}", **size, **used, facts={**FACTS, "address": address})


_FLAVOR, _IMAGE = a_flavor(), an_image(id="6a6f9a8a-5f43-4f4e-9d0e-0d0c6a1f7a11")


def _instance(number: int, instance_uuid: str, host: str | None) -> dict[str, t.Any]:
    times = dict.fromkeys(("created_at", "updated_at", "launched_at"), LONG_AGO + number)
    made_of = {"flavor": _FLAVOR, "image": _IMAGE, "host": host, "public_key": "ssh-ed25519 AAAA test"}
    return an_instance(f"g{number}", uuid=instance_uuid, power_state=1, **made_of, **times)


def _vif(row: t.Mapping[str, t.Any], number: int, networks: t.Sequence[t.Mapping[str, t.Any]]) -> dict[str, t.Any]:
    mac = "fa:16:3e:" + ":".join(f"{number >> shift & 255:02x}" for shift in (16, 8, 0))
    network = networks[number % NETWORKS]["id"]
    return {"id": row["uuid"], "instance_uuid": row["uuid"], "network_id": network, "position": 0, "mac": mac}


def _address(network: t.Mapping[str, t.Any], number: int) -> int:
    return int(ipaddress.IPv4Network(network["cidr"])[10 + number // NETWORKS])


def _move(row: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """A move that was done long ago."""
    done = {"type": "migration", "status": "completed", "old_vm_state": "active", "source_host": "hv0"}
    sizes = {"old_flavor": _FLAVOR, "new_flavor": _FLAVOR, "created_at": LONG_AGO, "updated_at": LONG_AGO}
    return {"uuid": str(uuid.uuid4()), "instance_uuid": row["uuid"], "dest_host": row["host"], **done, **sizes}


def _volumes(connection: sa.Connection, servers: t.Sequence[t.Mapping[str, t.Any]]) -> None:
    """A volume of each of these servers, with a snapshot."""
    volume_types.ensure_default(connection)
    rows = []
    for number, server in enumerate(servers):
        times = {"created_at": LONG_AGO + number, "updated_at": LONG_AGO + number, "made_at": LONG_AGO + number}
        own = {
            "id": _number_of("volume", number),
            "project_id": DEMO,
            "name": f"v{number}",
            "size_gb": 1,
            "metadata": {},
        }
        rows.append(
            {
                **own,
                **times,
                "type_id": volume_type_records.DEFAULT_ID,
                "format": "raw",
                "host": server["host"],
                "status": "in-use",
            }
        )
    _write(connection, tables_volumes.volume, rows)
    attached = {"device": "/dev/vdb", "created_at": LONG_AGO, "attached_at": LONG_AGO}
    _write(
        connection,
        tables_volumes.volume_attachment,
        (
            {"id": _number_of("attachment", index), "volume_id": row["id"], "instance_uuid": server["uuid"], **attached}
            for index, (row, server) in enumerate(zip(rows, servers))
        ),
    )
    shared = ("project_id", "name", "size_gb", "metadata", "created_at", "updated_at")
    _write(
        connection,
        tables_volumes.volume_snapshot,
        (
            {
                **{name: row[name] for name in shared},
                "id": _number_of("snapshot", index),
                "volume_id": row["id"],
                "status": "available",
            }
            for index, row in enumerate(rows)
        ),
    )


def _number_of(kind: str, index: int) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_OID, f"{kind}{index}"))


def _groups(connection: sa.Connection, ids: t.Sequence[int], places: t.Sequence[str]) -> None:
    """`everybody`, with a tenth of all, `watchers` on five hosts, and GROUPS that all others are in."""
    names = ["everybody", "watchers", *(f"sg{number}" for number in range(GROUPS))]
    rows = [{"uuid": str(uuid.uuid4()), "project_id": DEMO, "name": name} for name in names]
    _write(connection, tables.security_group, rows)
    c = tables.security_group.c
    keys: dict[str, int] = dict(connection.execute(sa.select(c.name, c.id)).all())
    ssh = {"ethertype": "IPv4", "protocol": "tcp", "port_min": 22, "port_max": 22}
    rules = [
        {"id": str(uuid.uuid4()), "group_id": key, "cidr": "10.0.0.0/8", "remote_group_id": None, **ssh}
        for name, key in keys.items()
        if name != "watchers"
    ]
    rules.append(
        {
            "id": str(uuid.uuid4()),
            "group_id": keys["watchers"],
            "cidr": None,
            **ssh,
            "remote_group_id": keys["everybody"],
        }
    )
    _write(connection, tables.security_group_rule, rules)
    links = [{"instance_id": number, "group_id": keys[f"sg{index % GROUPS}"]} for index, number in enumerate(ids)]
    links += [{"instance_id": number, "group_id": keys["everybody"]} for number in ids[::10]]
    watching = [ids[places.index(f"hv{host}")] for host in range(1, 6)]
    links += [{"instance_id": number, "group_id": keys["watchers"]} for number in watching]
    _write(connection, tables.instance_security_group, links)


class Call:
    """Operations within one transaction."""

    def __init__(self, connection: sa.Connection, grown: Grown) -> None:
        self.connection, self.grown = connection, grown

    def task(self, name: str, /, **args: t.Any) -> Result:
        return operation_of(name)(self.connection, checked(name, **args))

    def operate(self, name: str, /, **params: t.Any) -> Result:
        return operation_of(name)(self.connection, params)

    def new(self, *groups: str) -> list[Result]:
        request = {"name": "new", "flavor": "m1.tiny", "image": "ami-tiny", "key": "test", "networks": ["net0"]}
        return t.cast(
            "list[Result]", self.task("server", servers=[{**request, "security_groups": list(groups)}])["to_build"]
        )

    def named(self, *names: str) -> list[Result]:
        return [self.task("server_info", name=name)["servers"][0] for name in names]

    def plan(self, **of: t.Any) -> Result:
        lists: Result = dict.fromkeys(("instances", "existing", "leaving", "compute_hosts"), ())
        return self.operate("server_plan", state_dir=STATE_DIR, **{**lists, **of})

    def change_of_members(self, leaving: list[Result]) -> Result:
        """What the hosts whose rules name the groups are told of these members that leave, of one host."""
        of_hosts = [parts["groups"] for parts in self.plan(leaving=leaving)["hosts"].values() if "groups" in parts]
        assert len(of_hosts) == 5
        return of_hosts[0]

    def launched(self, *groups: str) -> list[Result]:
        """A launch of one server, and the report that it runs."""
        launch = self.launch(*groups)
        (server,) = launch["instances"]
        done = {"uuids": [server["uuid"]], "state": "active", "host": server["host"]}
        so_far: Result = {"built": [], "failures": [], "silent": []}
        return [launch, self.operate("launch_record", launch=so_far, outcomes=[done], alone=True)]

    def deleted(self, name: str) -> list[Result]:
        """A termination of one server, and the report that its host has nothing of it."""
        ended = self.task("server", servers=[{"name": name}], state="absent")
        uuids = [server["uuid"] for server in ended["to_delete"]]
        assert len(uuids) == 1
        return [ended, self.operate("server_state", outcomes=[{"uuids": uuids, "state": "deleted"}])]

    def launch(self, *groups: str) -> Result:
        more = {"compute_hosts": [], "existing": (), "service_down_time": 10**10, "alone": True, "limit_to": None}
        return self.operate("launch_plan", instances=self.new(*groups), state_dir=STATE_DIR, **more)


def look(servers: t.Iterable[Result]) -> Result:
    """The look of a host that is as the ledger says."""
    domains = [
        {
            "uuid": server["uuid"],
            "name": server["domain_name"],
            "macs": [nic["mac"] for nic in server["nics"]],
            "state": "running",
            "reason": "",
            "taps": [
                {
                    "device": f"vnet{number}",
                    "bridge": nic["network"]["bridge"],
                    "master": nic["network"]["bridge"],
                    "filter": f"nova-instance-{server['domain_name']}",
                    "unfiltered": False,
                }
                for nic in server["nics"]
            ],
        }
        for number, server in enumerate(servers)
    ]
    uuids = [domain["uuid"] for domain in domains]
    nothing: Result = {key: [] for key in ("volumes", "stale_devices", "dhcp_networks", "removed")}
    return {
        **nothing,
        "domains": domains,
        "disks": uuids,
        "files": {instance_uuid: ["disk", "disk.info"] for instance_uuid in uuids},
        "missing_bases": {},
        "filters": [f"nova-instance-{domain['name']}" for domain in domains],
        "chains": [{"id": int(str(domain["name"])[-8:], 16), "addresses": []} for domain in domains],
        "bridges": sorted({tap["bridge"] for domain in domains for tap in t.cast("list[Result]", domain["taps"])}),
        "looked_at": int(time.time()),
    }


def compare(call: Call, operation: str) -> Result:
    here = look(call.task("server_info", host="hv0")["servers"])
    more = {"state_dir": STATE_DIR, "began": time.monotonic() + 10}
    return call.operate(operation, host="hv0", found=here, elsewhere=ELSEWHERE, **more)


@dataclasses.dataclass
class Cost:
    """What was asked of the ledger: statements, the rows that came back, steps of SQLite's machine (a row that is
    looked at costs some, whether it comes back or not), and bytes of the answer as JSON."""

    statements: int = 0
    rows: int = 0
    steps: int = 0
    size: int = 0

    def __str__(self) -> str:
        return f"{self.statements} statements, {self.rows} rows, {self.steps} steps, {self.size} bytes"


@contextlib.contextmanager
def costs(engine: sa.Engine, by_statement: dict[str, int] | None = None) -> t.Iterator[Cost]:
    """Count what is asked of a ledger on SQLite; `by_statement` gets the steps of each statement."""
    cost = Cost()
    counted: set[sqlite3.Connection] = set()
    current = [""]

    def stepped() -> int:
        cost.steps += STEP
        if by_statement is not None:
            by_statement[current[0]] = by_statement.get(current[0], 0) + STEP
        return 0

    def row_of(_cursor: sqlite3.Cursor, row: tuple[t.Any, ...]) -> tuple[t.Any, ...]:
        cost.rows += 1
        return row

    def begun(connection: sa.Connection, _cursor: t.Any, statement: str, *_rest: t.Any) -> None:
        cost.statements += 1
        current[0] = _LIST.sub("(?)", statement)
        raw = t.cast(sqlite3.Connection, connection.connection.driver_connection)
        if raw not in counted:
            counted.add(raw)
            raw.set_progress_handler(stepped, STEP)

    def prepared(_connection: t.Any, cursor: sqlite3.Cursor, *_rest: t.Any) -> None:
        cursor.row_factory = row_of

    sa.event.listen(engine, "before_cursor_execute", begun)
    sa.event.listen(engine, "before_cursor_execute", prepared)
    try:
        yield cost
    finally:
        sa.event.remove(engine, "before_cursor_execute", begun)
        sa.event.remove(engine, "before_cursor_execute", prepared)
        for raw in counted:
            raw.set_progress_handler(None, STEP)
