# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Step `drift_report`: what was found, put together from what each module returned.

What they found, and in check mode would have done, becomes a table for people and a report for programs.
"""

from __future__ import annotations

import collections
import typing as t

import sqlalchemy as sa

from ..._drift import report
from ..._json import JsonMapping, JsonObject
from ..._model.whole_servers import domain_name
from ..db import clock
from ..db.tables import compute_host, instance, vif

ARGUMENT_SPEC = {
    # What `ledger_heal` returned as `corrections`.
    "corrections": {"type": "list", "elements": "dict", "default": []},
    # What `ledger_heal` returned as `deletions`.
    "deletions": {"type": "list", "elements": "dict", "default": []},
    # The hypervisors, each by its name, with the `rows` of the step `host_drift`, what `failed`, and the `steps` that
    # `host_steps` took to ensure networks and, `taken`, to take instances away.
    "hosts": {"type": "dict", "default": {}},
    # What could not be repaired.
    "failures": {"type": "list", "elements": "str", "default": []},
    # Whether the repairs were made.
    "repaired": {"type": "bool", "default": True},
}


def drift_report(connection: sa.Connection, params: JsonMapping) -> JsonObject:
    """Return `changed`, and
    * `table`: the differences as lines
    * `in_words`: how many there are, in one line
    * `pending`: how many there are
    * `report`: the same for programs; `differences` (the rows of the table, each with `host`, `object`, `ledger`,
      `there` and `repair`), `failures` (what could not be repaired), `repaired` (whether the repairs were made; `false`
      in check mode)

    Records when each host was looked at to the end, and how much differed there."""
    names = _names(connection)
    rows = [report.correction(correction) for correction in params["corrections"]]
    rows += [report.deletion(deletion) for deletion in params["deletions"]]
    failures = list(params["failures"])
    for host, of_host in sorted(params["hosts"].items()):
        rows += of_host.get("rows") or []
        for step in of_host.get("steps") or ():
            rows += report.of_step(host, step["module"].replace("_", " "), step["result"], names)
        for step in of_host.get("taken") or ():
            if step["module"] == "firewall":  # in check mode its own step tells of the same chains
                reported = {(row["host"], row["object"]) for row in rows}
                damage = report.of_step(host, report.DAMAGE, step["result"], names)
                rows += [row for row in damage if (row["host"], row["object"]) not in reported]
        if of_host.get("failed"):
            failures.append(f"{host}: {of_host['failed']}")
    whole = [host for host, of_host in params["hosts"].items() if not of_host.get("failed")]
    _record_looks(connection, whole, rows)
    return {
        "changed": False,
        "table": report.table(rows, failures),
        "in_words": report.in_words(rows, failures),
        "pending": len(rows),
        "report": {"differences": rows, "failures": failures, "repaired": params["repaired"]},
    }


def _record_looks(connection: sa.Connection, hosts: t.Sequence[str], rows: t.Sequence[report.Row]) -> None:
    counts = collections.Counter(row["host"] for row in rows)
    looks = [{"of": host, "count": counts[host]} for host in sorted(hosts)]
    if looks:
        of_host = compute_host.c.name == sa.bindparam("of")
        values = {"looked_at": clock.seconds(connection), "differences": sa.bindparam("count")}
        connection.execute(sa.update(compute_host).where(of_host).values(values), looks)


def _names(connection: sa.Connection) -> dict[str, str]:
    """Return instances' names by the names, UUIDs and MACs that hosts know them by."""
    c = instance.c
    rows = connection.execute(sa.select(c.id, c.uuid, c.name, c.adopted).where(c.deleted == 0)).all()
    name_by_alias: dict[str, str] = {}
    for row in rows:
        name_by_alias |= {f"nova-inst-{row.id}": row.name, f"nova-instance-instance-{row.id:08x}": row.name}
        name_by_alias |= {domain_name(row.id, row.adopted): row.name, row.uuid: row.name}
    macs = connection.execute(sa.select(vif.c.mac, c.name).join(instance, c.uuid == vif.c.instance_uuid))
    return {**name_by_alias, **{mac.mac: mac.name for mac in macs}}
