# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Step `host_record`: keep on a hypervisor, or read there, what the ledger says of its instances.

A step of playbooks such as `reconcile.yml` and `ledger_rebuild.yml`. Writes for each instance a file `record.json` in
its directory, for each adopted one `adopted/<uuid>.json`, for some of those that are shelved, and so on no host,
`shelved/<uuid>.json`, and `host-record.json` for the host. A ledger that is lost is made again from these by
`ledger_rebuild`. `disk` writes the file of a new instance. The action (`plugin_utils/_host_scan_action.py`) reads on
the controller what is to be written. The files have mode 0600. No passwords, tokens, keys or user data are in them.
"""

from __future__ import annotations

from .._drift.host_scan import ARGUMENT_SPEC as LOOK_ARGUMENTS
from .._drift.host_scan import scan
from .._host.mark import marks_here
from .._host.module import HostCall, Result
from .._host.records import read_records, write_records

ARGUMENT_SPEC = {
    # `present` writes the files. An instance without a directory here is passed over. `read` returns what is in them,
    # and what of novalite's is on the host. The ledger is not opened.
    "state": {"type": "str", "choices": ["present", "read"], "default": "present"},
    # For each instance, by its UUID, the text that is kept. The action gives it.
    "records": {"type": "dict", "default": {}},
    # For each adopted instance, by its UUID, the text that is kept. The action gives it.
    "adopted": {"type": "dict", "default": {}},
    # For each shelved instance that this host keeps the record of, by its UUID, the text that is kept. Those of others
    # of the same ledger are removed. The action gives it.
    "shelved": {"type": "dict"},
    # The text that is kept for the host. The action gives it.
    "host_record": {"type": "str"},
    **{name: LOOK_ARGUMENTS[name] for name in ("home", "ledger_url", "name", "state_dir", "uri")},
}


def run(call: HostCall) -> Result:
    """Return `changed`, and
    * `written`: the UUIDs of the instances whose files were written, and `host-record.json`
    * `records`: for each instance, adopted and shelved ones among them, by its UUID, the text that is kept
    * `host_record`: the text that is kept for the host, or null
    * `marks`: for each ledger that left one on the host, by its identity, `mark`, and `host`, its name for the host
    * `found`: what carries novalite's names or metadata on the host
    """
    params, state_dir = call.params, call.params["state_dir"]
    if params["state"] == "read":
        look = scan(state_dir, params["uri"])
        return {"changed": False, "found": look, "marks": marks_here(state_dir), **read_records(state_dir)}
    written = []
    if not call.check_mode:
        elsewhere = params["adopted"], params["shelved"]
        written = write_records(state_dir, params["records"], params["host_record"], *elsewhere)
    return {"changed": False, "written": written}
