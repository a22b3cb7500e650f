# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Judgement of the slices of a ledger that hosts kept: which count, and the state of each instance there. No SQL.

A slice was written when its host was visited the last time, so it may say "building" of a guest that runs since. The
host's word about its domains is the newer one.
"""

from __future__ import annotations

import collections
import dataclasses
import json
import re
import typing as t

from ..._errors import ConflictError, NovaliteError
from ..._model.look import FoundDomain, Kept
from ..._rules.build_states import OFFLOADED
from ..compute.migrations import WAITING
from ..compute.power_states import GUEST_STATES
from ..compute.slices import VERSION, Row, Rows
from ..queries.network.subnet_records import derived_id
from .carried import Filter

# nothing is started because its ledger was lost
_STATES = {
    **GUEST_STATES,
    "missing": GUEST_STATES["shutoff"],
    "shutting down": GUEST_STATES["running"],
    "suspended": GUEST_STATES["paused"],
}
_KEPT_STATES = ("rescued", "resized", "error")  # which no domain's state can tell
_DELETING = "deleting"
OUR_DOMAIN = re.compile(r"instance-[0-9a-f]{8}")
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}").fullmatch
ALIVE = ("running", "paused", "suspended", "shutting down")  # states of a domain that has memory to lose


@dataclasses.dataclass(frozen=True)
class Slice:
    """A slice that a host kept: of the instance `uuid`, or of the host itself (None)."""

    host: str
    uuid: str | None
    ledger: str
    written_at: int
    withheld: tuple[str, ...]
    tables: Rows


@dataclasses.dataclass(frozen=True)
class SlicesOnHosts:
    """Records to be made again: `slices`, oldest first, one for each instance, and what else there is to say."""

    ledger: str | None
    slices: tuple[Slice, ...]
    unrecorded: tuple[str, ...]  # domains of novalite's that no slice tells of
    unreadable: tuple[str, ...]  # slices that could not be read, and why
    unmarked: tuple[str, ...]  # adopted instances whose domains do not exist, or carry no mark any more
    refused: tuple[str, ...]  # what hosts tell of that is not theirs to tell
    disputed: t.Mapping[str, str]  # instances (UUIDs) that several hosts have, and which
    there: frozenset[str]  # instances of which any host has anything


def judge(hosts: t.Sequence[Kept], now: int, ledger: str | None = None, own: str | None = None) -> SlicesOnHosts:
    """Choose among what `hosts` kept: each has its `name`, what was `found` (host_scan.scan), `records`, `host_record`.
    `ledger`: whose slices are asked for; else those of the ledger here (`own`), if there are any. Raises ConflictError
    when there are those of several others, and none was named."""
    slices: list[Slice] = []
    unreadable: list[str] = []
    for host in hosts:
        itself: tuple[str | None, str | None] = (None, host["host_record"])
        for uuid, text in (*host["records"].items(), itself):
            if text is None:
                continue
            try:
                slices.append(_parsed(host["name"], uuid, text, now))
            except NovaliteError as error:
                unreadable.append(str(error))
    ledger = ledger or _ledger_of(slices, own)
    mine, refused = _believed([slice_ for slice_ in slices if slice_.ledger == ledger], now)
    domains: dict[str, dict[str, FoundDomain]] = {}
    for host in hosts:
        for domain in host["found"]["domains"]:
            domains.setdefault(domain["uuid"], {})[host["name"]] = domain
    disks = {(uuid, host["name"]) for host in hosts for uuid in host["found"].get("disks", ())}
    candidates: dict[str, list[Slice]] = {}
    for slice_ in mine:
        if slice_.uuid is not None:
            candidates.setdefault(slice_.uuid, []).append(slice_)
    # whether somebody else's domain is an instance is what its mark says; a record may be left from before its release
    unmarked = [uuid for uuid, of_it in candidates.items() if uuid not in domains and _is_adopted(of_it[0])]
    gone = sorted(f"{_name(candidates[uuid][0])} ({uuid}) on {candidates[uuid][0].host}" for uuid in unmarked)
    kept = [slice_ for slice_ in mine if slice_.uuid is None]
    disputed: dict[str, str] = {}
    for uuid in candidates.keys() - set(unmarked):
        there = domains.get(uuid, {})
        chosen, host_name = _place(candidates[uuid], there, {host for of, host in disks if of == uuid})
        if host_name is None:
            words = " and ".join(f"{domain['state']} on {name}" for name, domain in sorted(there.items()))
            disputed[uuid] = f"{_name(chosen)} ({uuid}) is {words}"
        kept.append(_as_it_is(chosen, host_name or chosen.host, there.get(host_name or chosen.host)))
    others = {slice_.uuid for slice_ in slices} - candidates.keys()
    names = sorted(
        f"{domain['name']} ({uuid}) on {host}"
        for uuid, of_it in domains.items()
        for host, domain in of_it.items()
        if uuid not in candidates.keys() - set(unmarked) and uuid not in others
    )
    kept.sort(key=lambda each: (each.written_at, each.host, each.uuid or ""))
    anything = domains.keys() | candidates.keys() | {uuid for uuid, _host in disks}
    return SlicesOnHosts(
        ledger, tuple(kept), tuple(names), tuple(unreadable), tuple(gone), refused, disputed, frozenset(anything)
    )


def _ledger_of(slices: t.Sequence[Slice], own: str | None) -> str | None:
    """The ledger whose slices count: that of all of them, or the one that is here."""
    ledgers = sorted({slice_.ledger for slice_ in slices})
    if len(ledgers) > 1 and own not in ledgers:
        counts = ", ".join(
            f"{identity} ({sum(each.ledger == identity for each in slices)} records)" for identity in ledgers
        )
        raise ConflictError(
            f"these hosts keep records of several ledgers: {counts}; say which one is to be made again "
            "(-e ledger=<identity>)"
        )
    return own if own in ledgers else next(iter(ledgers), None)


def _believed(slices: t.Sequence[Slice], now: int) -> tuple[list[Slice], tuple[str, ...]]:
    """The slices reduced to what their hosts may tell, and what they reported besides, in words."""
    believed: list[Slice] = []
    filters: dict[str, Filter] = {}
    projects: dict[str, set[str]] = collections.defaultdict(set)
    users: dict[str, set[str]] = collections.defaultdict(set)
    for slice_ in sorted(slices, key=lambda each: each.uuid is None):  # a host's own last
        of_host = filters.setdefault(slice_.host, Filter(now))
        if slice_.uuid is None:
            rows = of_host.of_host(slice_.host, projects[slice_.host], users[slice_.host], slice_.tables)
        else:
            rows = of_host.of_instance(slice_.uuid, slice_.tables)
            if len(rows.get("instance", ())) != 1:
                of_host.refused["an instance that makes no sense"] += 1
                continue
            instance = rows["instance"][0]
            projects[slice_.host].add(instance["project_id"])
            if instance.get("user_id"):
                users[slice_.host].add(instance["user_id"])
        believed.append(dataclasses.replace(slice_, tables=rows))
    refused = [
        f"what {host} tells of {', '.join(f'{what} ({count})' for what, count in sorted(each.refused.items()))}: "
        "it is not a host's to tell"
        for host, each in sorted(filters.items())
        if each.refused
    ]
    return believed, tuple(refused)


def _place(
    candidates: t.Sequence[Slice], domains: t.Mapping[str, FoundDomain], disks: t.Collection[str]
) -> tuple[Slice, str | None]:
    """The slice of an instance that counts, and the host that has it: None where several may have it."""

    def newest(among: t.Iterable[Slice]) -> Slice:
        return max(among, key=lambda each: (each.tables["instance"][0]["updated_at"], each.written_at))

    if len(domains) == 1:
        (host,) = domains
        return newest([each for each in candidates if each.host == host] or candidates), host
    if not domains:
        chosen = newest([each for each in candidates if each.host in disks] or candidates)
        return chosen, chosen.host
    chosen = newest(candidates)
    alive = {host for host, domain in domains.items() if domain["state"] in ALIVE}
    return chosen, chosen.host if chosen.host in domains and alive <= {chosen.host} else None


def _is_adopted(slice_: Slice) -> bool:
    return slice_.tables["instance"][0].get("adopted") is not None


def _name(slice_: Slice) -> str:
    return str(slice_.tables["instance"][0]["name"])


def _parsed(host: str, uuid: str | None, text: str, now: int) -> Slice:
    what = f"what {host} keeps of {uuid or 'itself'}"
    try:
        document = json.loads(text)
        version, written_at = document["version"], min(int(document["written_at"]), now)
        withheld = tuple(str(name) for name in document["withheld"])
        rows = _with_subnet_ids(document["tables"])
        own = [row["uuid"] for row in rows.get("instance", ())]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise NovaliteError(f"{what} cannot be read") from None
    if uuid is not None and not _UUID(uuid):
        raise NovaliteError(f"{what} has no UUID of an instance")
    if version != VERSION:
        raise NovaliteError(f"{what} was written by a newer novalite")
    if own != ([] if uuid is None else [uuid]):
        raise NovaliteError(f"{what} is of another instance")
    return Slice(host, uuid, str(document["ledger"]), written_at, withheld, rows)


def _with_subnet_ids(reported: t.Mapping[str, list[Row]]) -> Rows:
    """The rows of a slice; subnets, and interfaces of routers, of before subnets had ids have those that they were
    known by."""
    uuids_of = {row["id"]: str(row["uuid"]) for row in reported.get("network", ())}
    named = {"subnet": "id", "router_interface": "subnet_id"}
    return {
        name: [
            {named[name]: derived_id(uuids_of[row["network_id"]], row["version"]), **row}
            if name in named and row["network_id"] in uuids_of
            else row
            for row in rows
        ]
        for name, rows in reported.items()
    }


def _as_it_is(slice_: Slice, host: str, domain: FoundDomain | None) -> Slice:
    """The slice with the states that its guest has now, on the `host` that has it."""
    state = domain["state"] if domain else "missing"
    row = dict(slice_.tables["instance"][0])
    if domain is None and row["vm_state"] == OFFLOADED:
        row |= {"host": None, "task_state": row["task_state"] if row.get("task_state") == _DELETING else None}
        return dataclasses.replace(
            slice_, tables={**slice_.tables, "instance": [row], "allocation": [], **_with_volumes(slice_)}
        )
    built = row["vm_state"] != "building"
    open_moves = [move for move in slice_.tables.get("migration", ()) if move["status"] in WAITING]
    ends = {host} | {move.get(end) for move in open_moves for end in ("source_host", "dest_host")}
    vm_state, row["power_state"] = _STATES.get(state, ("stopped", 0))
    if not built and state not in ("running", "paused"):
        row["vm_state"], row["power_state"] = "error", 0
        message = "its build was cut off, and the ledger was lost: delete it"
        row["fault"] = {"code": 500, "message": message, "created": slice_.written_at}
    elif row["vm_state"] not in _KEPT_STATES or (row["vm_state"] == "resized" and not open_moves):
        row["vm_state"] = vm_state
    if row.get("task_state") != _DELETING:
        row["task_state"] = None
    row["host"] = host
    if row.get("launched_at") is None and row["vm_state"] == "active":
        row["launched_at"] = slice_.written_at
    tables = {**slice_.tables, "instance": [row], "migration": open_moves}
    claims = slice_.tables.get("allocation", ())
    # a record of before claims named their hosts has one, or none that is known
    tables["allocation"] = [{**claim, "host": claim.get("host") or host} for claim in claims]
    tables["allocation"] = [claim for claim in tables["allocation"] if claim["host"] in ends]
    tables["vif"] = [{**vif, "status": None} for vif in slice_.tables.get("vif", ())]
    if row["vm_state"] != "error" or built:
        tables |= _with_volumes(slice_)
    return dataclasses.replace(slice_, tables=tables)


def _with_volumes(slice_: Slice) -> Rows:
    """Return a slice's volumes as the guest has them: one that was being attached when it was written is attached."""
    links = [
        {**link, "attached_at": link.get("attached_at") or slice_.written_at}
        for link in slice_.tables.get("volume_attachment", ())
    ]
    attached = {link["volume_id"] for link in links}
    volumes = []
    for volume in slice_.tables.get("volume", ()):
        if volume["id"] in attached:
            made = volume.get("made_at") or slice_.written_at
            volumes.append({**volume, "status": "in-use", "made_at": made, "new_size_gb": None})
        else:
            volumes.append(volume)
    return {"volume_attachment": links, "volume": volumes}
