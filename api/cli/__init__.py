# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The command `novalite`: one more door to the cloud, for people at the controller and their scripts.

Looking opens the ledger (looking.py, nouns.py) and imports as little as that takes; what it finds is shown as a table
for people, or as JSON, YAML or names (tables.py). Doing runs the collection's playbooks (actions.py, playbooks.py).
A command's module is imported when the command is asked for.
"""

from __future__ import annotations

import gc
import importlib
import os
import typing as t

import click

from . import config

# Modules of the commands that are not in the module of all others
MODULES = {"launch": "launching", "list": "listing", "hosts": "listing"}
OTHERS = "commands"


class Commands(click.Group):
    """Group of the commands, each of which is added by its module: to import all of them takes as long as a look."""

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name not in self.commands:
            _import(MODULES.get(name, OTHERS))
        return super().get_command(context, name)

    def list_commands(self, context: click.Context) -> list[str]:
        return sorted(all_commands())


def all_commands() -> t.Mapping[str, click.Command]:
    """Import and return all commands, by name."""
    for module in (OTHERS, *MODULES.values()):
        _import(module)
    return main.commands


def _import(module: str) -> None:
    importlib.import_module(f".{module}", __package__)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120})
@click.option(
    "--home",
    metavar="DIRECTORY",
    help="Where the ledger is. [default: as NOVALITE_LEDGER_URL or NOVALITE_HOME say, or /var/lib/novalite]",
)
@click.version_option(package_name="novalite")
@click.pass_context
def main(context: click.Context, home: str | None) -> None:
    """Look at the cloud, and act on it.

    Completion for bash: eval "$(_NOVALITE_COMPLETE=bash_source novalite)"; zsh and fish likewise.
    """
    gc.disable()  # a look is too short to tidy up in, and its end, too
    context.call_on_close(gc.freeze)
    context.call_on_close(gc.enable)
    # a file that is wrong is mended by the command, too
    name = context.invoked_subcommand or ""
    settings = {} if name == "config" else config.read()
    command = main.get_command(context, name) if name else None
    if command is not None:
        context.default_map = {name: config.defaults(command, settings)}
    if "waiting" in settings:
        os.environ.setdefault("NOVALITE_WAITING", settings["waiting"])
    if not (home or os.environ.get("NOVALITE_HOME") or os.environ.get("NOVALITE_LEDGER_URL")):
        home = settings.get("home")
    if home:
        # for whatever is started from here, too; a home means the file in it
        os.environ["NOVALITE_HOME"] = os.path.abspath(os.path.expanduser(home))
        os.environ.pop("NOVALITE_LEDGER_URL", None)
