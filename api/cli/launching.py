# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The command `launch`, by itself: whoever launches waits for what it imports."""

from __future__ import annotations

import click

from . import config, main, options, playbooks


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
@options.of_playbook
@click.pass_context
def launch(context: click.Context, name: str | None, options: playbooks.Options, **variables: object) -> None:
    """Launch servers, or leave alone those that run: the playbook novalite.cloud.launch.

    What has no option of its own is said with -e; `-e @servers.yml` brings a whole list of servers.
    """
    if name is None:  # servers in a list say by themselves what they are
        for variable in config.OF_NEW & variables.keys():
            if context.get_parameter_source(variable) is click.core.ParameterSource.DEFAULT_MAP:
                variables[variable] = None
    playbooks.run("launch", {"server": name, **variables}, options)
