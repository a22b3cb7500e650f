# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._errors import (
    ConflictError,
    DefaultGroupError,
    ForbiddenError,
    NotFoundError,
    NovaliteError,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.network import security_groups
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.network.security_groups import (
    RepeatedRuleError,
    RuleRequest,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.network.group_records import groups_of
from tests.support.rows import DEMO, OTHER, add_host, add_instance, insert
from tests.unit._ledger.operations.conftest import Doors

SSH = RuleRequest(protocol="tcp", port_min=22, port_max=22)
WEB = RuleRequest(protocol="tcp", port_min=80, port_max=80)


def group_with_member(doors: Doors, name: str) -> str:
    """Make a group that a server on a host is in."""
    uuid = security_groups.create(doors.call(), {}, name, "")
    group = groups_of(doors.connection, DEMO, uuid)[0]["id"]
    query = sa.select(tables.instance.c.id).where(tables.instance.c.uuid == add_instance(doors.connection, host="hv1"))
    number = doors.connection.execute(query).scalar_one()
    insert(doors.connection, tables.instance_security_group, instance_id=number, group_id=group)
    return uuid


def test_a_project_has_one_default_group_which_stays(doors: Doors) -> None:
    with pytest.raises(DefaultGroupError):
        security_groups.create(doors.call(), {}, "default", "")
    security_groups.ensure_default(doors.call())
    (group,) = groups_of(doors.connection, DEMO)
    assert len(group["rules"]) == 4
    with pytest.raises(DefaultGroupError):
        security_groups.delete(doors.call(), group["uuid"])


def test_no_name_is_a_template(doors: Doors) -> None:
    uuid = security_groups.create(doors.call(), {}, "web", "")
    for name in ("{{ x }}", "{% x", "{# x"):
        with pytest.raises(NovaliteError, match="template"):
            security_groups.create(doors.call(), {}, name, "")
        with pytest.raises(NovaliteError, match="template"):
            security_groups.update(doors.call(), uuid, name, None)
    security_groups.update(doors.call(), uuid, None, "{{ what is said of it }}")


def test_groups_are_made_and_changed_with_a_token_for_their_project(doors: Doors) -> None:
    with pytest.raises(ForbiddenError):
        security_groups.create(doors.call("network:create:other_project"), {"tenant_id": OTHER}, "web", "")
    uuid = security_groups.create(doors.call(), {"tenant_id": DEMO}, "web", "")
    with pytest.raises(NotFoundError):
        security_groups.add_rules(doors.call(project=OTHER), uuid, [SSH])


def test_hosts_learn_once_of_all_rules_of_a_request(doors: Doors) -> None:
    add_host(doors.connection)
    uuid = group_with_member(doors, "web")
    added = security_groups.add_rules(doors.call(), uuid, [SSH, WEB])
    job = ("security_groups", {"project": "demo", "changed_groups": [uuid]})  # which may have another name by then
    assert doors.jobs == [job]
    security_groups.delete_rules(doors.call(), added)
    assert doors.jobs == [job, job]
    security_groups.add_rules(doors.call(), security_groups.create(doors.call(), {}, "empty", ""), [SSH])
    assert doors.jobs == [job, job]


def test_a_rule_that_a_request_repeats_is_not_one_that_was_there(doors: Doors) -> None:
    uuid = security_groups.create(doors.call(), {}, "web", "")
    with pytest.raises(RepeatedRuleError):
        security_groups.add_rules(doors.call(), uuid, [WEB, WEB])
    with pytest.raises(ConflictError) as caught:
        security_groups.add_rules(doors.call(), uuid, [WEB])
    assert not isinstance(caught.value, RepeatedRuleError)


def test_rules_that_name_a_group_go_with_it_where_that_is_asked_for(doors: Doors) -> None:
    add_host(doors.connection)
    uuid, other = group_with_member(doors, "web"), security_groups.create(doors.call(), {}, "lb", "")
    security_groups.add_rules(doors.call(), uuid, [RuleRequest(protocol="any", remote_group_uuid=other)])
    doors.jobs.clear()
    with pytest.raises(ConflictError, match="named by a rule of 'web'"):
        security_groups.delete(doors.call(), other, naming_rules=False)
    assert doors.jobs == []
    security_groups.delete(doors.call(), other)
    assert [kind for kind, _variables in doors.jobs] == ["security_groups"]
