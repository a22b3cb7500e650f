# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Judgement of the slices of a ledger that hosts kept: which count, and the state of each instance there. No SQL.

A slice was written when its host was visited the last time, so it may say "building" of a guest that runs since. The
host's word about its domains is the newer one.
"""

from __future__ import annotations

import dataclasses
import json
import typing as t

from ..._errors import ConflictError, NovaliteError
from ..._model.look import FoundDomain, Kept
from ..._rules.build_states import OFFLOADED
from ..compute.power_states import GUEST_STATES
from ..compute.slices import VERSION, Rows

# nothing is started because its ledger was lost
_STATES = {
    **GUEST_STATES,
    "missing": GUEST_STATES["shutoff"],
    "shutting down": GUEST_STATES["running"],
    "suspended": GUEST_STATES["paused"],
}
_KEPT_STATES = ("rescued", "resized", "error")  # which no domain's state can tell
_DELETING = "deleting"


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
    """Records to be made again: `slices`, oldest first, one for each instance, and the names of what has none."""

    ledger: str | None
    slices: tuple[Slice, ...]
    unrecorded: tuple[str, ...]  # domains of novalite's that no slice tells of
    unreadable: tuple[str, ...]  # slices that could not be read, and why
    unmarked: tuple[str, ...]  # adopted instances whose domains do not exist, or carry no mark any more


def judge(hosts: t.Sequence[Kept], ledger: str | None = None) -> SlicesOnHosts:
    """Choose among what `hosts` kept: each has its `name`, what was `found` (host_scan.scan), `records`, `host_record`.
    `ledger`: whose slices are asked for. Raises ConflictError when there are those of several, and none was named."""
    slices: list[Slice] = []
    unreadable: list[str] = []
    for host in hosts:
        own: tuple[str | None, str | None] = (None, host["host_record"])
        for uuid, text in (*host["records"].items(), own):
            if text is None:
                continue
            try:
                slices.append(_parsed(host["name"], uuid, text))
            except NovaliteError as error:
                unreadable.append(str(error))
    ledgers = sorted({slice_.ledger for slice_ in slices})
    if ledger is None and len(ledgers) > 1:
        counts = ", ".join(
            f"{identity} ({sum(each.ledger == identity for each in slices)} records)" for identity in ledgers
        )
        raise ConflictError(
            f"these hosts keep records of several ledgers: {counts}; say which one is to be made again "
            "(-e ledger=<identity>)"
        )
    ledger = ledger or (ledgers[0] if ledgers else None)
    mine = [slice_ for slice_ in slices if slice_.ledger == ledger]
    domains = {domain["uuid"]: (host["name"], domain) for host in hosts for domain in host["found"]["domains"]}
    chosen: dict[str | None, Slice] = {}
    for slice_ in sorted(mine, key=lambda each: each.written_at):
        if slice_.uuid is None:
            continue
        before = chosen.get(slice_.uuid)
        place = domains.get(slice_.uuid, (None, None))[0]
        # one that waits for the end of a resize is on two hosts, and its guest is on one
        if before is None or before.host != place:
            chosen[slice_.uuid] = slice_
    # whether somebody else's domain is an instance is what its mark says; a record may be left from before its release
    unmarked = [slice_ for uuid, slice_ in chosen.items() if uuid not in domains and _is_adopted(slice_)]
    for slice_ in unmarked:
        del chosen[slice_.uuid]
    kept_slices = [slice_ for slice_ in mine if slice_.uuid is None]
    kept_slices += [_as_it_is(slice_, domains.get(uuid)) for uuid, slice_ in chosen.items() if uuid]
    others = {slice_.uuid for slice_ in slices} - set(chosen)
    names = sorted(
        f"{domain['name']} ({domain['uuid']}) on {host}"
        for host, domain in domains.values()
        if domain["uuid"] not in chosen and domain["uuid"] not in others
    )
    kept_slices.sort(key=lambda each: (each.written_at, each.host, each.uuid or ""))
    gone = sorted(f"{slice_.tables['instance'][0]['name']} ({slice_.uuid}) on {slice_.host}" for slice_ in unmarked)
    return SlicesOnHosts(ledger, tuple(kept_slices), tuple(names), tuple(unreadable), tuple(gone))


def _is_adopted(slice_: Slice) -> bool:
    return slice_.tables["instance"][0].get("adopted") is not None


def _parsed(host: str, uuid: str | None, text: str) -> Slice:
    what = f"what {host} keeps of {uuid or 'itself'}"
    try:
        document = json.loads(text)
        version, rows = document["version"], document["tables"]
        slice_ = Slice(
            host, uuid, str(document["ledger"]), int(document["written_at"]), tuple(document["withheld"]), rows
        )
        own = [row["uuid"] for row in rows.get("instance", ())]
    except (ValueError, KeyError, TypeError, AttributeError):
        raise NovaliteError(f"{what} cannot be read") from None
    if version != VERSION:
        raise NovaliteError(f"{what} was written by a newer novalite")
    if own != ([] if uuid is None else [uuid]):
        raise NovaliteError(f"{what} is of another instance")
    return slice_


def _as_it_is(slice_: Slice, there: tuple[str, FoundDomain] | None) -> Slice:
    """The slice with the states that its guest has now."""
    host, state = (there[0], there[1]["state"]) if there else (slice_.host, "missing")
    row = dict(slice_.tables["instance"][0])
    if there is None and row["vm_state"] == OFFLOADED:
        row |= {"host": None, "task_state": row["task_state"] if row["task_state"] == _DELETING else None}
        return dataclasses.replace(
            slice_, tables={**slice_.tables, "instance": [row], "allocation": [], **_with_volumes(slice_)}
        )
    built = row["vm_state"] != "building"
    open_moves = [move for move in slice_.tables.get("migration", ()) if move["status"] == "finished"]
    vm_state, row["power_state"] = _STATES.get(state, ("stopped", 0))
    if not built and state not in ("running", "paused"):
        row["vm_state"], row["power_state"] = "error", 0
        message = "its build was cut off, and the ledger was lost: delete it"
        row["fault"] = {"code": 500, "message": message, "created": slice_.written_at}
    elif row["vm_state"] not in _KEPT_STATES or (row["vm_state"] == "resized" and not open_moves):
        row["vm_state"] = vm_state
    if row["task_state"] != _DELETING:
        row["task_state"] = None
    row["host"] = host
    if row["launched_at"] is None and row["vm_state"] == "active":
        row["launched_at"] = slice_.written_at
    tables = {**slice_.tables, "instance": [row], "migration": open_moves}
    tables["vif"] = [{**vif, "status": None} for vif in slice_.tables.get("vif", ())]
    if row["vm_state"] != "error" or built:
        tables |= _with_volumes(slice_)
    return dataclasses.replace(slice_, tables=tables)


def _with_volumes(slice_: Slice) -> Rows:
    """Its volumes as the guest has them: what was being attached when the slice was written is attached."""
    links = [
        {**link, "attached_at": link["attached_at"] or slice_.written_at}
        for link in slice_.tables.get("volume_attachment", ())
    ]
    attached = {link["volume_id"] for link in links}
    volumes = []
    for volume in slice_.tables.get("volume", ()):
        if volume["id"] in attached:
            made = volume["made_at"] or slice_.written_at
            volumes.append({**volume, "status": "in-use", "made_at": made, "new_size_gb": None})
        else:
            volumes.append(volume)
    return {"volume_attachment": links, "volume": volumes}
