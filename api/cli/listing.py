# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The commands `list` and `hosts`, by themselves: what people and scripts ask most often imports the least."""

from __future__ import annotations

import click

from . import looking, main, options, tables
from . import output as shown


@main.command("list")
@options.of_project
@click.option("--host", help="On this compute host.")
@options.form
def list_servers(project: str | None, all_projects: bool, host: str | None, form: tables.Form) -> None:
    """List servers, the newest first."""
    shown.servers(looking.servers(project, all_projects, host), form, all_projects)


@main.command()
@options.form
def hosts(form: tables.Form) -> None:
    """List the compute hosts and what they have left."""
    shown.hosts(looking.hosts(), form)
