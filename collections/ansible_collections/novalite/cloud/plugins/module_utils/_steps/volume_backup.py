# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Step `volume_backup`: take backups of volumes into a store, bring back and remove them; also remove those of servers
that are gone.

A volume that knows what changed since its last backup is read only that far. A guest that has it goes on. The store is
encrypted with a key that comes from the controller and is on no disk of the host. The task fails when a backup fails,
after all others were done, and returns what became of each all the same. Needs qemu-utils, restic and python3-libnbd on
the host.
"""

from __future__ import annotations

import dataclasses

from .._backup import servers, volumes
from .._host.files import STATE_DIR
from .._host.libvirt_connection import DEFAULT_URI, connect
from .._host.module import HostCall, Result

ARGUMENT_SPEC = {
    "backups": {
        "type": "list",
        "elements": "dict",
        "required": True,
        "options": {
            "backup_id": {"type": "str", "required": True},
            # UUID of the volume, or of the server, that the backup is of.
            "chain": {"type": "str", "required": True},
            # The volume that is backed up, or gets the data, as `volume_disk` takes it.
            "volume": {"type": "dict"},
            # Take all that the volume holds, whatever was taken before.
            "full": {"type": "bool", "default": False},
            # The disk (`vdb`) of a server's backup that the volume, which is new, is made of.
            "disk": {"type": "str"},
        },
    },
    # `taken` takes a backup, `restored` gives a volume that no guest has the data of one, `absent` removes one.
    "state": {"type": "str", "choices": list(volumes.STATES), "default": servers.TAKEN},
    # Directory on this host, or restic's `sftp:user@host:path`. The controller gives novalite_backup_store.
    "store": {"type": "str"},
    # The key of the store. The controller gives that in its home.
    "key": {"type": "str", "no_log": True},
    "state_dir": {"type": "path", "default": STATE_DIR},
    "uri": {"type": "str", "default": DEFAULT_URI},
}


def run(call: HostCall) -> Result:
    """Return `changed`, and
    * `backups`: one entry for each of `backups`, in the same order; `id` (the volume's, of one that is made), `action`
      (`take`, `restore`, `delete` or `none`), `record` (of one that was taken: `parent_id`, `reason`, `consistency`,
      `size` and `moved` in bytes), `records` (of others that changed with one that was removed), `error` (why it was
      not done, or null)
    """
    params = call.params
    done = volumes.ensure(
        [volumes.Spec(**entry) for entry in params["backups"]],
        params["state"],
        servers.Place(params.get("store") or "", params.get("key") or "", params["state_dir"]),
        lambda: connect(params["uri"]),
        call.check_mode,
        call.warn,
    )
    changes = {entry.id: entry.action for entry in done if entry.action != "none" and not entry.error}
    return servers.result_of([dataclasses.asdict(entry) for entry in done], changes)
