# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether the scheduler may choose a compute host, decided without a word to the host."""

from __future__ import annotations

import typing as t

import sqlalchemy as sa

from ..._errors import NovaliteError
from ..._json import JsonObject
from ..._rules.records import Changes, check_text
from ..db.tables import compute_host as table
from ..queries.lookups import check_compute_hosts


def switch_hosts(
    connection: sa.Connection, hosts: t.Iterable[str], enabled: bool, reason: str | None = None
) -> JsonObject:
    """Enable or disable the compute hosts of these names: `compute_hosts`, `changed` and `diff`.

    Holds until it is said otherwise here, or by an inventory that sets `enabled` itself. Raises NotFoundError for a
    host that never reported.
    """
    if enabled and reason is not None:
        raise NovaliteError(f"disabled_reason {reason!r} for hosts that are enabled: leave it out")
    names = sorted(set(hosts))
    check_compute_hosts(connection, names)
    columns = (table.c.name, table.c.enabled, table.c.disabled_reason)
    # in the order of the ids, as every writer of these rows: two of them cannot lock each other out
    query = sa.select(*columns).where(table.c.name.in_(names)).order_by(table.c.id).with_for_update()
    there = {row.name: dict(row._mapping) for row in connection.execute(query)}
    changes = Changes()
    result = []
    for name in names:
        before = {key: there[name][key] for key in ("enabled", "disabled_reason")}
        after = {"enabled": enabled, "disabled_reason": before["disabled_reason"] if not enabled else None}
        if reason is not None:
            after["disabled_reason"] = check_text("disabled_reason", reason) or None
        result.append({"name": name, **after})
        if changes.note(name, before, after):
            # a choice that another run made on the old values must be made again
            connection.execute(
                sa.update(table).where(table.c.name == name).values(generation=table.c.generation + 1, **after)
            )
    return changes.result("compute_hosts", result)
