# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Running the collection's playbooks: this process becomes ansible-playbook."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import sys
import typing as t

import click

# What serves novalite best, for those who have no ansible.cfg. Theirs would be overruled, so it is left alone then.
DEFAULTS = {
    "ANSIBLE_CALLBACKS_ENABLED": "novalite.cloud.launch_summary",
    "ANSIBLE_STDOUT_CALLBACK": "novalite.cloud.progress",
    "ANSIBLE_FORKS": "25",
    "ANSIBLE_PIPELINING": "True",
    "ANSIBLE_SSH_ARGS": "-C -o ControlMaster=auto -o ControlPersist=30m",
    "ANSIBLE_LOCALHOST_WARNING": "False",
    "ANSIBLE_INVENTORY_UNPARSED_WARNING": "False",
}


@dataclasses.dataclass(frozen=True)
class Options:
    """Options of ansible-playbook itself, for one run."""

    inventory: tuple[str, ...]
    limit: str | None
    extra_vars: tuple[str, ...]
    check: bool
    diff: bool
    verbose: int  # how many v's


def run(playbook: str, variables: t.Mapping[str, object], options: Options, screen: str | None = None) -> t.NoReturn:
    """Run `novalite.cloud.<playbook>` with these variables, but for those that are None, False or empty. `screen` is
    the callback that shows the run, whatever ansible.cfg says, unless all of it is to be seen (-v)."""
    from .. import keep_alive  # and configparser, which no look needs
    from . import waiting

    passed_variables = {
        name: value for name, value in variables.items() if value not in (None, (), []) and value is not False
    }
    command = [sys.executable, "-m", "ansible", "playbook", f"novalite.cloud.{playbook}"]
    for source in options.inventory:
        command += ["-i", source]
    if options.limit is not None:
        command += ["--limit", options.limit]
    if passed_variables:
        command += ["-e", as_texts(passed_variables)]
    for extra in options.extra_vars:
        command += ["-e", extra]
    command += ["--check"] * options.check + ["--diff"] * options.diff
    command += ["-" + "v" * options.verbose] * bool(options.verbose)
    environment = dict(os.environ)
    if keep_alive.configuration(environment, os.curdir) is None:
        environment = {**DEFAULTS, **environment}
    if screen is not None and not options.verbose:
        environment["ANSIBLE_STDOUT_CALLBACK"] = screen
    environment |= keep_alive.variables(environment, os.curdir)
    waiting.hand_over(command[command.index("playbook") + 1 :], environment)
    replace_process(command, environment)


def as_texts(variables: t.Mapping[str, object]) -> str:
    """Return extra variables as one word: JSON, or YAML where Ansible could take a text for a template. These have the
    tag then that forbids it: names of volumes, networks and images are their tenants', and a template would be a
    program of theirs on this machine. Who means a template says it with -e."""
    text = json.dumps(variables)
    return _tagged(json.loads(text)) if _TEMPLATE.search(text) else text


_TEMPLATE = re.compile(r"\{[{%#]")


def _tagged(value: object) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_quoted(name)}: {_tagged(held)}" for name, held in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_tagged, value)) + "]"
    if isinstance(value, str):  # with the tag, `1` were a number, and an empty text none
        return f"!unsafe {_quoted(value)}" if _TEMPLATE.search(value) else _quoted(value)
    return json.dumps(value)


def _quoted(text: str) -> str:
    """The text in YAML, which takes no halves of characters as JSON writes them."""
    plain = (letter if " " <= letter <= "~" and letter not in '"\\' else f"\\U{ord(letter):08x}" for letter in text)
    return f'"{"".join(plain)}"'


def replace_process(command: t.Sequence[str], environment: t.Mapping[str, str] = os.environ) -> t.NoReturn:
    """Become `command`, with its exit status, its signals and this terminal. Raises click.ClickException."""
    sys.stdout.flush()
    try:
        os.execvpe(command[0], list(command), dict(environment))
    except OSError as error:
        raise click.ClickException(f"{command[0]} cannot be run: {error.strerror}") from None
