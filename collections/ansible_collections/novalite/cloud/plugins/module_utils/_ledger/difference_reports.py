# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# This module_utils is PRIVATE to the collection and may change at any time.

"""Operation `difference_report`: what was found, put together from what each module returned. Reads names only."""

from __future__ import annotations

import typing as t

import sqlalchemy as sa

from .._launch import differences
from .tables import instance, vif


def difference_report(connection: sa.Connection, params: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """`params`: `corrections` and `deletions` of ledger_repair; `failures`; `hosts`, {name: {"rows", "failed",
    "steps": {module: its result}}}. See the module's documentation for what is returned."""
    names = _names(connection)
    rows = [differences.correction(one) for one in params["corrections"]]
    rows += [differences.deletion(one) for one in params["deletions"]]
    failures = list(params["failures"])
    for host, told in sorted(params["hosts"].items()):
        rows += told.get("rows") or []
        for step, result in (told.get("steps") or {}).items():
            rows += differences.of_step(host, step, result or {}, names)
        if told.get("failed"):
            failures.append(f"{host}: {told['failed']}")
    return {
        "changed": False,
        "table": differences.table(rows, failures),
        "in_words": differences.in_words(rows, failures),
        "pending": len(rows),
        "report": {"differences": rows, "failures": failures, "repaired": params["repaired"]},
    }


def _names(connection: sa.Connection) -> dict[str, str]:
    """How people call what hosts call by number or MAC."""
    c = instance.c
    rows = connection.execute(sa.select(c.id, c.uuid, c.name).where(c.deleted == 0)).all()
    found = {}
    for one in rows:
        found |= {f"nova-inst-{one.id}": one.name, f"nova-instance-instance-{one.id:08x}": one.name}
        found |= {f"instance-{one.id:08x}": one.name, one.uuid: one.name}
    macs = connection.execute(sa.select(vif.c.mac, c.name).join(instance, c.uuid == vif.c.instance_uuid))
    return {**found, **{one.mac: one.name for one in macs}}
