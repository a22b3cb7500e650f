# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Names in the DNS of networks, each with the instance that had it first."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0037"
down_revision = "0036"
branch_labels = None
depends_on = None

# As _ledger/network/dns_names.py gives them
_FIRST = """
INSERT INTO dns_name (network_id, name, instance_uuid)
SELECT vif.network_id, instance.hostname, min(instance.uuid)
FROM instance JOIN vif ON vif.instance_uuid = instance.uuid
WHERE instance.deleted = 0
AND instance.hostname NOT IN ('gateway', 'isatap', 'localhost', 'metadata', 'wpad')
AND instance.id = (
    SELECT min(other.id) FROM instance AS other JOIN vif AS its ON its.instance_uuid = other.uuid
    WHERE other.deleted = 0 AND other.hostname = instance.hostname AND its.network_id = vif.network_id
)
GROUP BY vif.network_id, instance.hostname
"""


def upgrade() -> None:
    op.create_table(
        "dns_name",
        sa.Column("network_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("name", sa.String(63), nullable=False),
        sa.Column("instance_uuid", sa.String(36), nullable=False),
        sa.PrimaryKeyConstraint("network_id", "name", name=op.f("pk_dns_name")),
        sa.ForeignKeyConstraint(
            ["network_id"], ["network.id"], name=op.f("fk_dns_name_network_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["instance_uuid"], ["instance.uuid"], name=op.f("fk_dns_name_instance_uuid"), ondelete="CASCADE"
        ),
    )
    op.create_index(op.f("ix_dns_name_instance_uuid"), "dns_name", ["instance_uuid"])
    op.execute(_FIRST)


def downgrade() -> None:
    op.drop_table("dns_name")
