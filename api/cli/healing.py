# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The commands `novalite ha`, `host` and `reserve`: healing of hosts, what people decide of it; room for a death."""

from __future__ import annotations

import dataclasses
import getpass
import typing as t

import click

from . import actions, looking, options, playbooks
from .tables import Column, Form, Record, show

_HOSTS = (
    Column("host", lambda record: record["host"]),
    Column("state", lambda record: record["state"] or "not watched"),
    Column("healing", lambda record: "armed" if record["armed"] else "DISARMED"),
    Column("proof by", lambda record: ", ".join(record["means"]) or "a person alone"),
    Column("epoch", lambda record: record["epoch"] or 0, True),
    Column("note", lambda record: record["note"] or ""),
)
_SERVERS = (
    Column("server", lambda record: record["name"]),
    Column("host", lambda record: record["host"]),
    Column("why it does not run", lambda record: record["ha_reason"]),
)
_LOSSES = (
    Column("host", lambda record: record["host"]),
    Column("servers", lambda record: record["instances"]),
    Column("find room", lambda record: sum(record["takers"].values())),
    Column("find none", lambda record: len(record["stranded"])),
    Column("which", lambda record: ", ".join(instance["name"] for instance in record["stranded"])),
    Column("takers", lambda record: ", ".join(f"{count} on {host}" for host, count in record["takers"].items()), True),
)
_HOST = click.argument("host", metavar="[HOST]", required=False)
_ONE_HOST = click.argument("host", metavar="HOST")


@click.group("ha")
def group() -> None:
    """Healing: whether servers of a dead host are started on others."""


@group.command()
@options.form
def status(form: Form) -> None:
    """Show how each host is watched, and which servers with ha: true do not run, and why."""
    said = looking.healing()
    if form.output != "table":  # for programs: one list
        show(said["hosts"], _HOSTS, form, lambda host: {**host, "servers": _servers_of(host, said["servers"])})
        return
    if not said["armed"]:
        click.echo("Healing is DISARMED: no host is fenced, and nothing is started elsewhere.", err=True)
    if not said["watching"]:
        click.echo("Nobody watches the hosts: run novalite.cloud.watch (docs/ha.md).", err=True)
    if said["balance"]:
        click.echo(f"Suggested, by novalite balance: {said['balance']['text']}.", err=True)
    show(said["hosts"], _HOSTS, form)
    if said["servers"]:
        show(said["servers"], _SERVERS, form)


def _servers_of(host: Record, servers: t.Sequence[Record]) -> list[Record]:
    return [server for server in servers if server["host"] == host["host"]]


@group.command()
@_HOST
@options.of_playbook
def arm(host: str | None, options: playbooks.Options) -> None:
    """Arm healing, of all hosts or HOST."""
    _decide("armed", host, options)


@group.command()
@_HOST
@options.of_playbook
def disarm(host: str | None, options: playbooks.Options) -> None:
    """Disarm healing, of all hosts or HOST, for example while switches are rebooted."""
    _decide("disarmed", host, options)


@group.command("set")
@options.servers
@click.option("--on/--off", "ha", default=None, help="Whether they run again on another host when theirs dies.")
@click.option("--rebuild/--no-rebuild", "ha_rebuild", default=None, help="Whether a new disk of the image will do.")
@click.option("--priority", "ha_priority", type=click.IntRange(-100, 100), help="The highest gets a place first.")
@options.of_project
@options.of_playbook
def set_wishes(
    servers: tuple[str, ...],
    project: str | None,
    all_projects: bool,
    options: playbooks.Options,
    **wishes: bool | int | None,
) -> None:
    """Say what becomes of servers when their host dies. What is left out stays as it is."""
    asked = {name: value for name, value in wishes.items() if value is not None}
    if not asked:
        raise click.UsageError("say what is to change: --on, --off, --rebuild, --no-rebuild or --priority")
    playbooks.run("server_ha", actions.named(servers, project, all_projects, **asked), options)


@click.group("host")
def host_group() -> None:
    """Hosts whose death is to be proven."""


@host_group.command("confirm-dead")
@_ONE_HOST
@options.of_playbook
def confirm_dead(host: str, options: playbooks.Options) -> None:
    """Say, with your name, that HOST is dead: you have seen that it has no power. Its servers are started elsewhere."""
    _decide("confirmed", host, options)


@host_group.command("fence-test")
@_ONE_HOST
@click.option("--dry-run", is_flag=True, help="Ask for the status alone; switch nothing off.")
@options.of_playbook
def fence_test(host: str, dry_run: bool, options: playbooks.Options) -> None:
    """Test whether the fence agent of HOST can prove its death: the playbook novalite.cloud.fence_test."""
    playbooks.run("fence_test", {"host": host}, dataclasses.replace(options, check=True) if dry_run else options)


def _decide(state: str, host: str | None, options: playbooks.Options) -> None:
    playbooks.run("ha", {"ha_state": state, "host": host, "confirmed_by": getpass.getuser()}, options)


@click.command("reserve")
@options.form
def reserve(form: Form) -> None:
    """Show for each host whether the others have room for its servers if it dies, and which would find none."""
    show(looking.losses(), _LOSSES, form)
