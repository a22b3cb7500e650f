# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What hosts must be told of a change, as a job in the transaction of the change."""

from __future__ import annotations

import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._ledger import group_rules

from ..context import current, request_id
from ..jobs.queue import enqueue


def tell_group_hosts(connection: sa.Connection, group: int, name: str) -> None:
    """The hosts that carry a member learn of a group's new rules from a job; without any there is nothing to do."""
    if not group_rules.instances_concerned(connection, group):
        return
    caller = current()
    enqueue(
        connection,
        "security_groups",
        variables={"project": caller.project_name, "security_groups": [{"name": name}]},
        project_id=caller.project,
        user_id=caller.user_id,
        request_id=request_id(),
    )
