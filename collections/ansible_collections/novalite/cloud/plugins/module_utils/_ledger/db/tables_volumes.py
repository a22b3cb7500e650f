# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The ledger's tables for volumes, their snapshots and where they are attached; part of tables.py's metadata.

A volume that is gone has no row, as in Cinder's API. States are Cinder's words.
"""

from __future__ import annotations

import sqlalchemy as sa

from .schema import table

volume_type = table(
    "volume_type",
    sa.Column("id", sa.String(36), primary_key=True),
    sa.Column("name", sa.String(255), nullable=False, unique=True),
    sa.Column("description", sa.Text),
    sa.Column("backend", sa.String(16), nullable=False),  # file | lvm | nfs
    sa.Column("options", sa.JSON, nullable=False),  # format (file, nfs), volume_group (lvm), share (nfs)
    sa.Column("extra_specs", sa.JSON, nullable=False),
    sa.Column("is_public", sa.Boolean, nullable=False, server_default=sa.true()),
    sa.Column("created_at", sa.BigInteger, nullable=False),
    sa.CheckConstraint("backend IN ('file', 'lvm', 'nfs')", name="backend"),
)

volume = table(
    "volume",
    sa.Column("id", sa.String(36), primary_key=True),  # the serial number of the guest's disk
    sa.Column("project_id", sa.ForeignKey("project.id"), nullable=False),
    sa.Column("user_id", sa.String(32)),
    sa.Column("name", sa.String(255), nullable=False),  # the playbooks' handle
    sa.Column("display_name", sa.String(255)),  # what the APIs show; null: the name. Several may have the same
    sa.Column("description", sa.Text),
    sa.Column("size_gb", sa.BigInteger, nullable=False),  # GiB
    sa.Column("new_size_gb", sa.BigInteger),  # while it is being extended: what it is to have
    sa.Column("type_id", sa.ForeignKey("volume_type.id"), nullable=False),
    sa.Column("format", sa.String(16), nullable=False),  # raw | qcow2: declared here, never probed
    sa.Column("host", sa.String(255)),  # compute_host.name that has it; null: shared, or made nowhere yet
    sa.Column("availability_zone", sa.String(255)),  # as requested
    # creating available reserved attaching in-use detaching extending deleting error error_deleting error_extending ...
    sa.Column("status", sa.String(32), nullable=False),
    sa.Column("bootable", sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Column("readonly", sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Column("multiattach", sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Column("image", sa.JSON(none_as_null=True)),  # the image that it was made of, as an instance keeps it
    sa.Column("source_volume_id", sa.String(36)),
    sa.Column("snapshot_id", sa.String(36)),
    sa.Column("backup_disk", sa.JSON(none_as_null=True)),  # of a server's backup: {"backup", "server", "disk"}
    sa.Column("metadata", sa.JSON, nullable=False),
    sa.Column("fault", sa.JSON(none_as_null=True)),  # {"code", "message", "created"}
    sa.Column("made_at", sa.BigInteger),  # when its data came to be; null: on no host yet
    sa.Column("created_at", sa.BigInteger, nullable=False),
    sa.Column("updated_at", sa.BigInteger, nullable=False),
    sa.UniqueConstraint("project_id", "name"),
    sa.Index("ix_volume_host", "host"),
    sa.Index("ix_volume_status", "status", "updated_at"),
    sa.Index("ix_volume_listed", "created_at", "id"),
    sa.Index("ix_volume_listed_of_project", "project_id", "created_at", "id"),
    sa.CheckConstraint("size_gb >= 1", name="size"),
    sa.CheckConstraint("format IN ('raw', 'qcow2')", name="format"),
)

volume_attachment = table(
    "volume_attachment",
    sa.Column("id", sa.String(36), primary_key=True),
    sa.Column("volume_id", sa.ForeignKey("volume.id", ondelete="CASCADE"), nullable=False, index=True),
    sa.Column("instance_uuid", sa.ForeignKey("instance.uuid"), nullable=False, index=True),
    sa.Column("device", sa.String(32), nullable=False),  # /dev/vdb
    sa.Column("boot_index", sa.Integer),  # 0: the root disk
    sa.Column("tag", sa.String(60)),
    sa.Column("delete_on_termination", sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Column("readonly", sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Column("created_at", sa.BigInteger, nullable=False),
    sa.Column("attached_at", sa.BigInteger),  # null: not yet
    sa.UniqueConstraint("instance_uuid", "device"),
    sa.UniqueConstraint("volume_id", "instance_uuid"),
)

# Cinder's attachment without an instance: it keeps a volume for whoever asked
volume_reservation = table(
    "volume_reservation",
    sa.Column("id", sa.String(36), primary_key=True),
    sa.Column("volume_id", sa.ForeignKey("volume.id", ondelete="CASCADE"), nullable=False, unique=True),
    sa.Column("status", sa.String(16), nullable=False),  # reserved | attaching | attached
    sa.Column("mode", sa.String(4)),  # ro | rw; null: nobody said it yet
    sa.Column("host", sa.String(255)),  # as a client's connector names it; null: not connected yet
    sa.Column("device", sa.String(255)),
    sa.Column("created_at", sa.BigInteger, nullable=False),
    sa.Column("attached_at", sa.BigInteger),  # when it was connected
)

volume_snapshot = table(
    "volume_snapshot",
    sa.Column("id", sa.String(36), primary_key=True),
    sa.Column("volume_id", sa.ForeignKey("volume.id"), nullable=False, index=True),
    sa.Column("project_id", sa.ForeignKey("project.id"), nullable=False),
    sa.Column("user_id", sa.String(32)),
    sa.Column("name", sa.String(255), nullable=False),
    sa.Column("display_name", sa.String(255)),
    sa.Column("description", sa.Text),
    sa.Column("size_gb", sa.BigInteger, nullable=False),
    sa.Column("status", sa.String(32), nullable=False),  # creating available restoring deleting error error_deleting
    sa.Column("metadata", sa.JSON, nullable=False),
    sa.Column("fault", sa.JSON(none_as_null=True)),
    sa.Column("created_at", sa.BigInteger, nullable=False),
    sa.Column("updated_at", sa.BigInteger, nullable=False),
    sa.UniqueConstraint("project_id", "name"),
    sa.Index("ix_volume_snapshot_status", "status", "updated_at"),
    sa.Index("ix_volume_snapshot_listed", "created_at", "id"),
    sa.Index("ix_volume_snapshot_listed_of_project", "project_id", "created_at", "id"),
)

volume_backup = table(  # a volume's data in the store of backups; it outlives the volume
    "volume_backup",
    sa.Column("id", sa.String(36), primary_key=True),
    sa.Column("volume_id", sa.String(36), nullable=False, index=True),  # that it is of, and among whose backups it is
    sa.Column("project_id", sa.ForeignKey("project.id"), nullable=False),
    sa.Column("user_id", sa.String(32)),
    sa.Column("name", sa.String(255)),
    sa.Column("description", sa.Text),
    sa.Column("metadata", sa.JSON, nullable=False),
    sa.Column("size_gb", sa.BigInteger, nullable=False),
    sa.Column("status", sa.String(32), nullable=False),  # creating available restoring deleting error error_deleting
    sa.Column("incremental", sa.Boolean, nullable=False),  # as it was asked for
    sa.Column("parent_id", sa.String(36)),  # the backup that it changes; null: it stands for itself
    sa.Column("reason", sa.Text),  # why it stands for itself
    sa.Column("host", sa.String(255)),  # the compute host that took it
    sa.Column("restore_volume_id", sa.String(36)),  # that it is being restored to, or was last
    sa.Column("consistency", sa.String(16)),  # crash filesystem
    sa.Column("moved", sa.BigInteger),  # bytes that were read of the volume
    sa.Column("size", sa.BigInteger),  # bytes of data that it has in the store
    sa.Column("fault", sa.JSON(none_as_null=True)),
    sa.Column("created_at", sa.BigInteger, nullable=False),
    sa.Column("updated_at", sa.BigInteger, nullable=False),
    sa.Index("ix_volume_backup_status", "status", "updated_at"),
    sa.Index("ix_volume_backup_listed", "created_at", "id"),
    sa.Index("ix_volume_backup_listed_of_project", "project_id", "created_at", "id"),
)

volume_transfer = table(
    "volume_transfer",
    sa.Column("id", sa.String(36), primary_key=True),
    sa.Column("volume_id", sa.ForeignKey("volume.id", ondelete="CASCADE"), nullable=False, unique=True),
    sa.Column("project_id", sa.ForeignKey("project.id"), nullable=False, index=True),  # that gives it away
    sa.Column("name", sa.String(255)),
    sa.Column("key_hash", sa.String(64), nullable=False),  # SHA-256 of what whoever accepts it has to know
    sa.Column("no_snapshots", sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Column("created_at", sa.BigInteger, nullable=False),
)
