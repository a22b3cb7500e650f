# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The ledger's tables of images and their imports, snapshots and backups of servers, and shared volume types; part of
tables.py's metadata."""

from __future__ import annotations

import sqlalchemy as sa

from .schema import table

image_member = table(
    "image_member",
    sa.Column("image_id", sa.ForeignKey("image.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("member", sa.String(255), primary_key=True, index=True),  # a project's id; Glance does not look it up
    sa.Column("status", sa.String(16), nullable=False, server_default="pending"),
    sa.Column("created_at", sa.BigInteger, nullable=False),
    sa.Column("updated_at", sa.BigInteger, nullable=False),
    sa.CheckConstraint("status IN ('pending', 'accepted', 'rejected')", name="status"),
)

image_task = table(
    "image_task",
    sa.Column("id", sa.String(36), primary_key=True),
    sa.Column("image_id", sa.ForeignKey("image.id", ondelete="CASCADE"), nullable=False, index=True),
    sa.Column("status", sa.String(16), nullable=False),  # Glance's: pending, processing, success, failure
    sa.Column("input", sa.JSON, nullable=False),  # as Glance shows it
    sa.Column("message", sa.Text, nullable=False, server_default=""),
    sa.Column("request_id", sa.String(40)),
    sa.Column("user_id", sa.String(32)),
    sa.Column("project_id", sa.String(32)),
    sa.Column("created_at", sa.BigInteger, nullable=False),
    sa.Column("updated_at", sa.BigInteger, nullable=False),
)

# Ids of images that were deleted: whoever knows one must not get other data under it (OSSN-0075)
image_id_used = table("image_id_used", sa.Column("id", sa.String(36), primary_key=True))

server_snapshot = table(  # all disks of a server at one moment, on its host
    "server_snapshot",
    sa.Column("id", sa.String(36), primary_key=True),
    sa.Column("instance_uuid", sa.ForeignKey("instance.uuid"), nullable=False),
    sa.Column("name", sa.String(255), nullable=False),
    sa.Column("description", sa.String(255), nullable=False, server_default=""),
    sa.Column("status", sa.String(16), nullable=False),  # creating available reverting deleting error
    sa.Column("host", sa.String(255), nullable=False),
    sa.Column("consistency", sa.String(16)),  # off frozen crash; null: nobody knows yet
    sa.Column("size", sa.BigInteger),  # bytes on the host
    sa.Column("image_id", sa.String(36)),  # that the server had
    sa.Column("volumes", sa.JSON, nullable=False),  # ids of those that are in it
    sa.Column("fault", sa.JSON(none_as_null=True)),
    sa.Column("user_id", sa.String(32)),
    sa.Column("created_at", sa.BigInteger, nullable=False),
    sa.Column("updated_at", sa.BigInteger, nullable=False),
    sa.UniqueConstraint("instance_uuid", "name"),
)

server_backup = table(  # all disks of a server at one moment, in a store; it outlives the server
    "server_backup",
    sa.Column("id", sa.String(36), primary_key=True),
    sa.Column("instance_uuid", sa.String(36), nullable=False),
    sa.Column("project_id", sa.ForeignKey("project.id"), nullable=False, index=True),
    sa.Column("server", sa.String(255), nullable=False),  # the name that it had
    sa.Column("name", sa.String(255), nullable=False),
    sa.Column("status", sa.String(16), nullable=False),  # creating available restoring verifying deleting error
    sa.Column("host", sa.String(255), nullable=False),  # that took it
    sa.Column("kind", sa.String(16)),  # full incremental; these are null until it is taken
    sa.Column("reason", sa.Text),  # of a full one
    sa.Column("parent_id", sa.String(36)),  # that an incremental one changes
    sa.Column("consistency", sa.String(16)),  # crash filesystem
    sa.Column("disks", sa.JSON, nullable=False),
    sa.Column("gigabytes", sa.BigInteger, nullable=False),  # of its disks, for the quota
    sa.Column("moved", sa.BigInteger),  # bytes that were read of the disks
    sa.Column("size", sa.BigInteger),  # bytes of data that it has in the store
    sa.Column("flavor", sa.JSON, nullable=False),  # that the server had
    sa.Column("image_id", sa.String(36)),
    sa.Column("verified_at", sa.BigInteger),
    sa.Column("complaint", sa.Text),  # why it cannot be restored, as it was verified last
    sa.Column("proven_at", sa.BigInteger),  # when a guest with its disks was up, the last time that it was booted
    sa.Column("booted_at", sa.BigInteger),  # when it was booted last, whatever came of it
    sa.Column("boot", sa.JSON(none_as_null=True)),  # {"by": ..., "seconds": ..., "error": ...}
    sa.Column("console", sa.Text),  # what its guest said then
    sa.Column("picture", sa.Text),  # its screen, PNG in base64
    sa.Column("fault", sa.JSON(none_as_null=True)),
    sa.Column("user_id", sa.String(32)),
    sa.Column("created_at", sa.BigInteger, nullable=False),
    sa.Column("updated_at", sa.BigInteger, nullable=False),
    sa.UniqueConstraint("instance_uuid", "name"),
)

backup_policy = table(  # how often servers are backed up and proven, and which of their backups are kept
    "backup_policy",
    sa.Column("name", sa.String(255), primary_key=True),
    sa.Column("scope", sa.String(16), nullable=False),  # server flavor project all
    sa.Column("target", sa.String(64), nullable=False),  # the server's UUID, the flavor's or project's id; "" of all
    sa.Column("every", sa.BigInteger, nullable=False),  # seconds between two backups
    sa.Column("keep", sa.JSON, nullable=False),  # {"hourly": 24, ...}, as _rules/retention.py has it
    sa.Column("verify_every", sa.BigInteger),  # seconds between two comparisons of the newest backup; null: none
    sa.Column("boot_every", sa.BigInteger),  # seconds between two boots of the newest full one; null: none
    sa.Column("created_at", sa.BigInteger, nullable=False),
    sa.Column("updated_at", sa.BigInteger, nullable=False),
    sa.UniqueConstraint("scope", "target"),
)

# Copy of a server's own disks on a second host. Without `every` nothing is copied any more. No key to instance: it
# outlives the server until the hosts in `former` have removed what they hold.
replica = table(
    "replica",
    sa.Column("instance_uuid", sa.String(36), primary_key=True),
    sa.Column("every", sa.BigInteger),  # seconds between two copies
    sa.Column("host", sa.String(255)),  # that has the copy, or is to get the first; null: it is chosen for the next one
    sa.Column("requested_host", sa.String(255)),
    sa.Column("disk_gb", sa.BigInteger, nullable=False, server_default="0"),  # that it claims there
    sa.Column("next_host", sa.String(255)),  # that gets the next copy: once that is complete, `host` gives up its own
    sa.Column("next_gb", sa.BigInteger, nullable=False, server_default="0"),  # that are claimed there
    sa.Column("copy_id", sa.String(36)),  # of the newest complete copy
    sa.Column("taken_at", sa.BigInteger),  # when that one was begun
    sa.Column("tried_at", sa.BigInteger),  # when one was begun last, whatever came of it
    sa.Column("kind", sa.String(16)),  # full incremental
    sa.Column("reason", sa.Text),  # of a full one
    sa.Column("moved", sa.BigInteger),  # bytes that came over the wire for it
    sa.Column("consistency", sa.String(16)),  # crash filesystem
    sa.Column("fault", sa.Text),  # why the last one failed
    sa.Column("silent_since", sa.BigInteger),  # since when the host that is to get copies did not answer; null: it did
    sa.Column("former", sa.JSON, nullable=False),  # names of hosts that hold files of it which are to go
    sa.Column("created_at", sa.BigInteger, nullable=False),
    sa.Column("updated_at", sa.BigInteger, nullable=False),
)

volume_type_access = table(
    "volume_type_access",
    sa.Column("type_id", sa.ForeignKey("volume_type.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("project_id", sa.String(36), primary_key=True),  # Cinder does not look it up
)
