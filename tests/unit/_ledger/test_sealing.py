# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""EC2's secrets in the ledger: a copy of it does not give them away."""

from __future__ import annotations

import base64
import pathlib

import pytest
import sqlalchemy as sa
from cryptography.fernet import Fernet, InvalidToken

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import open_ledger, transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.sealing import PURPOSE, Seal, seal_of
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.secrets import derived_key
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.tables import secret
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.tables_identity import ec2_credential
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.identity import credentials, users
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries import lookups
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.identity import credential_records
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.tasks.records import project

ROOT, OTHER = b"r" * 32, b"o" * 32


@pytest.fixture
def engine(tmp_path: pathlib.Path) -> sa.Engine:
    return open_ledger(str(tmp_path))


def _owner(connection: sa.Connection) -> tuple[str, str]:
    user = users.insert_user(connection, {"name": "demo", "password_hash": "x", "default_project_id": None})
    project(connection, {"state": "present", "projects": [{"name": "demo", "quotas": None}]})
    return user["id"], lookups.project_by_name(connection, "demo")["id"]


def test_nothing_in_the_ledger_opens_a_secret(engine: sa.Engine) -> None:
    with transaction(engine) as connection:
        seal = seal_of(connection, ROOT)
        made = credentials.create_ec2_credential(connection, seal, *_owner(connection))
        stored = connection.execute(sa.select(ec2_credential.c.secret)).scalar_one()
        rows = [bytes.fromhex(value) for value in connection.execute(sa.select(secret.c.value)).scalars()]
        rows += [derived_key(connection, PURPOSE)]
    assert seal.read(stored) == made["secret"]
    for key in rows:
        with pytest.raises(InvalidToken):
            Fernet(base64.urlsafe_b64encode(key.ljust(32, b"\0")[:32])).decrypt(stored.encode())


def test_secrets_under_the_ledgers_own_key_are_taken_over_once(engine: sa.Engine) -> None:
    with transaction(engine) as connection:
        old = Fernet(base64.urlsafe_b64encode(derived_key(connection, PURPOSE)))
        user_id, project_id = _owner(connection)
        for access, stored in (("a" * 32, old.encrypt(b"of before").decode()), ("b" * 32, "what nothing opens")):
            connection.execute(
                sa.insert(ec2_credential).values(
                    access=access, secret=stored, user_id=user_id, project_id=project_id, created_at=1
                )
            )
        seal = seal_of(connection, ROOT)
        query = sa.select(ec2_credential.c.secret).where(ec2_credential.c.access == "a" * 32)
        assert seal.read(connection.execute(query).scalar_one()) == "of before"
        again = seal_of(connection, ROOT)
        with pytest.raises(NovaliteError, match=r"b{32} cannot be read .* make a new one"):
            credential_records.find_ec2_credential(connection, again, user_id, "b" * 32)
        listed = credential_records.list_ec2_credentials(connection, again, user_id)
        assert [pair["secret"] for pair in listed] == ["of before", None]


def test_a_machine_with_another_key_is_refused(engine: sa.Engine) -> None:
    with transaction(engine) as connection:
        seal_of(connection, ROOT)
    with transaction(engine) as connection, pytest.raises(NovaliteError, match="NOVALITE_CREDENTIALS_SECRET_FILE"):
        seal_of(connection, OTHER)
    assert Seal(ROOT).mark != Seal(OTHER).mark
