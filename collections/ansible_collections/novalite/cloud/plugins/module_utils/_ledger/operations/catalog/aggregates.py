# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Operations on aggregates of compute hosts, for every door that knows them by ids."""

from __future__ import annotations

import typing as t

from ...._errors import ConflictError, NotFoundError
from ...db.tables import aggregate
from ...placement import aggregates
from ...placement.aggregates import remove_aggregates, write_aggregates
from ...queries.lookups import lock_rows
from ...queries.placement import hypervisor_records
from ...queries.placement.hypervisor_records import Aggregate
from ..call import Call


class NotEmptyError(ConflictError):
    """An aggregate that hosts are in."""


class Values(t.TypedDict, total=False):
    """Attributes of an aggregate that is changed: what is left out stays. `zone`: "" takes it out of its zone."""

    zone: str | None
    metadata: t.Mapping[str, str]
    hosts: t.Sequence[str]


def create(call: Call, name: str, zone: str | None) -> Aggregate:
    """Make an aggregate. Raises ConflictError for a name that there is, and as write_aggregates()."""
    _check_free(call, name)
    return _write(call, name, zone=zone)


def update(call: Call, row: Aggregate, *, name: str | None = None, zone: str | None = None) -> Aggregate:
    """Give an aggregate another name, or another zone ("": none). Raises as create()."""
    row = _locked(call, row)
    name = row.name if name is None else name
    if name != row.name:
        _check_free(call, name)
        aggregates.rename_aggregate(call.connection, row.id, name)
    return _write(call, name, zone=zone)


def delete(call: Call, row: Aggregate) -> None:
    """Remove an aggregate. Raises NotEmptyError for one that hosts are in, as Nova does."""
    row = _locked(call, row)
    if row.hosts:
        raise NotEmptyError(
            f"Cannot perform action 'delete' on aggregate {row.id}. Reason: Host aggregate is not empty."
        )
    remove_aggregates(call.connection, [{"name": row.name}])


def set_metadata(call: Call, row: Aggregate, changes: t.Mapping[str, str | None], zone: str | None = None) -> Aggregate:
    """Change keys of an aggregate's metadata, of which None takes one away, and its zone ("": none). Raises as
    write_aggregates()."""
    row = _locked(call, row)
    metadata = {key: value for key, value in {**row.metadata, **changes}.items() if value is not None}
    return _write(call, row.name, zone=zone, metadata=metadata)


def add_host(call: Call, row: Aggregate, host: str) -> Aggregate:
    """Put a host into an aggregate. Raises ConflictError for one that is there, and as write_aggregates()."""
    row = _locked(call, row)
    if host in row.hosts:
        raise ConflictError(f"Aggregate {row.id} already has host {host}.")
    return _write(call, row.name, hosts=[*row.hosts, host])


def remove_host(call: Call, row: Aggregate, host: str) -> Aggregate:
    """Take a host out of an aggregate. Raises NotFoundError for one that is not there, and as write_aggregates()."""
    row = _locked(call, row)
    if host not in row.hosts:
        raise NotFoundError(f"Aggregate {row.id} has no host {host[:60]}.")
    return _write(call, row.name, hosts=[member for member in row.hosts if member != host])


def _locked(call: Call, row: Aggregate) -> Aggregate:
    """Return the aggregate as it is once nobody else is changing it. Raises NotFoundError for one that is gone."""
    if lock_rows(call.connection, aggregate.c.id == row.id, by=aggregate.c.id):
        return next(again for again in hypervisor_records.aggregates(call.connection) if again.id == row.id)
    raise NotFoundError(f"Aggregate {row.id} could not be found.")


def _write(call: Call, name: str, **values: t.Unpack[Values]) -> Aggregate:
    write_aggregates(call.connection, [{"name": name, "zone": None, "metadata": None, "hosts": None, **values}])
    return next(row for row in hypervisor_records.aggregates(call.connection) if row.name == name)


def _check_free(call: Call, name: str) -> None:
    if any(row.name == name for row in hypervisor_records.aggregates(call.connection)):
        raise ConflictError(f"Aggregate {name} already exists.")
