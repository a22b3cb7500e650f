# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Guesses at passwords of users whose names are alike: each has failures, and addresses where it is known, of its own;
and no count tells who is there."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.identity import domains, users
from ansible_collections.novalite.cloud.plugins.module_utils._rules.passwords import hash_password
from tests.api.identity.test_identity_tokens import ask
from tests.api.seeds import Api, password

MINE = "the guesser's own"
ADDRESS = "198.51.100.9"
Json = dict[str, t.Any]


def add(api: Api, name: str, domain_id: str = "default") -> str:
    with transaction(api.engine) as connection:
        values = {"name": name, "password_hash": hash_password(MINE), "default_project_id": None}
        return str(users.insert_user(connection, values, domain_id)["id"])


def add_domain(api: Api, name: str) -> str:
    with transaction(api.engine) as connection:
        return str(domains.create_domain(connection, {"name": name})["id"])


def login(api: Api, text: str, **user: t.Any) -> int:
    identity = {"methods": ["password"], "password": {"user": {**user, "password": text}}}
    return ask(api, {"auth": {"identity": identity}}, address=ADDRESS).status_code


@pytest.mark.parametrize("like", ["case", "domain"])
def test_a_login_of_one_forgives_no_guesses_at_another(api: Api, like: str) -> None:
    victim: Json = {"name": "demo", "domain": {"id": "default"}}
    guesser = {**victim, "name": "DEMO"}
    if like == "domain":
        guesser = {"name": "demo", "domain": {"id": add_domain(api, "corp")}}
    add(api, guesser["name"], guesser["domain"]["id"])
    answers = []
    for number in range(8):
        assert login(api, MINE, **guesser) == 201
        answers.append(login(api, f"wrong {number}", **victim))
    assert answers == [401] * 5 + [429] * 3
    assert login(api, password("demo"), **victim) == 429
    assert login(api, MINE, **guesser) == 201


def test_a_user_who_is_made_again_is_known_nowhere(api: Api) -> None:
    eve: Json = {"name": "eve", "domain": {"id": "default"}}
    first = add(api, "eve")
    assert login(api, MINE, **eve) == 201
    with transaction(api.engine) as connection:
        users.delete_user(connection, first)
    add(api, "eve")
    assert [login(api, "wrong", **eve) for _number in range(6)] == [401] * 5 + [429]
    assert login(api, MINE, **eve) == 429  # a lock, as where it is not known


@pytest.mark.parametrize("there", [(), (0,), (1,), (2,), (0, 1, 2)], ids=lambda there: "-".join(map(str, there)))
def test_a_count_does_not_tell_who_is_there(api: Api, there: tuple[int, ...]) -> None:
    """Neither the case of a name nor the words for a domain make one of two users, or two of one."""
    corp = add_domain(api, "corp")
    people = [("eve", "default"), ("EVE", "default"), ("eve", corp)]
    for number in there:
        add(api, *people[number])
    assert [login(api, "x", name="eve") for _number in range(6)] == [401] * 5 + [429]
    for domain in ({"id": "default"}, {"name": "Default"}, {"name": "DEFAULT"}):
        assert login(api, "x", name="eve", domain=domain) == 429
    assert [login(api, "x", name="EVE") for _number in range(6)] == [401] * 5 + [429]
    assert [login(api, "x", name="eve", domain={"name": "corp"}) for _number in range(6)] == [401] * 5 + [429]
    assert (
        login(api, "x", name="eve", domain={"id": corp}) == login(api, "x", name="eve", domain={"name": "CORP"}) == 429
    )


@pytest.mark.parametrize("there", [False, True])
def test_a_count_does_not_tell_which_application_credentials_are_there(api: Api, there: bool) -> None:
    if there:
        body = {"application_credential": {"name": "robot"}}
        path = f"/identity/v3/users/{api.users['demo']}/application_credentials"
        assert api.client_as("demo").post(path, json=body).status_code == 201

    def attempt(user: Json) -> int:
        fields = {"name": "robot", "secret": "wrong secret", "user": user}
        identity = {"methods": ["application_credential"], "application_credential": fields}
        return ask(api, {"auth": {"identity": identity}}, address=ADDRESS).status_code

    by_name: Json = {"name": "demo", "domain": {"name": "Default"}}
    assert [attempt(by_name) for _number in range(6)] == [401] * 5 + [429]
    assert attempt({"id": api.users["demo"]}) == 429
