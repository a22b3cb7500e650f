# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What some actions write beside the states: an image that is made, another image that a server stands on.

server_actions asks here at the begin and at the end of each action, in the transaction of either.
"""

from __future__ import annotations

import typing as t

import sqlalchemy as sa

from ..._json import JsonMapping, JsonObject
from ..._model.rows import InstanceRow
from ..catalog import image_snapshots
from . import rebuilds, rescues

# (connection, the instance's row as it was, the action's details, which it may add to) -> what to write to the instance
Begun = t.Callable[[sa.Connection, InstanceRow, JsonObject], JsonObject]
# (connection, row, details, error or None, what the host said of this instance) -> what to write to the instance
Ended = t.Callable[[sa.Connection, InstanceRow, JsonObject, t.Optional[str], JsonMapping], JsonObject]

BEGUN: dict[str, Begun] = {"createImage": image_snapshots.begun, "rebuild": rebuilds.begun, "rescue": rescues.begun}
ENDED: dict[str, Ended] = {"createImage": image_snapshots.ended, "rebuild": rebuilds.ended, "rescue": rescues.ended}
