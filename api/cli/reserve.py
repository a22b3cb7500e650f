# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The command `novalite reserve`: whether the other hosts have room for the servers of a host that dies."""

from __future__ import annotations

import click

from . import looking, options
from .tables import Column, Form, show

_COLUMNS = (
    Column("host", lambda record: record["host"]),
    Column("servers", lambda record: record["instances"]),
    Column("find room", lambda record: sum(record["takers"].values())),
    Column("find none", lambda record: len(record["stranded"])),
    Column("which", lambda record: ", ".join(instance["name"] for instance in record["stranded"])),
    Column("takers", lambda record: ", ".join(f"{count} on {host}" for host, count in record["takers"].items()), True),
)


@click.command("reserve")
@options.form
def command(form: Form) -> None:
    """Show for each host whether the others have room for its servers if it dies, and which would find none."""
    show(looking.losses(), _COLUMNS, form)
