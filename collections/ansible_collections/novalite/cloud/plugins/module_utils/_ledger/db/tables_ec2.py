# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tables of the EC2 dialect that no other door uses; part of tables.py's metadata.

There is no table of ids: EC2's id of an object is the beginning of its UUID (api/ec2/ids.py), so that what any door
made has one at once, and always the same.
"""

from __future__ import annotations

import sqlalchemy as sa

from .schema import table

ec2_request = table(  # a client token, and what came of the request that had it
    "ec2_request",
    sa.Column("project_id", sa.ForeignKey("project.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("action", sa.String(64), primary_key=True),
    sa.Column("token", sa.String(64), primary_key=True),
    sa.Column("request_hash", sa.String(64), nullable=False),  # SHA-256 of what was asked with it
    sa.Column("result", sa.JSON, nullable=False),  # ids of what was made
    sa.Column("created_at", sa.BigInteger, nullable=False, index=True),
)

ec2_instance = table(
    "ec2_instance",
    sa.Column("instance_uuid", sa.ForeignKey("instance.uuid", ondelete="CASCADE"), primary_key=True),
    sa.Column("client_token", sa.String(64), nullable=False, server_default=""),
    sa.Column("launch_index", sa.Integer, nullable=False, server_default="0"),
    sa.Column("disable_api_termination", sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Column("disable_api_stop", sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Column("http_tokens", sa.String(8), nullable=False, server_default="optional"),  # or required
    # once its guest shuts itself down; or terminate
    sa.Column("shutdown_behavior", sa.String(9), nullable=False, server_default="stop"),
)

ec2_keypair = table(  # of a key that was made here: EC2's fingerprint of it is of the private key
    "ec2_keypair",
    # as in `keypair`, without a foreign key: texts of before revision 0039 are completed once all rows are there
    sa.Column("user_id", sa.String(32), primary_key=True, server_default=""),
    sa.Column("project_id", sa.String(32), primary_key=True),
    sa.Column("name", sa.String(255), primary_key=True),
    sa.Column("fingerprint", sa.String(64), nullable=False),
)

ec2_tag = table(  # of what has no metadata of its own: those of instances and volumes are every door's
    "ec2_tag",
    sa.Column("project_id", sa.ForeignKey("project.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("resource", sa.String(40), primary_key=True),  # EC2's id of it
    sa.Column("key", sa.String(128), primary_key=True),
    sa.Column("value", sa.String(255), nullable=False),
)
