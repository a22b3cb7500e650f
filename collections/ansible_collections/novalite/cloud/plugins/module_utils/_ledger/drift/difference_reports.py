# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# This module_utils is PRIVATE to the collection and may change at any time.

"""Operation `difference_report`: what was found, put together from what each module returned."""

from __future__ import annotations

import collections
import time
import typing as t

import sqlalchemy as sa

from ..._drift import report
from ..db.tables import compute_host, instance, vif
from ..queries.views import domain_name


def difference_report(connection: sa.Connection, params: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """`params`: `corrections` and `deletions` of ledger_repair; `failures`; `hosts`, {name: {"rows", "failed",
    "steps": {module: its result}}}. See the module's documentation for what is returned.

    When each host was looked at to the end, and how much differed there, is recorded for who watches the cloud.
    """
    names = _names(connection)
    rows = [report.correction(one) for one in params["corrections"]]
    rows += [report.deletion(one) for one in params["deletions"]]
    failures = list(params["failures"])
    for host, told in sorted(params["hosts"].items()):
        rows += told.get("rows") or []
        for step, result in (told.get("steps") or {}).items():
            changed = report.of_step(host, step, result or {}, names)
            if step == report.DAMAGE:  # in check mode the firewall's own step tells of the same chains
                told_of = {(row["host"], row["object"]) for row in rows}
                changed = [row for row in changed if (row["host"], row["object"]) not in told_of]
            rows += changed
        if told.get("failed"):
            failures.append(f"{host}: {told['failed']}")
    whole = [host for host, told in params["hosts"].items() if not told.get("failed")]
    _record_looks(connection, whole, rows)
    return {
        "changed": False,
        "table": report.table(rows, failures),
        "in_words": report.in_words(rows, failures),
        "pending": len(rows),
        "report": {"differences": rows, "failures": failures, "repaired": params["repaired"]},
    }


def _record_looks(
    connection: sa.Connection, hosts: t.Sequence[str], rows: t.Sequence[report.Row]
) -> None:
    counts = collections.Counter(row["host"] for row in rows)
    looks = [{"of": host, "count": counts[host]} for host in sorted(hosts)]
    if looks:
        of_host = compute_host.c.name == sa.bindparam("of")
        values = {"looked_at": int(time.time()), "differences": sa.bindparam("count")}
        connection.execute(sa.update(compute_host).where(of_host).values(values), looks)


def _names(connection: sa.Connection) -> dict[str, str]:
    """How people call what hosts call by number or MAC."""
    c = instance.c
    rows = connection.execute(sa.select(c.id, c.uuid, c.name, c.adopted).where(c.deleted == 0)).all()
    found: dict[str, str] = {}
    for one in rows:
        found |= {f"nova-inst-{one.id}": one.name, f"nova-instance-instance-{one.id:08x}": one.name}
        found |= {domain_name(one.id, one.adopted): one.name, one.uuid: one.name}
    macs = connection.execute(sa.select(vif.c.mac, c.name).join(instance, c.uuid == vif.c.instance_uuid))
    return {**found, **{one.mac: one.name for one in macs}}
