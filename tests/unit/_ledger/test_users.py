# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Operation `user`, and the counting of wrong passwords."""

from __future__ import annotations

import typing as t

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NotFoundError, NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.identity import auth_failures, tokens
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.identity.auth_failures import Limit
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.identity import user_records
from ansible_collections.novalite.cloud.plugins.module_utils._rules import attempts, passwords
from tests.unit._ledger.conftest import Run

MEMBER = [{"project": "demo", "role": "member"}]
identity = tables.tables_identity


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hash as cheaply as the library allows: what it costs is not tested here."""
    monkeypatch.setattr(passwords, "METHOD", "scrypt:512:8:1")
    passwords._of_nobody.cache_clear()


def stored(ledger: sa.Engine, name: str = "ann") -> dict[str, t.Any]:
    with transaction(ledger) as connection:
        user = user_records.user_by_name(connection, name)
        assert user is not None
        return user


def test_a_user_is_made_once(run: Run, ledger: sa.Engine) -> None:
    user = {"name": "ann", "password": "secret", "default_project": "demo", "roles": MEMBER}
    preview = run("user", users=[user], check_mode=True)
    assert preview["changed"] and run("user", users=[user], check_mode=True)["changed"]
    made = run("user", users=[user])
    (ann,) = made["users"]
    assert len(ann["id"]) == 32
    assert {**ann, "id": ""} == {
        "id": "",
        "name": "ann",
        "enabled": True,
        "description": "",
        "email": None,
        "default_project": "demo",
        "roles": MEMBER,
    }
    assert preview["diff"] == made["diff"]
    assert "secret" not in repr(made) and stored(ledger)["password_hash"] not in repr(made)
    assert run("user", users=[user]) == {"changed": False, "users": [ann]}
    assert passwords.is_password(stored(ledger)["password_hash"], "secret")


def test_what_is_not_named_stays(run: Run, ledger: sa.Engine) -> None:
    run("user", users=[{"name": "ann", "password": "secret", "email": "a@example.org", "roles": MEMBER}])
    before = stored(ledger)
    changed = run("user", users=[{"name": "ann", "description": "new"}])
    assert changed["diff"]["before"]["users"]["ann"] == {**changed["diff"]["after"]["users"]["ann"], "description": ""}
    assert stored(ledger) == {**before, "description": "new"}
    assert changed["users"][0]["roles"] == MEMBER


def test_a_new_password_makes_tokens_void(run: Run, ledger: sa.Engine) -> None:
    run("user", users=[{"name": "ann", "password": "one"}])
    with transaction(ledger) as connection:
        tokens.issue_token(connection, stored_id := user_records.list_users(connection)[0]["id"], None)
    assert not run("user", users=[{"name": "ann", "password": "two", "update_password": "on_create"}])["changed"]
    changed = run("user", users=[{"name": "ann", "password": "two"}])
    assert changed["diff"]["after"]["users"]["ann"]["password"] == "the new one"
    with transaction(ledger) as connection:
        assert connection.execute(sa.select(identity.token)).all() == []
        assert user_records.find_user(connection, stored_id)["tokens_valid_since"] > 0
    assert passwords.is_password(stored(ledger)["password_hash"], "two")


def test_roles_are_exactly_those_named(run: Run) -> None:
    run("project", projects=[{"name": "ci"}])
    both = [{"project": "ci", "role": "reader"}, {"project": "demo", "role": "member"}]
    assert run("user", users=[{"name": "ann", "roles": both}])["users"][0]["roles"] == both
    fewer = run("user", users=[{"name": "ann", "roles": both[:1]}])
    assert fewer["users"][0]["roles"] == both[:1]
    assert run("user", users=[{"name": "ann", "roles": []}])["users"][0]["roles"] == []
    with pytest.raises(NotFoundError, match="unknown project 'nosuch'"):
        run("user", users=[{"name": "ann", "roles": [{"project": "nosuch", "role": "member"}]}])


def test_a_user_goes_with_all_that_it_has(run: Run, ledger: sa.Engine) -> None:
    run("user", users=[{"name": "ann", "roles": MEMBER}])
    with transaction(ledger) as connection:
        tokens.issue_token(connection, user_records.list_users(connection)[0]["id"], "d" * 32)
    assert run("user", users=[{"name": "ann"}], state="absent", check_mode=True)["changed"]
    assert run("user", users=[{"name": "ann"}, {"name": "bob"}], state="absent")["changed"]
    assert run("user", users=[{"name": "ann"}], state="absent") == {"changed": False, "users": []}
    with transaction(ledger) as connection:
        for table in (identity.user, identity.token, identity.role_assignment):
            assert connection.execute(sa.select(table)).all() == []


@pytest.mark.parametrize(
    ("item", "message"),
    [
        ({"name": ""}, "is empty"),
        ({"name": "a\nb"}, "control character"),
        ({"name": "ann", "password": ""}, "a password has between"),
        ({"name": "ann", "description": "x" * 256}, "255 is the limit"),
    ],
)
def test_what_cannot_be_kept_is_refused(run: Run, item: dict[str, t.Any], message: str) -> None:
    with pytest.raises(NovaliteError, match=message):
        run("user", users=[item])


def test_no_password_is_right_for_nobody() -> None:
    assert not passwords.is_password(None, "")
    hashed = passwords.hash_password("x")
    assert passwords.is_password(hashed, "x") and not passwords.is_password(hashed, "y")
    assert not passwords.is_password(hashed, "x" * 5000)


def test_failures_lock_for_a_time(ledger: sa.Engine) -> None:
    limits = {"user:ann": Limit(3, 60.0), "address:192.0.2.1": Limit(5, 60.0)}

    def fail(*times: float) -> None:
        for now in times:
            with transaction(ledger) as connection:
                auth_failures.count_failure(connection, limits, now)

    def locked(now: float, *subjects: str) -> float:
        with transaction(ledger) as connection:
            return auth_failures.locked_for(connection, subjects, now)

    fail(1000, 1010)
    assert locked(1010, "user:ann") == 0
    fail(1020)
    assert locked(1020, "user:ann") == 60 == locked(1020, *limits)
    assert locked(1020, "address:192.0.2.1") == 0
    assert locked(1081, "user:ann") == 0
    # what was long ago counts no more
    fail(2000, 2010, 2100, 2110)
    assert locked(2110, *limits) == 0
    with transaction(ledger) as connection:
        auth_failures.forget_failures(connection, "user:ann")
    fail(2120, 2121)
    assert locked(2121, "user:ann") == 0
    assert locked(2121, "address:192.0.2.1") == 0
    fail(2122)
    assert locked(2122, "user:ann") > 0 and locked(2122, "address:192.0.2.1") > 0


@pytest.mark.parametrize(
    ("kind", "name", "expected"),
    [
        ("user", "Ann", "user:Ann"),
        ("user", "x" * 250, "user:" + "x" * 250),
        ("address", "192.0.2.1", "address:192.0.2.1"),
        ("address", "::ffff:192.0.2.1", "address:192.0.2.1"),
        ("address", "2001:db8::1:2:3", "address:2001:db8::/64"),
        ("address", "fe80::1%eth0", "address:fe80::/64"),
        ("address", "", "address:unknown"),
    ],
)
def test_subjects(kind: str, name: str, expected: str) -> None:
    assert attempts.subject(kind, name) == expected


def test_long_names_are_told_apart() -> None:
    subjects = {attempts.subject("login", "192.0.2.1 " + "x" * 300 + end) for end in ("a", "b")}
    assert len(subjects) == 2
    assert all(len(subject) <= 255 for subject in subjects)


def test_a_limit_that_grows_slows_and_calms_down(ledger: sa.Engine) -> None:
    limits = {"user:ann": Limit(3, 10.0, grows=True, calm=60.0)}
    now, waits = 1000.0, []
    for _number in range(8):
        with transaction(ledger) as connection:
            assert max(auth_failures.count_failure(connection, limits, now).values()) <= 0
            waits.append(auth_failures.locked_for(connection, limits, now))
        now += waits[-1] + 0.1
    assert waits == [0, 0, 1, 2, 4, 8, 10, 10]
    with transaction(ledger) as connection:
        auth_failures.count_failure(connection, limits, now + 61)
        assert auth_failures.locked_for(connection, limits, now + 61) == 0
