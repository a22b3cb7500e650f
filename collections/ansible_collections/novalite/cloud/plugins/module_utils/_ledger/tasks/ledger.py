# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Operation `ledger`: back the ledger up, restore it, export it as text, migrate it forth and back.

It opens the ledger itself, as it is: the others migrate it first, and work in one transaction.
"""

from __future__ import annotations

import os
import typing as t

import sqlalchemy as sa

from ..._errors import NovaliteError
from ..._json import JsonMapping, JsonObject
from ..._rules.records import with_diff
from ..db import archive, copies, known
from ..db.engine import (
    DEFERRED,
    HEAD,
    REVISIONS,
    Place,
    clear_errors,
    move_to_revision,
    open_as_it_is,
    open_ledger,
    place_of,
    transaction,
)
from ..db.made import revision_of
from ..db.sqlite_engine import check_whole
from ..db.tables import instance, ledger_identity


def ledger(params: JsonMapping, check_mode: bool) -> JsonObject:
    """Operation of the module `ledger`: see its documentation for `params` and what is returned. Raises NovaliteError;
    the ledger is as before then."""
    place = place_of(params.get("home"), params.get("ledger_url"))
    with clear_errors(place.shown, place.path):
        replaced = params["operation"] == "restore"
        engine = _to_be_replaced(params, check_mode) if replaced else open_as_it_is(place)
        try:
            return _OPERATIONS[params["operation"]](engine, place, params, check_mode)
        finally:
            engine.dispose()


ledger.opens_by_itself = True  # type: ignore[attr-defined]  # see _ledger_module.run_operation


def _to_be_replaced(params: JsonMapping, check_mode: bool) -> sa.Engine:
    """The engine of the ledger that is to be restored: one that is missing is made."""
    if not params.get("file"):
        raise NovaliteError("restore: say which copy by `file` (-e file=/path)")
    return open_ledger(params.get("home"), params.get("ledger_url"), check_mode=check_mode, verify=False)


def _info(engine: sa.Engine, place: Place, params: JsonMapping, check_mode: bool) -> JsonObject:
    result: JsonObject = {"changed": False, "newest": HEAD, "copies": copies.copies_in(place.home)}
    result["revision"] = _revision(engine)
    if result["revision"] == HEAD:  # others have other tables
        with engine.connect().execution_options(**DEFERRED) as connection:
            result["ledger"] = connection.scalar(sa.select(ledger_identity.c.uuid))
            result["servers"] = connection.scalar(sa.select(sa.func.count()).where(instance.c.deleted == 0))
    return result


def _backup(engine: sa.Engine, place: Place, params: JsonMapping, check_mode: bool) -> JsonObject:
    path, revision, days = params.get("file"), _revision(engine), params.get("archive_days")
    if params.get("keep", 1) < 1:
        raise NovaliteError(
            f"keep (keep_backups) is {params['keep']}: give 1 or more, for the copy that is made now is one of them"
        )
    if days is not None and not 0 <= days <= archive.MOST_DAYS:
        raise NovaliteError(f"archive_days is {days}: give a number of days from 0 to {archive.MOST_DAYS}")
    if path:
        copies.check_target(path, place.home, place.path)
    check_whole(engine)  # a damaged copy would take the place of the last good one
    if check_mode:
        path = path or os.path.join(place.home, copies.DIRECTORY)
    elif path:
        _written(path, copies.write_copy, engine)
    else:
        path = copies.keep_copy(engine, place.home, copies.BACKUP, params["keep"])
    result: JsonObject = {"changed": True, "file": path, "revision": revision, "archived": 0, "archive": None}
    if days is not None:
        if revision != HEAD:
            raise NovaliteError(f"archive_days: the ledger is at revision {revision}: migrate it first, to {HEAD}")
        done = archive.archive(engine, place.home, days, check_mode)
        result["archived"], result["archive"] = done
    return result


def _export(engine: sa.Engine, place: Place, params: JsonMapping, check_mode: bool) -> JsonObject:
    path, revision = params.get("file") or copies.default_path(place.home), _revision(engine)
    copies.check_target(path, place.home, place.path)
    check_whole(engine)
    changed = not copies.is_text_of(engine, path)
    if changed and not check_mode:
        _written(path, copies.write_text, engine)
    return {"changed": changed, "file": path, "revision": revision}


def _restore(engine: sa.Engine, place: Place, params: JsonMapping, check_mode: bool) -> JsonObject:
    loaded = copies.load_file(engine, params["file"], place.home, params["force"], check_mode)
    if not check_mode:
        known.keep(place, loaded.identity)
    kept = {"revision": loaded.revision, "copy": loaded.copy, "behind": loaded.behind}
    return {"changed": True, "file": params["file"], **kept}


def _migrate(engine: sa.Engine, place: Place, params: JsonMapping, check_mode: bool) -> JsonObject:
    before, to = _revision(engine), params.get("revision") or HEAD
    if to not in REVISIONS:
        raise NovaliteError(f"{to!r} is not a revision of the ledger: give one from {REVISIONS[0]} to {HEAD}")
    result: JsonObject = {"changed": before != to, "revision": to, "before": before, "copy": None}
    if before != to and not check_mode:
        result["copy"] = copies.keep_copy(engine, place.home, f"before-{to}")
        with transaction(engine, while_behind=True) as connection:
            move_to_revision(connection, to)
    return with_diff(result, {"revision": before}, {"revision": to})


def _revision(engine: sa.Engine) -> str:
    with engine.connect().execution_options(**DEFERRED) as connection:
        revision = revision_of(connection)
    if revision is None:
        raise NovaliteError("there is no ledger in this database yet: any playbook makes it, or restore one")
    return revision


def _written(path: str, write: t.Callable[[sa.Engine, str], None], engine: sa.Engine) -> None:
    try:
        write(engine, path)
    except OSError as error:
        raise NovaliteError(f"{path} cannot be written: {error.strerror}") from error


_OPERATIONS: dict[str, t.Callable[[sa.Engine, Place, JsonMapping, bool], JsonObject]] = {
    "info": _info,
    "backup": _backup,
    "export": _export,
    "restore": _restore,
    "migrate": _migrate,
}
