# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Step `server_replica`: bring what changed in servers' disks to their second host, and run servers from what is there.

All of a server's own disks are read as they are at one moment, as for a backup, and sent over the way that the step
`disk_move` opens for one move. On the second host they count once all of it arrived and was compared. Needs qemu-utils
and python3-libnbd on both hosts.
"""

from __future__ import annotations

import contextlib
import datetime
import os
import typing as t

from .._backup.servers import Place as Scratches
from .._backup.servers import read_firmware, scratch_of
from .._disk import layout
from .._domain.volumes import LiveGuests
from .._errors import NovaliteError
from .._host.files import STATE_DIR, instance_dir
from .._host.libvirt_connection import DEFAULT_URI, connect
from .._host.module import HostCall, Result, each_for_itself
from .._json import JsonMapping, JsonObject
from .._replica import delta as deltas
from .._replica import sending
from .._replica.copies import Place, record_of
from .._transfer import channel

with contextlib.suppress(ImportError):  # connect() reports it
    import libvirt

READY, SENT, RECEIVED, USED, ABSENT = STATES = ("ready", "sent", "received", "used", "absent")
ARGUMENT_SPEC = {
    # `ready`, on the second host, says which copies there are, of which `sent`, on the servers' host, sends what
    # changed. `received`, on the second one, has what arrived count, and merges it. `used` gives servers, whose disks
    # were just made there, those of the copies. `absent` removes copies.
    "state": {"type": "str", "choices": list(STATES), "required": True},
    # The copies that are taken, as `hosts` of the ledger's step `server_replica` has them; those that are used, with
    # `uuid`, `copy_id` and `taken_at`; those that are removed, with `uuid`.
    "copies": {"type": "list", "elements": "dict", "required": True},
    # With `sent`, the `door` of each second host, by its name, as the step `disk_move` returns it.
    "doors": {"type": "dict", "default": {}},
    # With `sent`, what each second host has (`there`), by the UUIDs of the servers.
    "there": {"type": "dict", "default": {}},
    # With `sent`, why another host gets copies than before, by the UUIDs of the servers (null: none does).
    "why": {"type": "dict", "default": {}},
    "state_dir": {"type": "path", "default": STATE_DIR},
    "uri": {"type": "str", "default": DEFAULT_URI},
}


def run(call: HostCall) -> Result:
    """Return `changed`, and
    * `there`: the newest complete copy of each server that has one, by its UUID (`ready`)
    * `results`: an entry for each of `copies`; `uuid`, `error` (why it was not done, or null), `record` (of one that
      was received: `kind`, `reason`, `consistency`, `moved` in bytes), `removed`
    """
    params = call.params
    if call.check_mode:
        return {"changed": bool(params["copies"]) and params["state"] != READY, "results": [], "there": {}}
    work = {READY: _ready, SENT: _send, RECEIVED: _receive, USED: _use, ABSENT: _remove}[params["state"]]
    there: JsonObject = {}
    results = []
    for copy in params["copies"]:
        entry: JsonObject = {"uuid": copy["uuid"], "error": None}
        try:
            work(copy, params, entry, there)
        except (NovaliteError, OSError, libvirt.libvirtError) as error:
            entry["error"] = str(error)
        results.append(entry)
    result: Result = {"changed": params["state"] != READY and bool(results), "results": results, "there": there}
    if newer := [entry.pop("newer") for entry in results if "newer" in entry]:
        result["warnings"] = newer
    # of copies that are taken, each is recorded for itself
    return each_for_itself(result, [entry["error"] for entry in results]) if params["state"] == USED else result


_Copy = t.Mapping[str, t.Any]


def _ready(copy: _Copy, params: JsonMapping, entry: JsonObject, there: JsonObject) -> None:
    place = Place(params["state_dir"], copy["uuid"])
    try:
        with place.locked():
            current = place.settle()
    except deltas.DamagedError:
        return  # so that all is sent, which takes its place
    if current is not None:
        there[copy["uuid"]] = {"manifest": current.without_definition().line().decode()}


def _send(copy: _Copy, params: JsonMapping, entry: JsonObject, _there: JsonObject) -> None:
    state_dir, uuid, to_host = params["state_dir"], copy["uuid"], copy["to_host"]
    scratch = scratch_of(Scratches("", "", state_dir))
    doors = channel.doors([t.cast(channel.Move, copy)], params["doors"])
    argv = channel.ssh(copy["id"], doors[to_host])
    has = params["there"].get(uuid)
    parent = None if has is None else deltas.parent_of(has)
    firmware = read_firmware(os.path.join(instance_dir(state_dir, uuid), layout.NVRAM))
    source = sending.Source(uuid, copy["id"], state_dir, firmware)
    why = params["why"].get(uuid) or f"{to_host} has no copy"
    sending.send(connect(params["uri"]), source, argv, parent, scratch, why)


def _receive(copy: _Copy, params: JsonMapping, entry: JsonObject, _there: JsonObject) -> None:
    place = Place(params["state_dir"], copy["uuid"])
    with place.locked():
        delta = place.accept(channel.staging_of(params["state_dir"], copy["uuid"]))
        current = place.settle()
    if current is None or current.manifest.backup != copy["id"]:
        raise NovaliteError(f"copy {delta.manifest.backup} arrived instead of {copy['id']}: copy the disks again")
    entry["record"] = record_of(current, delta.moved)


def _use(copy: _Copy, params: JsonMapping, entry: JsonObject, _there: JsonObject) -> None:
    guests = LiveGuests(lambda: connect(params["uri"]))
    used = Place(params["state_dir"], copy["uuid"]).use(copy["copy_id"], copy["taken_at"], guests)
    if used is not None and used.manifest.backup != copy["copy_id"]:
        taken = datetime.datetime.fromtimestamp(used.manifest.created / 1000, datetime.timezone.utc)
        entry["newer"] = f"{copy['uuid']}: a copy that the ledger did not know, of {taken:%Y-%m-%d %H:%M:%S} UTC"


def _remove(copy: _Copy, params: JsonMapping, entry: JsonObject, _there: JsonObject) -> None:
    Place(params["state_dir"], copy["uuid"]).remove()
    entry["removed"] = True
