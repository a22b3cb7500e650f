# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The command `novalite`: one more door to the cloud, for people at the controller and their scripts.

Looking opens the ledger (looking.py) and imports as little as that takes. Doing runs the collection's playbooks
(playbooks.py). Output is a table for people, or JSON (output.py).
"""

from __future__ import annotations

import dataclasses
import functools
import gc
import os
import typing as t

import click

from ansible_collections.novalite.cloud.plugins.module_utils._json import Json

from . import looking, output, playbooks

Decorated = t.TypeVar("Decorated", bound="t.Callable[..., object]")
PASSED_ON = {"ignore_unknown_options": True, "help_option_names": []}  # another parser reads the words


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120})
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
    gc.disable()  # half a second is too short to tidy up in
    context.call_on_close(gc.enable)
    if home:
        # for whatever is started from here, too; a home means the file in it
        os.environ["NOVALITE_HOME"] = os.path.abspath(os.path.expanduser(home))
        os.environ.pop("NOVALITE_LEDGER_URL", None)


# - Options and arguments that several commands have


def _of_project(command: Decorated) -> Decorated:
    for option in (
        click.option("-A", "--all-projects", is_flag=True, help="In all projects."),
        click.option("-p", "--project", envvar="NOVALITE_PROJECT", help="In this project. [default: demo]"),
    ):
        command = option(command)
    return command


_format = click.option(
    "-o", "--output", "form", type=click.Choice(["table", "json"]), default="table", help="How it is shown."
)


def _complete_server(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    words = context.params
    return looking.names_beginning(incomplete, words.get("project"), bool(words.get("all_projects")))


_server = click.argument("server", metavar="SERVER", shell_complete=_complete_server)


def _inventory() -> tuple[str, ...]:
    path = os.environ.get("NOVALITE_INVENTORY")
    return (path,) if path else ()


def _playbook_options(command: t.Callable[..., None]) -> t.Callable[..., None]:
    """Give the command its playbook's options, as its parameter `options`."""

    @functools.wraps(command)
    def with_options(**words: Json) -> None:
        options = {field.name: words.pop(field.name) for field in dataclasses.fields(playbooks.Options)}
        command(options=playbooks.Options(**options), **words)

    decorated: t.Callable[..., None] = with_options
    for option in (
        click.option("-v", "--verbose", count=True, help="As ansible-playbook's."),
        click.option("-D", "--diff", is_flag=True, help="Show what is changed."),
        click.option("-C", "--check", is_flag=True, help="Show what would be done, and change nothing."),
        click.option("-e", "--extra-vars", multiple=True, help="More variables, as ansible-playbook's."),
        click.option("-l", "--limit", help="Only these hosts."),
        click.option(
            "-i",
            "--inventory",
            multiple=True,
            default=_inventory,  # not an envvar of click's, which takes a blank in the path for the end of one
            help="The compute hosts. [default: $NOVALITE_INVENTORY, or as ansible.cfg says]",
        ),
    ):
        decorated = option(decorated)
    return decorated


# - Looking


@main.command("list")
@_of_project
@click.option("--host", help="On this compute host.")
@_format
def list_servers(project: str | None, all_projects: bool, host: str | None, form: str) -> None:
    """List servers, the newest first."""
    output.servers(looking.servers(project, all_projects, host), form)


@main.command()
@_server
@_of_project
@_format
def show(server: str, project: str | None, all_projects: bool, form: str) -> None:
    """Show all about a server, by its name or UUID."""
    output.server(looking.server(server, project, all_projects, history=True), form)


@main.command()
@_format
def hosts(form: str) -> None:
    """List the compute hosts and what they have left."""
    output.hosts(looking.hosts(), form)


@main.command(context_settings={"allow_interspersed_args": False})
@_of_project
@_server
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
def ssh(project: str | None, all_projects: bool, server: str, command: tuple[str, ...]) -> None:
    """Log in to a server, or run COMMAND there; ssh's own options come before COMMAND."""
    record = looking.server(server, project, all_projects)
    playbooks.replace_process(["ssh", "-F", looking.ssh_config(), record["uuid"], *command])


@main.command()
@_of_project
@click.option("--log", is_flag=True, help="Show what it said, also of one that does not run, and return.")
@click.option("--lines", type=int, help="So many lines of the log.")
@_playbook_options
@_server
def console(
    project: str | None, all_projects: bool, server: str, log: bool, lines: int | None, options: playbooks.Options
) -> None:
    """Attach this terminal to a server's console; Ctrl-] leaves it."""
    record = looking.server(server, project, all_projects)
    if log or lines is not None:
        playbooks.run("console", {"uuids": [record["uuid"]], "lines": lines}, options)
    playbooks.replace_process(looking.console_command(record))


# - Doing


@main.command()
@click.argument("name", required=False)
@click.option("-f", "--flavor", help="Flavor.")
@click.option("-I", "--image", help="Image.")
@click.option("-k", "--key", help="Key pair.")
@click.option("-n", "--network", "networks", multiple=True, help="Network; more than once for several.")
@click.option("-g", "--security-group", "security_groups", multiple=True, help="Security group, likewise.")
@click.option("-c", "--count", type=int, help="So many: web-1, web-2 ...")
@click.option("-z", "--zone", help="Availability zone.")
@click.option("-p", "--project", envvar="NOVALITE_PROJECT", help="For this project. [default: demo]")
@click.option("-w", "--wait-for", help="What guests must do before the command returns: running, ssh, agent.")
@_playbook_options
def launch(name: str | None, options: playbooks.Options, **variables: object) -> None:
    """Launch servers, or leave alone those that run: the playbook novalite.cloud.launch.

    What has no option of its own is said with -e; `-e @servers.yml` brings a whole list of servers.
    """
    playbooks.run("launch", {"server": name, **variables}, options)


@main.command()
@click.argument("servers", nargs=-1, required=True, metavar="SERVER...", shell_complete=_complete_server)
@_of_project
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@_playbook_options
def delete(
    servers: tuple[str, ...], project: str | None, all_projects: bool, yes: bool, options: playbooks.Options
) -> None:
    """Delete servers: the playbook novalite.cloud.terminate."""
    records = [looking.server(server, project, all_projects) for server in servers]
    if not (yes or options.check):
        shown = ", ".join(f"{record['name']} ({record['uuid']})" for record in records)
        click.confirm(f"Delete {shown} with all that is on them?", abort=True)
    playbooks.run("terminate", {"uuids": [record["uuid"] for record in records]}, options)


# - Serving


def _serving(name: str, verb: str, text: str) -> None:
    """Add the command `name`, which hands its words on to the application's command `verb`."""

    @main.command(name, context_settings=PASSED_ON, help=text)
    @click.argument("words", nargs=-1, type=click.UNPROCESSED)
    def serve(words: tuple[str, ...]) -> t.NoReturn:
        from ..__main__ import main as application

        gc.enable()
        raise SystemExit(application([verb, *words]))


_serving("api", "serve", "Serve the REST API, with a worker for its jobs.")
_serving("worker", "work", "Carry out the API's jobs.")
_serving("metadata", "serve-metadata", "Serve what guests are told about them.")
