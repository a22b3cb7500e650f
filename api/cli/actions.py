# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Commands that do something to servers: a row of ACTIONS for each, with its own options. Its playbook has its name."""

from __future__ import annotations

import dataclasses
import typing as t

import click

from . import looking, options, playbooks


@dataclasses.dataclass(frozen=True)
class Action:
    """The text and options of a command on servers. The options have the names of its playbook's variables."""

    text: str
    options: tuple[options.Option, ...] = ()


_HOST = click.option("--host", help="Compute host to go to. [default: the scheduler chooses]")
_SHUTDOWN = click.option("--shutdown-timeout", type=float, help="Seconds that guests get to shut down.")
_FLAVOR = click.option("-f", "--flavor", required=True, help="Flavor.")
_SNAPSHOT = click.option("-s", "--snapshot", required=True, help="Name of the snapshot.")
_IMAGE = click.option("-I", "--image", help="Image.")

ACTIONS: t.Mapping[str, Action] = {
    "start": Action("Start servers."),
    "stop": Action("Shut servers down.", (_SHUTDOWN,)),
    "reboot": Action("Reboot servers.", (click.option("--hard", is_flag=True, help="Cut off the power."), _SHUTDOWN)),
    "pause": Action("Halt servers where they are."),
    "unpause": Action("Let paused servers go on."),
    "suspend": Action("Save servers to disk, and stop them."),
    "resume": Action("Let suspended servers go on."),
    "lock": Action("Let nobody change servers.", (click.option("--reason", help="Why."),)),
    "unlock": Action("Let servers be changed again."),
    "shelve": Action("Take servers off their hosts, and keep their disks as images.", (_SHUTDOWN,)),
    "unshelve": Action("Bring shelved servers back.", (_HOST,)),
    "rescue": Action("Boot servers from a rescue image, with their disk beside it.", (_IMAGE, _SHUTDOWN)),
    "unrescue": Action("Boot rescued servers from their own disk again.", (_SHUTDOWN,)),
    "rebuild": Action("Give servers a new disk from an image; what was on the old one is lost.", (_IMAGE, _SHUTDOWN)),
    "resize": Action(
        "Give servers another flavor.",
        (_FLAVOR, click.option("--confirm", is_flag=True, help="Confirm the resizes at once."), _HOST),
    ),
    "confirm-resize": Action("Confirm resizes: what was kept to go back is removed."),
    "revert-resize": Action("Take resizes back."),
    "migrate": Action("Move servers to other hosts; they are shut down for it.", (_HOST,)),
    "live-resize": Action("Give servers another flavor while they run.", (_FLAVOR,)),
    "live-migrate": Action("Move servers to other hosts while they run.", (_HOST,)),
    "evacuate": Action("Build servers of a dead host anew on others; what was on their own disks is lost.", (_HOST,)),
    "server-snapshot": Action(
        "Keep all disks of servers as they are now, to roll back to.",
        (_SNAPSHOT, click.option("--snapshot-description", help="What it is for.")),
    ),
    "rollback": Action("Give servers the disks of a snapshot; what was written since is lost.", (_SNAPSHOT, _SHUTDOWN)),
    "server-snapshot-delete": Action("Delete snapshots of servers.", (_SNAPSHOT,)),
    "snapshot": Action("Keep servers' disks as images.", (click.option("--image-name", help="Name of the image."),)),
}


def add_to(main: click.Group) -> None:
    """Add the command of each action."""
    for name, action in ACTIONS.items():
        main.add_command(command(name, name.replace("-", "_"), action))


def named(servers: tuple[str, ...], project: str | None, all_projects: bool, **words: object) -> dict[str, t.Any]:
    """Return the playbook's variables that name these servers, each with the same `words`. By name: UUIDs stand for
    servers on which the API began the action before. Raises click.ClickException for servers of several projects."""
    records = [looking.server(server, project, all_projects) for server in servers]
    projects = {record["project"]["name"] for record in records}
    if len(projects) > 1:
        raise click.UsageError(f"these servers are of {', '.join(sorted(projects))}: name those of one project")
    return {"servers": [{"name": record["name"], **words} for record in records], "project": projects.pop()}


def command(name: str, playbook: str, action: Action) -> click.Command:
    """Make the command `name`, which runs `playbook` on servers."""

    def act(
        servers: tuple[str, ...],
        project: str | None,
        all_projects: bool,
        options: playbooks.Options,
        **variables: object,
    ) -> None:
        playbooks.run(playbook, {**named(servers, project, all_projects), **variables}, options)

    acting = options.of_project(options.of_playbook(act))
    for option in reversed(action.options):
        acting = option(acting)
    return click.command(name, help=f"{action.text} The playbook novalite.cloud.{playbook}.")(options.servers(acting))
