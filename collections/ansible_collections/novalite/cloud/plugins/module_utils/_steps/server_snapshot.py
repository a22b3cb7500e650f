# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Step `server_snapshot`: keep all disks of this host's servers as they are at one moment, give them back, remove them.

The copies lie in the directory of the instance, and stand on no other file; the disks that the guest has stay as they
are. A guest that runs is copied by one backup job of QEMU for all of its disks, at whose beginning its agent, if it
answers within seconds, has frozen its file systems. The variables of a UEFI guest's firmware are kept with its disks;
what a TPM holds is not. Each server is for itself. The task fails when one of them fails, after all others were done,
and returns what became of each all the same. Needs qemu-utils on the host.
"""

from __future__ import annotations

import dataclasses

from .._domain.volumes import LiveGuests
from .._errors import NovaliteError
from .._host.files import STATE_DIR
from .._host.libvirt_connection import DEFAULT_URI, connect
from .._host.module import HostCall, HostModuleError, Result, each_for_itself
from .._snapshots import server_snapshots

ARGUMENT_SPEC = {
    "snapshots": {
        "type": "list",
        "elements": "dict",
        "required": True,
        "options": {
            # UUID of the instance.
            "uuid": {"type": "str", "required": True},
            "snapshot_id": {"type": "str", "required": True},
            # The volumes that the server has, as `volume_disk` takes them.
            "volumes": {"type": "list", "elements": "dict", "default": []},
        },
    },
    # `present` takes the snapshots that are not there; `reverted` gives servers, whose guests are off, the disks of
    # theirs; `absent` removes snapshots, and what a run that was killed left of one.
    "state": {"type": "str", "choices": ["present", "reverted", "absent"], "default": "present"},
    # What happens to the data of snapshots that are removed, as `disk` has it.
    "wipe": {"type": "str", "choices": ["none", "discard", "zero"], "default": "none"},
    # Seconds that one snapshot may take.
    "timeout": {"type": "float", "default": 3600},
    "state_dir": {"type": "path", "default": STATE_DIR},
    "uri": {"type": "str", "default": DEFAULT_URI},
}


def run(call: HostCall) -> Result:
    """Return `changed`, and
    * `snapshots`: one entry for each of `snapshots`, in the same order; `uuid`, `snapshot_id`, `action` (`create`,
      `revert`, `delete` or `none`), `consistency` (`off`, `frozen`: the file systems were at rest; `crash`: as after a
      power failure), `size` (bytes on the disk), `error` (why it was not done, or null)
    """
    params = call.params
    try:
        done = server_snapshots.ensure(
            [server_snapshots.Spec(**entry) for entry in params["snapshots"]],
            params["state"],
            params["state_dir"],
            LiveGuests(lambda: connect(params["uri"])),
            call.check_mode,
            params["timeout"],
            params["wipe"],
        )
    except NovaliteError as error:
        raise HostModuleError(str(error), snapshots=[]) from error
    made = {entry.uuid: f"{entry.action} snapshot {entry.snapshot_id}" for entry in done if entry.action != "none"}
    result = {
        "changed": bool(made),
        "snapshots": [dataclasses.asdict(entry) for entry in done],
        "diff": {"before": dict.fromkeys(made), "after": made} if made else {},
    }
    return each_for_itself(result, (entry.error for entry in done))
