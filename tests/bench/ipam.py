"""ipam.*: fixed IPs out of a /16, in one call and one by one, beside bare sqlite3 and beside Neutron's way.

Times are of the module's core, without Ansible's and Python's start: who has an address already, who had one, the
choice of free ones, the write, in a transaction of its own; for 1,000 interfaces at once, or for one.
"""

from __future__ import annotations

import contextlib
import gc
import itertools
import pathlib
import random
import sqlite3
import tempfile
import time
import typing as t
import uuid

import netaddr
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import open_ledger, transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.network.addresses import claim_addresses
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.tasks.network import network
from ansible_collections.novalite.cloud.plugins.module_utils._ledger_module import spec_of
from ansible_collections.novalite.cloud.plugins.modules.network import DOCUMENTATION
from tests.support import postgresql

BATCH = 1000
GOALS = {"sqlite": 10.0, "postgresql": 40.0}  # milliseconds for BATCH addresses
ROUNDS = 15  # the quickest counts: what other work on the machine adds, it adds to some of them
SINGLES, SINGLE_ROUNDS = 25, 80
USED = 60_000  # of the 65,536 addresses of a /16
NEUTRON_WINDOW = 1000  # neutron/ipam/drivers/neutrondb_ipam/driver.py: MAX_WIN
NEUTRON_ADDRESSES = 2  # in a round; each takes half a second


def run(prefix: str) -> t.Iterator[dict[str, t.Any]]:
    for backend, goal in GOALS.items():
        name = f"ipam.batch{BATCH}_{backend}_ms"
        if name.startswith(prefix):
            with _ledger(backend) as engine:
                yield _figure(name, 1000 * _batch(engine), goal, "ms")
    singles = ("ipam.single_vs_raw", "ipam.used60k_vs_empty", "ipam.vs_neutron_60k")
    if any(name.startswith(prefix) for name in singles):
        with _ledger("sqlite") as engine, tempfile.TemporaryDirectory() as home:
            raw, neutron = Raw(home), Neutron(home)
            empty, used = _network(engine, "empty"), _network(engine, "used")
            _use(engine, used)
            rates: dict[str, list[float]] = {}
            for _round in range(SINGLE_ROUNDS):  # in turn
                rates.setdefault("raw", []).append(_rate(raw.allocate, SINGLES))
                for key, of in (("empty", empty), ("used", used)):
                    rates.setdefault(key, []).append(_rate(lambda of=of: _allocate(engine, of), SINGLES))  # type: ignore[misc]  # no types for the defaults of a lambda
            if singles[2].startswith(prefix):
                rates["neutron"] = [_rate(neutron.allocate, NEUTRON_ADDRESSES) for _round in range(3)]
            best = {key: max(several) for key, several in rates.items()}
            if singles[0].startswith(prefix):
                yield _figure(singles[0], best["empty"], best["raw"], "1/s")
            if singles[1].startswith(prefix):
                # a time, as the goal is one: how much longer an address takes where most are used
                yield _figure(singles[1], 1e6 / best["used"], 1e6 / best["empty"], "us")
            if singles[2].startswith(prefix):
                yield _figure(singles[2], best["used"], best["neutron"], "1/s")


def _figure(name: str, ours: float, reference: float, unit: str) -> dict[str, t.Any]:
    return {
        "bench": name,
        "ours": round(ours, 3),
        "reference": round(reference, 3),
        "ratio": round(ours / reference, 3),
        "unit": unit,
    }


@contextlib.contextmanager
def _ledger(backend: str) -> t.Iterator[sa.Engine]:
    """A new ledger; PostgreSQL waits for the disk at each commit."""
    with tempfile.TemporaryDirectory() as home, contextlib.ExitStack() as stack:
        url = f"sqlite:///{home}/ledger.sqlite"
        if backend == "postgresql":
            url = stack.enter_context(postgresql.shared_server(pathlib.Path(home), durable=True)).create("bench")
        engine = open_ledger(url=url)
        stack.callback(engine.dispose)
        yield engine


def _network(engine: sa.Engine, name: str) -> t.Any:
    """A network of 65,536 addresses, each network with its own; returns its row."""
    second = 10 + len(name)
    asked = {**dict.fromkeys(spec_of(DOCUMENTATION)["networks"]["options"]), "name": name}
    with transaction(engine) as connection:
        networks = [{**asked, "cidr": f"10.{second}.0.0/16"}]
        network(connection, {"project": None, "state": "present", "networks": networks})
        return connection.execute(sa.select(tables.network).where(tables.network.c.name == name)).one()


def _use(engine: sa.Engine, of: t.Any) -> None:
    """Hand out USED addresses of a network."""
    with transaction(engine) as connection:
        claim_addresses(connection, of, {_owner(): None for _number in range(USED)}, _now(), [])


def _now() -> int:
    return int(time.time())


def _owner() -> str:
    return f"vif:{uuid.uuid4()}"


def _allocate(engine: sa.Engine, of: t.Any) -> None:
    with transaction(engine) as connection:
        claim_addresses(connection, of, {_owner(): None}, _now(), [])


def _rate(allocate: t.Callable[[], None], count: int) -> float:
    """Allocations per second."""
    gc.collect()
    began = time.perf_counter()
    for _number in range(count):
        allocate()
    return count / (time.perf_counter() - began)


def _batch(engine: sa.Engine) -> float:
    """Seconds for BATCH addresses in one call, the quickest of several times; none is taken twice."""
    of = _network(engine, "batch")
    seconds: list[float] = []
    taken: set[int] = set()
    for _round in range(ROUNDS):
        owners = {_owner(): None for _number in range(BATCH)}
        gc.collect()
        began = time.perf_counter()
        with transaction(engine) as connection:
            addresses, _new = claim_addresses(connection, of, owners, _now(), [])
        seconds.append(time.perf_counter() - began)
        taken.update(addresses.values())
    assert len(taken) == ROUNDS * BATCH
    return min(seconds)


class Raw:
    """The same insert by the standard library's driver alone: a row with an owner, under the same constraints."""

    def __init__(self, home: str) -> None:
        self._database = sqlite3.connect(f"{home}/raw.sqlite", isolation_level=None)
        self._database.execute("PRAGMA journal_mode=WAL")
        self._database.execute("PRAGMA synchronous=NORMAL")
        self._database.execute(
            "CREATE TABLE fixed_ip (network_id INTEGER, ip BIGINT, owner TEXT, reserved TEXT, released_at BIGINT, "
            "PRIMARY KEY (network_id, ip), UNIQUE (network_id, owner))"
        )
        self._addresses = itertools.count(10 << 24)

    def allocate(self) -> None:
        self._database.execute("BEGIN IMMEDIATE")
        row = (1, next(self._addresses), _owner(), None, 0)
        self._database.execute("INSERT INTO fixed_ip VALUES (?, ?, ?, ?, ?)", row)
        self._database.execute("COMMIT")


class Neutron:
    """Neutron's internal IPAM driver finds an address: read all, subtract the set from the pool's, take one of the
    first thousand; the unique key decides. Its ORM, locks and API are left out, in its favour."""

    def __init__(self, home: str) -> None:
        self._engine = sa.create_engine(f"sqlite:///{home}/neutron.sqlite")
        self._table = sa.Table(
            "ipamallocations",
            sa.MetaData(),
            sa.Column("ip_address", sa.String(64), primary_key=True),
            sa.Column("ipam_subnet_id", sa.String(36), primary_key=True),
            sa.Column("status", sa.String(36)),
        )
        self._pool = netaddr.IPRange("10.30.0.1", "10.30.255.254")
        first = int(netaddr.IPAddress("10.30.0.1"))
        with self._engine.begin() as connection:
            connection.exec_driver_sql("PRAGMA journal_mode=WAL")
            self._table.create(connection)
            used = [self._row(str(netaddr.IPAddress(first + number))) for number in range(USED)]
            connection.execute(sa.insert(self._table), used)

    def _row(self, address: str) -> dict[str, str]:
        return {"ip_address": address, "ipam_subnet_id": "s" * 36, "status": "ALLOCATED"}

    def allocate(self) -> None:
        table = self._table
        with self._engine.begin() as connection:
            rows = connection.execute(sa.select(table.c.ip_address).where(table.c.ipam_subnet_id == "s" * 36)).scalars()
            allocated = netaddr.IPSet([netaddr.IPAddress(address) for address in rows])
            available = netaddr.IPSet(self._pool).difference(allocated)
            window = min(available.size, NEUTRON_WINDOW)
            address = next(itertools.islice(available, random.randrange(window), None))
            connection.execute(sa.insert(table), [self._row(str(address))])
