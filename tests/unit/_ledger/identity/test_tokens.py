# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Operations on tokens: the scope of a new token, what a proof is enough for, and who ends one; attempts."""

from __future__ import annotations

import dataclasses
import typing as t

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._errors import (
    NotFoundError,
    TooManyRequestsError,
    UnauthorizedError,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import clock
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.identity import (
    assignments,
    attempts,
    projects,
    tokens,
    trusts,
    users,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.identity.roles import RoleChoice
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.identity.tokens import (
    DomainChoice,
    Issued,
    Proof,
    ScopeRequest,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.identity.assignments import Place
from tests.support.rows import DEMO
from tests.unit._ledger.identity.conftest import Calls

LOCKS = attempts.Locks(failures=2, failures_of_address=5, seconds=900, known_days=30)
Issue = t.Callable[..., Issued]


@pytest.fixture
def issue(calls: Calls) -> Issue:
    """Have a token issued to ann, who proved her password just now."""

    def made(scope: ScopeRequest | None = None, **proof: t.Any) -> Issued:
        known = {"user_id": calls.ann, "method": "password", "began": clock.now(calls.connection)}
        return tokens.issue(calls.of(None), Proof(**{**known, **proof}), scope, 3600)

    return made


def test_a_scope_is_had_by_a_role(calls: Calls, issue: Issue) -> None:
    other = projects.create(calls.operator, {"name": "other"})["id"]
    for scope in (
        ScopeRequest(project_id=DEMO),
        ScopeRequest(project_name="demo"),
        ScopeRequest(project_name="demo", domain=DomainChoice(name="DEFAULT")),
    ):
        assert issue(scope).holder.row.project_id == DEMO
    for scope in (
        ScopeRequest(project_id=other),
        ScopeRequest(project_id="nosuch"),
        ScopeRequest(project_name="demo", domain=DomainChoice(name="nosuch")),
        ScopeRequest(project_name="demo", domain=DomainChoice("default", "another name")),
        ScopeRequest(domain=DomainChoice("default")),
        ScopeRequest(trust_id="nosuch"),
    ):
        with pytest.raises(UnauthorizedError):
            issue(scope)
    assignments.grant(calls.operator, Place(calls.ann, domain_id="default"), "reader")
    assert issue(ScopeRequest(domain=DomainChoice("default"))).holder.row.domain_id == "default"


def test_a_default_that_cannot_be_had_is_left_out(calls: Calls, issue: Issue) -> None:
    other = projects.create(calls.operator, {"name": "other"})["id"]
    assert issue(default_project_id=DEMO).holder.row.project_id == DEMO
    assert issue(default_project_id=other).holder.row.project_id is None
    assert issue(ScopeRequest(), default_project_id=DEMO).holder.row.project_id is None


def test_a_proof_for_one_project_is_for_no_other_scope(calls: Calls, issue: Issue) -> None:
    other = projects.create(calls.operator, {"name": "other"})["id"]
    assignments.grant(calls.operator, Place(calls.ann, project_id=other), "member")
    assignments.grant(calls.operator, Place(calls.ann, domain_id="default"), "member")
    trust = trusts.TrustRequest(calls.ann, calls.ann, DEMO, [RoleChoice("member", None, "")], True)
    number = trusts.create(calls.of(calls.ann), trust)["id"]
    for scope in (
        ScopeRequest(),
        ScopeRequest(project_id=other),
        ScopeRequest(domain=DomainChoice("default")),
        ScopeRequest(trust_id=number),
    ):
        assert issue(scope)
        with pytest.raises(UnauthorizedError):
            issue(scope, only_project_id=DEMO, default_project_id=DEMO)
    assert issue(only_project_id=DEMO, default_project_id=DEMO).holder.row.project_id == DEMO


def test_a_trust_is_its_trustees_and_counts_its_uses(calls: Calls, issue: Issue) -> None:
    roles = [RoleChoice("member", None, "")]
    request = trusts.TrustRequest(calls.ann, calls.bob, DEMO, roles, impersonation=True, remaining_uses=1)
    scope = ScopeRequest(trust_id=trusts.create(calls.of(calls.ann), request)["id"])
    with pytest.raises(UnauthorizedError):
        issue(scope)
    assert issue(scope, user_id=calls.bob).holder.row.user_id == calls.ann
    with pytest.raises(UnauthorizedError):
        issue(scope, user_id=calls.bob)


def test_a_users_rules_say_which_proofs_are_enough(calls: Calls, issue: Issue) -> None:
    users.update(calls.operator, calls.ann, {"options": {"multi_factor_auth_rules": [["password", "token", "totp"]]}})
    with pytest.raises(UnauthorizedError):
        issue()
    assert issue(method="password,token")
    users.update(calls.operator, calls.ann, {"options": {"multi_factor_auth_enabled": False}})
    assert issue()
    users.delete(calls.operator, calls.ann)
    with pytest.raises(UnauthorizedError):
        issue()


def test_a_token_is_revoked_by_its_user_and_by_an_administrator(calls: Calls, issue: Issue) -> None:
    first, second = issue().token.text, issue().token.text
    with pytest.raises(NotFoundError):
        tokens.revoke(calls.of(calls.bob), first)
    tokens.revoke(calls.of(calls.ann), first)
    with pytest.raises(NotFoundError):
        tokens.revoke(calls.of(calls.ann), first)
    tokens.revoke(calls.of(calls.bob, tokens.OTHERS), second)


def test_who_guesses_waits_and_who_knows_the_password_is_known(calls: Calls, issue: Issue) -> None:
    nobody = calls.of(None)

    def begin(address: str) -> attempts.Attempt:
        return attempts.begin(nobody, "user:ann", address, LOCKS)

    late = begin("address:192.0.2.1")
    for _each in range(LOCKS.failures):
        attempts.fail(nobody, begin("address:192.0.2.1"))
    for act in (lambda: attempts.succeed(nobody, late), lambda: issue(attempt=late)):
        with pytest.raises(TooManyRequestsError):
            act()
    with pytest.raises(TooManyRequestsError):
        begin("address:192.0.2.2")  # the user is slowed down, everywhere but where it is known
    home = dataclasses.replace(late, address="address:192.0.2.3", known=True)
    attempts.succeed(nobody, home)
    assert begin("address:192.0.2.3").known
