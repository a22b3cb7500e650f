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

_IS_BUILDING = sa.text("vm_state = 'building'")
_LISTED = ["created_at", "id", "deleted", "display_name", "name"]


def _index_what_is_building(columns: list[str]) -> None:
    op.create_index(
        "ix_instance_building", "instance", columns, sqlite_where=_IS_BUILDING, postgresql_where=_IS_BUILDING
    )


def upgrade() -> None:
    op.drop_index("ix_instance_host", "instance")
    op.create_index("ix_instance_host", "instance", ["host", "deleted", "vm_state", "power_state"])
    op.drop_index("ix_instance_building", "instance")
    _index_what_is_building(["deleted", "host", "vm_state"])
    op.create_index("ix_instance_listed", "instance", _LISTED)
    op.create_index("ix_instance_listed_of_project", "instance", ["project_id", *_LISTED])


def downgrade() -> None:
    op.drop_index("ix_instance_listed_of_project", "instance")
    op.drop_index("ix_instance_listed", "instance")
    op.drop_index("ix_instance_building", "instance")
    _index_what_is_building(["host"])
    op.drop_index("ix_instance_host", "instance")
    op.create_index("ix_instance_host", "instance", ["host", "deleted"])
