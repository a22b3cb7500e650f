# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Step `domain_size`: give this host's running libvirt domains other CPUs and memory.

Brings the current vCPUs and the current memory of each domain to those of its XML while it runs, and defines it so.
CPUs are plugged in and out, memory is given and taken by the balloon. Both stay within the maxima that the domain was
started with; one that was started with others is left alone. Each domain is a matter of its own. What fails is told in
`domains[].error`, and the task fails in the end; such a domain gets back what it had.
"""

from __future__ import annotations

from .._domain import lifecycle_size
from .._domain.outcome import DOMAIN_OPTIONS
from .._host.libvirt_connection import DEFAULT_URI, connect
from .._host.module import HostCall, Result, each_for_itself

ARGUMENT_SPEC = {
    "domains": {
        "type": "list",
        "elements": "dict",
        "required": True,
        "options": {**DOMAIN_OPTIONS, "xml": {"type": "str", "required": True}},
    },
    # Seconds that a guest has to let go of CPUs or memory.
    "timeout": {"type": "float", "default": lifecycle_size.TIMEOUT},
    "uri": {"type": "str", "default": DEFAULT_URI},
}


def run(call: HostCall) -> Result:
    """Return `changed`, and
    * `domains`: one entry for each of `domains`, in the same order; `uuid` (UUID of the domain), `error` (why it is as
      it was; null when it is as it shall be)
    """
    params = call.params
    connection = connect(params["uri"])
    outcomes = lifecycle_size.ensure(connection, params["domains"], call.check_mode, params["timeout"])
    changed = [outcome for outcome in outcomes if outcome.changed and outcome.error is None]
    result: Result = {
        "changed": bool(changed),
        "domains": [{"uuid": outcome.uuid, "error": outcome.error} for outcome in outcomes],
    }
    if call.diff:
        result["diff"] = {
            "before": {outcome.name: str(outcome.before) for outcome in changed},
            "after": {outcome.name: str(outcome.after) for outcome in changed},
        }
    return each_for_itself(result, (outcome.error for outcome in outcomes))
