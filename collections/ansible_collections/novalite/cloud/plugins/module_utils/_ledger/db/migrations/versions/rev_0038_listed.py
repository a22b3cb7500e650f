# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Indexes by which lists and counts of instances read no more than they show."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0038"
down_revision = "0037"
branch_labels = None
depends_on = None

_BUILDING = {f"{name}_where": sa.text("vm_state = 'building'") for name in ("sqlite", "postgresql")}
_LISTED = ["created_at", "id", "deleted", "display_name", "name"]


def upgrade() -> None:
    op.drop_index("ix_instance_host", "instance")
    op.create_index("ix_instance_host", "instance", ["host", "deleted", "vm_state", "power_state"])
    op.drop_index("ix_instance_building", "instance")
    op.create_index("ix_instance_building", "instance", ["deleted", "host", "vm_state"], **_BUILDING)
    op.create_index("ix_instance_listed", "instance", _LISTED)
    op.create_index("ix_instance_listed_of_project", "instance", ["project_id", *_LISTED])


def downgrade() -> None:
    op.drop_index("ix_instance_listed_of_project", "instance")
    op.drop_index("ix_instance_listed", "instance")
    op.drop_index("ix_instance_building", "instance")
    op.create_index("ix_instance_building", "instance", ["host"], **_BUILDING)
    op.drop_index("ix_instance_host", "instance")
    op.create_index("ix_instance_host", "instance", ["host", "deleted"])
