# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The tables of who may ask: users, their roles, tokens and credentials. Ids are 32 hex digits, as in Keystone.

Passwords and secrets are kept as hashes; what must be given back (EC2's secrets, credentials) is encrypted.
"""

from __future__ import annotations

import sqlalchemy as sa

from .schema import numbered, partial_index, table

DEFAULT_DOMAIN = "default"

domain = table(
    "domain",
    sa.Column("id", sa.String(32), primary_key=True),  # "default", or 32 hex digits
    sa.Column("name", sa.String(64), nullable=False),
    sa.Column("name_key", sa.String(128), nullable=False, unique=True),  # in lower case: names are compared so
    sa.Column("description", sa.String(255), nullable=False, server_default=""),
    sa.Column("enabled", sa.Boolean, nullable=False, server_default=sa.true()),
    sa.Column("created_at", sa.BigInteger, nullable=False),
)

user = table(
    "user",
    sa.Column("id", sa.String(32), primary_key=True),
    sa.Column("name", sa.String(255), nullable=False, unique=True),  # the playbooks' handle
    sa.Column("domain_id", sa.String(32), nullable=False, server_default=DEFAULT_DOMAIN),
    sa.Column("display_name", sa.String(255)),  # what Identity shows in other domains than the default; null: the name
    sa.Column("password_hash", sa.Text),  # null: no password is right
    sa.Column("enabled", sa.Boolean, nullable=False, server_default=sa.true()),
    sa.Column("default_project_id", sa.ForeignKey("project.id", ondelete="SET NULL")),
    sa.Column("description", sa.String(255), nullable=False, server_default=""),
    sa.Column("email", sa.String(255)),
    sa.Column("created_at", sa.BigInteger, nullable=False),
    # tokens that were issued earlier count no more: a new password, a user that was disabled
    sa.Column("tokens_valid_since", sa.Float, nullable=False, server_default="0"),
    sa.Column("extra", sa.JSON, nullable=False, server_default="{}"),  # attributes of the clients' own
    sa.Column("options", sa.JSON, nullable=False, server_default="{}"),  # Keystone's: lock_password, ...
)
sa.Index("uq_user_domain_id", user.c.domain_id, user.c.display_name, unique=True)

user_group = table(
    "user_group",
    sa.Column("id", sa.String(32), primary_key=True),
    sa.Column("domain_id", sa.ForeignKey("domain.id"), nullable=False),
    sa.Column("name", sa.String(64), nullable=False),
    sa.Column("description", sa.String(255), nullable=False, server_default=""),
    sa.Column("extra", sa.JSON, nullable=False, server_default="{}"),
    sa.UniqueConstraint("domain_id", "name"),
)

user_group_member = table(
    "user_group_member",
    sa.Column("group_id", sa.ForeignKey("user_group.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("user_id", sa.ForeignKey("user.id", ondelete="CASCADE"), primary_key=True, index=True),
)

role = table(  # admin, manager, member and reader have their names as ids, and rights; the others give none
    "role",
    sa.Column("id", sa.String(32), primary_key=True),
    sa.Column("name", sa.String(255), nullable=False),
    sa.Column("domain_id", sa.ForeignKey("domain.id", ondelete="CASCADE")),  # null: for all domains
    sa.Column("description", sa.String(255), nullable=False, server_default=""),
    sa.UniqueConstraint("domain_id", "name"),
)
partial_index("uq_role_name", sa.text("domain_id IS NULL"), role.c.name, unique=True)

role_assignment = numbered(  # of a user or a group, in a project or a domain
    "role_assignment",
    sa.Column("user_id", sa.ForeignKey("user.id", ondelete="CASCADE")),
    sa.Column("group_id", sa.ForeignKey("user_group.id", ondelete="CASCADE")),
    sa.Column("project_id", sa.ForeignKey("project.id", ondelete="CASCADE")),
    sa.Column("domain_id", sa.ForeignKey("domain.id", ondelete="CASCADE")),
    sa.Column("role", sa.ForeignKey("role.id", ondelete="CASCADE"), nullable=False),
    # it holds in the projects below the project, or in those of the domain, and not there itself
    sa.Column("inherited", sa.Boolean, nullable=False, server_default=sa.false()),
    sa.CheckConstraint("(user_id IS NULL) <> (group_id IS NULL)", name="actor"),
    sa.CheckConstraint("(project_id IS NULL) <> (domain_id IS NULL)", name="target"),
)
for _actor in ("user", "group"):
    for _target in ("project", "domain"):
        _columns = (role_assignment.c[f"{name}_id"] for name in (_actor, _target))
        _name = f"uq_role_assignment_{_actor}_{_target}"
        sa.Index(_name, *_columns, role_assignment.c.role, role_assignment.c.inherited, unique=True)

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
    sa.Column("expires_at", sa.Float),
    sa.Column("created_at", sa.BigInteger, nullable=False),
    # all that its tokens may do, as a list of {"id", "service", "method", "path"}; null: whatever its roles allow
    sa.Column("access_rules", sa.JSON(none_as_null=True)),
    sa.UniqueConstraint("user_id", "name"),
)

access_rule = table(  # a user's, for application credentials to come, which keep copies
    "access_rule",
    sa.Column("id", sa.String(32), primary_key=True),
    sa.Column("user_id", sa.ForeignKey("user.id", ondelete="CASCADE"), nullable=False),
    sa.Column("service", sa.String(64), nullable=False),
    sa.Column("method", sa.String(8), nullable=False),
    sa.Column("path", sa.String(255), nullable=False),
    sa.UniqueConstraint("user_id", "service", "method", "path"),
)

trust = table(
    "trust",
    sa.Column("id", sa.String(32), primary_key=True),
    sa.Column("trustor_user_id", sa.ForeignKey("user.id", ondelete="CASCADE"), nullable=False, index=True),
    sa.Column("trustee_user_id", sa.ForeignKey("user.id", ondelete="CASCADE"), nullable=False, index=True),
    sa.Column("project_id", sa.ForeignKey("project.id", ondelete="CASCADE"), nullable=False),
    sa.Column("impersonation", sa.Boolean, nullable=False),
    sa.Column("roles", sa.JSON, nullable=False),  # list of ids; counts as far as the trustor still has them
    sa.Column("expires_at", sa.Float),
    sa.Column("remaining_uses", sa.Integer),
    sa.Column("created_at", sa.BigInteger, nullable=False),
    sa.CheckConstraint("remaining_uses >= 0", name="remaining_uses"),
)

token = table(
    "token",
    sa.Column("hash", sa.String(64), primary_key=True),  # SHA-256 of the token, in hex: who reads the ledger has none
    sa.Column("user_id", sa.ForeignKey("user.id", ondelete="CASCADE"), nullable=False, index=True),
    sa.Column("project_id", sa.ForeignKey("project.id", ondelete="CASCADE")),  # null: unscoped, or of a domain
    sa.Column("domain_id", sa.ForeignKey("domain.id", ondelete="CASCADE")),
    sa.Column("method", sa.String(32), nullable=False),  # password | application_credential | token
    sa.Column("application_credential_id", sa.ForeignKey("application_credential.id", ondelete="CASCADE")),
    sa.Column("trust_id", sa.ForeignKey("trust.id", ondelete="CASCADE")),
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
    sa.Column("credential_id", sa.String(64), unique=True),  # in /v3/credentials
    sa.Column("blob", sa.Text),  # as it was sent there, encrypted
)

credential = table(  # whatever clients keep in /v3/credentials, but EC2's pairs
    "credential",
    sa.Column("id", sa.String(32), primary_key=True),
    sa.Column("type", sa.String(255), nullable=False),
    sa.Column("user_id", sa.ForeignKey("user.id", ondelete="CASCADE"), nullable=False, index=True),
    sa.Column("project_id", sa.ForeignKey("project.id", ondelete="CASCADE")),
    sa.Column("blob", sa.Text, nullable=False),  # encrypted
    sa.Column("created_at", sa.BigInteger, nullable=False),
)

project_tag = table(
    "project_tag",
    sa.Column("project_id", sa.ForeignKey("project.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("tag", sa.String(255), primary_key=True),
)

console_token = table(  # a way to a guest's console, for once
    "console_token",
    sa.Column("hash", sa.String(64), primary_key=True),  # SHA-256, in hex
    # the token that it was asked for with, which it ends with
    sa.Column("token_hash", sa.ForeignKey("token.hash", ondelete="CASCADE"), nullable=False, index=True),
    sa.Column("instance_uuid", sa.String(36), nullable=False),
    sa.Column("type", sa.String(16), nullable=False),  # novnc or serial
    sa.Column("expires_at", sa.Float, nullable=False, index=True),
)

auth_failure = table(  # guesses, counted for all processes together
    "auth_failure",
    sa.Column("subject", sa.String(255), primary_key=True),  # user:<name in lower case>, address:<IP>, ec2:<access>
    sa.Column("failures", sa.Integer, nullable=False),
    sa.Column("first_at", sa.Float, nullable=False),
    sa.Column("locked_until", sa.Float, nullable=False, server_default="0"),
)
