# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Step `disk_move`: bring instances' disks to another compute host, or make them larger.

The steps on both compute hosts that bring the files of instances from one to the other over ssh, with a key that is
made for one move, is let in for nothing but to unpack these files, and is removed after it. The disks of an instance
that gets another size on its own host are kept for a revert.
"""

from __future__ import annotations

from .._disk.overlay import Disk
from .._domain import lifecycle_power
from .._errors import NovaliteError
from .._host.files import STATE_DIR
from .._host.libvirt_connection import DEFAULT_URI, connect, local_daemon
from .._host.module import HostCall, Result
from .._host.records import write_records
from .._json import JsonMapping
from .._transfer import channel, transfer

_STATES = ["offered", "accepted", "reached", "sent", "received", "closed", "grown"]
_STATES += ["kept", "former", "restored", "forgotten"]
ARGUMENT_SPEC = {
    # `offered`, on the source, makes the keys. `accepted`, on the destination, lets `public_keys` in. `reached`, on the
    # source, sees that the destinations let it in, while the instances still run. `sent`, on the source, sends the
    # files. The instances must be off, unless `running`. `received`, on the destination, looks at what has arrived and
    # puts it in its place. `closed`, on either, removes the keys and what has arrived and was not received. `kept`
    # copies the disks of instances for a revert, `former` sees that all is there that a revert of `disks` needs, and
    # `moves` that it needs such copies, `restored` is that revert, `forgotten` removes the copies. `grown` makes disks
    # as large as `disks` says.
    "state": {"type": "str", "choices": _STATES, "required": True},
    # The moves, as `hosts` has them.
    "moves": {
        "type": "list",
        "elements": "dict",
        "default": [],
        "options": {
            # UUID of the instance; with `closed` it may be empty, and so may `moves[].id`.
            "uuid": {"type": "str", "required": True},
            "id": {"type": "str", "required": True, "no_log": False},
            "name": {"type": "str"},
            "domain_name": {"type": "str"},
            "starts": {"type": "bool"},
            "from_host": {"type": "str"},
            "to_host": {"type": "str"},
            "from_address": {"type": "str"},
            # Address under which the source reaches the destination's ssh daemon.
            "to_address": {"type": "str"},
        },
    },
    # With `accepted`, the sources' public keys by the moves' `id`.
    "public_keys": {"type": "dict", "default": {}, "no_log": False},
    # With `accepted`, whether files will come, or the tunnel of a live migration.
    "purpose": {"type": "str", "choices": [channel.FILES, channel.TUNNEL], "default": channel.FILES},
    # With `reached` and `sent`, the `door` of each destination, by its name.
    "doors": {"type": "dict", "default": {}},
    # With `accepted` and `closed`, who logs in to this host, as whom the sources come, too. One that is not root only
    # carries what the source and this host's root have to say to each other. Where Ansible becomes root on the host,
    # the default is the user that it becomes root from.
    "login": {"type": "str", "default": channel.ROOT},
    # Whether the instances run, so that QEMU carries their disks over.
    "running": {"type": "bool", "default": False},
    # With `received`, `grown` and `former`, the disks as `disk` takes them.
    "disks": {"type": "list", "elements": "dict", "default": []},
    # With `forgotten`, only copies that were made before, in seconds since the epoch by the host's clock, as `found`
    # has it.
    "made_before": {"type": "float"},
    # With `restored` and `forgotten`, keeps in `<state_dir>/removed/<date>/` what is replaced or removed.
    "to_bin": {"type": "bool", "default": False},
    "state_dir": {"type": "path", "default": STATE_DIR},
}


def run(call: HostCall) -> Result:
    """Return `changed`, and
    * `public_keys`: the public key of each move, by its `id`
    * `door`: how a source gets in here; `host_keys` (the host's own public keys), `login` (who is let in), `port` (the
      port of the ssh daemon by which Ansible came)
    * `libvirt_daemon`: the host's daemon that a live migration is to reach, `virtqemud` or `libvirtd`
    * `done`: what was changed
    """
    if call.check_mode:
        return {"changed": True, "done": []}
    try:
        return _do(call.params)
    except OSError as error:
        raise NovaliteError(f"{error.filename or 'a file'}: {error.strerror}") from error


def _do(params: JsonMapping) -> Result:
    state, moves, state_dir = params["state"], params["moves"], params["state_dir"]
    uuids = [move["uuid"] for move in moves]
    records = {disk["uuid"]: disk["record"] for disk in params["disks"] if disk.get("record")}
    disks = [Disk(**{name: value for name, value in disk.items() if name != "record"}) for disk in params["disks"]]
    if state == "offered":
        return {"changed": bool(moves), "public_keys": channel.offer(moves), "done": uuids}
    if state == "accepted":
        door = channel.accept(moves, params["public_keys"], params["purpose"], state_dir, params["login"])
        return {"changed": bool(moves), "door": door, "libvirt_daemon": local_daemon().name, "done": uuids}
    if state == "reached":
        transfer.knock(moves, channel.doors(moves, params["doors"]))
        return {"changed": False, "done": []}
    if state == "sent":
        if not params["running"]:
            _refuse_running(moves)
        doors = channel.doors(moves, params["doors"])
        transfer.send(moves, doors, state_dir, params["running"])
        return {"changed": bool(moves), "done": uuids}
    if state == "received":
        by_uuid = {disk.uuid: disk for disk in disks}
        done = transfer.receive(moves, by_uuid, state_dir, params["running"])
    elif state == "closed":
        return {"changed": channel.close(moves, state_dir, params["login"]), "done": []}
    elif state == "grown":
        done = transfer.grow(disks, state_dir)
    elif state == "former":
        transfer.look_for_former(disks, uuids, state_dir)
        return {"changed": False, "done": []}
    elif state == "kept":
        done = transfer.keep(uuids, state_dir)
    elif state == "restored":
        _refuse_running(moves)
        done = transfer.restore(uuids, state_dir, params["to_bin"])
    else:
        done = transfer.forget(uuids, state_dir, params["made_before"], params["to_bin"])
    write_records(state_dir, records)
    return {"changed": bool(done), "done": done}


def _refuse_running(moves: list) -> None:
    why = "a copy of disks that are written to is worth nothing, and one that is open cannot be replaced; stop it first"
    lifecycle_power.refuse_running(connect(DEFAULT_URI), [move["uuid"] for move in moves], why)
