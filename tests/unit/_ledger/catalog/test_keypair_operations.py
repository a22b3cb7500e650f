# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._errors import (
    ConflictError,
    ForbiddenError,
    NotFoundError,
    NovaliteError,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.catalog.keypairs import write_keypairs
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.tables_identity import user
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.catalog import keypairs
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.catalog.keypair_records import keypairs_of
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.ec2 import ec2_attributes
from tests.api.seeds import PUBLIC_KEY
from tests.support.calls import USER, a_call
from tests.support.rows import DEMO, insert
from tests.unit._ledger.conftest import on_sqlite

pytestmark = on_sqlite
BOB = "b" * 32


@pytest.fixture
def users(ledger: sa.Engine) -> sa.Engine:
    with transaction(ledger) as connection:
        for number, name in ((USER, "ann"), (BOB, "bob")):
            insert(connection, user, id=number, name=name, created_at=1)
    return ledger


@pytest.mark.parametrize("name", ["", "a/b", " a", "a ", "{{ a }}", "ключ", "a\n"])
def test_names_are_those_that_nova_takes(users: sa.Engine, name: str) -> None:
    with transaction(users) as connection, pytest.raises(NovaliteError, match="unsafe characters"):
        keypairs.create(a_call(connection), USER, name, PUBLIC_KEY)


def test_a_name_is_a_users_once(users: sa.Engine) -> None:
    with transaction(users) as connection:
        call = a_call(connection)
        assert keypairs.create(call, USER, "mine", PUBLIC_KEY)["user_id"] == USER
        assert keypairs.create(call, BOB, "mine", PUBLIC_KEY)["user_id"] == BOB
        with pytest.raises(ConflictError, match="'mine' already exists"):
            keypairs.create(call, USER, "mine", PUBLIC_KEY)


def test_a_made_pair_keeps_the_fingerprint_that_ec2_shows(users: sa.Engine) -> None:
    with transaction(users) as connection:
        keypairs.create(a_call(connection), USER, "made", PUBLIC_KEY, fingerprint="aa:bb")
        assert ec2_attributes.made_fingerprints(connection, DEMO, USER) == {(USER, "made"): "aa:bb"}


def test_shared_pairs_are_removed_by_managers_and_of_the_callers_name_alone(users: sa.Engine) -> None:
    with transaction(users) as connection:
        write_keypairs(connection, "demo", [{"name": "shared", "public_key": PUBLIC_KEY}])
        member, manager = a_call(connection), a_call(connection, "compute:keypairs:manage")
        with pytest.raises(ForbiddenError, match="shared by all"):
            keypairs.delete(member, USER, "shared")
        with pytest.raises(NotFoundError, match=f"'?shared'? not found for user {BOB}"):
            keypairs.delete(manager, BOB, "shared")
        keypairs.delete(manager, USER, "shared")
        with pytest.raises(NotFoundError):
            keypairs.delete(manager, USER, "shared")
        assert keypairs_of(connection, DEMO, USER) == []
