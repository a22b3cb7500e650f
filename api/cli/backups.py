# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The commands `novalite backup ...`: backups of servers are taken, looked at, verified, restored and deleted."""

from __future__ import annotations

import base64
import os
import pathlib
import typing as t

import click

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.revisions import DEFAULT_PROJECT
from ansible_collections.novalite.cloud.plugins.module_utils._rules import retention

from . import actions, backup_policies, looking, looking_backups, nouns, options, playbooks, tables

SYSTEM_PYTHON = "/usr/bin/python3"  # which has Debian's libnbd

_NAME = click.option("-b", "--backup", required=True, help="Name or id of the backup.")
_AGES = (
    tables.Column("server", lambda record: record["server"]),
    tables.Column("newest", lambda record: looking.age(record["newest"]) if record["newest"] else "NONE"),
    tables.Column("whole", lambda record: looking.age(record["whole"])),
    tables.Column("booted", lambda record: looking.age(record["proven"])),
    tables.Column("policy", lambda record: record["policy"] or ""),
)
_PLAYBOOKS: t.Mapping[str, tuple[str, actions.Action]] = {
    "create": (
        "backup",
        actions.Action(
            "Take backups of servers, which may run.",
            (
                click.option("-b", "--backup", help="Its name. [default: the time]"),
                *(
                    click.option(
                        f"--{option.replace('_', '-')}", type=int, metavar="N", help="Of older ones, keep so many."
                    )
                    for option in retention.OPTIONS
                ),
                click.option("--full", "full_backup", is_flag=True, help="Take all, whatever was taken before."),
            ),
        ),
    ),
    "verify": (
        "backup_verify",
        actions.Action(
            "Compare all blocks of backups with what was saved; boot them.",
            (
                click.option("-b", "--backup", help="Name or id of the backup. [default: the newest]"),
                click.option("--boot", is_flag=True, help="Boot it in a sandbox. [default: the newest full one]"),
                click.option("--boot-timeout", type=int, metavar="SECONDS", help="That its guest gets to be up."),
            ),
        ),
    ),
    "restore": (
        "backup_restore",
        actions.Action(
            "Give servers the disks of a backup; what was written since is lost.",
            (_NAME, click.option("--shutdown-timeout", type=float, help="Seconds that guests get to shut down.")),
        ),
    ),
    "delete": ("backup_delete", actions.Action("Delete backups of servers.", (_NAME,))),
}


@click.group("backup")
def group() -> None:
    """Take, list, verify, restore and delete backups of servers."""


group.add_command(nouns.command("backups"), "list")
group.add_command(backup_policies.group)
group.add_command(backup_policies.run_due)


def _named(backup: str, project: str | None, all_projects: bool) -> looking.Record:
    records = looking.records("backups", project, all_projects)
    named = [record for record in records if backup in (record["name"], record["id"])]
    if len(named) != 1:
        count = "several backups have" if named else "no backup has"
        raise click.ClickException(f"{count} the name or id {backup!r}: take an id of `novalite backup list -o wide`")
    return named[0]


@group.command("ages")
@options.of_project
@options.form
def ages(project: str | None, all_projects: bool, form: tables.Form) -> None:
    """List servers with the ages of their newest backup, the newest that was found whole, and the newest booted."""
    tables.show(looking_backups.backup_ages(None if all_projects else project or DEFAULT_PROJECT), _AGES, form)


@group.command()
@click.argument("backup")
@click.option("--into", default=".", metavar="DIRECTORY", help="Directory for console.txt and picture.png.")
@options.of_project
def proof(backup: str, into: str, project: str | None, all_projects: bool) -> None:
    """Write what a backup's guest said on its console when it was booted last, and a picture of its screen."""
    kept = looking_backups.proof_of(_named(backup, project, all_projects)["id"])
    if kept is None:
        raise click.ClickException(f"backup {backup!r} was never booted: use `novalite backup verify SERVER --boot`")
    console, picture = kept
    files = {"console.txt": console.encode()} | ({"picture.png": base64.b64decode(picture)} if picture else {})
    for name, data in files.items():
        path = pathlib.Path(into, name)
        path.write_bytes(data)
        click.echo(path)


@group.command()
@click.argument("backup")
@options.of_project
@options.structure
def show(backup: str, project: str | None, all_projects: bool, output: str) -> None:
    """Show all about a backup, by its name or id."""
    record = _named(backup, project, all_projects)
    if output in ("json", "yaml"):
        tables.structure(record, output)
        return
    rows: list[tuple[str, object]] = [
        *((name, record[name]) for name in ("server", "name", "id", "project", "status", "kind", "reason")),
        *((name, record[name]) for name in ("consistency", "complaint", "host", "moved", "size")),
        ("fault", (record["fault"] or {}).get("message")),
        *(("disk", f"{disk['name']}: {disk['size']} bytes, {disk['kind']}") for disk in record["disks"]),
        ("age", looking.age(record["created_at"])),
        ("verified", looking.age(record["verified_at"])),
        ("proven", looking.age(record["proven_at"])),
        *((f"boot {name}", (record["boot"] or {}).get(name)) for name in ("by", "seconds", "error")),
    ]
    tables.fields([row for row in rows if row[1] not in (None, "")])


@group.command()
def key() -> None:
    """Print the key of the store, to be kept elsewhere: without it no backup can be read."""
    from ansible_collections.novalite.cloud.plugins.module_utils import _secret_file

    path = _secret_file.secret_path(name=_secret_file.BACKUP)
    secret = _secret_file.read_secret(path)
    if secret is None:
        raise click.ClickException(f"{path} is not there: the first backup makes it")
    click.echo(secret.hex())


@group.command("restore-files")
@click.argument("server", required=False)
@click.option("--store", required=True, metavar="PLACE", help="Directory, or sftp:user@host:path.")
@click.option(
    "--key-file", required=True, metavar="FILE", help="File with the key, as `novalite backup key` printed it."
)
@click.option("-b", "--backup", help="Id of the backup, or `newest`. [default: list them]")
@click.option("--into", default=".", metavar="DIRECTORY", help="Directory for the disks.")
def restore_files(server: str | None, store: str, key_file: str, backup: str | None, into: str) -> None:
    """Restore disks to files, of the store and its key alone: without a ledger, libvirt or a hypervisor.

    SERVER is the UUID of a server or a volume; without it, those that have backups are listed. Needs restic, qemu-utils
    and python3-libnbd."""
    words = [] if server is None else [server]
    words += ["--store", store, "--key-file", key_file, "--into", into]
    words += [] if backup is None else ["--backup", backup]
    root = pathlib.Path(retention.__file__).parents[6]  # where ansible_collections is
    module = retention.__name__.replace("_rules.retention", "_backup.without_ledger")
    playbooks.replace_process([SYSTEM_PYTHON, "-m", module, *words], {**os.environ, "PYTHONPATH": str(root)})


def _of_files(command: options.Command) -> options.Command:
    """Add the options by which a disk of a backup is found."""
    command = click.option("--partition", type=int, help="[default: the largest file system]")(command)
    command = click.option("--disk", help="Its place in the guest, such as vdb. [default: the first one]")(command)
    return click.option("-p", "--project", help="The project that has it. [default: demo]")(command)


@group.command("files")
@click.argument("backup")
@click.option("--path", default="/", show_default=True, help="Directory, or file, of the guest.")
@_of_files
@options.of_playbook
def files(backup: str, options: playbooks.Options, **variables: object) -> None:
    """List files of a server's backup. The playbook novalite.cloud.backup_files.

    The guest's file system is mounted nowhere: a confined process on a compute host reads it."""
    playbooks.run("backup_files", {"backup": backup, **variables}, options)


@group.command("extract")
@click.argument("backup")
@click.argument("paths", nargs=-1, required=True)
@click.option("--to", "into", required=True, metavar="DIRECTORY", help="Directory that is to be made.")
@click.option("--max-mib", type=int, help="MiB that the files have at most. [default: 1024]")
@_of_files
@options.of_playbook
def extract(backup: str, paths: tuple[str, ...], into: str, options: playbooks.Options, **variables: object) -> None:
    """Bring files and directories of a server's backup to this machine. The playbook novalite.cloud.backup_files.

    Regular files and directories come; links, devices and the rest are named. They belong to whoever runs this."""
    asked = {"backup": backup, "paths": list(paths), "into": os.path.abspath(into)}
    playbooks.run("backup_files", {**asked, **variables}, options)


@group.command("restore-volume")
@click.argument("backup")
@click.argument("disk")
@click.option("-n", "--name", help="Name of the new volume. [default: those of the server and the disk]")
@click.option("--type", "volume_type", help="Type of the new volume. [default: file]")
@click.option("-p", "--project", help="The project that has it. [default: demo]")
@options.of_playbook
def restore_volume(
    backup: str, disk: str, name: str | None, volume_type: str | None, project: str | None, options: playbooks.Options
) -> None:
    """Make a new volume of one disk of a server's backup. The playbook novalite.cloud.backup_restore_volume.

    DISK is its place in the guest, such as vdb, or the id of the volume that it was."""
    variables = {"backup": backup, "backup_disk": disk, "volume": name, "volume_type": volume_type, "project": project}
    playbooks.run("backup_restore_volume", variables, options)


@group.command()
@click.argument("backup")
@click.option("-p", "--project", help="The project that has it. [default: demo]")
@options.of_playbook
def forget(backup: str, project: str | None, options: playbooks.Options) -> None:
    """Delete a backup of a server that is gone, by its id. The playbook novalite.cloud.backup_forget."""
    playbooks.run("backup_forget", {"backup": backup, "project": project}, options)


for _name, (_playbook, _action) in _PLAYBOOKS.items():
    group.add_command(actions.command(_name, _playbook, _action))
