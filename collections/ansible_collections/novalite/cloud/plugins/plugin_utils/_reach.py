# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Effect of `--limit` on a decision of the controller.

No host that it leaves out is chosen or touched. Ansible skips such hosts without a word; here, what one of them would
have to do is refused before anything is recorded, and what it would only have to be told is named in a warning.
"""

from __future__ import annotations

import collections.abc as c

from ..module_utils._errors import NovaliteError
from ..module_utils._json import JsonMapping

Result = JsonMapping
# Parts of a host's plan, and whether the host has to do them now. `keep` is a look at what runs already.
PLAN = {"build": True, "remove": True, "vacate": False, "peers": False, "groups": False, "network": False}
# A dead host, too: that it is dead is known from a look at it
MOVE = {"arriving": True, "leaving": True, "staying": True, "build": True, "peers": False, "groups": False}


def warnings(operation: str, result: Result, reach: c.Collection[str]) -> list[str]:
    """Return what hosts outside of `reach` are not told. Raises NovaliteError for what they would have to do."""
    acting, informed = _outside(operation, result)
    refused = sorted(acting - set(reach))
    if refused:
        raise NovaliteError(f"--limit leaves out {', '.join(refused)}, which has to take part: add it to --limit")
    left = sorted(informed - set(reach))
    if left:
        return [f"--limit leaves out {', '.join(left)}: run reconcile.yml there for what else changed"]
    return []


def _outside(operation: str, result: Result) -> tuple[set[str], set[str]]:
    """The hosts that `result` has work for, and those that are only told."""
    hosts = result.get("hosts") or {}
    if operation == "server":
        return {instance["host"] for instance in result.get("to_delete") or [] if instance["host"]}, set()
    if operation in ("server_plan", "launch_plan", "launch_record", "server_migration"):
        parts = MOVE if operation == "server_migration" else PLAN
        acting = {host for host, plan in hosts.items() if any(parts.get(part) for part in plan)}
        informed = {host for host, plan in hosts.items() if any(part in parts for part in plan)}
        return acting, informed
    if operation == "volume":
        begun = [volume for volume in result.get("volumes") or [] if volume["id"] in result["begun"]]
        where = [volume["host"] or next((there["host"] for there in volume["attachments"]), None) for volume in begun]
        return {host for host in where if host}, set()
    if operation in ("server_action", "volume_action"):
        return set(hosts), set()
    if operation == "server_interface":
        return set(hosts), {*(result.get("peers") or {}), *(result.get("firewall") or {})}
    if operation in ("security_group", "server_security_groups", "group_plan"):
        return set(), set(hosts)
    if operation == "port_plan":
        return set(hosts), set(result["firewall"])
    return set(), set()
