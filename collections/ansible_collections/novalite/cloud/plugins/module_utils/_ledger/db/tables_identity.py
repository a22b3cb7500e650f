# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The tables of who may ask: users, their roles, tokens and credentials. Ids are 32 hex digits, as in Keystone.

Passwords and secrets are kept as hashes; an EC2 secret, which a signature is checked with, is encrypted.
"""

from __future__ import annotations

import sqlalchemy as sa

from .schema import table

user = table(
    "user",
    sa.Column("id", sa.String(32), primary_key=True),
    sa.Column("name", sa.String(255), nullable=False, unique=True),
    sa.Column("password_hash", sa.Text),  # null: no password is right
    sa.Column("enabled", sa.Boolean, nullable=False, server_default=sa.true()),
    sa.Column("default_project_id", sa.ForeignKey("project.id", ondelete="SET NULL")),
    sa.Column("description", sa.String(255), nullable=False, server_default=""),
    sa.Column("email", sa.String(255)),
    sa.Column("created_at", sa.BigInteger, nullable=False),
    # tokens that were issued earlier count no more: a new password, a user that was disabled
    sa.Column("tokens_valid_since", sa.Float, nullable=False, server_default="0"),
)

role_assignment = table(
    "role_assignment",
    sa.Column("user_id", sa.ForeignKey("user.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("project_id", sa.ForeignKey("project.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("role", sa.String(16), primary_key=True),
    sa.CheckConstraint("role IN ('admin', 'manager', 'member', 'reader')", name="role"),
)

application_credential = table(
    "application_credential",
    sa.Column("id", sa.String(32), primary_key=True),
    sa.Column("user_id", sa.ForeignKey("user.id", ondelete="CASCADE"), nullable=False),
    sa.Column("project_id", sa.ForeignKey("project.id", ondelete="CASCADE"), nullable=False),
    sa.Column("name", sa.String(255), nullable=False),
    sa.Column("secret_hash", sa.Text, nullable=False),
    sa.Column("description", sa.String(255), nullable=False, server_default=""),
    sa.Column("roles", sa.JSON, nullable=False),  # list of names; counts as far as the user still has them
    sa.Column("unrestricted", sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Column("expires_at", sa.BigInteger),
    sa.Column("created_at", sa.BigInteger, nullable=False),
    sa.UniqueConstraint("user_id", "name"),
)

token = table(
    "token",
    sa.Column("hash", sa.String(64), primary_key=True),  # SHA-256 of the token, in hex: who reads the ledger has none
    sa.Column("user_id", sa.ForeignKey("user.id", ondelete="CASCADE"), nullable=False, index=True),
    sa.Column("project_id", sa.ForeignKey("project.id", ondelete="CASCADE")),  # null: unscoped
    sa.Column("method", sa.String(32), nullable=False),  # password | application_credential | token
    sa.Column("application_credential_id", sa.ForeignKey("application_credential.id", ondelete="CASCADE")),
    sa.Column("audit_id", sa.String(32), nullable=False),
    sa.Column("issued_at", sa.Float, nullable=False),
    sa.Column("expires_at", sa.Float, nullable=False, index=True),
)

ec2_credential = table(
    "ec2_credential",
    sa.Column("access", sa.String(32), primary_key=True),
    sa.Column("secret", sa.Text, nullable=False),  # encrypted with a key derived from the ledger's secret
    sa.Column("user_id", sa.ForeignKey("user.id", ondelete="CASCADE"), nullable=False, index=True),
    sa.Column("project_id", sa.ForeignKey("project.id", ondelete="CASCADE"), nullable=False),
    sa.Column("created_at", sa.BigInteger, nullable=False),
)

auth_failure = table(  # guesses, counted for all processes together
    "auth_failure",
    sa.Column("subject", sa.String(255), primary_key=True),  # user:<name in lower case>, address:<IP>, ec2:<access>
    sa.Column("failures", sa.Integer, nullable=False),
    sa.Column("first_at", sa.Float, nullable=False),
    sa.Column("locked_until", sa.Float, nullable=False, server_default="0"),
)
