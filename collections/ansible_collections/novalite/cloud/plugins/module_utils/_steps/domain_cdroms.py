# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Step `domain_cdroms`: put CDs into the drives of this host's libvirt domains, and take them out.

Brings the CD drives of a list of domains to those of their XML, in one task and in parallel. A domain that runs is
changed while it runs, and its definition with it. The files of the CDs are there before, by the module `disk`; those of
CDs that were taken out are removed. Each domain is a matter of its own. What fails is told in `domains[].error`, and
the task fails in the end.
"""

from __future__ import annotations

from .._domain import lifecycle_cdroms
from .._domain.outcome import DOMAIN_OPTIONS
from .._host.files import STATE_DIR
from .._host.libvirt_connection import DEFAULT_URI, connect
from .._host.module import HostCall, Result, each_for_itself

ARGUMENT_SPEC = {
    "domains": {
        "type": "list",
        "elements": "dict",
        "required": True,
        "options": {**DOMAIN_OPTIONS, "xml": {"type": "str", "required": True}},
    },
    # Whether a CD is taken from a guest that holds on to it.
    "force": {"type": "bool", "default": False},
    "state_dir": {"type": "path", "default": STATE_DIR},
    "uri": {"type": "str", "default": DEFAULT_URI},
}


def run(call: HostCall) -> Result:
    """Return `changed`, and
    * `domains`: one entry for each of `domains`, in the same order; `uuid` (UUID of the domain), `name` (name of the
      domain), `error` (why its drives are not as they should be; null when they are)
    """
    params = call.params
    connection = connect(params["uri"])
    outcomes = lifecycle_cdroms.ensure(
        connection, params["domains"], params["state_dir"], params["force"], call.check_mode
    )
    changed = [outcome for outcome in outcomes if outcome.before != outcome.after]
    result: Result = {
        "changed": bool(changed),
        "domains": [{name: getattr(outcome, name) for name in ("uuid", "name", "error")} for outcome in outcomes],
    }
    if call.diff and changed:
        result["diff"] = {side: {row.name: getattr(row, side) for row in changed} for side in ("before", "after")}
    return each_for_itself(result, (outcome.error for outcome in outcomes))
