# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Operations on users, groups, domains and projects: where they are made, what of them stays, who gives roles."""

from __future__ import annotations

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._errors import (
    ForbiddenError,
    NotFoundError,
    NovaliteError,
    UnauthorizedError,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.identity import (
    assignments,
    attempts,
    domains,
    groups,
    projects,
    roles,
    users,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.identity.assignments import Held
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.identity import user_records
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.identity.assignments import Place
from tests.support.rows import DEMO
from tests.unit._ledger.identity.conftest import Calls


def test_things_are_made_in_the_callers_domain(calls: Calls) -> None:
    acme = domains.create(calls.operator, {"name": "Acme"})["id"]
    call = calls.of(calls.ann, domain_id=acme)
    made = [users.create(call, {"name": "x"}), groups.create(call, {"name": "x"}), projects.create(call, {"name": "x"})]
    assert [record["domain_id"] for record in made] == [acme] * 3
    assert users.create(call, {"name": "x", "domain_id": "default"})["domain_id"] == "default"
    assert users.create(calls.operator, {"name": "y"})["domain_id"] == "default"
    with pytest.raises(NotFoundError, match="domain: nosuch"):
        users.create(call, {"name": "y", "domain_id": "nosuch"})


def test_what_is_in_a_domain_stays_there(calls: Calls) -> None:
    acme = domains.create(calls.operator, {"name": "Acme"})["id"]
    group = groups.create(calls.operator, {"name": "x"})["id"]
    project = projects.create(calls.operator, {"name": "x"})["id"]
    for update in (
        lambda: users.update(calls.operator, calls.ann, {"domain_id": acme}),
        lambda: groups.update(calls.operator, group, {"domain_id": acme}),
        lambda: projects.update(calls.operator, project, {"domain_id": acme}),
    ):
        with pytest.raises(NovaliteError, match="Cannot change Domain ID"):
            update()


def test_attributes_change_one_by_one(calls: Calls) -> None:
    made = users.create(calls.operator, {"name": "x", "extra": {"a": "1", "b": None}, "options": {"c": True}})
    assert (made["extra"], made["options"]) == ({"a": "1"}, {"c": True})
    changed = users.update(calls.operator, made["id"], {"extra": {"b": "2"}, "options": {"c": None}})
    assert (changed["extra"], changed["options"]) == ({"a": "1", "b": "2"}, {})
    many = {f"{number:02}": "x" for number in range(50)}
    assert len(users.update(calls.operator, made["id"], {"extra": many})["extra"]) == 40


def test_a_default_project_is_there(calls: Calls) -> None:
    with pytest.raises(NovaliteError, match="'nosuch' is not a project's"):
        users.create(calls.operator, {"name": "x", "default_project_id": "nosuch"})


def test_roles_are_given_and_taken_by_who_may(calls: Calls) -> None:
    entries = ("identity:assignments:create", "identity:assignments:delete")
    member, reader = Held(DEMO, "member"), Held(DEMO, "reader")

    def roles() -> list[str]:
        return [row["role"] for row in user_records.list_roles(calls.connection, calls.ann)]

    with pytest.raises(ForbiddenError):
        users.create(calls.of(calls.bob), {"name": "x"}, [reader])
    with pytest.raises(ForbiddenError):
        users.update(calls.of(calls.bob, *entries[1:]), calls.ann, {}, [member, reader])
    with pytest.raises(ForbiddenError):
        users.update(calls.of(calls.bob, *entries[:1]), calls.ann, {}, [])
    assert roles() == ["member"]
    users.update(calls.of(calls.bob), calls.ann, {})
    users.update(calls.of(calls.bob, *entries), calls.ann, {}, [reader])
    assert roles() == ["reader"]


def test_a_password_is_changed_by_who_knows_the_present_password(calls: Calls) -> None:
    attempt = attempts.begin(calls.of(None), "user:ann", "address:192.0.2.1", attempts.Locks(1, 5, 900, 30))
    proved = user_records.find_user(calls.connection, calls.ann)
    users.change_password(calls.of(None), attempt, proved, "new")
    assert user_records.find_user(calls.connection, calls.ann)["password_hash"] == "new"
    with pytest.raises(UnauthorizedError):
        users.change_password(calls.of(None), attempt, proved, "newer")
    locked = users.update(calls.operator, calls.ann, {"options": {"lock_password": True}})
    with pytest.raises(ForbiddenError, match="locked"):
        users.change_password(calls.of(None), attempt, locked, "newer")


def test_members_of_groups(calls: Calls) -> None:
    group = groups.create(calls.operator, {"name": "x"})["id"]
    with pytest.raises(NotFoundError, match="user: nosuch"):
        groups.add_member(calls.operator, group, "nosuch")
    groups.add_member(calls.operator, group, calls.ann)
    groups.remove_member(calls.operator, group, calls.ann)
    with pytest.raises(NotFoundError, match="user in the group"):
        groups.remove_member(calls.operator, group, calls.ann)


def test_a_project_is_made_below_another_or_at_the_top_of_a_domain(calls: Calls) -> None:
    acme = domains.create(calls.operator, {"name": "Acme"})["id"]
    top = projects.create(calls.operator, {"name": "top", "parent_id": acme})
    assert (top["domain_id"], top["parent_id"]) == (acme, None)
    below = projects.create(calls.operator, {"name": "below", "parent_id": top["id"]})
    assert (below["domain_id"], below["parent_id"]) == (acme, top["id"])
    with pytest.raises(NotFoundError, match="project: nosuch"):
        projects.create(calls.operator, {"name": "x", "parent_id": "nosuch"})
    with pytest.raises(NovaliteError, match="another domain"):
        projects.create(calls.operator, {"name": "x", "parent_id": acme, "domain_id": "default"})
    assert projects.update(calls.operator, top["id"], {"parent_id": acme, "name": "new"})["shown_name"] == "new"
    with pytest.raises(ForbiddenError, match="parent_id"):
        projects.update(calls.operator, top["id"], {"parent_id": below["id"]})


def test_a_tag_is_taken_off_once(calls: Calls) -> None:
    assert projects.replace_tags(calls.operator, DEMO, ["a", "b"])["tags"] == ["a", "b"]
    projects.remove_tag(calls.operator, DEMO, "a")
    with pytest.raises(NotFoundError, match="project tag: a"):
        projects.remove_tag(calls.operator, DEMO, "a")
    with pytest.raises(NotFoundError, match="project: nosuch"):
        projects.add_tag(calls.operator, "nosuch", "a")


def test_a_role_is_made_in_a_domain_and_stays_there(calls: Calls) -> None:
    acme = domains.create(calls.operator, {"name": "Acme"})["id"]
    with pytest.raises(NotFoundError, match="domain: nosuch"):
        roles.create(calls.operator, "x", {"domain_id": "nosuch"})
    everywhere, there = (roles.create(calls.operator, "x", {"domain_id": where}) for where in (None, acme))
    assert (everywhere["domain_id"], there["domain_id"]) == (None, acme)
    for role, domain_id in ((everywhere, acme), (there, None)):
        with pytest.raises(NovaliteError, match="Cannot change Domain ID"):
            roles.update(calls.operator, role["id"], {"domain_id": domain_id})


def test_a_role_is_given_to_and_taken_from_who_is_there(calls: Calls) -> None:
    for place in (
        Place(calls.ann, project_id="nosuch"),
        Place(calls.ann, domain_id="nosuch"),
        Place("nosuch", project_id=DEMO),
        Place(group_id="nosuch", project_id=DEMO),
    ):
        for change in (assignments.grant, assignments.revoke):
            with pytest.raises(NotFoundError, match="nosuch"):
                change(calls.operator, place, "reader")
    assert assignments.revoke(calls.operator, Place(calls.ann, project_id=DEMO), "member")
    assert not assignments.revoke(calls.operator, Place(calls.ann, project_id=DEMO), "member")
