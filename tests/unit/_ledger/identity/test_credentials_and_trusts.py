# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Operations on credentials and trusts: whose they are, which tokens make them, and what they may give."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._errors import (
    ForbiddenError,
    NotFoundError,
    NovaliteError,
    UnauthorizedError,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.sealing import Seal
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.identity import (
    application_credentials,
    ec2_credentials,
    kept_credentials,
    projects,
    trusts,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.identity.roles import RoleChoice
from tests.support.rows import DEMO
from tests.unit._ledger.identity.conftest import Calls

SEAL = Seal(b"x" * 32)
MEMBER, READER, ADMIN = (RoleChoice(name, None, name) for name in ("member", "reader", "admin"))


def request(name: str = "x", **values: t.Any) -> application_credentials.CredentialRequest:
    return application_credentials.CredentialRequest(name, "hash", **values)


def trust(calls: Calls, **values: t.Any) -> trusts.TrustRequest:
    known = {"project_id": DEMO, "roles": [READER], "impersonation": False}
    return trusts.TrustRequest(**{"trustor_user_id": calls.ann, "trustee_user_id": calls.bob, **known, **values})


def test_an_application_credential_gives_no_more_than_the_token(calls: Calls) -> None:
    ann = calls.of(calls.ann)
    assert application_credentials.create(ann, request())["roles"] == ["member", "reader"]
    assert application_credentials.create(ann, request("y", roles=[READER]))["roles"] == ["reader"]
    less = calls.of(calls.ann, roles=frozenset({"reader"}))
    assert application_credentials.create(less, request("z"))["roles"] == ["reader"]
    for call, role in ((ann, ADMIN), (less, MEMBER), (ann, RoleChoice(None, "nosuch", "nosuch"))):
        with pytest.raises(NovaliteError, match=f"role '{role.text}' is not among your own"):
            application_credentials.create(call, request("more", roles=[role]))
    with pytest.raises(NovaliteError, match="project_id is not that of the token"):
        application_credentials.create(ann, request("more", project_id="e" * 32))


@pytest.mark.parametrize("held_by", ["restricted", "bounded", "trust"])
def test_restricted_tokens_make_and_remove_no_application_credentials(calls: Calls, held_by: str) -> None:
    ann = calls.of(calls.ann)
    rule = {"service": "compute", "method": "GET", "path": "/x"}
    restricted = application_credentials.create(ann, request("restricted"))["id"]
    bounded = application_credentials.create(ann, request("bounded", unrestricted=True, access_rules=[rule]))["id"]
    unrestricted = application_credentials.create(ann, request("unrestricted", unrestricted=True))["id"]
    numbers = {"restricted": restricted, "bounded": bounded}
    held = {"trust_id": "x"} if held_by == "trust" else {"application_credential_id": numbers[held_by]}
    call = calls.of(calls.ann, **held)
    for act in (
        lambda: application_credentials.create(call, request("more")),
        lambda: application_credentials.delete(call, unrestricted),
        lambda: application_credentials.delete_access_rule(call, "nosuch"),
    ):
        with pytest.raises(ForbiddenError):
            act()
    application_credentials.delete(calls.of(calls.ann, application_credential_id=unrestricted), restricted)
    with pytest.raises(NotFoundError):
        application_credentials.delete(calls.of(calls.bob), unrestricted)


@pytest.mark.parametrize("held", [{"application_credential_id": "x"}, {"trust_id": "x"}])
def test_delegated_tokens_have_nothing_of_what_gives_all(calls: Calls, held: dict[str, str]) -> None:
    kept = kept_credentials.create(calls.of(calls.ann), SEAL, {"type": "x", "blob": "y"})["id"]
    pair = ec2_credentials.create(calls.of(calls.ann), SEAL, calls.ann, DEMO)["access"]
    number = trusts.create(calls.of(calls.ann), trust(calls))["id"]
    call = calls.of(calls.ann, **held)
    for act in (
        lambda: ec2_credentials.list_pairs(call, SEAL, calls.ann),
        lambda: ec2_credentials.find(call, SEAL, calls.ann, pair),
        lambda: ec2_credentials.create(call, SEAL, calls.ann, DEMO),
        lambda: ec2_credentials.delete(call, calls.ann, pair),
        lambda: kept_credentials.list_credentials(call, SEAL, None, None),
        lambda: kept_credentials.find(call, SEAL, kept),
        lambda: kept_credentials.create(call, SEAL, {"type": "x", "blob": "y"}),
        lambda: kept_credentials.update(call, SEAL, kept, {"blob": "z"}),
        lambda: kept_credentials.delete(call, kept),
        lambda: trusts.list_trusts(call, calls.ann, None),
        lambda: trusts.find(call, number),
        lambda: trusts.create(call, trust(calls)),
        lambda: trusts.delete(call, number),
    ):
        with pytest.raises(ForbiddenError):
            act()


def test_a_pair_is_for_a_project_in_which_the_user_has_a_role(calls: Calls) -> None:
    other = projects.create(calls.operator, {"name": "other"})["id"]
    with pytest.raises(NotFoundError, match=f"project: {other}"):
        ec2_credentials.create(calls.operator, SEAL, calls.ann, other)
    made = ec2_credentials.ensure(calls.operator, SEAL, calls.ann, DEMO)
    assert ec2_credentials.ensure(calls.operator, SEAL, calls.ann, DEMO)["access"] == made["access"]
    assert ec2_credentials.ensure(calls.operator, Seal(b"y" * 32), calls.ann, DEMO)["access"] != made["access"]


def test_a_credential_is_its_users_and_an_administrators(calls: Calls) -> None:
    ann, bob, admin = calls.of(calls.ann), calls.of(calls.bob), calls.of(calls.bob, kept_credentials.OTHERS)
    kept = kept_credentials.create(ann, SEAL, {"type": "x", "blob": "y"})
    assert kept["user_id"] == calls.ann and kept_credentials.find(admin, SEAL, kept["id"]) == kept
    assert kept_credentials.list_credentials(bob, SEAL, calls.ann, None) == []
    assert kept_credentials.list_credentials(admin, SEAL, None, None) == [kept]
    other = projects.create(calls.operator, {"name": "other"})["id"]
    of_ann = {"type": "x", "blob": "y", "user_id": calls.ann}
    for act in (
        lambda: kept_credentials.find(bob, SEAL, kept["id"]),
        lambda: kept_credentials.update(bob, SEAL, kept["id"], {"blob": "z"}),
        lambda: kept_credentials.delete(bob, kept["id"]),
        lambda: kept_credentials.create(bob, SEAL, t.cast("kept_credentials.CredentialRequest", of_ann)),
        lambda: kept_credentials.update(ann, SEAL, kept["id"], {"project_id": other}),
        lambda: kept_credentials.update(admin, SEAL, kept["id"], {"project_id": "nosuch"}),
    ):
        with pytest.raises(NotFoundError):
            act()
    for change in ({"id": "x"}, {"user_id": calls.bob}):
        with pytest.raises(NovaliteError, match="stays its user's"):
            kept_credentials.update(ann, SEAL, kept["id"], t.cast("kept_credentials.CredentialChange", change))
    assert kept_credentials.update(admin, SEAL, kept["id"], {"project_id": other})["project_id"] == other


def test_a_trust_gives_what_the_trustor_has(calls: Calls) -> None:
    ann, bob = calls.of(calls.ann), calls.of(calls.bob)
    assert trusts.create(ann, trust(calls, roles=[RoleChoice(None, "member", "member")]))["roles"] == ["member"]
    for values, error in (
        ({"trustor_user_id": calls.bob}, ForbiddenError),
        ({"roles": []}, ForbiddenError),
        ({"project_id": None}, NovaliteError),
        ({"project_id": "nosuch"}, NotFoundError),
        ({"trustee_user_id": "nosuch"}, NotFoundError),
        ({"roles": [ADMIN]}, NotFoundError),
    ):
        with pytest.raises(error):
            trusts.create(ann, trust(calls, **values))
    with pytest.raises(UnauthorizedError):
        trusts.create(calls.of(None), trust(calls))
    number = trusts.create(ann, trust(calls))["id"]
    assert trusts.find(bob, number)["roles"] == ["reader"]
    with pytest.raises(ForbiddenError, match="Only admin or trustor"):
        trusts.delete(bob, number)
    with pytest.raises(NotFoundError):
        trusts.find(calls.of("e" * 32), number)
    with pytest.raises(ForbiddenError):
        trusts.list_trusts(calls.of("e" * 32), calls.ann, calls.bob)
    trusts.delete(calls.of("e" * 32, trusts.OTHERS), number)
