# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Operation `image`: where the images are that instances start from, and what they are."""

from __future__ import annotations

import typing as t
import uuid

import sqlalchemy as sa

from ..._errors import ImageNotFoundError, NovaliteError
from ..._guest.image_properties import HOST_MOUNT, PRIVATE, public_properties
from ..._host.waiting import in_threads
from ..._json import Json, JsonMapping, JsonObject
from ..._model.instance import ISO
from ..._model.instance import Image as KeptImage
from ..._plan.host_plan import image_files
from ..._rules.noun_options import IMAGE
from ..._rules.options import new_values
from ..._rules.records import Changes, check_range, check_text, checked_names, set_values
from ..catalog import image_store
from ..catalog.foreign_images import ORIGIN, STAT, request_of
from ..catalog.image_files import File, measure
from ..catalog.kept_images import give_files
from ..db import clock, engine, tables
from ..identity.quotas import check_quota
from ..operations.call import by_playbook
from ..operations.catalog import images
from ..queries.catalog.image_views import checked_properties
from ..queries.lookups import project_by_name

COLUMNS = tuple(field for field in KeptImage.__annotations__ if field not in ("id", "name"))
NEW = {name: value for name, value in new_values(IMAGE).items() if name in COLUMNS}
CMDLINE_LENGTH = 2048  # the kernel's COMMAND_LINE_SIZE on x86
BOOT_FILES = ("kernel", "ramdisk")

Image = JsonObject
Files = dict[str, t.Optional[File]]  # "disk", "kernel", "ramdisk"; a file that is to go is null


def prepare_image(ledger: sa.Engine, params: JsonMapping) -> JsonObject:
    """Read the images' files, and convert those that need it, before image() runs: that can take minutes, in which the
    ledger must not be locked."""
    if params["state"] == "absent":
        return dict(params)
    home, keep = image_store.home_of(params.get("home")), not params.get("check_mode")
    with engine.reading(ledger) as connection:
        owner = _owner(connection, params, lock=False)
        there = _images(connection, owner, [item["name"] for item in params["images"]])
    asked = [request_of(item, there.get(item["name"])) for item in params["images"]]
    converted = in_threads(lambda request: request.items(home, keep), asked, workers=4)
    items = [item for entries in converted for item in entries]
    if len(items) > len(asked):  # further disks of an OVA, whose records nobody has named
        with engine.reading(ledger) as connection:
            there = _images(connection, owner, [item["name"] for item in items])
    files = in_threads(lambda item: _measured(item, there.get(item["name"])), items, workers=4)
    return {**params, "images": [{**item, "files": file} for item, file in zip(items, files)]}


def image(connection: sa.Connection, params: JsonMapping) -> JsonObject:
    """Make, change or remove `params["images"]`, public ones or those of the project named `params["project"]`.

    What is not given stays as it is; a new image needs source and disk_format. Instances carry a copy of the record.
    Raises NovaliteError for a file that is not what it was declared to be, QuotaError.
    """
    owner = _owner(connection, params, lock=True)
    names = checked_names("image", params["images"])
    table = tables.image
    there = _images(connection, owner, names)
    changes = Changes()
    if params["state"] == "absent":
        for name in names:
            changes.note(name, _shown(there.get(name)), None)
        images.delete_named(by_playbook(connection), owner, names)
        return {**changes.result("images", []), "files": [], "appliances": []}
    for item, name in zip(params["images"], names):
        before = there.get(name)
        files = item["files"] if "files" in item else _measured(item, before)
        after = _desired_image(item, before, files)
        changes.note(name, _shown(before), _shown(after))
        if before is None:
            new = {
                "id": str(uuid.uuid4()),
                "owner": owner,
                "name": name,
                "created_at": clock.seconds(connection),
                "visibility": "private" if owner else "public",
            }
            connection.execute(sa.insert(table).values(**new, **after))
        elif before != after:  # perhaps a file's time only, which is no change to report
            mine = sa.and_(table.c.owner == owner, table.c.name == name)
            if files.get("disk") is not None:  # instead of what was uploaded, or was to be
                after = {**after, "status": "active", "md5": None, "fault": None, "transfer": None}
            connection.execute(sa.update(table).where(mine).values(**after, updated_at=clock.seconds(connection)))
            if not before["source"]:  # it was lost with the ledger
                give_files(connection, connection.execute(sa.select(table.c.id).where(mine)).scalar_one())
    if owner and changes.after:
        used = sa.select(sa.func.count()).select_from(table).where(table.c.owner == owner)
        check_quota(connection, owner, "images", connection.execute(used).scalar_one())
    query = sa.select(table.c.id, table.c.name).where(table.c.owner == owner, table.c.name.in_(names))
    ids = {row.name: row.id for row in connection.execute(query)}
    now = _images(connection, owner, names)
    result = changes.result("images", [{"id": ids[name], "name": name, **(_shown(now[name]) or {})} for name in names])
    files = {file["checksum"]: file for name in names for file in image_files(now[name])}
    appliances = [{**item["appliance"], "name": item["name"]} for item in params["images"] if item.get("appliance")]
    return {**result, "files": list(files.values()), "appliances": appliances}


def _owner(connection: sa.Connection, params: JsonMapping, lock: bool) -> str:
    if params["project"] is None:
        return ""
    return str(project_by_name(connection, params["project"], lock=lock)["id"])


def _images(connection: sa.Connection, owner: str, names: t.Sequence[str]) -> dict[str, Image]:
    table = tables.image
    rows = connection.execute(sa.select(table).where(table.c.owner == owner, table.c.name.in_(names))).mappings()
    return {row["name"]: {column: row[column] for column in COLUMNS} for row in rows}


def _shown(record: Image | None) -> Image | None:
    """A record without what novalite keeps in its properties for itself."""
    if record is None:
        return None
    return {**record, "properties": public_properties(record["properties"])}


def _measured(item: JsonMapping, before: Image | None) -> Files:
    """The files that `item` speaks about, measured; `before` is the record that it changes."""
    what = f"image {item['name']!r}"
    files: Files = {}
    stats = before["properties"].get(STAT, {}) if before else {}
    source = item["source"] or (before and before["source"])
    disk_format = item["disk_format"] or (before and before["disk_format"])
    if not source or not disk_format:
        missing = "disk_format" if source else "source"
        message = f"{what} does not exist yet: give its {missing} to make it"
        raise NovaliteError(message) if source or disk_format else ImageNotFoundError(message, item["name"])
    if "imported" in item:
        files["disk"] = item["imported"]
    elif before is None or item["source"] or item["disk_format"] or item["checksum"]:
        known = None
        if before is not None and before["disk_format"] == disk_format:
            known = {key: before[key] for key in ("source", "checksum", "size", "virtual_size")}
            known["stat"] = stats.get("disk")
        files["disk"] = measure(what, source, item["checksum"], disk_format, known, bool(item.get("any_content")))
    for kind in BOOT_FILES:
        if item[kind] is not None:
            known = {**before[kind], "virtual_size": 0, "stat": stats.get(kind)} if before and before[kind] else None
            files[kind] = _boot_file(f"{what}: {kind}", item[kind], known)
    return files


def _boot_file(what: str, value: Json, known: File | None) -> File | None:
    """A kernel or ramdisk, given as {"source", "checksum"} or as its source alone; an empty one is none."""
    named = {"source": value} if isinstance(value, str) else value
    if not isinstance(named, dict) or set(named) - {"source", "checksum"}:
        raise NovaliteError(f"{what}: give a path, a URL, or a dictionary of source and checksum")
    source, checksum = named.get("source"), named.get("checksum")
    if not source:
        return None
    for text in (source, checksum):
        if not isinstance(text, (str, type(None))):
            raise NovaliteError(f"{what}: {text!r} is not text: give a path, a URL, or a checksum")
    return measure(what, source, checksum, None, known)


def _desired_image(item: JsonMapping, before: Image | None, files: Files) -> Image:
    what = f"image {item['name']!r}"
    after = {**(before or NEW), **set_values(item, ("disk_format", "cmdline", "min_disk_gb", "min_ram_mb"))}
    for key in ("min_disk_gb", "min_ram_mb"):
        check_range(f"{what}: {key}", after[key], 0)
    check_text(f"{what}: cmdline", after["cmdline"], CMDLINE_LENGTH)
    properties = dict(after["properties"])
    if item["properties"] is not None:
        kept = {key: value for key, value in properties.items() if key.startswith(PRIVATE)}
        properties = {**checked_properties(item["name"], item["properties"]), **kept}
    if after["disk_format"] != ISO and (item["source"] or (before is not None and HOST_MOUNT in before["properties"])):
        # data that the operator chose: Nova's way, unless they say no
        properties.setdefault(HOST_MOUNT, (before or {}).get("properties", {}).get(HOST_MOUNT, "yes"))
    stats = dict(properties.pop(STAT, {}))
    if "disk" in files:
        stats.pop(ORIGIN, None)
    for kind, file in files.items():
        stats.pop(kind, None)
        if file is not None and "origin" in file:
            stats[ORIGIN] = file["origin"]
        if file is not None and file["stat"] is not None:
            stats[kind] = file["stat"]
        if kind != "disk":
            after[kind] = file and {key: file[key] for key in ("source", "checksum", "size")}
        elif file is not None:
            after.update({key: file[key] for key in ("source", "checksum", "size", "virtual_size")})
    after["properties"] = {**properties, STAT: stats} if stats else properties
    if after["kernel"] is None and (after["ramdisk"] is not None or after["cmdline"]):
        # the guest's own boot loader would start, and read neither
        raise NovaliteError(f"{what}: a ramdisk and a cmdline need a kernel: give the kernel as well")
    return after
