# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The commands `novalite replica ...`: servers' disks are copied to second hosts, again and again."""

from __future__ import annotations

import click

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.revisions import DEFAULT_PROJECT
from ansible_collections.novalite.cloud.plugins.module_utils._rules import backup_policies

from . import looking, looking_backups, options, playbooks, tables
from .tables import Column, Form

_COLUMNS = (
    Column("server", lambda record: record["server"]),
    Column("from", lambda record: record["server_host"]),
    Column("host", lambda record: record["host"]),
    Column("next_host", lambda record: record["next_host"]),
    Column("every", lambda record: backup_policies.time_of(record["every"])),
    Column("age", lambda record: looking.age(record["taken_at"]) if record["taken_at"] else "NONE"),
    Column("moved_kib", lambda record: None if record["moved"] is None else -(-record["moved"] // 1024)),
    Column("why_full", lambda record: record["reason"]),
    Column("fault", lambda record: record["fault"]),
    Column("consistency", lambda record: record["consistency"], wide=True),
    Column("uuid", lambda record: record["instance_uuid"], wide=True),
)


@click.group("replica")
def group() -> None:
    """Copy servers' disks to a second host, from which they run when theirs is dead."""


@group.command("list")
@options.of_project
@options.form
def list_replicas(project: str | None, all_projects: bool, form: Form) -> None:
    """List the copies of servers' disks: where they are, how old, what came the last time, and what went wrong."""
    tables.show(looking_backups.replicas(None if all_projects else project or DEFAULT_PROJECT), _COLUMNS, form)


@group.command("set")
@click.argument("server")
@click.option("--every", metavar="TIME", help="Between two copies: 5m, hourly, daily.  [default: hourly]")
@click.option("--host", help="Compute host that gets the copies.  [default: the scheduler chooses]")
@click.option("-p", "--project", help="The server's project.")
@options.of_playbook
def set_replica(server: str, options: playbooks.Options, **variables: object) -> None:
    """Have a server's disks copied to a second host. The playbook novalite.cloud.replica."""
    playbooks.run("replica", {"server": server, **variables}, options)


@group.command("unset")
@click.argument("server")
@click.option("-p", "--project", help="The server's project.")
@options.of_playbook
def unset_replica(server: str, options: playbooks.Options, **variables: object) -> None:
    """Copy a server's disks no more; the next `run-due` removes the copy. The playbook novalite.cloud.replica."""
    playbooks.run("replica", {"server": server, "replica_state": "absent", **variables}, options)


@group.command("run")
@click.argument("server")
@click.option("-p", "--project", help="The server's project.")
@options.of_playbook
def run_replica(server: str, options: playbooks.Options, **variables: object) -> None:
    """Copy a server's disks now. The playbook novalite.cloud.replicate."""
    playbooks.run("replicate", {"server": server, **variables}, options)


@group.command("run-due")
@options.of_playbook
def run_due(options: playbooks.Options) -> None:
    """Copy the disks that are due, and remove copies that nothing needs. The playbook novalite.cloud.replicate."""
    playbooks.run("replicate", {}, options)
