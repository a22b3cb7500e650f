# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Columns of servers and hosts, and all about one server."""

from __future__ import annotations

import dataclasses
import operator
import typing as t

import click

from ansible_collections.novalite.cloud.plugins.module_utils._model.plain_text import without_controls
from ansible_collections.novalite.cloud.plugins.module_utils._rules import ha_wishes
from ansible_collections.novalite.cloud.plugins.module_utils._rules.server_status import silence, status_of

from .looking import age
from .tables import Column, Form, Record, fields, show, structure

if t.TYPE_CHECKING:
    from .doctor import Finding


def servers(records: t.Sequence[Record], form: Form, all_projects: bool = False) -> None:
    """Show what looking.servers() returned."""
    # where a run died: the others have no use for the column
    is_any_silent = any(record["silent_for"] is not None for record in records)
    silent = [Column("silence", lambda record: silence(record["silent_for"]), wide=not is_any_silent)]
    columns = [
        Column("name", lambda record: record["name"]),
        Column("status", lambda record: status_of(record["vm_state"], record["task_state"])),
        *silent,
        Column("host", lambda record: record["host"]),
        Column("addresses", lambda record: ", ".join(ip for ips in _addresses(record).values() for ip in ips)),
        Column("flavor", lambda record: record["flavor"]["name"]),
        Column("project", lambda record: record["project"], wide=not all_projects),
        Column("age", lambda record: age(record["created_at"])),
        Column("ha", ha_wishes.in_words, wide=True),
        Column("uuid", lambda record: record["uuid"], wide=True),
        Column("fault", lambda record: (record["fault"] or {}).get("message"), wide=True),
    ]
    show(records, columns, form, server_in_short)


def server(record: Record, output: str) -> None:
    """Show what looking.server() returned, with what agents.addresses() returned as `guest_addresses`."""
    if output in ("json", "yaml"):
        structure(record, output)
        return
    rows = [
        ("name", record["name"]),
        ("uuid", record["uuid"]),
        ("project", record["project"]["name"]),
        ("status", status_of(record["vm_state"], record["task_state"])),
        ("state", " / ".join(str(record[name] or "-") for name in ("vm_state", "task_state"))),
        ("silence", silence(record["silent_for"])),
        ("fault", (record["fault"] or {}).get("message")),
        ("host", record["host"]),
        ("ha", ha_wishes.in_words(record)),
        ("domain", record["domain_name"]),
        ("flavor", "{name}: {vcpus} vcpus, {memory_mb} MiB, {root_gb} GiB".format_map(record["flavor"])),
        ("image", record["image"].get("name")),
        ("key", (record["key"] or {}).get("name")),
        *(("interface", _interface(nic)) for nic in record["nics"]),
        *(("by its agent", line) for line in _by_agent(record["guest_addresses"])),
        ("security groups", ", ".join(group["name"] for group in record["security_groups"])),
        *(("volume", _volume(volume)) for volume in record["volumes"]),
        ("metadata", ", ".join(f"{name}={value}" for name, value in sorted(record["metadata"].items()))),
        ("age", age(record["created_at"])),
        *(("action", _action(action)) for action in reversed(record["actions"])),
    ]
    fields([row for row in rows if row[1] not in (None, "")])


def hosts(records: t.Sequence[Record], form: Form) -> None:
    """Show what looking.hosts() returned."""
    columns = [
        Column("host", lambda record: record["name"]),
        Column(
            "state", lambda record: ("up" if record["up"] else "down") + ("" if record["enabled"] else ", disabled")
        ),
        Column("zone", lambda record: record["zone"]),
        Column("servers", lambda record: record["instances"]),
        Column("vcpus", lambda record: filled(record["capacity"]["vcpus"])),
        Column("memory_mib", lambda record: filled(record["capacity"]["memory_mb"])),
        Column("disk_gib", lambda record: filled(record["capacity"]["disk_gb"])),
        Column("seen", lambda record: age(record["last_seen_at"])),
        Column("why", lambda record: "; ".join(filter(None, (record["down_reason"], record["disabled_reason"])))),
        Column("drift", lambda record: record["differences"], wide=True),
        Column("compared", lambda record: age(record["looked_at"]), wide=True),
    ]
    show(records, columns, form)


def events(record: Record, form: Form) -> None:
    """Show what was done to a server, the oldest first."""
    columns = [
        Column("action", lambda action: action["action"]),
        Column("ago", lambda action: age(action["started_at"])),
        Column("seconds", _seconds),
        Column("result", lambda action: _ended(action)),
        Column("request_id", lambda action: action["request_id"], wide=True),
    ]
    show(list(reversed(record["actions"])), columns, form)


def why(placed: Record, output: str) -> None:
    """Show why a server is where it is, as the scheduler recorded it."""
    if output in ("json", "yaml"):
        structure(placed, output)
        return
    reasons = placed["explanation"] or {}
    fields(
        [
            ("server", placed["name"]),
            ("host", placed["host"]),
            *(("tried before", host) for host in placed["attempts"]),
            *(("why", line) for line in reasons.get("lines") or ["nothing is recorded: the scheduler did not choose"]),
        ]
    )


def findings(problems: t.Sequence[Finding], form: Form) -> None:
    """Show what is wrong: people get a paragraph for each finding."""
    from .doctor import Finding

    columns = [Column(field.name, operator.itemgetter(field.name)) for field in dataclasses.fields(Finding)]
    if form == Form():
        for finding in problems:
            text = f"{finding.about}: {finding.problem}\n  -> {finding.remedy}"
            click.echo("\n".join(map(without_controls, text.splitlines())))
        if not problems:
            click.echo("nothing is wrong, as far as the ledger and this machine tell")
        return
    show([dataclasses.asdict(finding) for finding in problems], columns, form)


def server_in_short(record: Record) -> Record:
    """Return what programs get of a server in a list."""
    same = ("uuid", "name", "project", "vm_state", "task_state", "power_state", "host", "zone", "key_name", "metadata")
    return {
        **{name: record[name] for name in same},
        "status": status_of(record["vm_state"], record["task_state"]),
        "silent_for": record["silent_for"],
        "fault": record["fault"],
        **{field: record[field] for field in ha_wishes.FIELDS},
        "flavor": record["flavor"]["name"],
        "image_id": record["image_id"],
        "addresses": _addresses(record),
        "created_at": record["created_at"],
        "launched_at": record["launched_at"],
    }


def _addresses(record: Record) -> dict[str, list[str]]:
    """The addresses of a server's interfaces by network, floating ones behind the fixed one that they lead to."""
    addresses: dict[str, list[str]] = {}
    for nic in record["nics"]:
        own = [address for address in (nic["ip"], nic["ipv6"]) if address]
        addresses.setdefault(nic["network"], []).extend([*own, *nic["floating_ips"]])
    return addresses


def _interface(nic: Record) -> str:
    words = (nic["network"]["name"], nic["mac"], nic["ip"], nic["ipv6"])
    return " ".join(word for word in (*words, *(floating["address"] for floating in nic["floating_ips"])) if word)


def _by_agent(addresses: t.Mapping[str, t.Sequence[str]] | None) -> list[str]:
    if addresses is None:
        return []
    return [" ".join((mac, *own)) for mac, own in addresses.items()] or ["no answer"]


def _volume(volume: Record) -> str:
    return " ".join(str(volume[name]) for name in ("device", "name", "volume_id") if volume.get(name))


def _ended(action: Record) -> str:
    return "under way" if action["finished_at"] is None else action["message"] or "done"


def _action(action: Record) -> str:
    return f"{action['action']}, {age(action['started_at'])} ago: {_ended(action)}"


def _seconds(action: Record) -> int | None:
    return None if action["finished_at"] is None else action["finished_at"] - action["started_at"]


def filled(resource: Record) -> str:
    """Return how much of a host's resource is in use, of how much may be."""
    return f"{resource['used']}/{resource['limit']}"
