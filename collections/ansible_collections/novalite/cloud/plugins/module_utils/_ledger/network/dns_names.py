# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Names in the DNS of networks: on each network a name leads to one instance, the first that came.

Projects share networks. Whoever took the name of another project's server would get a part of its connections, and
whoever was called `wpad` would be everybody's proxy (CERT VU#598349).
"""

from __future__ import annotations

import functools
import importlib
import re
import typing as t

import sqlalchemy as sa

from ..._errors import ConflictError, NovaliteError
from ..db.tables import dns_name, instance, network, vif

# Names that guests look for by themselves (cloud-init asks `instance-data` for metadata, as on EC2), or that mean the
# host's own services
NOBODYS = frozenset({"gateway", "instance-data", "isatap", "localhost", "metadata", "wpad"})
_BY_ADDRESS = re.compile(r"host-[0-9a-f]+(-[0-9a-f]*)+")  # _model.instance.name_by_address()


class Unnamed(t.NamedTuple):
    """An instance that has no name in the DNS of this network, for it is another's, or nobody's."""

    uuid: str
    hostname: str
    network: str


def is_nobodys(hostname: str) -> bool:
    """Tell whether no instance is known by this name."""
    return hostname in NOBODYS or _BY_ADDRESS.fullmatch(hostname) is not None


def claim(
    connection: sa.Connection, uuids: t.Collection[str] | None = None, chosen: t.Collection[str] = ()
) -> list[Unnamed]:
    """Have these instances (None: all) known by their host names on their networks, as far as nobody else is; return
    where they are not. Raises ConflictError, or NovaliteError, for one whose user has `chosen` the name (UUIDs)."""
    query = (
        sa.select(instance.c.uuid, instance.c.hostname, vif.c.network_id, network.c.name.label("network"))
        .join(vif, vif.c.instance_uuid == instance.c.uuid)
        .join(network, network.c.id == vif.c.network_id)
        .where(instance.c.deleted == 0, *(() if uuids is None else (instance.c.uuid.in_(list(uuids)),)))
        .order_by(instance.c.id, vif.c.position)
    )
    rows = connection.execute(query).all()
    free = [row for row in rows if not is_nobodys(row.hostname)]
    if free:
        _forget_former(connection, {row.network_id for row in free}, {row.hostname for row in free})
        values = [{"network_id": row.network_id, "name": row.hostname, "instance_uuid": row.uuid} for row in free]
        connection.execute(_insert(connection.dialect.name), values)
    held = {tuple(row) for row in connection.execute(_held_by([row.uuid for row in free]))}
    unnamed = [row for row in rows if (row.network_id, row.hostname, row.uuid) not in held]
    for row in unnamed:
        if row.uuid in chosen:
            _refuse(row)
    return [Unnamed(row.uuid, row.hostname, row.network) for row in unnamed]


def _refuse(row: t.Any) -> t.NoReturn:
    if is_nobodys(row.hostname):
        raise NovaliteError(f"hostname '{row.hostname}' is not given to a server: choose another one")
    raise ConflictError(
        f"hostname '{row.hostname}' is another server's on network '{row.network}': choose another one, or leave it out"
    )


def _held_by(uuids: t.Sequence[str]) -> sa.Select[t.Any]:
    columns = (dns_name.c.network_id, dns_name.c.name, dns_name.c.instance_uuid)
    return sa.select(*columns).where(dns_name.c.instance_uuid.in_(uuids))


def _forget_former(connection: sa.Connection, networks: t.Collection[int], names: t.Collection[str]) -> None:
    """Give back those of these names whose instances are gone, have left the network, or are called otherwise now."""
    still = (
        sa.select(vif.c.id)
        .join(instance, instance.c.uuid == vif.c.instance_uuid)
        .where(vif.c.instance_uuid == dns_name.c.instance_uuid, vif.c.network_id == dns_name.c.network_id)
        .where(instance.c.deleted == 0, instance.c.hostname == dns_name.c.name)
    )
    asked = sa.and_(dns_name.c.network_id.in_(sorted(networks)), dns_name.c.name.in_(sorted(names)))
    connection.execute(sa.delete(dns_name).where(asked, ~still.exists()))


@functools.cache
def _insert(dialect: str) -> sa.Executable:
    """Return the statement in this dialect: the constraint says who was first, also of two transactions at once."""
    insert = importlib.import_module(f"sqlalchemy.dialects.{dialect}").insert
    return t.cast("sa.Executable", insert(dns_name).on_conflict_do_nothing(index_elements=["network_id", "name"]))
