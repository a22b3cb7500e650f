# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A playbook's declaration; variables that many playbooks share, and the rules which of them exclude each other."""

from __future__ import annotations

import dataclasses
import typing as t

from ..module_utils._rules import retention
from ..module_utils._rules.server_options import SERVER
from ._settings import WAIT_FOR, Variable

# What can be said of one server, as the module takes it in a list; name and count are with all playbooks on servers
OPTIONS = {
    option.name: Variable(
        "see `ansible-doc novalite.cloud.server`",
        option.kind,
        commas=option.kind == "list" and option.elements != "dict",
        secret=option.secret,
    )
    for option in SERVER
    if option.name not in ("name", "count")
}

PROJECT = {"project": Variable("project, by its name")}
TAKEOVER = {"takeover": Variable("begin again what another run was at", "bool")}
UUIDS = {"uuids": Variable("servers that the ledger knows, of any project", "list", commas=True)}
SERVERS = {
    "server": Variable("name of a server", aliases=("name",)),
    "count": Variable("so many of them: web-1, web-2 ...", "int"),
    "servers": Variable("list of servers", "list"),
    **UUIDS,
    **PROJECT,
}
KEEP = {option: Variable("of older backups, keep so many", "int") for option in retention.OPTIONS}
WHOM = (("server", "servers", "uuids"),)
EITHER = {"servers": ("server", "count"), "uuids": ("servers", "server", "count")}
ACTION = {**SERVERS, **TAKEOVER}
SHUTDOWN = {"shutdown_timeout": Variable("seconds that guests get to shut down", "float")}
WAIT = {"wait_for": Variable("what guests must do before the run ends", choices=WAIT_FOR)}
SCHEDULING = {"scheduler_options": Variable("Nova's options of its filters and weighers", "dict")}
MOVE = {**ACTION, **SCHEDULING, "host": Variable("compute host to move to")}
LAUNCH = {
    **ACTION,
    **OPTIONS,
    **SCHEDULING,
    "scheduler": Variable("how a host is chosen", choices=("filter_scheduler", "simple", "chance", "zone")),
    "all_or_nothing": Variable("launch all or none", "bool"),
}
EITHER_LAUNCH = {word: (*others, *OPTIONS) for word, others in EITHER.items()}
REPORT = {
    "output": Variable("`json`, or the file that the report is written to as JSON"),
    "detailed_exitcode": Variable("with --check: fail when something differs", "bool"),
}
INTERFACES = {
    "server": Variable("name of the server"),
    "network": Variable("name of the network"),
    "port_id": Variable("UUID of a port", aliases=("port",)),
    "fixed_ip": Variable("address on the network"),
    "interfaces": Variable("list of interfaces", "list"),
    "detach_timeout": Variable("seconds that a guest gets to let go of it", "float"),
    **UUIDS,
    **PROJECT,
}
_ONE_INTERFACE = ("server", "network", "port_id", "fixed_ip")
EITHER_INTERFACE = {"interfaces": _ONE_INTERFACE, "uuids": ("interfaces", *_ONE_INTERFACE)}
ATTACHMENTS = {
    "volume": Variable("name of the volume"),
    "server": Variable("name of the server"),
    "attachments": Variable("list of attachments", "list"),
    **PROJECT,
    **TAKEOVER,
}
VOLUME = {
    "volume": Variable("name of the volume", aliases=("name",)),
    "volume_size": Variable("GiB", "int", aliases=("size",)),
    "volumes": Variable("list of volumes", "list"),
    **PROJECT,
    **TAKEOVER,
}
ONE_VOLUME = (
    "volume",
    "volume_size",
    "volume_type",
    "volume_description",
    "host",
    "snapshot",
    "source_volume",
    "image",
    "availability_zone",
)
HOST = {"host": Variable("name of the compute host"), **TAKEOVER, **SCHEDULING}
STATES = ("present", "absent")
NO_GROUPS = "no security group can be applied to an adopted server, whose devices others name anew at each start"


# Words of a launch that are of use for a machine that is imported: nothing is injected into its disks
IMPORTED = ("key", "networks", "security_groups", "availability_zone", "metadata", "config_drive", "hints")


@dataclasses.dataclass(frozen=True)
class Playbook:
    variables: t.Mapping[str, Variable]
    needs: tuple[tuple[str, ...], ...] = ()  # of each, one must be said
    hosts: bool = True  # it works on the compute hosts, or those of `group`, and is of no use without one
    group: str | None = None
    changes: bool = True  # anything of the ledger, or of hosts: not while the ledger is behind these, or gone
    refused: t.Mapping[str, str] = dataclasses.field(default_factory=dict)  # words of others -> why not here
    # words that say all -> those whose place they take, which nobody would read beside them
    instead: t.Mapping[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)
    steps: tuple[str, ...] | None = None  # of the ledger and of hosts that it takes, for a quicker start; None: any


def of_servers(*more: t.Mapping[str, Variable], steps: tuple[str, ...] | None = None) -> Playbook:
    """Return the playbook of an action on servers, with its own variables, and the steps that it takes, if declared."""
    variables = dict(ACTION)
    for mapping in more:
        variables.update(mapping)
    return Playbook(variables, WHOM, instead=EITHER, steps=steps)


def options_named(*names: str) -> dict[str, Variable]:
    return {name: OPTIONS[name] for name in names}


RESTORE = Playbook(
    {
        "ledger_file": Variable("file that a backup or an export wrote", aliases=("file",)),
        "force": Variable("replace a ledger that holds something", "bool"),
        "partial": Variable("go on without the hosts that do not answer", "bool"),
    },
    (("ledger_file",),),
    hosts=False,
    changes=False,
)
