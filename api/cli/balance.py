# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The command `novalite balance`: servers move from full hosts to empty ones."""

from __future__ import annotations

import click

from . import options, playbooks


@click.command("balance")
@click.option("--plan", is_flag=True, help="Show which servers would move, and why; move nothing.")
@click.option("--max-moves", type=click.IntRange(1), help="Moves at most.  [default: 20]")
@click.option("--max-gib", type=click.IntRange(1), help="GiB that all moves send at most.")
@options.of_playbook
def command(plan: bool, max_moves: int | None, max_gib: int | None, options: playbooks.Options) -> None:
    """Even out the load of the hosts: the playbook novalite.cloud.balance, whose servers move while they run."""
    mode = "suggest" if plan else "act"
    playbooks.run("balance", {"balance_mode": mode, "max_moves": max_moves, "max_gib": max_gib}, options)
