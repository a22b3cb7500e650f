# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""UUIDs and MACs of a plan that records nothing: they show that they stand for others, which are chosen at launch.

They are not worked out from what the ledger has: one that is restored from a copy would give them a second time, to
other servers than those that hosts have by them.
"""

from __future__ import annotations

import uuid

MAC_PREFIX = "02:00:00"
_NODE = "-0000-0000-0000-000000000000"


def new_uuid(number: int) -> str:
    """The placeholder of the UUID of something, of which this is the number, from 1."""
    return str(uuid.UUID(int=number << 96))


def is_placeholder(text: str) -> bool:
    """Tell whether a UUID, or a MAC, stands for another one."""
    return text.endswith(_NODE) or text.startswith(f"{MAC_PREFIX}:")
