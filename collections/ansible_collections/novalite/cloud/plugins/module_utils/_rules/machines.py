# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Refusals of machines that are not the host that a ledger means: a sentence for each, with what to do."""

from __future__ import annotations

import dataclasses
import typing as t

from .._host.mark import DIRECTORY, NOT_PRIVATE, UNKNOWN_MARK, Identity, Seen, differs, same

RENAME = "compute_node_rename.yml"
REPLACED = "compute_nodes.yml -e replaced="


@dataclasses.dataclass(frozen=True)
class Meeting:
    """A host whose trip was refused. `recorded`: the ledger knows a host of this name, and `identity` of it. `others`
    are the names of hosts that it has recorded as this machine."""

    host: str
    seen: Seen
    recorded: bool
    identity: Identity | None
    others: t.Sequence[str] = ()


def refusal(meeting: Meeting) -> str:
    """The reason for which nothing is done on this machine."""
    host, seen = meeting.host, meeting.seen
    if meeting.others:
        return f"{host}: {is_another(host, meeting.others, meeting.recorded)}"
    if seen.refused == NOT_PRIVATE:
        return f"{host}: {DIRECTORY} in its state directory is a link, or open to others than root: remove it"
    if seen.refused == UNKNOWN_MARK:
        return (
            f"{host}: the ledger did not leave the mark that this host has, so it is older than the host (restored, or "
            "a copy), or the host was set back: run ledger_rebuild.yml, which asks all hosts"
        )
    if seen.mark is not None and seen.mark.host != host:
        may_be_renamed = not meeting.recorded or same(seen.identity, meeting.identity or {})
        return f"{host}: {_bears_the_name(host, seen.mark.host, may_be_renamed)}"
    return (
        f"{host}: this is not the machine that the ledger has as {host} ({_difference(meeting)}): "
        f"{_address(host)}, or, if its hardware was replaced or it was installed anew, run {REPLACED}{host}"
    )


def is_another(host: str, others: t.Sequence[str], recorded: bool) -> str:
    """The sentence for a machine that the ledger has as `others`, where `host`, `recorded` or not, is expected."""
    text = f"this machine is {', '.join(others)} of this ledger, and {host} is expected here: {_address(host)}"
    if recorded:
        return text
    return f"{text}, leave out a second name, or, if {others[0]} has a new name, run {_rename(others[0], host)}"


def _bears_the_name(host: str, other: str, may_be_renamed: bool) -> str:
    renamed = "" if not may_be_renamed else f"if {other} has a new name, run {_rename(other, host)}, or, "
    return (
        f"this machine has the mark of {other} of this ledger, and {host} is expected here: {_address(host)}, or, "
        f"{renamed}if {host} was made of {other}'s disk, run {REPLACED}{host}"
    )


def _address(host: str) -> str:
    return f"give {host} the address of its own machine in the inventory (ansible_host)"


def _rename(host: str, new_name: str) -> str:
    return f"{RENAME} -e host={host} -e new_name={new_name}"


def _difference(meeting: Meeting) -> str:
    recorded, seen = meeting.identity or {}, meeting.seen.identity
    differences = [name for name, value in recorded.items() if differs({name: value}, seen)]
    return ", ".join(f"its {name} is {seen[name]}, and {recorded[name]} is recorded" for name in differences)
