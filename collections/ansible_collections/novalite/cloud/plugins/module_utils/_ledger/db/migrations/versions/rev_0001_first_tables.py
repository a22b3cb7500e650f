# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The first tables. Written out, not taken from tables.py: what a revision does must not change with the code."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

# SQLite only auto-increments INTEGER keys
BIG_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
FREE = "owner IS NULL AND reserved IS NULL"


def upgrade() -> None:
    op.create_table(
        "compute_host",
        sa.Column("id", BIG_ID, autoincrement=True, nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("enabled", sa.Boolean(), nullable=False),
        sa.Column("disabled_reason", sa.String(255)),
        sa.Column("up", sa.Boolean(), nullable=False),
        sa.Column("down_reason", sa.String(255)),
        sa.Column("last_seen_at", sa.BigInteger(), nullable=False),
        sa.Column("zone", sa.String(255), server_default="nova", nullable=False),
        sa.Column("aggregates", sa.JSON(), nullable=False),
        sa.Column("traits", sa.JSON(), nullable=False),
        sa.Column("vcpus", sa.Integer(), nullable=False),
        sa.Column("memory_mb", sa.BigInteger(), nullable=False),
        sa.Column("disk_gb", sa.BigInteger(), nullable=False),
        sa.Column("reserved_vcpus", sa.Integer(), nullable=False),
        sa.Column("reserved_memory_mb", sa.BigInteger(), nullable=False),
        sa.Column("reserved_disk_gb", sa.BigInteger(), nullable=False),
        sa.Column("cpu_ratio", sa.Float(), nullable=False),
        sa.Column("ram_ratio", sa.Float(), nullable=False),
        sa.Column("disk_ratio", sa.Float(), nullable=False),
        sa.Column("vcpus_used", sa.Integer(), server_default="0", nullable=False),
        sa.Column("memory_mb_used", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("disk_gb_used", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("generation", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("facts", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_compute_host")),
        sa.UniqueConstraint("name", name=op.f("uq_compute_host_name")),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "flavor",
        sa.Column("id", BIG_ID, autoincrement=True, nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("vcpus", sa.Integer(), nullable=False),
        sa.Column("memory_mb", sa.BigInteger(), nullable=False),
        sa.Column("root_gb", sa.BigInteger(), nullable=False),
        sa.Column("ephemeral_gb", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("swap_mb", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("extra_specs", sa.JSON(), nullable=False),
        sa.CheckConstraint("vcpus >= 1 AND memory_mb >= 1 AND root_gb >= 0", name=op.f("ck_flavor_sizes")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_flavor")),
        sa.UniqueConstraint("name", name=op.f("uq_flavor_name")),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "image",
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("owner", sa.String(32), server_default="", nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("disk_format", sa.String(16), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("checksum", sa.String(80), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("virtual_size", sa.BigInteger(), nullable=False),
        sa.Column("kernel", sa.JSON(none_as_null=True)),
        sa.Column("ramdisk", sa.JSON(none_as_null=True)),
        sa.Column("cmdline", sa.Text(), server_default="", nullable=False),
        sa.Column("min_disk_gb", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("min_ram_mb", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("properties", sa.JSON(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("disk_format IN ('raw', 'qcow2')", name=op.f("ck_image_disk_format")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_image")),
        sa.UniqueConstraint("owner", "name", name=op.f("uq_image_owner_name")),
    )
    op.create_table(
        "instance_action",
        sa.Column("id", BIG_ID, autoincrement=True, nullable=False),
        sa.Column("instance_uuid", sa.String(36), nullable=False),
        sa.Column("action", sa.String(32), nullable=False),
        sa.Column("request_id", sa.String(40), nullable=False),
        sa.Column("started_at", sa.BigInteger(), nullable=False),
        sa.Column("finished_at", sa.BigInteger()),
        sa.Column("message", sa.Text()),
        sa.Column("details", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_instance_action")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_instance_action_instance_uuid"), "instance_action", ["instance_uuid"], unique=False)
    op.create_table(
        "network",
        sa.Column("id", BIG_ID, autoincrement=True, nullable=False),
        sa.Column("uuid", sa.String(36), nullable=False),
        sa.Column("owner", sa.String(32), server_default="", nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("cidr", sa.String(18), nullable=False),
        sa.Column("cidr_v6", sa.String(43)),
        sa.Column("gateway", sa.String(15)),
        sa.Column("gateway_v6", sa.String(39)),
        sa.Column("bridge", sa.String(15), nullable=False),
        sa.Column("bridge_interface", sa.String(15)),
        sa.Column("vlan", sa.Integer()),
        sa.Column("dhcp", sa.Boolean(), nullable=False),
        sa.Column("dns", sa.JSON(), nullable=False),
        sa.Column("domain", sa.String(255), server_default="novalocal", nullable=False),
        sa.Column("mtu", sa.Integer()),
        sa.Column("lease_seconds", sa.Integer(), server_default="86400", nullable=False),
        sa.Column("quarantine_seconds", sa.Integer(), server_default="600", nullable=False),
        sa.CheckConstraint("vlan IS NULL OR (vlan >= 1 AND vlan <= 4094)", name=op.f("ck_network_vlan")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_network")),
        sa.UniqueConstraint("bridge", name=op.f("uq_network_bridge")),
        sa.UniqueConstraint("owner", "name", name=op.f("uq_network_owner_name")),
        sa.UniqueConstraint("uuid", name=op.f("uq_network_uuid")),
        sa.UniqueConstraint("vlan", name=op.f("uq_network_vlan")),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "project",
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_project")),
        sa.UniqueConstraint("name", name=op.f("uq_project_name")),
    )
    op.create_table(
        "allocation",
        sa.Column("instance_uuid", sa.String(36), nullable=False),
        sa.Column("compute_host_id", BIG_ID, nullable=False),
        sa.Column("vcpus", sa.Integer(), nullable=False),
        sa.Column("memory_mb", sa.BigInteger(), nullable=False),
        sa.Column("disk_gb", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["compute_host_id"], ["compute_host.id"], name=op.f("fk_allocation_compute_host_id")),
        sa.PrimaryKeyConstraint("instance_uuid", "compute_host_id", name=op.f("pk_allocation")),
    )
    op.create_table(
        "fixed_ip",
        sa.Column("network_id", BIG_ID, nullable=False),
        sa.Column("ip", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("owner", sa.String(80)),
        sa.Column("reserved", sa.String(16)),
        sa.Column("released_at", sa.BigInteger(), server_default="0", nullable=False),
        sa.CheckConstraint("owner IS NULL OR reserved IS NULL", name=op.f("ck_fixed_ip_reserved_is_free")),
        sa.ForeignKeyConstraint(
            ["network_id"], ["network.id"], name=op.f("fk_fixed_ip_network_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("network_id", "ip", name=op.f("pk_fixed_ip")),
        sa.UniqueConstraint("network_id", "owner", name=op.f("uq_fixed_ip_network_id_owner")),
    )
    op.create_index(
        "ix_fixed_ip_free",
        "fixed_ip",
        ["network_id", "released_at", "ip"],
        unique=False,
        sqlite_where=sa.text(FREE),
        postgresql_where=sa.text(FREE),
    )
    op.create_table(
        "instance",
        sa.Column("id", BIG_ID, autoincrement=True, nullable=False),
        sa.Column("uuid", sa.String(36), nullable=False),
        sa.Column("project_id", sa.String(32), nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("hostname", sa.String(63), nullable=False),
        sa.Column("flavor", sa.JSON(), nullable=False),
        sa.Column("image", sa.JSON(), nullable=False),
        sa.Column("key_name", sa.String(255)),
        sa.Column("public_key", sa.Text()),
        sa.Column("availability_zone", sa.String(255)),
        sa.Column("metadata", sa.JSON(), nullable=False),
        sa.Column("host", sa.String(255)),
        sa.Column("vm_state", sa.String(16), nullable=False),
        sa.Column("task_state", sa.String(32)),
        sa.Column("power_state", sa.Integer(), server_default="0", nullable=False),
        sa.Column("fault", sa.JSON(none_as_null=True)),
        sa.Column("attempts", sa.JSON(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.Column("launched_at", sa.BigInteger()),
        sa.Column("terminated_at", sa.BigInteger()),
        sa.Column("deleted", BIG_ID, server_default="0", nullable=False),
        sa.ForeignKeyConstraint(["project_id"], ["project.id"], name=op.f("fk_instance_project_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_instance")),
        sa.UniqueConstraint("project_id", "name", "deleted", name=op.f("uq_instance_project_id_name_deleted")),
        sa.UniqueConstraint("uuid", name=op.f("uq_instance_uuid")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_instance_project_id"), "instance", ["project_id"], unique=False)
    op.create_table(
        "instance_action_event",
        sa.Column("id", BIG_ID, autoincrement=True, nullable=False),
        sa.Column("action_id", BIG_ID, nullable=False),
        sa.Column("event", sa.String(64), nullable=False),
        sa.Column("host", sa.String(255)),
        sa.Column("started_at", sa.BigInteger(), nullable=False),
        sa.Column("finished_at", sa.BigInteger()),
        sa.Column("result", sa.String(16)),
        sa.ForeignKeyConstraint(
            ["action_id"], ["instance_action.id"], name=op.f("fk_instance_action_event_action_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_instance_action_event")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_instance_action_event_action_id"), "instance_action_event", ["action_id"], unique=False)
    op.create_table(
        "keypair",
        sa.Column("project_id", sa.String(32), nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("type", sa.String(8), server_default="ssh", nullable=False),
        sa.Column("public_key", sa.Text(), nullable=False),
        sa.Column("fingerprint", sa.String(47), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["project_id"], ["project.id"], name=op.f("fk_keypair_project_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("project_id", "name", name=op.f("pk_keypair")),
    )
    op.create_table(
        "quota",
        sa.Column("project_id", sa.String(32), nullable=False),
        sa.Column("resource", sa.String(32), nullable=False),
        sa.Column("hard_limit", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("hard_limit >= -1", name=op.f("ck_quota_hard_limit")),
        sa.ForeignKeyConstraint(["project_id"], ["project.id"], name=op.f("fk_quota_project_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("project_id", "resource", name=op.f("pk_quota")),
    )
    op.create_table(
        "security_group",
        sa.Column("id", BIG_ID, autoincrement=True, nullable=False),
        sa.Column("uuid", sa.String(36), nullable=False),
        sa.Column("project_id", sa.String(32), nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("description", sa.String(255), server_default="", nullable=False),
        sa.ForeignKeyConstraint(
            ["project_id"], ["project.id"], name=op.f("fk_security_group_project_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_security_group")),
        sa.UniqueConstraint("project_id", "name", name=op.f("uq_security_group_project_id_name")),
        sa.UniqueConstraint("uuid", name=op.f("uq_security_group_uuid")),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "instance_security_group",
        sa.Column("instance_id", BIG_ID, nullable=False),
        sa.Column("group_id", BIG_ID, nullable=False),
        sa.ForeignKeyConstraint(["group_id"], ["security_group.id"], name=op.f("fk_instance_security_group_group_id")),
        sa.ForeignKeyConstraint(
            ["instance_id"], ["instance.id"], name=op.f("fk_instance_security_group_instance_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("instance_id", "group_id", name=op.f("pk_instance_security_group")),
    )
    op.create_index(op.f("ix_instance_security_group_group_id"), "instance_security_group", ["group_id"], unique=False)
    op.create_table(
        "security_group_rule",
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("group_id", BIG_ID, nullable=False),
        sa.Column("direction", sa.String(8), server_default="ingress", nullable=False),
        sa.Column("ethertype", sa.String(4), nullable=False),
        sa.Column("protocol", sa.String(8), nullable=False),
        sa.Column("port_min", sa.Integer()),
        sa.Column("port_max", sa.Integer()),
        sa.Column("cidr", sa.String(43)),
        sa.Column("remote_group_id", BIG_ID),
        sa.CheckConstraint("direction IN ('ingress', 'egress')", name=op.f("ck_security_group_rule_direction")),
        sa.CheckConstraint("ethertype IN ('IPv4', 'IPv6')", name=op.f("ck_security_group_rule_ethertype")),
        sa.ForeignKeyConstraint(
            ["group_id"], ["security_group.id"], name=op.f("fk_security_group_rule_group_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["remote_group_id"], ["security_group.id"], name=op.f("fk_security_group_rule_remote_group_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_security_group_rule")),
    )
    op.create_index(op.f("ix_security_group_rule_group_id"), "security_group_rule", ["group_id"], unique=False)
    op.create_table(
        "vif",
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("instance_uuid", sa.String(36), nullable=False),
        sa.Column("network_id", BIG_ID, nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("mac", sa.String(17), nullable=False),
        sa.Column("ipv6", sa.String(39)),
        sa.ForeignKeyConstraint(
            ["instance_uuid"], ["instance.uuid"], name=op.f("fk_vif_instance_uuid"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["network_id"], ["network.id"], name=op.f("fk_vif_network_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_vif")),
        sa.UniqueConstraint("instance_uuid", "position", name=op.f("uq_vif_instance_uuid_position")),
        sa.UniqueConstraint("mac", name=op.f("uq_vif_mac")),
        sa.UniqueConstraint("network_id", "ipv6", name=op.f("uq_vif_network_id_ipv6")),
    )
    op.create_index(op.f("ix_vif_instance_uuid"), "vif", ["instance_uuid"], unique=False)
    op.create_index(op.f("ix_vif_network_id"), "vif", ["network_id"], unique=False)


def downgrade() -> None:
    raise NotImplementedError("there is nothing before the first tables")
