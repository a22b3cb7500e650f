# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tokens: what gives one, what it says, and what takes it away."""

from __future__ import annotations

import concurrent.futures
import dataclasses
import json
import threading
import time
import typing as t

import pytest
import sqlalchemy as sa
from werkzeug.test import TestResponse

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.identity import users
from tests.api.seeds import Api, password
from tests.support.clocks import standing_at

TOKENS = "/identity/v3/auth/tokens"
token_table = tables.tables_identity.token
failures = tables.tables_identity.auth_failure

Json = dict[str, t.Any]


def by_password(name: str, secret: str | None = None, **scope: t.Any) -> Json:
    """The body of a request for a token; `scope` is {} for none."""
    user = {"name": name, "domain": {"name": "Default"}, "password": password(name) if secret is None else secret}
    auth: Json = {"identity": {"methods": ["password"], "password": {"user": user}}}
    if scope:
        auth["scope"] = scope
    return {"auth": auth}


def in_project(name: str) -> Json:
    return {"project": {"name": name, "domain": {"id": "default"}}}


def ask(api: Api, body: t.Any, address: str = "192.0.2.1", **more: t.Any) -> TestResponse:
    return api.app.test_client().post(TOKENS, json=body, environ_base={"REMOTE_ADDR": address}, **more)


def test_a_password_gives_a_token_for_a_project(api: Api) -> None:
    answer = ask(api, by_password("demo", **in_project("demo")))
    assert answer.status_code == 201
    text = answer.headers["X-Subject-Token"]
    token = answer.get_json()["token"]
    assert token["methods"] == ["password"]
    assert token["user"]["name"] == "demo" and token["user"]["domain"] == {"id": "default", "name": "Default"}
    assert token["project"]["id"] == api.projects["demo"] and token["project"]["name"] == "demo"
    assert [role["name"] for role in token["roles"]] == ["member", "reader"]
    assert len(token["audit_ids"]) == 1 and token["issued_at"] < token["expires_at"]
    urls = {
        (service["type"], endpoint["interface"]): endpoint["url"]
        for service in token["catalog"]
        for endpoint in service["endpoints"]
    }
    assert urls["identity", "public"] == "http://localhost/identity/v3"
    assert urls["volumev3", "internal"] == f"http://localhost/volume/v3/{api.projects['demo']}"
    assert {kind for kind, _ in urls} >= {"compute", "image", "network", "block-storage", "ec2"}
    assert {interface for _, interface in urls} == {"public", "internal", "admin"}
    with api.engine.connect() as connection:  # nowhere in the ledger
        for row in connection.execute(sa.select(token_table)):
            assert text not in repr(row)


def test_scopes(api: Api) -> None:
    bare = ask(api, {"auth": {**by_password("demo")["auth"], "scope": "unscoped"}}).get_json()["token"]
    assert "catalog" not in bare and "project" not in bare and "roles" not in bare
    default = ask(api, by_password("demo")).get_json()["token"]
    assert default["project"]["name"] == "demo"
    by_id = ask(api, by_password("demo", project={"id": api.projects["demo"]})).get_json()["token"]
    assert by_id["project"] == default["project"]
    assert ask(api, by_password("demo", **in_project("alt"))).status_code == 401
    for scope in ({"domain": {"id": "default"}}, {"system": {"all": True}}, {}):
        assert ask(api, {"auth": {**by_password("demo")["auth"], "scope": scope}}).status_code == 401
    with transaction(api.engine) as connection:
        users.revoke_role(connection, api.users["demo"], api.projects["demo"], "member")
    assert "project" not in ask(api, by_password("demo")).get_json()["token"]


@pytest.mark.parametrize("domain", ["Default", "default", "DEFAULT"])
def test_names_of_domains_are_compared_as_keystone_compares_them(api: Api, domain: str) -> None:
    """Whatever the case: `default` is what many clients are configured with."""
    body = by_password("demo", project={"name": "demo", "domain": {"name": domain}})
    body["auth"]["identity"]["password"]["user"]["domain"]["name"] = domain
    token = ask(api, body).get_json()["token"]
    assert token["project"]["domain"] == token["user"]["domain"] == {"id": "default", "name": "Default"}
    listed = api.client_as("admin").get(f"/identity/v3/domains?name={domain}").get_json()["domains"]
    assert [row["id"] for row in listed] == ["default"]


def test_a_refusal_does_not_tell_what_was_wrong(api: Api) -> None:
    with transaction(api.engine) as connection:
        users.update_user(connection, api.users["reader"], {"enabled": False})
    wrong = {
        "password": by_password("demo", "wrong", **in_project("demo")),
        "user": by_password("nobody", "x", **in_project("demo")),
        "disabled": by_password("reader", **in_project("demo")),
        "project": by_password("demo", **in_project("nosuch")),
        "foreign": by_password("demo", **in_project("alt")),
        "method": {"auth": {"identity": {"methods": ["totp"], "totp": {}}}},
        "domain": {
            "auth": {
                "identity": {
                    "methods": ["password"],
                    "password": {"user": {"name": "demo", "domain": {"id": "x"}, "password": password("demo")}},
                }
            }
        },
    }
    bodies = set()
    for body in wrong.values():
        answer = ask(api, body)
        assert answer.status_code == 401
        assert answer.headers["WWW-Authenticate"].startswith("Keystone uri=")
        bodies.add(answer.get_data())
    assert len(bodies) == 1


def delay(api: Api, subject: str) -> float:
    """Seconds for which the last failure locked a subject."""
    with api.engine.connect() as connection:
        row = connection.execute(sa.select(failures).where(failures.c.subject == subject)).one()
    return float(row.locked_until - row.first_at)


OWNER, GUESSER, ELSEWHERE = "203.0.113.1", "198.51.100.9", "203.0.113.77"


def test_five_wrong_passwords_lock_the_guesser_and_not_the_owner(api: Api) -> None:
    """An account lock is a weapon: the administrator's is the first that somebody would aim at."""
    assert ask(api, by_password("admin"), address=OWNER).status_code == 201
    for _number in range(5):
        assert ask(api, by_password("admin", "wrong"), address=GUESSER).status_code == 401
    for text in ("wrong", None):  # the right one as well
        refused = ask(api, by_password("admin", text), address=GUESSER)
        assert refused.status_code == 429
        assert 800 < int(refused.headers["Retry-After"]) <= 900
    assert ask(api, by_password("admin"), address=OWNER).status_code == 201
    assert delay(api, f"user:{api.users['admin']}") == 1  # slowed, and not locked
    time.sleep(1)
    assert ask(api, by_password("admin"), address=ELSEWHERE).status_code == 201
    assert ask(api, by_password("alt"), address=GUESSER).status_code == 201
    with transaction(api.engine) as connection:  # a quarter of an hour later
        connection.execute(sa.update(failures).values(locked_until=time.time() - 1, first_at=0))
    assert ask(api, by_password("admin"), address=GUESSER).status_code == 201


def test_guesses_from_many_addresses_get_slower_and_slower(api: Api) -> None:
    assert ask(api, by_password("demo"), address=OWNER).status_code == 201
    waits, demo = [], f"user:{api.users['demo']}"
    for number in range(12):
        assert ask(api, by_password("demo", "wrong"), address=f"192.0.2.{number}").status_code == 401
        waits.append(delay(api, demo) if number >= 4 else 0)
        with transaction(api.engine) as connection:  # that much later
            connection.execute(sa.update(failures).where(failures.c.subject == demo).values(locked_until=0))
        assert ask(api, by_password("demo"), address=OWNER).status_code == 201
    assert waits == [0, 0, 0, 0, 1, 2, 4, 8, 16, 32, 60, 60]


def test_where_a_user_is_known_guesses_only_slow_it_down(api: Api) -> None:
    """Behind a proxy or a router that nobody trusts all are one address."""
    everybody = OWNER
    api.app.extensions["settings"] = dataclasses.replace(api.app.extensions["settings"], auth_failures_address=3)
    assert ask(api, by_password("demo"), address=everybody).status_code == 201
    for number in range(3):
        assert ask(api, by_password(f"nobody{number}", "x"), address=everybody).status_code == 401
    assert ask(api, by_password("alt"), address=everybody).status_code == 429
    for _number in range(5):
        assert ask(api, by_password("demo", "wrong"), address=everybody).status_code == 401
    assert delay(api, f"login:address:{everybody} user:{api.users['demo']}") == 1
    time.sleep(1)
    assert ask(api, by_password("demo"), address=everybody).status_code == 201
    with transaction(api.engine) as connection:  # known for a month, and no longer
        connection.execute(sa.delete(failures).where(failures.c.subject.startswith("good:")))
    assert ask(api, by_password("demo"), address=everybody).status_code == 429


@pytest.mark.parametrize("known", [False, True])
def test_guesses_that_come_at_once_are_counted_before_they_are_answered(api: Api, known: bool) -> None:
    """Also where the user is known."""
    if known:
        assert ask(api, by_password("demo"), address=GUESSER).status_code == 201
    began = time.time()  # at once: on a busy machine a lock of a second would end before the last answer
    gate = threading.Barrier(12)

    def guess(number: int) -> int:
        gate.wait()
        text = "wrong" if number else None  # one of them is right
        return ask(api, by_password("demo", text), address=GUESSER).status_code

    with standing_at(lambda: began), concurrent.futures.ThreadPoolExecutor(12) as pool:
        answers = sorted(pool.map(guess, range(12)))
    assert answers.count(401) <= 5 + 5 * answers.count(201)  # the right one begins the count anew
    assert answers.count(429) >= 1


def test_a_new_password_wants_the_old_one_and_counts_as_well(api: Api) -> None:
    client, path = api.client_as("demo"), f"/identity/v3/users/{api.users['demo']}/password"
    for status in [401] * 5 + [429]:
        asked = {"user": {"original_password": "wrong", "password": "new"}}
        assert client.post(path, json=asked).status_code == status
    right = {"user": {"original_password": password("demo"), "password": "new"}}
    assert client.post(path, json=right).status_code == 429


def test_names_of_nobody_are_locked_as_well(api: Api) -> None:
    answers = [ask(api, by_password("nobody", "x"), address="192.0.2.1").status_code for _number in range(6)]
    assert answers == [401] * 5 + [429]
    slowed = [ask(api, by_password("other", "x"), address=f"192.0.2.{number}").status_code for number in range(6)]
    assert slowed == [401] * 5 + [429]


def test_the_right_password_begins_the_count_anew(api: Api) -> None:
    for _ in range(2):
        for number in range(4):
            assert ask(api, by_password("demo", "wrong"), address=f"192.0.2.{number}").status_code == 401
        assert ask(api, by_password("demo")).status_code == 201


def test_an_address_that_guesses_over_many_users_is_locked(api: Api) -> None:
    api.app.extensions["settings"] = api.app.extensions["settings"].__class__(auth_failures_address=3)
    for number in range(3):
        assert ask(api, by_password(f"nobody{number}", "x"), address="2001:db8::1").status_code == 401
    assert ask(api, by_password("demo"), address="2001:db8::ffff").status_code == 429  # of the same /64
    assert ask(api, by_password("demo"), address="2001:db8:0:1::1").status_code == 201


def test_a_token_is_shown_to_its_user_and_to_admins(api: Api) -> None:
    text = api.token("demo")
    for name, status in (("demo", 200), ("reader", 404), ("alt", 404), ("admin", 200)):
        client = api.client_as(name)
        for method in (client.get, client.head):
            assert method(TOKENS, headers={"X-Subject-Token": text}).status_code == status
    answer = api.client_as("demo").get(f"{TOKENS}?nocatalog", headers={"X-Subject-Token": text})
    assert "catalog" not in answer.get_json()["token"] and answer.headers["X-Subject-Token"] == text
    for wrong in ("", "nosuch", "x" * 300):
        assert api.client_as("admin").get(TOKENS, headers={"X-Subject-Token": wrong}).status_code == 404


def test_a_revoked_token_is_refused(api: Api) -> None:
    client = api.client_as("demo")
    mine = {"X-Subject-Token": client.environ_base["HTTP_X_AUTH_TOKEN"]}
    assert api.client_as("alt").delete(TOKENS, headers=mine).status_code == 404
    assert client.get("/identity/v3/auth/catalog").status_code == 200
    assert client.delete(TOKENS, headers=mine).status_code == 204
    assert client.get("/identity/v3/auth/catalog").status_code == 401


def test_a_token_ends_with_what_it_rests_on(api: Api) -> None:
    """With its time, a new password, the user, the role, the project."""
    path = "/identity/v3/auth/catalog"
    project, user = tables.project, tables.tables_identity.user

    def after(change: t.Callable[[sa.Connection], t.Any]) -> int:
        client = api.client_as("demo")
        assert client.get(path).status_code == 200
        with api.engine.connect() as connection:
            unit = connection.begin()
            change(connection)
            unit.commit()
        return client.get(path).status_code

    mine = api.users["demo"]
    assert after(lambda c: c.execute(sa.update(token_table).values(expires_at=time.time()))) == 401
    assert after(lambda c: users.update_user(c, mine, {"password_hash": "another"})) == 401
    assert after(lambda c: users.update_user(c, mine, {"enabled": False})) == 401
    with transaction(api.engine) as connection:
        users.update_user(connection, mine, {"enabled": True})
    assert after(lambda c: users.revoke_role(c, mine, api.projects["demo"], "member")) == 401
    with transaction(api.engine) as connection:
        users.grant_role(connection, mine, api.projects["demo"], "member")
    assert after(lambda c: c.execute(sa.update(project).values(enabled=False))) == 401
    api.write(sa.update(project).values(enabled=True))
    assert after(lambda c: c.execute(sa.delete(user).where(user.c.id == mine))) == 401


def test_a_role_that_changes_counts_at_once(api: Api) -> None:
    client = api.client_as("demo")
    assert client.get("/identity/v3/users").status_code == 403
    with transaction(api.engine) as connection:
        users.grant_role(connection, api.users["demo"], api.projects["demo"], "admin")
    assert client.get("/identity/v3/users").status_code == 200
    with transaction(api.engine) as connection:
        users.revoke_role(connection, api.users["demo"], api.projects["demo"], "admin")
    assert client.get("/identity/v3/users").status_code == 403


def test_rescoping_keeps_the_end(api: Api) -> None:
    with transaction(api.engine) as connection:
        users.grant_role(connection, api.users["demo"], api.projects["alt"], "reader")
    first = ask(api, by_password("demo", **in_project("demo")))
    identity = {"methods": ["token"], "token": {"id": first.headers["X-Subject-Token"]}}
    answer = ask(api, {"auth": {"identity": identity, "scope": in_project("alt")}})
    token = answer.get_json()["token"]
    assert answer.status_code == 201 and token["project"]["name"] == "alt"
    assert token["methods"] == ["password", "token"]
    assert token["expires_at"] == first.get_json()["token"]["expires_at"]
    assert [role["name"] for role in token["roles"]] == ["reader"]
    void = {"methods": ["token"], "token": {"id": "nosuch"}}
    assert ask(api, {"auth": {"identity": void}}).status_code == 404


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"null",
        b"{",
        b'{"auth": 1}',
        b'{"auth": {}}',
        b'{"auth": {"identity": {"methods": []}}}',
        b'{"auth": {"identity": {"methods": ["password"], "password": {"user": {"name": "\\u0000", "password": ""}}}}}',
        b'{"auth": {"identity": {"methods": ["password"], "password": {"user": {"name": "\\ud800", "password": ""}}}}}',
        b'{"auth": {"identity": {"methods": [1], "password": {"user": {"name": {}, "password": ""}}}}}',
        b"[" * 100000,
        json.dumps({"auth": {"identity": {"methods": ["token"], "token": {"id": "x" * 9999}}}}).encode(),
    ],
)
def test_a_malformed_request_is_a_bad_one(api: Api, body: bytes) -> None:
    answer = api.app.test_client().post(TOKENS, data=body)
    assert answer.status_code == 400
    assert answer.get_json()["error"]["code"] == 400


def test_the_catalog_says_the_public_url(api: Api) -> None:
    api.app.extensions["settings"] = api.app.extensions["settings"].__class__(
        api_public_url="https://cloud.example/nl/"
    )
    body = api.client_as("demo").get("/identity/v3/auth/catalog").get_json()
    assert body["catalog"][0]["endpoints"][0]["url"] == "https://cloud.example/nl/identity/v3"
    assert api.client_as("demo", None).get("/identity/v3/auth/catalog").status_code == 403


@pytest.mark.parametrize("slash", ["", "/"])
def test_version_documents_need_no_token(api: Api, slash: str) -> None:
    client = api.client_as(None)
    versions = client.get(f"/identity{slash}")
    assert versions.status_code == 300
    assert versions.get_json()["versions"]["values"][0]["links"][0]["href"] == "http://localhost/identity/v3/"
    assert client.get(f"/identity/v3{slash}").get_json()["version"]["id"].startswith("v3")
