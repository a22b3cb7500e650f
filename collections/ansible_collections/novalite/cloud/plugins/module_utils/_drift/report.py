# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Differences between ledger and hosts, for people: rows out of what modules changed, and their table. Pure."""

from __future__ import annotations

import typing as t

from .._json import JsonMapping, JsonObject
from .._model import text_table

Row = JsonObject
Result = JsonMapping
Names = t.Mapping[str, str]

HEADS = ("HOST", "OBJECT", "THE LEDGER SAYS", "IS THERE", "REPAIR")
FIELDS = ("host", "object", "ledger", "there", "repair")
DAMAGE = "damage"  # what a run of the module firewall put back, that others had changed, beside what it was asked for


def row(host: str | None, what: str, ledger: str, there: str, repair: str) -> Row:
    """Return one difference as a row of the report. `host` is None for what is in the ledger alone."""
    return {"host": host, "object": what, "ledger": ledger, "there": there, "repair": repair}


def removal(host: str, what: str, ledger: str, how: str, *, proof: str, why: str) -> Row:
    """A row for what is taken away, or aside, with the `proof` (see proofs.Proof) and the reason in words."""
    return {**row(host, what, ledger, "there", f"{how}: {why}"), "proof": proof}


def correction(record: Result) -> Row:
    """Return the row for a correction, as the step `ledger_heal` reports it."""
    before, after = record["before"], record["after"]
    what, reason = f"{record['kind']} {record['name']}", record["reason"]
    if after is None:
        return row(None, what, _values(before), reason, "removed")
    changed = {key: value for key, value in after.items() if before.get(key) != value}
    return row(None, what, _values({key: before[key] for key in changed}), reason, f"set to {_values(changed)}")


def deletion(record: Result) -> Row:
    """Return the row for an instance that nobody goes on deleting, as the step `ledger_heal` reports it."""
    silent = f"nobody was at it for {record['silent']} s"
    return row(record["host"], f"instance {record['name']}", "is being deleted", silent, "deleted to the end")


def of_step(host: str, step: str, result: Result, names: Names) -> list[Row]:
    """Rows for what a module (`step`) changed on a host, or in check mode would have."""
    if not result.get("changed"):
        return []
    if step == DAMAGE:
        chains = sorted({name for names_of in (result.get("repaired") or {}).values() for name in names_of})
        return [row(host, f"chain {_named(name, names)}", "in force", "differs", "restored") for name in chains]
    diff = result.get("diff") or {}
    before, after = diff.get("before") or {}, diff.get("after") or {}
    read: t.Callable[[str, Row, Row, Names], list[Row]] = _READERS.get(step, _plain)
    if not (before or after):
        return [row(host, step, "in order", "differs", "put right")]
    return read(host, before, after, names)


def table(rows: t.Sequence[Row], failures: t.Sequence[str], room: int | None = None) -> list[str]:
    """The rows under a head, then what could not be repaired, then how many there are; in `room` characters a line."""
    texts = [[str(record[field] if record[field] is not None else "ledger") for field in FIELDS] for record in rows]
    return [
        *(text_table.lined_up([HEADS, *texts], room) if texts else []),
        *(line for failure in failures for line in text_table.wrapped(f"FAILED  {failure}", room, " " * 8)),
        f"{in_words(rows, failures)}.",
    ]


def in_words(rows: t.Sequence[Row], failures: t.Sequence[str]) -> str:
    differences_text = "no difference" if not rows else f"{len(rows)} difference{'s' if len(rows) > 1 else ''}"
    return f"{differences_text}, {len(failures)} failed" if failures else differences_text


def _values(values: JsonMapping) -> str:
    return ", ".join(f"{key} {'none' if value is None else value}" for key, value in values.items()) or "there"


def _named(key: str, names: Names) -> str:
    return f"{key} ({names[key]})" if key in names else key


def _plain(host: str, before: Row, after: Row, names: Names) -> list[Row]:
    return [
        row(host, _named(key, names), "there", "differs" if before.get(key) else "missing", "put right")
        for key in sorted({*before, *after})
        if before.get(key) != after.get(key)
    ]


def _bridges(host: str, before: Row, after: Row, names: Names) -> list[Row]:
    rows = []
    for key in sorted({*before, *after}):
        device = "." not in key and not key.startswith(("net", "br_netfilter"))
        what = f"bridge {key}" if device else f"kernel settings ({key})"
        there = "differs" if before.get(key) else "missing"
        rows.append(row(host, what, "there", there, "made" if there == "missing" else "put right"))
    return rows


def _router(host: str, before: Row, after: Row, names: Names) -> list[Row]:
    return [{**record, "object": f"router ({record['object']})"} for record in _plain(host, before, after, names)]


def _dhcp(host: str, before: Row, after: Row, names: Names) -> list[Row]:
    rows = []
    for key in sorted({*before, *after}):
        old, new = before.get(key) or {}, after.get(key) or {}
        if not old:
            rows.append(row(host, f"DHCP server of {key}", "runs", "missing", "started"))
            continue
        if not old.get("running"):
            rows.append(row(host, f"DHCP server of {key}", "runs", "dead", "started"))
        for line in new.get("hosts", ()):
            if line not in old.get("hosts", ()):
                mac = line.partition(",")[0]
                rows.append(row(host, f"DHCP entry {_named(mac, names)} on {key}", "there", "missing", "added"))
        files = [name for name in ("conf", "names", "others") if old.get(name) != new.get(name)]
        if files and old.get("hosts") == new.get("hosts"):
            rows.append(row(host, f"DHCP server of {key}", "configured", f"{', '.join(files)} differ", "written anew"))
    return rows


def _filters(host: str, before: Row, after: Row, names: Names) -> list[Row]:
    return [
        row(host, f"filter {_named(key, names)}", "there", "differs" if key in before else "missing", "defined")
        for key in sorted(after)
        if not key.startswith("rules of ")  # these were told before
    ]


def _firewall(host: str, before: Row, after: Row, names: Names) -> list[Row]:
    """A row for each chain, whatever families it is in."""
    parts: dict[str, set[str]] = {}
    for part in sorted({*before, *after}):
        old, new = before.get(part) or {}, after.get(part) or {}
        for key in {*old, *new}:
            if old.get(key) != new.get(key):
                what = {"sysctl": "kernel setting", "sets": "set"}.get(part, "chain")
                parts.setdefault(f"{what} {_named(key, names)}", set()).add("differs" if key in old else "missing")
    return [
        row(host, what, "in force", " and ".join(sorted(there)), "restored") for what, there in sorted(parts.items())
    ]


_READERS = {"bridge": _bridges, "router": _router, "dhcp": _dhcp, "nwfilter": _filters, "firewall": _firewall}
