# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Options and arguments that several commands have."""

from __future__ import annotations

import dataclasses
import functools
import os
import typing as t

import click

from . import playbooks
from .tables import OUTPUTS, Form

Command = t.Callable[..., None]
Option = t.Callable[[Command], Command]


def of_project(command: Command) -> Command:
    """Give the command `project` and `all_projects`."""
    for option in (
        click.option("-A", "--all-projects", is_flag=True, help="In all projects."),
        click.option("-p", "--project", envvar="NOVALITE_PROJECT", help="In this project. [default: demo]"),
    ):
        command = option(command)
    return command


def _gathered(
    command: Command, parameter: str, kind: type[Form] | type[playbooks.Options], *options: Option
) -> Command:
    """Give the command `options`, which it gets as one `parameter` of this `kind`."""

    @functools.wraps(command)
    def with_gathered(**words: t.Any) -> None:
        gathered = kind(**{field.name: words.pop(field.name) for field in dataclasses.fields(kind)})
        command(**{parameter: gathered}, **words)

    decorated: Command = with_gathered
    for option in options:
        decorated = option(decorated)
    return decorated


def form(command: Command) -> Command:
    """Give the command its `form`: how a list is shown."""
    return _gathered(
        command,
        "form",
        Form,
        click.option("--sort", metavar="COLUMN", help="By this column; -COLUMN the other way round."),
        click.option(
            "--filter", "filters", metavar="COLUMN=PATTERN", multiple=True, help="Only such: status=ERROR, name=web-*."
        ),
        click.option("-c", "--columns", metavar="COLUMN,...", multiple=True, help="These columns, in this order."),
        click.option("-o", "--output", type=click.Choice(OUTPUTS), default="table", help="How it is shown."),
    )


def structure(command: Command) -> Command:
    """Give the command `output`: how all about one thing is shown."""
    choice = click.Choice(["table", "json", "yaml"])
    return click.option("-o", "--output", type=choice, default="table", help="How it is shown.")(command)


def _complete_server(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    from . import looking  # which imports more than all commands that look at nothing

    words = context.params
    return looking.names_beginning(incomplete, words.get("project"), bool(words.get("all_projects")))


server = click.argument("server", metavar="SERVER", shell_complete=_complete_server)
perhaps_server = click.argument("server", metavar="[SERVER]", required=False, shell_complete=_complete_server)
servers = click.argument("servers", nargs=-1, required=True, metavar="SERVER...", shell_complete=_complete_server)


def _inventory() -> tuple[str, ...]:
    path = os.environ.get("NOVALITE_INVENTORY")
    return (path,) if path else ()


inventory = click.option(
    "-i",
    "--inventory",
    multiple=True,
    default=_inventory,  # not an envvar of click's, which takes a blank in the path for the end of one
    help="The compute hosts. [default: $NOVALITE_INVENTORY, or as ansible.cfg says]",
)


def of_playbook(command: Command) -> Command:
    """Give the command its playbook's options, as its parameter `options`."""
    return _gathered(
        command,
        "options",
        playbooks.Options,
        click.option("-v", "--verbose", count=True, help="As ansible-playbook's."),
        click.option("-D", "--diff", is_flag=True, help="Show what is changed."),
        click.option("-C", "--check", is_flag=True, help="Show what would be done, and change nothing."),
        click.option("-e", "--extra-vars", multiple=True, help="More variables, as ansible-playbook's."),
        click.option("-l", "--limit", help="Only these hosts."),
        inventory,
    )
