# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Step `domain_password`: have the agents in this host's running guests set the password of a user.

A guest is told the password's hash, and only by its agent's channel. Each domain is a matter of its own. What fails is
told in `domains[].error`, and the task fails in the end.
"""

from __future__ import annotations

import dataclasses

from .._domain import lifecycle_password
from .._host.libvirt_connection import DEFAULT_URI, connect
from .._host.module import HostCall, Result, each_for_itself

ARGUMENT_SPEC = {
    "domains": {
        "type": "list",
        "elements": "dict",
        "required": True,
        "options": {
            "uuid": {"type": "str", "required": True},
            "name": {"type": "str", "required": True},
            # Account in the guest.
            "user": {"type": "str", "required": True},
            # In the form of crypt(5), as the guest's own /etc/shadow has it.
            "password_hash": {"type": "str", "required": True, "no_log": True},
        },
    },
    "uri": {"type": "str", "default": DEFAULT_URI},
}


def run(call: HostCall) -> Result:
    """Return `changed`, and
    * `domains`: one entry for each of `domains`, in the same order; `uuid` (UUID of the domain), `error` (why the
      password may be the former one; null when it is set)
    """
    outcomes = lifecycle_password.ensure(connect(call.params["uri"]), call.params["domains"], call.check_mode)
    errors = [outcome.error for outcome in outcomes]
    result: Result = {"changed": None in errors, "domains": [dataclasses.asdict(outcome) for outcome in outcomes]}
    return each_for_itself(result, errors)
