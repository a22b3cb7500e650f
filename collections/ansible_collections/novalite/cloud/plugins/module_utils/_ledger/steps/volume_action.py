# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Step `volume_action`: what is to be done to volumes, attachments and snapshots, and how it went.

What is named by names begins here; what is named by ids was begun before, by `volume` or the API, and only goes on.
With `outcomes`, records what became of it.
"""

from __future__ import annotations

import typing as t

import sqlalchemy as sa

from ..._errors import ConflictError, NotFoundError, NovaliteError
from ..._host.files import STATE_DIR
from ..._json import JsonMapping, JsonObject
from ..._plan import targets
from ..._rules.listed_nouns import RESERVED
from ..._rules.records import with_diff
from ..compute import server_backups
from ..compute.named_servers import OUTCOMES
from ..db.tables import instance
from ..operations import attachments
from ..operations.call import by_playbook
from ..queries import lookups
from ..queries.volumes import server_backup_rows, volume_backup_records
from ..queries.volumes.volume_views import snapshots_by, volumes_by
from ..volumes import (
    volume_attachments,
    volume_backups,
    volume_plans,
    volume_snapshots,
    volume_sources,
    volume_uploads,
    volumes,
)

# `state`: whether the attachments or snapshots that are named shall be there
FRAGMENTS = ("ledger.project", "state_dir", "ledger.state")
ARGUMENT_SPEC = {
    # UUIDs of volumes that are being made, extended, reverted, made an image of, or deleted.
    "volumes": {"type": "list", "elements": "str"},
    # UUIDs of attachments that are under way, or dictionaries of `volume`, `server`, `device`, `readonly` and
    # `delete_on_termination`.
    "attachments": {"type": "list", "elements": "raw"},
    # UUIDs of snapshots that are under way, or dictionaries of `name`, `volume` and `description`.
    "snapshots": {"type": "list", "elements": "raw"},
    # UUIDs of backups that are under way, or dictionaries of `backup` (its name), `volume`, `incremental` and `state`,
    # `present`, `absent` or `restored` (to the volume). With `of_server`, the id of one of a server that is gone, which
    # goes; or with `disk` the name or id of a server's, of which this disk becomes `volume`, which is new, of `type`.
    "backups": {"type": "list", "elements": "raw"},
    # Images to make of volumes, with `volume`, `image_name` and `disk_format`. One that is there is left alone.
    "uploads": {"type": "list", "elements": "dict"},
    # Volumes to give back the data of their newest snapshot, with `volume` and `snapshot`.
    "reverts": {"type": "list", "elements": "dict"},
    # Whether to go on with what a run that was killed left under way.
    "takeover": {"type": "bool", "default": False},
    # Names of the only compute hosts to choose among. All that the ledger knows, when left out.
    "limit_to": {"type": "list", "elements": "str"},
    # The `hosts` of before. With `outcomes` only.
    "plans": {"type": "dict"},
    # What the hosts said, of each volume, attachment and snapshot `id` and `error`. One that said nothing did nothing.
    "outcomes": OUTCOMES,
}


def volume_action(connection: sa.Connection, params: JsonMapping) -> JsonObject:
    """Return `changed`, and
    * `hosts`: for each host what its modules are to be given
    * `targets`: the hosts of each play, `hosts`, and `controller`, `localhost` if there are any (when `outcomes` is not
      given)
    * `touched`: what is done to which volume, snapshot or attachment, with `id`, `name`, `does` and `host` (when
      `outcomes` is not given)
    * `nothing_to_do`: what there is nothing to do for, with `id` and `reason`
    * `errors`: what went wrong, with `id` and `message`
    """
    if params.get("outcomes") is not None:
        return _record(connection, params)
    absent = (params.get("state") or "present") == "absent"
    owner = lookups.project_by_name(connection, params.get("project") or lookups.DEFAULT_PROJECT)["id"]
    ids = list(params.get("volumes") or [])
    attached, changed, idle = [], False, []
    begun_here: set[str] = set()  # for a shelved server, which is on no host, that is all there is to do
    for item in params.get("attachments") or []:
        if isinstance(item, str):
            attached.append(item)
            continue
        begin = _detach if absent else _attach
        attachment_id = begin(connection, owner, item, bool(params.get("takeover")))
        changed = changed or attachment_id is not None
        if attachment_id is None:
            idle.append({"id": str(item.get("volume")), "reason": "it is so already"})
        else:
            attached.append(attachment_id)
            begun_here.add(attachment_id)
    copied = []
    for item in params.get("snapshots") or []:
        if isinstance(item, str):
            copied.append(item)
            continue
        snapshot_id = _snapshot(connection, owner, item, absent, params.get("limit_to"))
        changed = changed or snapshot_id is not None
        copied += [snapshot_id] if snapshot_id is not None else []
    for item in params.get("uploads") or []:
        volume_id = volume_uploads.upload_named(connection, owner, item)
        changed = changed or volume_id is not None
        idle += [{"id": str(item.get("volume")), "reason": "its image is there"}] if volume_id is None else []
        ids += [volume_id] if volume_id is not None else []
    for item in params.get("reverts") or []:
        ids.append(volume_snapshots.revert_named(connection, owner, item))
        changed = True
    backups = []
    for item in params.get("backups") or []:
        if isinstance(item, dict) and item.get("disk"):
            volume_id, begun = _restore_disk(connection, owner, item, params.get("limit_to"))
            changed = changed or begun
            ids.append(volume_id)
            continue
        backup_id = item if isinstance(item, str) else _back_up(connection, owner, item, params.get("limit_to"))
        changed = changed or (backup_id is not None and not isinstance(item, str))
        backups += [backup_id] if backup_id is not None else []
        idle += [{"id": str(item.get("backup")), "reason": "it is so already"}] if backup_id is None else []
    hosts, nowhere = volume_plans.plan(
        connection,
        backups=volume_backup_records.backups_by(connection, ids=backups),
        forgotten=server_backups.being_forgotten(connection, backups),
        volumes=volumes_by(connection, ids=ids),
        snapshots=snapshots_by(connection, ids=copied),
        attachments=attached,
        state_dir=params.get("state_dir") or STATE_DIR,
        limit_to=params.get("limit_to"),
    )
    for entry in nowhere:
        changed = _FINISH[entry["does"]](connection, entry["id"], error=None) or changed
    under_way = {entry["id"] for plan in hosts.values() for entry in plan["work"]} | {entry["id"] for entry in nowhere}
    still = [number for number in [*ids, *attached, *copied, *backups] if number not in under_way | begun_here]
    idle += [{"id": entry, "reason": "nothing of it is under way"} for entry in still]
    result: JsonObject = {"changed": changed, "hosts": hosts, "nothing_to_do": idle, "errors": []}
    result["targets"] = targets.of_hosts(hosts)
    result["touched"] = [{**entry, "host": host} for host, plan in hosts.items() for entry in plan["work"]]
    result["touched"] += [{**entry, "host": None} for entry in nowhere]
    done = {entry["id"]: entry["does"] for plan in hosts.values() for entry in plan["work"]}
    return with_diff(result, {}, done)


def _server(connection: sa.Connection, owner: str, name: str) -> str:
    mine = sa.and_(instance.c.project_id == owner, instance.c.deleted == 0)
    uuid = connection.execute(
        sa.select(instance.c.uuid).where(mine, sa.or_(instance.c.name == name, instance.c.uuid == name))
    ).scalar()
    if uuid is None:
        raise lookups.unknown_server(connection, owner, name)
    return str(uuid)


def _attach(connection: sa.Connection, owner: str, item: JsonMapping, takeover: bool) -> str | None:
    """The id of the attachment that is under way; None where the server has the volume."""
    volume = volume_sources.volume_named(connection, owner, item["volume"])
    server = _server(connection, owner, item.get("server") or "")
    for there in volume.attachments:
        if there.instance_uuid != server:
            continue
        if volume.status == "attaching" and takeover:
            return str(there.id)
        if volume.status in ("in-use", "extending", RESERVED):
            return None
    attachment = attachments.attach_volume(
        by_playbook(connection),
        volume.id,
        server,
        project_id=None,
        device=item.get("device"),
        readonly=bool(item.get("readonly")),
        delete_on_termination=bool(item.get("delete_on_termination")),
    )
    return str(attachment.id)


def _detach(connection: sa.Connection, owner: str, item: JsonMapping, takeover: bool) -> str | None:
    volume = volume_sources.volume_named(connection, owner, item["volume"])
    server = _server(connection, owner, item["server"]) if item.get("server") else None
    theirs = [there for there in volume.attachments if server in (None, there.instance_uuid)]
    if not theirs:
        return None
    if volume.status == "detaching" and takeover:
        return str(theirs[0].id)
    return str(attachments.detach_volume(by_playbook(connection), volume.id, server).id)


def _snapshot(
    connection: sa.Connection, owner: str, item: JsonMapping, absent: bool, limit_to: t.Collection[str] | None
) -> str | None:
    there = snapshots_by(connection, names=[item["name"]], project_id=owner)
    if absent:
        if there and there[0].status != "deleting":
            volume_snapshots.begin_delete_snapshot(connection, there[0].id)
        return str(there[0].id) if there else None
    if there:
        return None if there[0].status == "available" else str(there[0].id)
    if not item.get("volume"):
        raise NovaliteError(f"snapshot {item['name']!r} does not exist yet: name the volume that it is to be of")
    of = volume_sources.volume_named(connection, owner, item["volume"])
    params = {"volume_id": of.id, "handle": item["name"], "description": item.get("description"), "force": True}
    return str(volume_snapshots.create_snapshot(connection, owner, {**params, "limit_to": limit_to}).id)


def _back_up(
    connection: sa.Connection, owner: str, item: JsonMapping, limit_to: t.Collection[str] | None
) -> str | None:
    """The id of the backup that is under way; None where there is nothing to do."""
    name, state = str(item.get("backup") or ""), item.get("state") or "present"
    if item.get("of_server"):
        return server_backups.begin_forget(connection, name, owner).id
    there = volume_backup_records.backups_by(connection, project_id=owner, name=name) if name else []
    there = there or volume_backup_records.backups_by(connection, project_id=owner, ids=[name])
    if state == "absent":
        if there and there[-1].status != volume_backup_records.DELETING:
            volume_backups.begin_delete(connection, there[-1].id)
        return there[-1].id if there else None
    if state == "present" and there:
        return None if there[-1].status == volume_backup_records.AVAILABLE else there[-1].id
    of = volume_sources.volume_named(connection, owner, str(item.get("volume") or ""))
    if state == "restored":
        if not there:
            raise NotFoundError(f"the project has no backup of a volume {name!r}: see `openstack volume backup list`")
        if there[-1].status != volume_backup_records.RESTORING or there[-1].restore_volume_id != of.id:
            volume_backups.begin_restore(connection, there[-1].id, volume_id=of.id, project_id=owner)
        return there[-1].id
    asked = {"volume_id": of.id, "name": name, "incremental": bool(item.get("incremental")), "force": True}
    return volume_backups.begin_create(connection, owner, {**asked, "limit_to": limit_to}).id


def _restore_disk(
    connection: sa.Connection, owner: str, item: JsonMapping, limit_to: t.Collection[str] | None
) -> tuple[str, bool]:
    """The id of the volume that is made of a disk of a backup, and whether it is new."""
    backup = server_backup_rows.backup_in(connection, owner, str(item.get("backup") or ""))
    name = item.get("volume") or f"{backup.server}-{item['disk']}"
    there = volumes_by(connection, names=[name], project_id=owner)
    if there:
        of_backup = there[0].backup_disk
        if of_backup is None or of_backup["backup"] != backup.id:
            raise ConflictError(f"the project has a volume {name!r}, which is not of that backup: give another name")
        if there[0].status == "error":
            raise ConflictError(f"volume {name!r} is an error, and has no data: delete it first, or give another name")
        return there[0].id, False
    asked = {"handle": name, "backup": backup.id, "backup_disk": item["disk"], "type": item.get("type")}
    return volumes.create_volume(connection, owner, {**asked, "private_types": True, "limit_to": limit_to}).id, True


_Finish = t.Callable[..., bool]
_FINISH: dict[str, _Finish] = {
    "create": volumes.finish_create,
    "delete": volumes.finish_delete,
    "extend": volumes.finish_extend,
    "revert": volumes.finish_revert,
    "upload": volume_uploads.finish_upload,
    "attach": volume_attachments.finish_attach,
    "detach": volume_attachments.finish_detach,
    "snapshot_create": volume_snapshots.finish_snapshot,
    "snapshot_delete": volume_snapshots.finish_delete_snapshot,
    "backup_create": volume_backups.finish_create,
    "backup_restore": volume_backups.finish_restore,
    "backup_delete": volume_backups.finish_delete,
    "server_backup_delete": server_backups.finish_forget,
}


def _record(connection: sa.Connection, params: JsonMapping) -> JsonObject:
    """`plans` ({host: plan}) were carried out, `outcomes` say how: what no outcome is about was not done."""
    outcome_by_host = {outcome["host"]: outcome for outcome in params["outcomes"]}
    errors, changed = [], False
    for host, plan in (params.get("plans") or {}).items():
        outcome = outcome_by_host.get(host) or {"error": f"host {host} did not answer", "results": []}
        rows = {result.get("id") or result["uuid"]: result for result in outcome.get("results") or []}
        if any("image_id" in result for result in rows.values()):
            # volumes are made before images of them are: what was said of these comes last
            rows |= {result["uuid"]: result for result in outcome["results"] if "image_id" in result}
        results = {number: result["error"] for number, result in rows.items()}
        for entry in plan["attach"]:
            if results.get(entry["volume_id"], "") is None:  # its data is there, whatever became of the rest
                volumes.made(connection, entry["volume_id"])
        for work in plan["work"]:
            error = outcome.get("error") or f"host {host} did not say what became of it"
            error = results.get(work["id"], error)
            more: JsonObject = {"file_record": rows.get(work["id"])} if work["does"] == "upload" else {}
            if work["does"] in ("backup_create", "server_backup_delete"):
                more = {"outcome": {**rows.get(work["id"], {}), "host": host}}
            changed = _FINISH[work["does"]](connection, work["id"], error=error, **more) or changed
            if error is not None:
                errors.append({"id": work["id"], "message": f"{work['does']} {work['id']}: {error}"})
    return {"changed": changed, "hosts": {}, "nothing_to_do": [], "errors": errors}
