# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tasks that failed on hosts: the cause is for the screen, with the path of a file that has all that the host said."""

from __future__ import annotations

import contextlib
import json
import os
import re
import time

from ..module_utils._json import JsonMapping, JsonObject
from ..module_utils._model.plain_text import shortened
from . import _home

DIRECTORY = "failures"  # in the ledger's home
KEPT = 50  # files: the newest
LONGEST = 600  # characters of a cause: Ansible's own screen shows it twice
# What a failure says at once. Differences are on no screen unless they are asked for.
_SAID = {
    *("changed", "deprecations", "diff", "exception", "failed"),
    *("failed_step", "msg", "refused", "refused_host", "warnings"),
}


def divided(result: JsonMapping) -> tuple[JsonObject, JsonObject]:
    """Return what a task that failed with this `result` says at once, and the rest, which may be long."""
    rest = {key: value for key, value in result.items() if key not in _SAID and not key.startswith("_ansible_")}
    said = {key: value for key, value in result.items() if key not in rest}
    said["msg"] = shortened(str(result.get("msg") or "no message"), LONGEST)
    return said, rest


def keep(home: str, host: str, details: JsonMapping) -> str | None:
    """Write the `details` of a failure on the host to a new file below the home, and remove the oldest ones beyond
    KEPT; returns its path. Mode 0600. None where it cannot be written: a full disk must not hide why a task failed."""
    now, directory = time.time(), os.path.join(home, DIRECTORY)
    stamp = time.strftime("%Y%m%dT%H%M%S", time.gmtime(now)) + f".{int(now % 1 * 1e6):06}Z"
    path = os.path.join(directory, f"{stamp}-{re.sub('[^A-Za-z0-9.-]', '_', host)[:100]}.json")
    try:
        os.makedirs(directory, mode=0o700, exist_ok=True)
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as handle:
            json.dump(details, handle, indent=1, default=str)
        _home.share(home, directory, path)
        old = sorted(name for name in os.listdir(directory) if name.endswith(".json"))[:-KEPT]
    except (OSError, ValueError):
        return None
    for name in old:
        with contextlib.suppress(OSError):  # another run was first
            os.unlink(os.path.join(directory, name))
    return path
