# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Defaults of a person, in one file: what options and the environment do not say. The file is that of NOVALITE_CONFIG,
or novalite/config.yml in the directory for configuration (XDG Base Directory Specification)."""

from __future__ import annotations

import os
import typing as t

import click

# Name of a setting -> the option that it is the default of, and what it is
SETTINGS: t.Mapping[str, tuple[str, str]] = {
    "home": ("home", "where the ledger is"),
    "inventory": ("inventory", "the compute hosts"),
    "project": ("project", "project of servers"),
    "flavor": ("flavor", "flavor of new servers"),
    "image": ("image", "image of new servers"),
    "key": ("key", "key pair of new servers"),
    "network": ("networks", "network of new servers"),
    "waiting": ("", "0: no playbook waits for the next command, 1: always one"),
    "wait_for": ("wait_for", "what is waited for of new guests: running, ssh, agent"),
}
OF_NEW = {"flavor", "image", "key", "networks"}  # which say something else of a server that is there
_SEVERAL = {"inventory", "networks"}  # options that may be given more than once


def path() -> str:
    """Return the path of the file, which may not be there."""
    base = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    return os.environ.get("NOVALITE_CONFIG") or os.path.join(base, "novalite", "config.yml")


def read(checked: bool = True) -> dict[str, str]:
    """Return the settings of the file. Raises click.ClickException for one that is not a mapping of texts, and if
    `checked` for one with a name that is none of SETTINGS."""
    file = path()
    if not os.path.exists(file):
        return {}
    import yaml  # takes as long as the rest of a look, where nobody has the file

    try:
        with open(file, encoding="utf-8") as handle:
            settings = yaml.safe_load(handle)
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise click.ClickException(f"{file} cannot be read: {error}") from None
    if settings is None:
        return {}
    if not isinstance(settings, dict) or not all(isinstance(value, str) for value in settings.values()):
        raise click.ClickException(f"{file} is not a mapping of settings to texts, such as `key: me`")
    for name in settings if checked else ():
        check(name)
    return settings


def write(settings: t.Mapping[str, str]) -> None:
    """Replace the settings of the file, which is made with its directory. Raises click.ClickException."""
    import yaml

    file = path()
    try:
        os.makedirs(os.path.dirname(os.path.abspath(file)), exist_ok=True)
        with open(f"{file}.new", "w", encoding="utf-8") as handle:
            yaml.safe_dump(dict(sorted(settings.items())), handle, allow_unicode=True)
        os.replace(f"{file}.new", file)
    except OSError as error:
        raise click.ClickException(f"{file} cannot be written: {error.strerror}") from None


def check(name: str) -> None:
    """Raise click.ClickException for the name of no setting."""
    if name not in SETTINGS:
        known = ", ".join(SETTINGS)
        raise click.ClickException(
            f"there is no setting {name!r} (novalite config unset removes it): there are {known}"
        )


def defaults(command: click.Command, settings: t.Mapping[str, str]) -> dict[str, object]:
    """Return what click takes as the defaults of the command's options. The environment's NOVALITE_INVENTORY goes
    before; that of the others click reads itself."""
    values: dict[str, object] = {}
    for name, value in settings.items():
        option = SETTINGS[name][0]
        values[option] = [value] if option in _SEVERAL else value
    if os.environ.get("NOVALITE_INVENTORY"):
        values.pop("inventory", None)
    return {
        option.name: values[option.name]
        for option in command.params
        if option.name in values and (command.name == "launch" or option.name not in OF_NEW)
    }


@click.group("config")
def command() -> None:
    """Keep defaults: project, inventory, key ..."""


@command.command()
def show() -> None:
    """Show what is set, and what may be."""
    settings = read(checked=False)
    click.echo(f"# {path()}")
    for name, (_option, text) in SETTINGS.items():
        click.echo(f"{name}: {settings[name]}" if name in settings else f"# {name}: ({text})")


@command.command("set")
@click.argument("name")
@click.argument("value")
def set_value(name: str, value: str) -> None:
    """Set NAME to VALUE."""
    check(name)
    if name in ("home", "inventory") and "," not in value:  # `hv1,` is an inventory, too
        value = os.path.abspath(os.path.expanduser(value))
    write({**read(checked=False), name: value})


@command.command()
@click.argument("name")
def unset(name: str) -> None:
    """Forget NAME."""
    write({known: value for known, value in read(checked=False).items() if known != name})
