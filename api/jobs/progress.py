# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Progress, as users see it while a run goes on: task states and steps of the actions of its instances."""

from __future__ import annotations

import logging
import time

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.compute.server_states import spawning
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Engine, transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries import actions

from . import events, runs
from .kinds import KINDS

log = logging.getLogger("novalite.jobs")

# play -> the step that it is
STEPS = {
    "create": {
        "Look at the compute hosts": "schedule_look_at_hosts",
        "Place the instances": "schedule_choose",
        "Build on the compute hosts": "spawn",
        "Record on the controller": None,
    },
    "delete": {"Take it away": "reclaim", "Record that they are gone": None},
}
SPAWN = "spawn"


class Progress:
    """Follows the events of one run. That something cannot be written now is no reason to end the run."""

    def __init__(self, engine: Engine, plan: runs.Plan) -> None:
        self._engine = engine
        kind = next((known for known in KINDS.values() if known.playbook == plan.playbook), None)
        self._action = (kind.action if kind is not None else None) or ""
        self._uuids = plan.variables.get("uuids") or []

    def see(self, row: events.Row) -> None:
        """Look at an event, in the order in which they come."""
        steps = STEPS.get(self._action, {})
        play = row["play"]
        if row["event"] != "play" or play not in steps or not self._uuids:
            return
        try:
            with transaction(self._engine) as connection:
                if steps[play] == SPAWN:  # first, for it takes the hosts' locks, as who records the end does
                    spawning(connection, self._uuids)
                actions.step(connection, self._action, self._uuids, steps[play], int(time.time()))
        except NovaliteError as error:
            log.warning("progress could not be written: %s", error)
