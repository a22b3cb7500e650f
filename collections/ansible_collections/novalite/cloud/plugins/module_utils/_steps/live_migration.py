# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Step `live_migration`: move running domains from this host to others that share no disk with it.

Runs on the source. Memory and disks go to the destination while the guests run; they stop for a moment only. The task
fails when one of them cannot be moved, after all others were. Everything goes through ssh, with the key that
`disk_move` made and the destination let in. QEMU and libvirt's daemons listen on unix sockets alone. What the guests
meet on their networks, and their base images, must be on the destination already.
"""

from __future__ import annotations

from .._domain import lifecycle_migrate
from .._errors import NovaliteError
from .._host.files import STATE_DIR
from .._host.libvirt_connection import DEFAULT_URI, connect
from .._host.module import HostCall, HostModuleError, Result, each_for_itself
from .._transfer.channel import doors

ARGUMENT_SPEC = {
    # The moves, as `hosts` has them.
    "moves": {"type": "list", "elements": "dict", "required": True},
    # The domains as they are to be defined on their destinations, with `uuid` and `xml`.
    "domains": {"type": "list", "elements": "dict", "required": True},
    # The `door` of each destination, by its name.
    "doors": {"type": "dict", "default": {}},
    # The name of each destination's libvirt daemon, `virtqemud` or `libvirtd`, by the name of the host, as
    # `libvirt_daemon` says it. The two hosts of a move need not have the same one.
    "daemons": {"type": "dict", "required": True},
    # MiB per second that the move may take, `0` for no limit.
    "bandwidth": {"type": "int", "default": 0},
    # Whether a guest that changes its memory quicker than it can be sent is slowed down.
    "auto_converge": {"type": "bool", "default": True},
    "state_dir": {"type": "path", "default": STATE_DIR},
    "uri": {"type": "str", "default": DEFAULT_URI},
}


def run(call: HostCall) -> Result:
    """Return `changed`, and
    * `moves`: one entry for each of `moves`, in the same order; `uuid` (UUID of the domain), `error` (why it was not
      moved, or null), `here` (whether it runs on this host now, null when nobody can say), `seconds` (how long it took)
    * `done`: UUIDs of the domains that were moved
    * `here`: UUIDs of those that are known to run on this host now
    """
    params = call.params
    if call.check_mode:
        return {"changed": bool(params["moves"]), "moves": [], "done": [], "here": []}
    try:
        moved = lifecycle_migrate.migrate(
            connect(params["uri"]),
            params["moves"],
            {domain["uuid"]: domain["xml"] for domain in params["domains"]},
            doors(params["moves"], params["doors"]),
            daemons=params["daemons"],
            bandwidth=params["bandwidth"],
            auto_converge=params["auto_converge"],
            state_dir=params["state_dir"],
            warn=call.warn,
        )
    except NovaliteError as error:
        raise HostModuleError(str(error), moves=[], done=[], here=[]) from error
    result = {
        "changed": any(move["error"] is None for move in moved),
        "moves": moved,
        "done": [move["uuid"] for move in moved if move["error"] is None],
        "here": [move["uuid"] for move in moved if move["here"] is True],
    }
    return each_for_itself(result, (move["error"] for move in moved))
