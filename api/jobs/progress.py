# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What users see of a launch while it runs: the task state of their instances follows the playbook."""

from __future__ import annotations

import sqlalchemy as sa

from . import events, runs


class Progress:
    def __init__(self, engine: sa.Engine, plan: runs.Plan) -> None:
        self._engine = engine
        self._plan = plan

    def see(self, row: events.Row) -> None:
        """Look at an event, in the order in which they come."""
