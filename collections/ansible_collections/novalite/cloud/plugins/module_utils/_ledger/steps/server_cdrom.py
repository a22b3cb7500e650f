# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Step `server_cdrom`: which servers get or lose a CD, what their hosts do for it, and how it went.

What the ledger says of a drive follows the guest: it is written with `outcomes`, of what their hosts have done. A run
that dies before leaves a guest that the next one finds as it should be.
"""

from __future__ import annotations

import typing as t

import sqlalchemy as sa

from ..._json import JsonMapping, JsonObject
from ..._model.instance import Image, Instance
from ..._plan import targets
from ..._plan.host_plan import Plan
from ..._rules.server_requests import expand_names
from ..compute import cdroms
from ..compute.named_servers import OUTCOMES, results_by_server, servers_named
from ..compute.plans import plan_hosts
from ..compute.server_changes import change
from ..migration.outcomes import error_of
from ..operations import servers as operations
from ..operations.call import by_playbook
from ..queries.compute.instance_rows import check_known, locked_row
from ..queries.compute.views import instances_by

FRAGMENTS = ("ledger.project", "state_dir")
ARGUMENT_SPEC = {
    # The servers by name. Each item is a name, or a dictionary of `name` and `count`.
    "servers": {"type": "list", "elements": "raw"},
    # Instances of any project.
    "uuids": {"type": "list", "elements": "str"},
    # Name or id of the ISO image that is put in; without one, the drive is emptied.
    "insert": {"type": "str"},
    # Number of the drive, from 0.
    "drive": {"type": "int", "default": 0},
    # What was returned as `hosts`. What is in it and in no outcome failed.
    "plans": {"type": "dict"},
    # How it went on each host. `results` are what the step `domain_cdroms` returned as `domains`.
    "outcomes": OUTCOMES,
}
SPEC_RULES = {
    "required_one_of": [("servers", "uuids", "outcomes")],
    "mutually_exclusive": [("servers", "uuids", "outcomes")],
}


def server_cdrom(connection: sa.Connection, params: JsonMapping) -> JsonObject:
    """Return `changed`, and
    * `instances`: the instances that change, as `server` returns them
    * `hosts`: the plan of each compute host, by its name. Each has `uuids`, `images` as the module `image_cache` takes
      them, `disks` as `disk` does, `domains` as the step `domain_cdroms` does, and `inside`, what is then in the drives
    * `targets`: the hosts of each play, `hosts`, and `controller`, `localhost` if there is something to record, or,
      with `outcomes`, an error to tell
    * `errors`: the instances on which it failed, `uuid`, `name` and `message`

    Raises NovaliteError for the first server or image that is unknown, or of which it cannot be asked."""
    if params.get("outcomes") is not None:
        return _record(connection, params)
    servers = _servers(connection, params)
    before, after = {}, []
    for server in servers:
        row = locked_row(connection, server["uuid"])
        operations.check_cdrom(by_playbook(connection), row)
        cdrom = None
        if params.get("insert"):
            cdrom = cdroms.cdrom_named(connection, row.project_id, params["insert"])
        inside = cdroms.changed(row, params["drive"], cdrom)
        if inside != (row.cdroms or []):
            before[server["name"]] = _shown(server.get("cdroms") or [])
            after.append(t.cast(Instance, {**server, "cdroms": inside}))
    hosts = _plans(connection, after, params["state_dir"])
    result: JsonObject = {"changed": bool(after), "instances": after, "hosts": hosts, "errors": []}
    if after:
        result["diff"] = {"before": before, "after": {row["name"]: _shown(row["cdroms"] or []) for row in after}}
    return {**result, "targets": targets.of_hosts(hosts)}


def _servers(connection: sa.Connection, params: JsonMapping) -> list[Instance]:
    if params.get("uuids") is not None:
        return instances_by(connection, uuids=params["uuids"])
    entries = [entry if isinstance(entry, dict) else {"name": entry} for entry in params["servers"]]
    return servers_named(connection, params.get("project"), expand_names(entries))


def _shown(inside: t.Iterable[Image | None]) -> list[str]:
    return [cdrom["name"] if cdrom else "empty" for cdrom in inside]


def _plans(connection: sa.Connection, servers: list[Instance], state_dir: str) -> dict[str, Plan]:
    inside = {server["uuid"]: server["cdroms"] for server in servers}
    checksums = {cdrom["checksum"] for of_server in inside.values() for cdrom in of_server or [] if cdrom}
    return {
        host: {
            **{part: plans["keep"][part] for part in ("uuids", "disks", "domains", "state_dir")},
            "images": [image for image in plans["keep"]["images"] if image["checksum"] in checksums],
            "inside": {uuid: inside[uuid] for uuid in plans["keep"]["uuids"]},
        }
        for host, plans in plan_hosts(connection, state_dir, existing=servers).rendered().items()
        if "keep" in plans
    }


def _record(connection: sa.Connection, params: JsonMapping) -> JsonObject:
    """Record the outcome of each host. A host that did not even answer has failed with all that it was given."""
    plans: t.Mapping[str, Plan] = params.get("plans") or {}
    results = results_by_server(plans, params["outcomes"])
    check_known(connection, results)
    errors: dict[str, str] = {}
    changed: list[str] = []
    for uuid, (host, outcome) in results.items():
        if outcome.get("error") is not None:
            errors[uuid] = outcome["error"]
            continue
        row = locked_row(connection, uuid)
        if row.host != host:
            errors[uuid] = f"it left {host} while its CD was changed there: ask once more"
            continue
        change(connection, row, {"cdroms": plans[host]["inside"][uuid]})
        changed.append(uuid)
    instances = instances_by(connection, uuids=[*changed, *errors])
    return {
        "changed": bool(changed),
        "instances": [server for server in instances if server["uuid"] in changed],
        "hosts": {},
        "targets": {"controller": targets.controller(errors)},
        "errors": [error_of(server, errors[server["uuid"]]) for server in instances if server["uuid"] in errors],
    }
