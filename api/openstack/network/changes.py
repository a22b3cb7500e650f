# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Jobs that bring changes to hosts, in the transaction of the change; and the project that a change is made for."""

from __future__ import annotations

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.compute.port_changes import PortChange
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.jobs.job_rows import is_waiting
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries import projects
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.counts import is_project
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.security import group_rules
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.security.security_groups import (
    DEFAULT_GROUP,
    ensure_default_group,
)

from ...jobs.queue import enqueue
from ...web import policy
from ...web.bodies import Record
from ...web.context import current, request_id
from ...web.ledger import reading_ledger, writing_ledger
from .blueprint import NeutronError, refused


def tell_group_hosts(connection: Connection, group: int, name: str) -> None:
    """The hosts that carry a member learn of a group's new rules from a job; without any there is nothing to do."""
    if group_rules.instances_concerned(connection, group):
        tell_hosts(connection, "security_groups", {"security_groups": [{"name": name}]})


def tell_hosts(connection: Connection, kind: str, variables: Record, project_id: str | None = None) -> None:
    """Have a job of `kind` bring hosts what the ledger says when it runs, unless one like it is yet to begin.

    It acts for the project `project_id`, or for the caller's.
    """
    caller = current()
    owner = project_id or caller.project
    job_variables = {"project": project_name(connection, owner), **variables}
    if not is_waiting(connection, kind, job_variables, owner):
        enqueue(
            connection, kind, variables=job_variables, project_id=owner, user_id=caller.user_id, request_id=request_id()
        )


def tell_host_of_port(connection: Connection, changed: PortChange) -> None:
    """Have the host of a port's server, and those whose rules name its groups, learn what changed; without a server
    there is nothing to do."""
    host, owner = changed.port.host, changed.port.project_id
    if host is None:
        return
    if changed.for_host:
        tell_hosts(connection, "security_groups", {"ports": [changed.port.id]}, owner)
    if changed.floating:
        tell_hosts(connection, "floating_ips", {"network_hosts": [host], "holders": [host]}, owner)


def project_name(connection: Connection, project_id: str) -> str:
    caller = current()
    if project_id == caller.project and caller.project_name is not None:
        return caller.project_name
    return str(projects.project_name(connection, project_id))


def owner_of(connection: Connection, body: Record) -> str:
    """The project that what is made will be of: the caller's, or the one that an administrator names."""
    caller = current()
    named = {body[key] for key in ("project_id", "tenant_id") if body.get(key)}
    if not policy.allowed("network:create:other_project") or named <= {caller.project}:
        check_owner(body)
        return caller.project
    if len(named) > 1 or not all(is_project(connection, project_id) for project_id in named):
        raise NeutronError(404, "ProjectNotFound", f"Project {sorted(named)[0][:64]} could not be found.")
    return str(named.pop())


def check_owner(body: Record) -> None:
    """Raise NeutronError if a new object is to belong to another project than the token's."""
    for key in ("project_id", "tenant_id"):
        if body.get(key) not in (None, "", current().project):
            raise NeutronError(403, "PolicyNotAuthorized", f"{key} is another project's: use a token for that one")


def check_for_all(body: Record, name: str, *attributes: str) -> None:
    """Refuse what concerns all projects, except to administrators."""
    for attribute in attributes:
        if body.get(attribute) and not policy.allowed("network:create:shared"):
            raise refused(f"rule:create_{name}:{attribute} is disallowed by policy: ask an administrator")


def groups_seen() -> list[Record]:
    """The caller's project's security groups. It has a default one from the first time that somebody looks."""
    project = current().project
    with reading_ledger() as connection:
        rows = group_rules.groups_of(connection, project)
    if not any(row["name"] == DEFAULT_GROUP for row in rows):
        with writing_ledger() as connection:
            ensure_default_group(connection, project, open_to_members=True)
            rows = group_rules.groups_of(connection, project)
    return rows
