# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The commands `novalite ledger ...`: a row of PLAYBOOKS for each playbook about the ledger as a whole."""

from __future__ import annotations

import typing as t

import click

from . import options, playbooks

_PARTIAL = click.option("--partial", is_flag=True, help="Go on without the hosts that do not answer.")
_RESTORED = (
    click.argument("ledger_file", metavar="FILE", type=click.Path(exists=True, dir_okay=False, resolve_path=True)),
    click.option("--force", is_flag=True, help="Replace a ledger that holds something."),
    _PARTIAL,
)
_WRITTEN = click.option("--file", "ledger_file", type=click.Path(resolve_path=True), help="Into this file.")

# Name -> its text, and what its playbook novalite.cloud.ledger_<name> is told
PLAYBOOKS: t.Mapping[str, tuple[str, tuple[options.Option, ...]]] = {
    "backup": (
        "Copy the ledger, which may be in use.",
        (
            _WRITTEN,
            click.option("--keep", "keep_backups", type=int, help="How many dated copies are kept."),
            click.option("--archive-days", type=int, help="Days after which deleted servers leave the ledger."),
        ),
    ),
    "restore": ("Bring back a copy.", _RESTORED),
    "export": ("Write the ledger as text.", (_WRITTEN,)),
    "import": ("Fill a ledger from such a text.", _RESTORED),
    "migrate": ("Bring the ledger to a revision.", (click.option("--revision", help="[default: the newest]"),)),
    "rebuild": (
        "Make the ledger again from what the hosts have.",
        (click.option("--ledger", help="Identity of the ledger that was lost, where hosts know several."), _PARTIAL),
    ),
}


@click.group("ledger")
def group() -> None:
    """Copy, restore, move and rebuild the ledger."""


def _command(name: str, text: str, own: tuple[options.Option, ...]) -> click.Command:
    def act(options: playbooks.Options, **variables: object) -> None:
        playbooks.run(f"ledger_{name}", variables, options)

    command = options.of_playbook(act)
    for option in reversed(own):
        command = option(command)
    return click.command(name, help=f"{text} The playbook novalite.cloud.ledger_{name}.")(command)


for _name, (_text, _own) in PLAYBOOKS.items():
    group.add_command(_command(_name, _text, _own))
