# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The commands `novalite backup policy ...` and `novalite backup run-due`: when servers are backed up, and doing it."""

from __future__ import annotations

import click

from ansible_collections.novalite.cloud.plugins.module_utils._rules import backup_policies, retention

from . import looking_backups, options, playbooks, tables
from .looking import Record
from .tables import Column, Form


def _keep(record: Record) -> str:
    return ", ".join(f"{number} {period}" for period, number in record["keep"].items()) or "all"


_COLUMNS = (
    Column("policy", lambda record: record["name"]),
    Column("for", lambda record: record["scope"]),
    Column("of", lambda record: record["target"]),
    Column("every", lambda record: backup_policies.time_of(record["every"])),
    Column("keeps", _keep),
    Column("compares", lambda record: backup_policies.time_of(record["verify_every"])),
    Column("boots", lambda record: backup_policies.time_of(record["boot_every"])),
)


@click.group("policy")
def group() -> None:
    """Say how often servers are backed up and proven, and which backups are kept."""


@group.command("list")
@options.form
def list_policies(form: Form) -> None:
    """List the policies of backups."""
    tables.show(looking_backups.backup_policies(), _COLUMNS, form)


@group.command("show")
@click.argument("policy")
@options.structure
def show_policy(policy: str, output: str) -> None:
    """Show a policy of backups."""
    for record in looking_backups.backup_policies():
        if record["name"] == policy:
            if output in ("json", "yaml"):
                tables.structure(record, output)
            else:
                tables.fields([(column.name, column.cell(record)) for column in _COLUMNS])
            return
    raise click.ClickException(f"there is no policy {policy!r}: see `novalite backup policy list`")


def _keeping(command: options.Command) -> options.Command:
    for option in reversed(retention.OPTIONS):
        text = "Of older ones, keep so many."
        command = click.option(f"--{option.replace('_', '-')}", type=int, metavar="N", help=text)(command)
    return command


@group.command("set")
@click.argument("policy")
@click.option(
    "--every", metavar="TIME", help="Between two backups: hourly, daily, weekly, monthly, 12h.  [default: daily]"
)
@click.option("--verify-every", metavar="TIME", help="Between two comparisons of the newest one.  [default: never]")
@click.option(
    "--boot-every", metavar="TIME", help="Between two boots of the newest full one, or never.  [default: weekly]"
)
@click.option("--server", help="For this server.")
@click.option("--flavor", help="For servers of this flavor.")
@click.option("-p", "--project", help="For servers of this project; with --server, the server's.")
@_keeping
@options.of_playbook
def set_policy(policy: str, options: playbooks.Options, **variables: object) -> None:
    """Have a policy of backups, for a server, a flavor, a project, or without one of these for all servers.

    The playbook novalite.cloud.backup_policy."""
    playbooks.run("backup_policy", {"policy": policy, **variables}, options)


@group.command("delete")
@click.argument("policy")
@options.of_playbook
def delete_policy(policy: str, options: playbooks.Options) -> None:
    """Delete a policy of backups; the backups stay. The playbook novalite.cloud.backup_policy."""
    playbooks.run("backup_policy", {"policy": policy, "policy_state": "absent"}, options)


@click.command("run-due")
@options.of_playbook
def run_due(options: playbooks.Options) -> None:
    """Take and prove the backups that are due by the policies. The playbook novalite.cloud.backup_due."""
    playbooks.run("backup_due", {}, options)
