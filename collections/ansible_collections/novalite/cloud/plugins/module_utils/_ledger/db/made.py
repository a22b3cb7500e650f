# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Making a new ledger, and reading which revision one has."""

from __future__ import annotations

import secrets
import time
import uuid

import sqlalchemy as sa

from ..._errors import NovaliteError
from . import tables, tables_identity
from .revisions import FORMER, HEAD, REVISIONS
from .schema import metadata

REVISION_TABLE = "alembic_version"  # Alembic's own
ROLES = ("admin", "manager", "member", "reader")  # Keystone's, of every project
DEFAULT_DOMAIN = {"id": "default", "name": "Default", "name_key": "default", "description": "The default domain"}


def make(connection: sa.Connection) -> None:
    """Make the tables of a new ledger, with the rows that each ledger has, at the newest revision."""
    metadata.create_all(connection)
    connection.execute(sa.insert(tables_identity.domain).values(**DEFAULT_DOMAIN, created_at=int(time.time())))
    connection.execute(sa.insert(tables_identity.role), [{"id": name, "name": name} for name in ROLES])
    connection.execute(sa.insert(tables.secret).values(name="ledger", value=secrets.token_hex(32)))
    connection.execute(sa.insert(tables.ledger_identity).values(id=1, uuid=str(uuid.uuid4())))
    revisions = sa.Table(REVISION_TABLE, sa.MetaData(), sa.Column("version_num", sa.String(32), primary_key=True))
    revisions.create(connection)
    connection.execute(sa.insert(revisions).values(version_num=HEAD))


def revision_of(connection: sa.Connection, shown: str = "here") -> str | None:
    """Return the ledger's revision, None for an empty database. Raises NovaliteError for one that this code does not
    know."""
    if not sa.inspect(connection).has_table(REVISION_TABLE):
        return None
    revision = _recorded_revision(connection)
    if revision is not None:
        check_known(revision, f"the ledger {shown} is at")
    return revision


def check_known(revision: str, subject: str) -> None:
    """Raise NovaliteError, which begins with the `subject`, for a revision that this code does not know."""
    if revision in FORMER or revision in REVISIONS:
        return
    if revision < FORMER[0]:
        raise NovaliteError(
            f"{subject} revision {revision}, from before the first release: open it once with the novalite of revision "
            f"{FORMER[0]} (any playbook), and then with this one"
        )
    raise NovaliteError(
        f"{subject} revision {revision}, which this novalite (up to {HEAD}) does not know: "
        "it was written by a newer one, so upgrade novalite here"
    )


def is_of_this_version(connection: sa.Connection) -> bool:
    """Return whether the ledger is at the newest revision; one that never was opened is an error of the database."""
    return _recorded_revision(connection) == HEAD


def _recorded_revision(connection: sa.Connection) -> str | None:
    return connection.execute(sa.text(f"SELECT version_num FROM {REVISION_TABLE}")).scalar()
