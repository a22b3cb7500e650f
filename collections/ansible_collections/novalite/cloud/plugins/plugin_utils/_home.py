# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Location of the ledger, decided in one order for all that runs on the controller.

1. The task's own options `home` and `ledger_url`, also by way of `module_defaults`.
2. The inventory's variables `novalite_home` and `novalite_ledger_url`.
3. The environment's NOVALITE_HOME and NOVALITE_LEDGER_URL.
4. /var/lib/novalite, and `ledger.sqlite` in the home.

A task with a `home` and no `ledger_url` means the SQLite file in that home. Everywhere else a URL goes before a file.
"""

from __future__ import annotations

import os
import typing as t

from ..module_utils._host.files import STATE_DIR
from ..module_utils._json import Json, JsonMapping, JsonObject

CONTROLLER = "localhost"


class Templar(t.Protocol):
    def template(self, variable: Json) -> Json: ...


def variable_text(name: str, task_vars: JsonMapping, templar: Templar) -> str | None:
    """The text of variable `name`: of the task's host, or else of the controller, whose business it is."""
    if name in task_vars:
        value = templar.template(task_vars[name])
    else:
        # task variables, when a plug-in is tried by itself, may lack them
        hostvars = task_vars.get("hostvars") or {}
        value = hostvars[CONTROLLER].get(name) if CONTROLLER in hostvars else None
    return str(value) if value else None  # a vaulted one is a text only when it is asked for


def home(option: str | None, task_vars: JsonMapping, templar: Templar) -> str:
    """The home's absolute path. `option` is what the task says."""
    path = option or variable_text("novalite_home", task_vars, templar) or os.environ.get("NOVALITE_HOME") or STATE_DIR
    return os.path.abspath(os.path.expanduser(path))


def ledger(params: JsonMapping, task_vars: JsonMapping, templar: Templar) -> JsonObject:
    """`home` and `ledger_url` (None: the file in the home) for a task with these `params`."""
    url = params.get("ledger_url")
    if not url and not params.get("home"):
        url = variable_text("novalite_ledger_url", task_vars, templar) or os.environ.get("NOVALITE_LEDGER_URL")
    return {"home": home(params.get("home"), task_vars, templar), "ledger_url": url or None}


def share(directory: str, *paths: str) -> None:
    """Give what root made in the home to its owner: it may be a service's, which removes what is old there, too."""
    if os.geteuid() == 0:
        owner = os.stat(directory)
        for path in paths:
            os.chown(path, owner.st_uid, owner.st_gid, follow_symlinks=False)
