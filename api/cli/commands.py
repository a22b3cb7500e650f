# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The commands that look (looking.py, nouns.py) and those that do (actions.py, playbooks.py), but for the few that have
modules of their own."""

from __future__ import annotations

import dataclasses
import gc
import typing as t

import click

from . import (
    actions,
    agents,
    backups,
    balance,
    config,
    healing,
    ledger,
    looking,
    main,
    nouns,
    options,
    playbooks,
    replicas,
    tables,
    top,
)
from . import output as shown
from .doctor import findings

PASSED_ON = {"ignore_unknown_options": True, "help_option_names": []}  # another parser reads the words

# - Looking


@main.command()
@options.server
@options.of_project
@options.structure
def show(server: str, project: str | None, all_projects: bool, output: str) -> None:
    """Show all about a server, by its name or UUID; where its image has an agent, that is asked for addresses."""
    record = looking.server(server, project, all_projects, history=True)
    shown.server({**record, "guest_addresses": agents.addresses(record)}, output)


@main.command()
@options.perhaps_server
@options.of_project
@options.form
@click.option("-f", "--follow", is_flag=True, help="Tell what hosts are at, of SERVER or of all, until Ctrl-C.")
def events(server: str | None, project: str | None, all_projects: bool, form: tables.Form, follow: bool) -> None:
    """List what was done to a server, the oldest first; or follow the steps of hosts while they happen, whoever had
    this machine run them."""
    if follow:
        from . import following

        if form not in (tables.Form(), tables.Form("json")):
            raise click.UsageError(
                "steps that are followed are shown as lines, or with -o json: there is no list of them"
            )
        following.follow(looking.server(server, project, all_projects)["uuid"] if server else None, form.output)
        return
    if server is None:
        raise click.UsageError("say of which SERVER, or --follow the steps of all")
    shown.events(looking.server(server, project, all_projects, history=True), form)


@main.command()
@options.server
@options.of_project
@options.structure
def why(server: str, project: str | None, all_projects: bool, output: str) -> None:
    """Show why a server is on its host, or on none."""
    shown.why(looking.placement(server, project, all_projects), output)


nouns.add_to(main)


@main.command()
@options.inventory
@options.form
def doctor(form: tables.Form, inventory: tuple[str, ...]) -> None:
    """Say what is wrong with this controller and its hosts, and what helps; without asking a host."""
    problems = findings(looking.health(inventory))
    shown.findings(problems, form)
    if problems:
        raise SystemExit(1)


@main.command(context_settings={"allow_interspersed_args": False})
@options.of_project
@options.server
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
def ssh(project: str | None, all_projects: bool, server: str, command: tuple[str, ...]) -> None:
    """Log in to a server, or run COMMAND there; ssh's own options come before COMMAND."""
    record = looking.server(server, project, all_projects)
    playbooks.replace_process(["ssh", "-F", looking.ssh_config(), record["uuid"], *command])


@main.command()
@options.of_project
@click.option("--log", is_flag=True, help="Show what it said, also of one that does not run, and return.")
@click.option("--lines", type=int, help="So many lines of the log.")
@options.of_playbook
@options.server
def console(
    project: str | None, all_projects: bool, server: str, log: bool, lines: int | None, options: playbooks.Options
) -> None:
    """Attach this terminal to a server's console; Ctrl-] leaves it."""
    record = looking.server(server, project, all_projects)
    if log or lines is not None:
        _show_log(record, lines, options)
    playbooks.replace_process(looking.console_command(record))


@main.command("log")
@options.server
@options.of_project
@click.option("--lines", type=int, help="So many, the last ones.")
@options.of_playbook
def console_log(
    server: str, project: str | None, all_projects: bool, lines: int | None, options: playbooks.Options
) -> None:
    """Show what a server said on its console, also of one that does not run: the text alone."""
    _show_log(looking.server(server, project, all_projects), lines, options)


def _show_log(record: tables.Record, lines: int | None, options: playbooks.Options) -> t.NoReturn:
    words = {"uuids": [record["uuid"]], "lines": lines}
    playbooks.run("console", words, options, "novalite.cloud.console_text")


# - Doing


@main.command()
@options.servers
@options.of_project
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@options.of_playbook
def delete(
    servers: tuple[str, ...], project: str | None, all_projects: bool, yes: bool, options: playbooks.Options
) -> None:
    """Delete servers: the playbook novalite.cloud.terminate."""
    records = [looking.server(server, project, all_projects) for server in servers]
    if not (yes or options.check):
        shown = ", ".join(f"{record['name']} ({record['uuid']})" for record in records)
        click.confirm(f"Delete {shown} with all that is on them?", abort=True)
    playbooks.run("terminate", {"uuids": [record["uuid"] for record in records]}, options)


@main.command()
@options.server
@click.argument("volume")
@options.of_project
@click.option("--device", help="Name of the device in the guest.")
@options.of_playbook
def attach(
    server: str, volume: str, project: str | None, all_projects: bool, device: str | None, options: playbooks.Options
) -> None:
    """Attach a volume to a server: the playbook novalite.cloud.volume_attach."""
    record = looking.server(server, project, all_projects)
    words = {"server": record["name"], "project": record["project"]["name"], "volume": volume, "device": device}
    playbooks.run("volume_attach", words, options)


def _interface(name: str, playbook: str, text: str) -> None:
    """Add the command `name`, which gives a server an interface, or takes one."""

    @main.command(name, help=f"{text}: the playbook novalite.cloud.{playbook}.")
    @options.server
    @options.of_project
    @click.option("-n", "--network", help="Network that it is on.")
    @click.option("--port", "port_id", help="UUID of its port.")
    @click.option("--address", "fixed_ip", help="Its address on the network.")
    @options.of_playbook
    def act(server: str, project: str | None, all_projects: bool, options: playbooks.Options, **words: object) -> None:
        record = looking.server(server, project, all_projects)
        if not (words["network"] or words["port_id"]):
            raise click.UsageError("say which interface, by --network or --port")
        playbooks.run(playbook, {"server": record["name"], "project": record["project"]["name"], **words}, options)


_interface("attach-interface", "interface_attach", "Give a server another network interface")
_interface("detach-interface", "interface_detach", "Take a network interface from a server")


@main.command()
@options.server
@options.of_project
@click.option("--insert", metavar="IMAGE", help="Put this ISO image in.")
@click.option("--eject", is_flag=True, help="Take out what is in the drive.")
@click.option("--drive", type=int, help="Number of the drive. [default: 0]")
@click.option("--force", is_flag=True, help="Also from a guest that holds on to it.")
@options.of_playbook
def cdrom(server: str, project: str | None, all_projects: bool, options: playbooks.Options, **words: object) -> None:
    """Put a CD into a server, or take it out: the playbook novalite.cloud.cdrom."""
    record = looking.server(server, project, all_projects)
    if bool(words["insert"]) == words["eject"]:
        raise click.UsageError("say one of --insert IMAGE and --eject")
    playbooks.run("cdrom", {"server": record["name"], "project": record["project"]["name"], **words}, options)


@main.command("floating-ip")
@options.server
@options.of_project
@click.option("--address", "floating_ip", help="This one. [default: one of the project's, or a new one]")
@click.option("--pool", help="Pool that a new one comes from.")
@click.option("--fixed-ip", help="Which of the server's addresses it leads to.")
@options.of_playbook
def lead_floating_ip(
    server: str, project: str | None, all_projects: bool, options: playbooks.Options, **words: object
) -> None:
    """Lead a floating IP to a server: the playbook novalite.cloud.floating_ips."""
    record = looking.server(server, project, all_projects)
    variables = {"server": record["name"], "project": record["project"]["name"], **words}
    playbooks.run("floating_ips", variables, options)


@main.command()
@click.argument("volume")
@click.option("-p", "--project", envvar="NOVALITE_PROJECT", help="Of this project. [default: demo]")
@options.of_playbook
def detach(volume: str, project: str | None, options: playbooks.Options) -> None:
    """Detach a volume from its server: the playbook novalite.cloud.volume_detach."""
    playbooks.run("volume_detach", {"volume": volume, "project": project}, options)


_STACK = click.argument("stack", type=click.Path(exists=True, dir_okay=False, resolve_path=True), metavar="FILE")


@main.command()
@_STACK
@click.option("--prune", is_flag=True, help="Remove what the stack made and does not name any more.")
@click.option("--replace", is_flag=True, help="Replace servers that cannot be changed.")
@options.of_playbook
def apply(stack: str, prune: bool, replace: bool, options: playbooks.Options) -> None:
    """Make what FILE describes: the playbook novalite.cloud.stack. With --check, its plan."""
    playbooks.run("stack", {"stack": stack, "prune": prune, "replace": replace}, options)


@main.command()
@_STACK
@click.option("--prune", is_flag=True, help="Also what would be removed.")
@click.option("--replace", is_flag=True, help="Also what would be replaced.")
@options.of_playbook
def plan(stack: str, prune: bool, replace: bool, options: playbooks.Options) -> None:
    """Show what `apply` would do, and change nothing: the playbook novalite.cloud.stack with --check."""
    checked = dataclasses.replace(options, check=True)
    playbooks.run("stack", {"stack": stack, "prune": prune, "replace": replace}, checked)


@main.command()
@click.option(
    "--accept", multiple=True, metavar="HOST", help="Its guests are its own, though the ledger has them elsewhere."
)
@options.of_playbook
def reconcile(accept: tuple[str, ...], options: playbooks.Options) -> None:
    """Find and repair differences between ledger and hosts: the playbook novalite.cloud.reconcile."""
    playbooks.run("reconcile", {"accept": accept}, options)


@main.command()
@click.option("--test", is_flag=True, help="Send a message that tells of nothing.")
def notify(test: bool) -> None:
    """Tell by webhook and mail, once, what needs attention and what is over: for a crontab, or by hand."""
    from ..notices.__main__ import main as tell

    raise SystemExit(tell(["--test"] if test else []))


actions.add_to(main)
main.add_command(config.command)
main.add_command(backups.group)
main.add_command(replicas.group)
main.add_command(ledger.group)
main.add_command(top.command)
main.add_command(balance.command)
main.add_command(healing.reserve)
main.add_command(healing.group)
main.add_command(healing.host_group)


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
