# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A ledger of a revision from before the first release, as the novalite of that time left it."""

from __future__ import annotations

import sqlalchemy as sa

# What later revisions brought, taken away again; the revision that brought it
_TAKEN = (
    ("0045", "DROP INDEX ix_allocation_numa"),
    ("0045", "ALTER TABLE allocation DROP COLUMN numa"),
    ("0044", "DROP TABLE console_token"),
    ("0043", "DROP INDEX uq_network_default"),
    ("0043", "ALTER TABLE network DROP COLUMN is_default"),
    ("0042", "DROP TABLE volume_reservation"),
    *(
        ("0042", f"DROP INDEX ix_{table}_{of}")
        for table in ("volume", "volume_snapshot")
        for of in ("listed", "listed_of_project", "status")
    ),
    ("0042", "DROP INDEX ix_volume_host"),
    ("0041", "ALTER TABLE compute_host DROP COLUMN num_instances"),
    ("0040", "DROP INDEX uq_floating_pool_uuid"),
    *(
        ("0040", f"ALTER TABLE floating_pool DROP COLUMN {column}")
        for column in ("uuid", "display_name", "description", "made_by", "port_security_enabled", "mtu", "isolated")
    ),
    ("0040", "ALTER TABLE floating_pool DROP COLUMN subnet_name"),
    ("0040", "ALTER TABLE floating_pool DROP COLUMN gateway"),
    ("0037", "DROP TABLE dns_name"),
    ("0035", "ALTER TABLE network DROP COLUMN made_by"),
    ("0035", "ALTER TABLE network DROP COLUMN admin_state_up"),
    ("0034", "DROP INDEX ix_instance_host"),
    ("0034", "DROP INDEX ix_instance_adopted"),
    ("0033", "ALTER TABLE floating_ip DROP COLUMN last_project_id"),
    ("0032", "DROP TABLE departure"),
    ("0032", "ALTER TABLE ledger_identity DROP COLUMN behind_since"),
    ("0032", "ALTER TABLE ledger_identity DROP COLUMN behind"),
    ("0032", "ALTER TABLE compute_host DROP COLUMN marks_sent"),
    ("0032", "ALTER TABLE compute_host DROP COLUMN mark"),
    ("0032", "ALTER TABLE compute_host DROP COLUMN identity"),
)


def make_former(connection: sa.Connection, revision: str) -> None:
    """Take from a ledger what is newer than `revision`."""
    for brought, statement in _TAKEN:
        if brought > revision:
            connection.execute(sa.text(statement))
    connection.execute(sa.text("UPDATE alembic_version SET version_num = :revision"), {"revision": revision})
