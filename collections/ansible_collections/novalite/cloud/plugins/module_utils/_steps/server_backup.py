# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Step `server_backup`: take backups of this host's servers into a store, prove, bring back and remove them.

All disks of a server are taken as they are at one moment, those that have changed records of changes only as far as
they changed since the last backup. A guest that runs goes on; its agent, if it answers, freezes its file systems for
that moment. The store is encrypted with a key that comes from the controller and is on no disk of the host. The task
fails when a server fails, after all others were done, and returns what became of each all the same. Needs qemu-utils,
restic and python3-libnbd on the host.
"""

from __future__ import annotations

import dataclasses

from .._backup import servers
from .._host.files import STATE_DIR
from .._host.libvirt_connection import DEFAULT_URI, connect
from .._host.module import HostCall, Result

ARGUMENT_SPEC = {
    "backups": {
        "type": "list",
        "elements": "dict",
        "required": True,
        "options": {
            # UUID of the instance that is backed up, or gets the disks.
            "uuid": {"type": "str", "required": True},
            "backup_id": {"type": "str", "required": True},
            # UUID of the instance that the backup is of, where that is another one.
            "source": {"type": "str"},
            # The volumes that the server has, as `volume_disk` takes them.
            "volumes": {"type": "list", "elements": "dict", "default": []},
            # Take all that the disks hold, whatever was taken before.
            "full": {"type": "bool", "default": False},
            # Ids of those that are removed once this one is taken.
            "replaced": {"type": "list", "elements": "str", "default": []},
            # Boot one that is verified in a sandbox, which has so many seconds to be up.
            "boot_timeout": {"type": "float"},
            # Tells this restore from an earlier one: `undone` takes back only what the same one did.
            "run": {"type": "str"},
        },
    },
    # `taken` takes a backup. `fetched` brings one beside the disks, while the guest may run; `restored` gives a
    # server, whose guest is off, the disks that were fetched; then either `settled` removes those that it had, or
    # `undone` gives them back. `verified` puts disks together and compares all blocks, and boots them if asked to.
    # `absent` removes a backup from the store.
    "state": {"type": "str", "choices": list(servers.STATES), "default": servers.TAKEN},
    # Directory on this host, or restic's `sftp:user@host:path`. The controller gives novalite_backup_store.
    "store": {"type": "str"},
    # The key of the store. The controller gives that in its home.
    "key": {"type": "str", "no_log": True},
    "state_dir": {"type": "path", "default": STATE_DIR},
    "uri": {"type": "str", "default": DEFAULT_URI},
}


def run(call: HostCall) -> Result:
    """Return `changed`, and
    * `backups`: one entry for each of `backups`, in the same order; `uuid`, `backup_id`, `action` (`take`, `restore`,
      `verify`, `delete` or `none`), `record` (of one that was taken: `kind`, `parent_id`, `reason`, `consistency`,
      `disks`, `size` and `moved` in bytes), `records` (of others that changed with it), `removed` (ids of those that it
      replaced), `complaints` (why one that was verified cannot be restored), `boot` (of one that was booted: `by`,
      `seconds`, `error`, `console`, `picture`), `error` (why it was not done, or null)
    """
    params = call.params
    done = servers.ensure(
        [servers.Spec(**entry) for entry in params["backups"]],
        params["state"],
        servers.Place(params.get("store") or "", params.get("key") or "", params["state_dir"]),
        lambda: connect(params["uri"]),
        call.check_mode,
        call.warn,
    )
    made = {
        entry.uuid: f"{entry.action} backup {entry.backup_id}"
        for entry in done
        if entry.action != "none" and not entry.error
    }
    changes = {} if params["state"] == servers.VERIFIED else made
    return servers.result_of([dataclasses.asdict(entry) for entry in done], changes)
