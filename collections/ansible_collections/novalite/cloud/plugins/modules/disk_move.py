#!/usr/bin/python

# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: disk_move
short_description: Bring instances' disks to another compute host, or make them larger
version_added: 0.1.0
description:
  - The steps on both compute hosts that bring the files of instances from one to the other over ssh, with a key that is
    made for one move, is let in for nothing but to unpack these files, and is removed after it.
  - The disks of an instance that gets another size on its own host are kept for a revert.
author:
  - novalite contributors (@novalite)
extends_documentation_fragment:
  - novalite.cloud.state_dir
attributes:
  check_mode:
    support: full
    description: Says that it would change something, and does nothing.
  diff_mode:
    support: none
    description: The files are as before, only elsewhere.
options:
  state:
    description:
      - V(offered), on the source, makes the keys.
      - V(accepted), on the destination, lets O(public_keys) in.
      - V(reached), on the source, sees that the destinations let it in, while the instances still run.
      - V(sent), on the source, sends the files. The instances must be off, unless O(running).
      - V(received), on the destination, looks at what has arrived and puts it in its place.
      - V(closed), on either, removes the keys and what has arrived and was not received.
      - V(kept) copies the disks of instances for a revert, V(restored) is that revert, V(forgotten) removes the copies.
      - V(grown) makes disks as large as O(disks) says.
    type: str
    choices: [offered, accepted, reached, sent, received, closed, kept, grown, restored, forgotten]
    required: true
  moves:
    description: The moves, as RV(novalite.cloud.server_migration#module:hosts) has them.
    type: list
    elements: dict
    default: []
    suboptions:
      uuid:
        description: UUID of the instance; with O(state=closed) it may be empty, and so may O(moves[].id).
        type: str
        required: true
      id:
        description: UUID of the move.
        type: str
        required: true
      name:
        description: Name of the instance.
        type: str
      domain_name:
        description: Name of its domain.
        type: str
      starts:
        description: Whether it runs afterwards.
        type: bool
      from_host:
        description: Name of the source.
        type: str
      to_host:
        description: Name of the destination.
        type: str
      from_address:
        description: Address of the source.
        type: str
      to_address:
        description: Address under which the source reaches the destination's ssh daemon.
        type: str
  public_keys:
    description: With O(state=accepted), the sources' public keys by the moves' C(id).
    type: dict
    default: {}
  purpose:
    description: With O(state=accepted), whether files will come, or the tunnel of a live migration.
    type: str
    choices: [files, tunnel]
    default: files
  doors:
    description:
      - With O(state=reached) and O(state=sent), the RV(door) of each destination, by its name.
    type: dict
    default: {}
  login:
    description:
      - With O(state=accepted) and O(state=closed), who logs in to this host, as whom the sources come, too. One that is
        not root only carries what the source and this host's root have to say to each other.
      - Where Ansible becomes root on the host, the default is the user that it becomes root from.
    type: str
    default: root
  running:
    description: Whether the instances run, so that QEMU carries their disks over.
    type: bool
    default: false
  disks:
    description: With O(state=received) and O(state=grown), the disks as M(novalite.cloud.disk) takes them.
    type: list
    elements: dict
    default: []
  made_before:
    description:
      - With O(state=forgotten), only copies that were made before, in seconds since the epoch by the host's clock, as
        RV(novalite.cloud.host_drift#module:found) has it.
    type: float
  to_bin:
    description:
      - With O(state=restored) and O(state=forgotten), keeps in C(<state_dir>/removed/<date>/) what is replaced or
        removed.
    type: bool
    default: false
seealso:
  - module: novalite.cloud.disk
  - module: novalite.cloud.server_migration
"""

EXAMPLES = r"""
- name: Make a key for each move
  novalite.cloud.disk_move:
    state: offered
    moves:
      - {uuid: 5d7b1a3e-8a57-4a3c-9d34-6a9f0f5f8f41, id: 0d2f9a3e-7a39-4f57-9a43-1f0a3c1f6a55, to_host: hv2}
  register: offered

- name: Make a disk larger
  novalite.cloud.disk_move:
    state: grown
    disks:
      - {uuid: 5d7b1a3e-8a57-4a3c-9d34-6a9f0f5f8f41, virtual_size_gb: 20}
"""

RETURN = r"""
public_keys:
  description: The public key of each move, by its C(id).
  returned: with O(state=offered)
  type: dict
door:
  description: How a source gets in here.
  returned: with O(state=accepted)
  type: dict
  contains:
    host_keys:
      description: The host's own public keys.
      type: list
      elements: str
    login:
      description: Who is let in.
      type: str
    port:
      description: The port of the ssh daemon by which Ansible came.
      type: int
libvirt_daemon:
  description: The host's daemon that a live migration is to reach, V(virtqemud) or V(libvirtd).
  returned: with O(state=accepted)
  type: str
done:
  description: What was changed.
  returned: success
  type: list
  elements: str
"""


from ..module_utils._disk.overlay import Disk
from ..module_utils._domain import lifecycle_power
from ..module_utils._errors import NovaliteError
from ..module_utils._host import STATE_DIR
from ..module_utils._host_module import HostCall, Result, run_host_module
from ..module_utils._json import JsonMapping
from ..module_utils._libvirt import DEFAULT_URI, connect, local_daemon
from ..module_utils._records import write_records
from ..module_utils._transfer import channel, transfer

_STATES = ["offered", "accepted", "reached", "sent", "received", "closed", "kept", "grown", "restored", "forgotten"]
ARGUMENT_SPEC = {
    "state": {"type": "str", "choices": _STATES, "required": True},
    "moves": {
        "type": "list",
        "elements": "dict",
        "default": [],
        "options": {
            "uuid": {"type": "str", "required": True},
            "id": {"type": "str", "required": True, "no_log": False},
            "name": {"type": "str"},
            "domain_name": {"type": "str"},
            "starts": {"type": "bool"},
            "from_host": {"type": "str"},
            "to_host": {"type": "str"},
            "from_address": {"type": "str"},
            "to_address": {"type": "str"},
        },
    },
    "public_keys": {"type": "dict", "default": {}, "no_log": False},
    "purpose": {"type": "str", "choices": [channel.FILES, channel.TUNNEL], "default": channel.FILES},
    "doors": {"type": "dict", "default": {}},
    "login": {"type": "str", "default": channel.ROOT},
    "running": {"type": "bool", "default": False},
    "disks": {"type": "list", "elements": "dict", "default": []},
    "made_before": {"type": "float"},
    "to_bin": {"type": "bool", "default": False},
    "state_dir": {"type": "path", "default": STATE_DIR},
}


def run(call: HostCall) -> Result:
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


def main() -> None:
    run_host_module(ARGUMENT_SPEC, run)


if __name__ == "__main__":
    main()
