# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Key pairs of two users of a project, and the operator's beside them; those of ledgers from before they had users."""

from __future__ import annotations

import base64
import itertools
import typing as t

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NotFoundError, QuotaError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.catalog.keypairs import write_keypairs
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables, text
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import (
    HEAD,
    move_to_revision,
    reading,
    transaction,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.tables_ec2 import ec2_keypair, ec2_tag
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.identity import users
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.catalog.keypair_records import keypairs_of
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.ec2 import ec2_attributes
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.lookups import keypair_by_name
from api.ec2 import ids
from tests.support.rows import DEMO, add_project

pytestmark = pytest.mark.both_databases

ANN, BOB, GONE, OTHER = "a" * 32, "b" * 32, "9" * 32, "e" * 32
HEADER = b"\0\0\0\x0bssh-ed25519\0\0\0\x20"
KEYS = {
    owner: "ssh-ed25519 " + base64.b64encode(HEADER + letter * 32).decode()
    for owner, letter in (("", b"s"), (ANN, b"a"), (BOB, b"b"))
}


def add_users(connection: sa.Connection) -> None:
    for user, name in ((ANN, "ann"), (BOB, "bob")):
        values = {"id": user, "name": name, "created_at": 1, "default_project_id": DEMO}
        connection.execute(sa.insert(tables.tables_identity.user).values(**values))


def by_listing(connection: sa.Connection, user: str | None) -> str | None:
    return next((row["public_key"] for row in keypairs_of(connection, DEMO, user) if row["name"] == "test"), None)


def by_name(connection: sa.Connection, user: str | None) -> str | None:
    try:
        return str(keypair_by_name(connection, "test", DEMO, user)["public_key"])
    except NotFoundError:
        return None


def by_ec2(connection: sa.Connection, user: str | None) -> str | None:
    return by_name(connection, user) if ec2_attributes.has_keypair(connection, DEMO, user or "", "test") else None


@pytest.mark.parametrize("owners", [c for size in range(4) for c in itertools.combinations(KEYS, size)])
@pytest.mark.parametrize("door", [by_listing, by_name, by_ec2])
def test_ones_own_key_goes_before_the_shared_one_and_others_are_not_seen(
    door: t.Callable[[sa.Connection, str | None], str | None], owners: tuple[str, ...], ledger: sa.Engine
) -> None:
    with transaction(ledger) as connection:
        add_users(connection)
        for owner in owners:
            write_keypairs(connection, "demo", [{"name": "test", "public_key": KEYS[owner]}], owner)
        for user in (ANN, BOB, None):
            whose = user if user in owners else ""
            assert door(connection, user) == (KEYS[whose] if whose in owners else None)


def test_the_keys_of_a_user_are_counted_by_themselves_and_go_with_the_user(ledger: sa.Engine) -> None:
    with transaction(ledger) as connection:
        add_users(connection)
        connection.execute(sa.insert(tables.quota).values(project_id=DEMO, resource="key_pairs", hard_limit=1))
        for owner in KEYS:
            write_keypairs(connection, "demo", [{"name": "test", "public_key": KEYS[owner]}], owner)
            with pytest.raises(QuotaError), connection.begin_nested():
                write_keypairs(connection, "demo", [{"name": "second", "public_key": KEYS[owner]}], owner)
        users.delete_user(connection, ANN)
        left = connection.execute(sa.select(tables.keypair.c.user_id).order_by(tables.keypair.c.user_id)).scalars()
        assert list(left) == ["", BOB]


def old_rows() -> list[dict[str, t.Any]]:
    """As revision 0038 has them: (project, user, name)."""
    places = [(DEMO, "", "shared"), (DEMO, ANN, "ann"), (DEMO, GONE, "left"), (DEMO, BOB, "two"), (OTHER, BOB, "two")]
    return [
        {"project_id": project, "user_id": user, "name": name, "type": "ssh", "public_key": KEYS[""]}
        | {"fingerprint": "f", "created_at": created_at}
        for created_at, (project, user, name) in enumerate(places)
    ]


@pytest.mark.parametrize("way", ["migration", "text"])
def test_keys_of_projects_become_those_of_their_users(ledger: sa.Engine, way: str) -> None:
    with transaction(ledger) as connection:
        add_project(connection, "other", OTHER)
        add_users(connection)
    with transaction(ledger) as connection:
        move_to_revision(connection, "0038")
    with transaction(ledger) as connection:
        connection.execute(sa.insert(sa.table("keypair", *map(sa.column, old_rows()[0]))), old_rows())
        insert = "INSERT INTO ec2_keypair (project_id, name, fingerprint) VALUES (:project, 'ann', 'sha')"
        connection.execute(sa.text(insert), {"project": DEMO})
        tag = {"project_id": DEMO, "resource": ids.named("key", DEMO, "ann"), "key": "k", "value": "v"}
        connection.execute(sa.insert(ec2_tag).values(**tag))
    with transaction(ledger) as connection:
        if way == "text":
            text.renew(connection)
        else:
            move_to_revision(connection, HEAD)
    with reading(ledger) as connection:
        columns = (tables.keypair.c.user_id, tables.keypair.c.project_id, tables.keypair.c.name)
        assert {tuple(row) for row in connection.execute(sa.select(*columns))} == {
            ("", DEMO, "shared"),
            (ANN, "", "ann"),
            ("", DEMO, "left"),
            (BOB, "", "two"),
            ("", OTHER, "two"),
        }
        assert connection.execute(sa.select(ec2_keypair)).all() == [(ANN, "", "ann", "sha")]
        assert connection.execute(sa.select(ec2_tag.c.resource)).scalar() == ids.named("key", ANN, "ann")
    with transaction(ledger) as connection:
        move_to_revision(connection, "0038")
    with reading(ledger) as connection:
        went_back = connection.execute(sa.text("SELECT project_id, user_id, name FROM keypair")).all()
        assert {tuple(row) for row in went_back} == {
            (
                row["project_id"],
                row["user_id"] if row["name"] in ("ann", "two") and row["project_id"] == DEMO else "",
                row["name"],
            )
            for row in old_rows()
        }
