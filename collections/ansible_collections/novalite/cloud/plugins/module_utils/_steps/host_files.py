# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Step `host_files`: write the files that a compute host has from novalite.

A step of the role `compute_node`, which has all files of a host written in one trip. All files are looked at before the
first one is written. Where something of another kind is in the way of one of them, none is.
"""

from __future__ import annotations

from .._host.host_files import STATES, ensure_files, parse
from .._host.module import HostCall, Result

ARGUMENT_SPEC = {
    # The files, in the order in which they are written.
    "files": {
        "type": "list",
        "elements": "dict",
        "required": True,
        "options": {
            "path": {"type": "path", "required": True},
            # What shall be there. A link is replaced by another one, never followed. A directory is not removed.
            "state": {"type": "str", "choices": list(STATES), "default": "file"},
            # The content of a file.
            "content": {"type": "str"},
            # The path that a link leads to.
            "target": {"type": "str"},
            # The mode with four octal digits, as in `0644`. Without it, files have `0644` and new directories `0755`. A
            # directory that is there keeps its mode and owner then.
            "mode": {"type": "str"},
        },
    }
}


def run(call: HostCall) -> Result:
    """Return `changed`, and
    * `written`: the paths of files that are other than they were
    """
    return ensure_files(parse(call.params["files"]), call.check_mode)
