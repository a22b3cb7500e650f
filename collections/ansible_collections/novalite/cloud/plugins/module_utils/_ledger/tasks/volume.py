# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Operation `volume`: what volumes there shall be."""

from __future__ import annotations

import dataclasses

import sqlalchemy as sa

from ..._errors import ConflictError, NovaliteError
from ..._json import JsonMapping, JsonObject
from ..._rules.noun_options import VOLUME
from ..._rules.options import option_names
from ..._rules.records import Changes, checked_names, set_values
from ..catalog import volume_types
from ..operations.call import by_playbook
from ..operations.catalog import volume_types as type_operations
from ..queries import lookups
from ..queries.catalog import volume_type_records
from ..queries.volumes.volume_views import Volume, volumes_by
from ..volumes import volume_plans, volume_sources, volumes

_CHANGEABLE = option_names(VOLUME[1:], "any")
_SHOWN = ("format", *option_names(VOLUME, "never"), *_CHANGEABLE)


def volume(connection: sa.Connection, params: JsonMapping) -> JsonObject:
    """Operation `volume`: see the module's documentation. `begun` is what the hosts have still to do."""
    owner = lookups.project_by_name(connection, params.get("project") or lookups.DEFAULT_PROJECT, lock=True)["id"]
    types = [_type(connection, item) for item in params.get("types") or []]
    items = params.get("volumes")
    if items is None:
        return {
            **Changes().result("volumes", map(dataclasses.asdict, volumes_by(connection, project_id=owner))),
            "begun": [],
            "touched": [],
            "changed": any(types),
        }
    names = checked_names("volume", items)
    there = {record.name: record for record in volumes_by(connection, names=names, project_id=owner)}
    changes = Changes()
    begun, touched = [], []
    for item, name in zip(items, names):
        before = there.get(name)
        if params.get("state") == "absent":
            after = _absent(connection, before)
        elif before is None:
            after = volumes.create_volume(
                connection, owner, {**_creation(connection, owner, item, name), "limit_to": params.get("limit_to")}
            )
        else:
            after = _changed(connection, before, item)
        changes.note(name, _shown(before), None if params.get("state") == "absent" else _shown(after))
        if after is not None and after.status in volume_plans.VOLUME_WORK:
            begun.append(after.id)
            does = volume_plans.VOLUME_WORK[after.status]
            touched.append({"id": after.id, "name": name, "host": after.host, "does": does})
    result = changes.result("volumes", map(dataclasses.asdict, volumes_by(connection, names=names, project_id=owner)))
    result["changed"] = result["changed"] or any(types)
    return {**result, "begun": begun, "touched": touched}


def _type(connection: sa.Connection, item: JsonMapping) -> bool:
    """Have the volume type; whether it had to be made. Where volumes are is not changed for those that there are."""
    types = volume_type_records.types_by(connection, names=[item["name"]])
    if not types:
        type_operations.create(by_playbook(connection), item)
        return True
    there = types[0]
    backend = item.get("backend") or "file"
    options = volume_types.checked_options(item["name"], backend, item.get("options") or {})
    if (there.backend, there.options) != (backend, options):
        raise ConflictError(
            f"volume type {item['name']!r} is on {there.backend} with {there.options}: make another type"
        )
    return False


def _creation(connection: sa.Connection, owner: str, item: JsonMapping, name: str) -> JsonObject:
    params = {**item, "handle": name, "size_gb": item.get("size")}
    if item.get("image"):
        params["image"] = lookups.image_by_name(connection, item["image"], owner)
    if item.get("snapshot"):
        params["snapshot_id"] = volume_sources.snapshot_named(connection, owner, item["snapshot"]).id
    if item.get("source_volume"):
        params["source_volume_id"] = volume_sources.volume_named(connection, owner, item["source_volume"]).id
    return {**params, "name": None, "private_types": True}  # whoever runs playbooks may name any


def _changed(connection: sa.Connection, before: Volume, item: JsonMapping) -> Volume:
    """Change the volume where it differs from `item`; it is never made smaller, nor moved."""
    name = item["name"]
    for key in option_names(VOLUME, "never"):
        if item.get(key) not in (None, there := getattr(before, key)):
            raise ConflictError(f"volume {name!r} has the {key} {there}, not {item[key]}: make another one")
    size = item.get("size")
    if size is not None and size < before.size_gb:
        raise NovaliteError(f"volume {name!r} has {before.size_gb} GiB: a volume cannot be made smaller ({size})")
    values = set_values(item, _CHANGEABLE)
    changes = {key: value for key, value in values.items() if getattr(before, key) != value}
    after = volumes.update_volume(connection, before.id, changes) if changes else before
    if size is not None and size > (before.new_size_gb or before.size_gb):
        after = volumes.begin_extend(connection, before.id, size)
    return after


def _absent(connection: sa.Connection, before: Volume | None) -> Volume | None:
    if before is None:
        return None
    if before.status == "deleting":  # a run that was cut off: it goes on
        return before
    return volumes.begin_delete(connection, before.id)


def _shown(record: Volume | None) -> JsonObject | None:
    if record is None:
        return None
    shown = {key: getattr(record, key) for key in _SHOWN}
    return {"size": record.new_size_gb or record.size_gb, **shown}
