# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Step `backup_files`: list, or extract, single files of a server's backup.

The disk is restored to a file that is thrown away, and its file systems are read by a confined process; nothing is
mounted. What is extracted lies in a tar archive of regular files and directories on the host, which the controller
fetches. Needs qemu-utils, restic, python3-libnbd and python3-tsk on the host.
"""

from __future__ import annotations

from .._backup import saved_files, servers
from .._errors import NovaliteError
from .._host.files import STATE_DIR
from .._host.module import HostCall, HostModuleError, Result

ARGUMENT_SPEC = {
    "backup_id": {"type": "str"},
    # UUID of the server that the backup is of.
    "chain": {"type": "str"},
    # The disk by its place in the guest, such as vda. The first one, when left out.
    "disk": {"type": "str"},
    # Number of the partition; 0 is a disk without any. That of the largest file system, when left out.
    "partition": {"type": "int"},
    # Absolute paths: of a directory, or file, that is `listed`; of all that is `extracted`.
    "paths": {"type": "list", "elements": "str", "default": ["/"]},
    # Bytes that all files have at most that are extracted.
    "room": {"type": "int", "default": 0},
    # Id of the user who fetches the archive.
    "owner": {"type": "int", "default": 0},
    # New directory of the controller for what is extracted, which its action makes: the host is told nothing of it.
    "into": {"type": "str"},
    # The archive that is `absent` then.
    "archive": {"type": "path"},
    "state": {"type": "str", "choices": list(saved_files.STATES), "default": saved_files.LISTED},
    # Directory on this host, or restic's `sftp:user@host:path`. The controller gives novalite_backup_store.
    "store": {"type": "str"},
    # The key of the store. The controller gives that in its home.
    "key": {"type": "str", "no_log": True},
    "state_dir": {"type": "path", "default": STATE_DIR},
}


def run(call: HostCall) -> Result:
    """Return `changed`, false; `disks` of the backup and the `disk` that was read, its `file_systems` and the number of
    the `partition` that was read, and
    * `entries`: of what is `listed`, `shown` (the name, as it can be printed), `kind`, `size` in bytes, `mode`,
      `modified` in seconds since 1970, and where a `link` leads
    * `archive`: the path of what was `extracted`, and the `count` of files and directories there
    * `skipped`: what is neither a file nor a directory, or has an impossible name
    """
    params = call.params
    place = servers.Place(params.get("store") or "", params.get("key") or "", params["state_dir"])
    result: Result = {"changed": False}
    if call.check_mode:
        return result
    try:
        if params["state"] == saved_files.ABSENT:
            saved_files.remove(params["archive"], place)
            return result
        names = ("backup_id", "chain", "paths", "disk", "partition", "room", "owner")
        wish = saved_files.Wish(**{name: params[name] for name in names})
        return {**result, **saved_files.answer(wish, params["state"], place)}
    except (NovaliteError, OSError) as error:
        raise HostModuleError(str(error)) from None
