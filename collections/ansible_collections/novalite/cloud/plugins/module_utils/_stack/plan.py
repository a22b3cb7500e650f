# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The plan: what stands between the ledger and a stack's document, as items and as a table for people.

An item is one thing that would be made (+), changed (~), removed (-) or replaced by a new instance (-/+).
"""

from __future__ import annotations

import dataclasses
import json
import typing as t

from .._model import text_table
from .._model.plain_text import is_plain

ADD, CHANGE, REPLACE, REMOVE = "+", "~", "-/+", "-"
WORDS = {ADD: "to add", CHANGE: "to change", REPLACE: "to replace", REMOVE: "to remove"}
IN_PLACE = ("security_groups", "metadata")  # what a server that runs takes; the rest needs a new instance
HIDDEN = ("user_data", "files", "admin_password")  # long, and perhaps secret
WIDEST = 60  # characters of a value in the table

Live = t.Mapping[str, t.Any]
Values = t.Mapping[str, t.Any]


class Change(t.NamedTuple):
    """Change of one field; None is what is not there."""

    field: str
    before: t.Any
    after: t.Any


@dataclasses.dataclass(frozen=True)
class Item:
    action: str
    kind: str
    name: str
    changes: tuple[Change, ...] = ()
    note: str | None = None

    def as_data(self) -> dict[str, t.Any]:
        return {**dataclasses.asdict(self), "changes": [change._asdict() for change in self.changes]}


def record_item(kind: str, name: str, values: Values, before: Values | None, after: Values | None) -> Item | None:
    """The item of a record that was (or would be) `before` and `after`; None where nothing changes. A new record shows
    what the document says of it, another one what changes."""
    if before == after:
        return None
    if after is None:
        return Item(REMOVE, kind, name)
    if before is None:
        return Item(ADD, kind, name, tuple(Change(key, None, value) for key, value in values.items()))
    return Item(CHANGE, kind, name, tuple(_changes(before, after)))


def server_item(name: str, desired: Values, live: Live | None) -> Item | None:
    """The item of a server that shall be as `desired`, or None if it is so. Of `live`, only what `desired` speaks of is
    looked at. One whose build failed, or was cut off, is built again."""
    if live is None:
        return Item(ADD, "server", name, tuple(_new(desired)))
    changes = tuple(server_changes(desired, live))
    if live["vm_state"] == "building":
        return Item(ADD, "server", name, note="its build was begun, and goes on")
    if live["vm_state"] == "error" and live["launched_at"] is None:
        return Item(ADD, "server", name, changes, "failed before, and is built again")
    if any(change.field.partition(".")[0] not in IN_PLACE for change in changes):
        return Item(REPLACE, "server", name, changes, "needs a new instance")
    if live["vm_state"] == "error":
        return Item(ADD, "server", name, changes, "is in ERROR, and is built again")
    return Item(CHANGE, "server", name, changes) if changes else None


def server_changes(desired: Values, live: Live) -> t.Iterator[Change]:
    """The fields that `desired` names and that are otherwise in `live`."""
    for field, value in desired.items():
        there: t.Any = live.get(field)
        if field == "metadata":
            for key, text in value.items():
                if there.get(key) != text:
                    yield Change(f"metadata.{key}", there.get(key), text)
        elif field == "networks":
            if not _same_networks(value, there):
                yield Change(field, [_network(network) for network in there], [_network(network) for network in value])
        elif field == "security_groups":
            if sorted(value) != sorted(there):
                yield Change(field, sorted(there), sorted(value))
        elif value != there:
            yield Change(field, _veiled(field, there), _veiled(field, value))


def _same_networks(desired: t.Sequence[Values], there: t.Sequence[Values]) -> bool:
    return len(desired) == len(there) and all(
        ours["name"] == theirs["name"] and ours.get("fixed_ip") in (None, theirs.get("fixed_ip"))
        for ours, theirs in zip(desired, there)
    )


def _network(network: Values) -> str:
    return f"{network['name']} ({network['fixed_ip']})" if network.get("fixed_ip") else str(network["name"])


def _new(desired: Values) -> t.Iterator[Change]:
    for field, value in desired.items():
        after = [_network(network) for network in value] if field == "networks" else _veiled(field, value)
        yield Change(field, None, after)


def _veiled(field: str, value: t.Any) -> t.Any:
    return value if field not in HIDDEN or value is None else "(not shown)"


def _changes(before: Values, after: Values, prefix: str = "") -> t.Iterator[Change]:
    for key in {**before, **after}:
        old, new = before.get(key), after.get(key)
        if old == new:
            continue
        if isinstance(old, t.Mapping) and isinstance(new, t.Mapping):
            yield from _changes(old, new, f"{prefix}{key}.")
        else:
            yield Change(f"{prefix}{key}", old, new)


def summary(items: t.Iterable[Item]) -> dict[str, int]:
    """Count the items of each action."""
    counts = dict.fromkeys(WORDS, 0)
    for item in items:
        counts[item.action] += 1
    return counts


def in_words(counts: t.Mapping[str, int]) -> str:
    words = [f"{count} {WORDS[action]}" for action, count in counts.items() if count]
    return ", ".join(words) if words else "nothing to do"


def table(items: t.Sequence[Item], title: str) -> list[str]:
    """The plan as lines: a title, a row for each item (and one for each further field), a summary."""
    rows = [Row(item.action, item.kind, item.name, _texts(item)) for item in items]
    return [title, *lined_up(rows), f"Plan: {in_words(summary(items))}."]


class Row(t.NamedTuple):
    """Row of a plan: what is done to what, in words; each of the `texts` has a line of its own."""

    action: str
    kind: str
    name: str
    texts: t.Sequence[str]


def lined_up(rows: t.Sequence[Row], room: int | None = None) -> list[str]:
    """The rows below each other; in `room` characters a line, if that is given, where texts go on below themselves."""
    kinds = max((len(row.kind) for row in rows), default=0)
    names = max((len(row.name) for row in rows), default=0)
    lines = []
    for row in rows:
        head = f"  {row.action:<3}  {row.kind:<{kinds}}  {row.name:<{names}}  "
        width = None if room is None else room - len(head)
        for text in row.texts or [""]:
            for part in text_table.wrapped(text, width, "  "):
                lines.append(f"{head}{part}".rstrip())
                head = " " * len(head)
    return lines


def _texts(item: Item) -> list[str]:
    if item.action == ADD and not item.note:
        # one line says what it is; what is changed is worth a line each
        return [", ".join(f"{change.field} {_shown(change.after)}" for change in item.changes)]
    texts = [text for change in item.changes for text in _change_texts(change)]
    if item.note:
        texts.append(f"({item.note})")
    return texts or [""]


def _change_texts(change: Change) -> list[str]:
    if _are_mappings(change.before) and _are_mappings(change.after) and (change.before or change.after):
        gone = [mapping for mapping in change.before if mapping not in change.after]
        new = [mapping for mapping in change.after if mapping not in change.before]
        return [
            f"{change.field}: {sign} {_shown(mapping)}"
            for sign, mappings in (("-", gone), ("+", new))
            for mapping in mappings
        ]
    return [f"{change.field}: {_shown(change.before)} -> {_shown(change.after)}"]


def _are_mappings(value: t.Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, t.Mapping) for item in value)


def _shown(value: t.Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, str):
        text = value if value and is_plain(value) else json.dumps(value)
    elif isinstance(value, t.Mapping) and "protocol" in value:
        return _rule(value)
    elif isinstance(value, t.Mapping):
        text = " ".join(f"{key}={_shown(part)}" for key, part in value.items() if part is not None)
    elif isinstance(value, (list, tuple)):
        text = f"{len(value)} of them" if _are_mappings(value) and len(value) > 2 else _listed(value)
    else:
        text = json.dumps(value)
    return text if len(text) <= WIDEST else f"{text[: WIDEST - 3]}..."


def _rule(rule: Values) -> str:
    """A rule of a security group in words, however much or little of it is said."""
    first, last = rule.get("port_min", rule.get("icmp_type")), rule.get("port_max", rule.get("icmp_code"))
    ports = [str(port) for port in dict.fromkeys((first, last)) if port is not None]
    egress = rule.get("direction") == "egress"
    group = rule.get("remote_group")
    peer = f"group {group}" if group else rule.get("cidr") or rule.get("ethertype") or "everyone"
    words = ["egress"] if egress else []
    return " ".join([*words, str(rule["protocol"]), *filter(None, ["-".join(ports)]), "to" if egress else "from", peer])


def _listed(values: t.Iterable[t.Any]) -> str:
    return f"[{', '.join(_shown(value) for value in values)}]"
