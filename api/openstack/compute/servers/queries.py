# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Queries for lists of servers, read from query strings. Unknown filters are ignored, as in Nova."""

from __future__ import annotations

import re
import typing as t

import re2
from flask import request

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.compute.server_listing import (
    EQUALS,
    SORT_KEYS,
    NameBegins,
    Query,
)
from ansible_collections.novalite.cloud.plugins.module_utils._rules.server_status import states_of

from ....web import policy, times
from ....web.bodies import Record
from ....web.context import Caller
from ....web.errors import BadRequestError, ForbiddenError
from ..blueprint import NOVA, Version
from .schemas import FALSE, TRUE

# --- regular expressions, with which users filter lists -------------------------------------------------------------

MAX_PATTERN = 255  # characters

_PLAIN = re.compile(r"[^\\.^$*+?{}\[\]()|]*")
_ANCHORED = re.compile(rf"\^({_PLAIN.pattern})(\$?)(.*)", re.DOTALL)
_MAY_LACK = ("*", "?", "{")  # what follows a character that need not be there
_OPTIONS = re2.Options()
_OPTIONS.dot_nl = True
_OPTIONS.log_errors = False  # to stderr
_OPTIONS.max_mem = 1 << 20  # bytes, of an expression that repetitions make large


class Matcher:
    """Called with a text, says whether a pattern is found in it. Python's `re` tries alternatives one after the other,
    and a hostile expression keeps it busy for years. RE2 follows all of them at once: no expression costs more than its
    length times that of the text. What is no expression is looked for as it stands; so is what is one: a name such as
    "web[1]" finds itself."""

    def __init__(self, pattern: str) -> None:
        if len(pattern) > MAX_PATTERN:
            raise BadRequestError(f"a filter has {len(pattern)} characters: give at most {MAX_PATTERN}")
        self.text = pattern
        self.plain = _PLAIN.fullmatch(pattern) is not None
        self._expression = None
        if not self.plain:
            try:
                self._expression = re2.compile(pattern, _OPTIONS)
            except re2.error:
                self.plain = True

    def begins(self) -> tuple[NameBegins | None, bool]:
        """The beginning of each text that matches, as far as the pattern says it in plain characters (None: it does not
        say), and whether that is all that the pattern says."""
        parts = None if self.plain or "|" in self.text else _ANCHORED.fullmatch(self.text)
        if parts is None:
            return None, False
        text, end, rest = parts.groups()
        if rest:
            text = text[:-1] if not end and rest.startswith(_MAY_LACK) else text
            return (NameBegins(text, False, self.text) if text else None), False
        return NameBegins(text, bool(end), self.text), True

    def __call__(self, text: str) -> bool:
        return self.text in text or (self._expression is not None and self._expression.search(text) is not None)


# --- the query ------------------------------------------------------------------------------------------------------

MAX_NUMBER = 2**31 - 1
# All that Nova's lists of servers take from 2.75 on, some of which has no effect here
KNOWN = (
    "limit marker sort_key sort_dir all_tenants soft_deleted deleted status changes-since changes-before ip ip6 tags "
    "tags-any not-tags not-tags-any user_id project_id tenant_id launch_index image_ref image kernel_id ramdisk_id "
    "hostname key_name power_state vm_state task_state host node flavor reservation_id launched_at terminated_at "
    "availability_zone name display_name description display_description locked_by uuid root_device_name config_drive "
    "access_ip_v4 access_ip_v6 auto_disk_config progress created_at locked"
)

# Nova's other names of sort keys
_SORT_ALIASES = {"name": "display_name", "instance_uuid": "uuid", "deleted_at": "terminated_at"}
_FOR_ADMINS = frozenset(["host", "hostname"])
_BOOLEANS = frozenset(["config_drive", "locked"])
_NUMBERS = frozenset(["power_state"])
_TAG_FILTERS: dict[str, t.Callable[[set[str], set[str]], bool]] = {
    "tags": lambda tags, has: tags <= has,
    "tags-any": lambda tags, has: bool(tags & has),
    "not-tags": lambda tags, has: not tags <= has,
    "not-tags-any": lambda tags, has: not tags & has,
}


def parse(caller: Caller, version: Version) -> Query:
    """The current request's query. Raises BadRequestError, and ForbiddenError for what administrators only may ask."""
    args = request.args
    query = Query(
        project_id=_project(caller),
        limit=NOVA.limit(),
        marker=args.get("marker"),
        sort=_sort(caller),
        flavor=args.get("flavor"),
        image=args["image"].rsplit("/", 1)[-1].lower() if "image" in args else None,  # it may be named by a URL
        availability_zone=args.get("availability_zone"),
        since=moment("changes-since"),
        before=moment("changes-before") if version >= (2, 66) else None,
        ip_matches=_matcher("ip"),
        ip6_matches=_matcher("ip6"),
        tags=_tags() if version >= (2, 26) else None,
    )
    if (name := _matcher("name")) is not None:
        if name.plain:
            query.name = name.text
        else:
            query.name_begins, whole = name.begins()
            query.name_matches = None if whole else name
    query.equals = _equals(caller)
    _add_deleted(query, caller)
    _add_status(query, caller)
    return query


def _project(caller: Caller) -> str | None:
    """Whose servers: the caller's project's, unless an administrator asks for all or for another's."""
    if "all_tenants" in request.args and _boolean("all_tenants", empty=True):
        policy.check("compute:servers:all_tenants")
        return request.args.get("project_id") or request.args.get("tenant_id")
    return caller.project


def _boolean(name: str, empty: bool = False) -> bool:
    text = request.args.getlist(name)[-1]
    if text == "":
        return empty
    if text not in TRUE and text not in FALSE:
        raise BadRequestError(f"Invalid value for {name}: '{text[:40]}' is neither true nor false")
    return text in TRUE


def _sort(caller: Caller) -> list[tuple[str, bool]]:
    keys, directions = request.args.getlist("sort_key"), request.args.getlist("sort_dir")
    if len(keys) > 10 or len(directions) > max(len(keys), 1):
        raise BadRequestError("Sort direction size exceeds sort key size")
    sorting = []
    for number, sort_key in enumerate(keys or ["created_at"]):
        key = _SORT_ALIASES.get(sort_key, sort_key)
        direction = directions[number] if number < len(directions) else directions[0] if directions else "desc"
        sorting.append((key, direction))
    known = (
        SORT_KEYS
        if policy.allowed("compute:servers:extended")
        else [key for key in SORT_KEYS if key not in _FOR_ADMINS]
    )
    return [(key, direction == "asc") for key, direction in NOVA.checked(sorting, known)]


def moment(name: str) -> int | None:
    """The time that the parameter `name` gives in ISO 8601, in seconds since the epoch. Raises BadRequestError."""
    text = request.args.get(name)
    if text is None:
        return None
    try:
        # a "+" that was not quoted arrives as a blank
        return int(times.parse(text.strip().replace(" ", "+") if "T" in text else text.strip()).timestamp())
    except (ValueError, OverflowError):
        raise BadRequestError(f"Invalid input for query parameters {name}. Value: {text[:40]}. Give a time.") from None


def _matcher(name: str) -> Matcher | None:
    pattern = request.args.get(name)
    return None if pattern is None else Matcher(pattern)


def _tags() -> t.Callable[[set[str]], bool] | None:
    tag_filters = [
        (holds, {tag for tag in request.args[name].split(",") if tag})
        for name, holds in _TAG_FILTERS.items()
        if name in request.args
    ]
    if not tag_filters:
        return None
    return lambda has: all(holds(tags, has) for holds, tags in tag_filters)


def _equals(caller: Caller) -> Record:
    conditions: Record = {}
    for name in EQUALS & request.args.keys():
        if name in _FOR_ADMINS and not policy.allowed("compute:servers:extended"):
            continue
        text = request.args[name]
        if name in _BOOLEANS:
            conditions[name] = _boolean(name)
        elif name in _NUMBERS:
            number = NOVA.whole(name, 0)
            conditions[name] = number if number <= MAX_NUMBER else -1
        else:
            conditions[name] = None if name == "task_state" and text in ("", "None", "null") else text
    return conditions


def _add_deleted(query: Query, caller: Caller) -> None:
    """Deleted servers: for administrators by `deleted`, for everybody when it is asked what changed."""
    if query.since is not None or query.before is not None:
        query.deleted = None
    if "deleted" in request.args and policy.allowed("compute:servers:deleted"):
        query.deleted = _boolean("deleted", empty=True)


def _add_status(query: Query, caller: Caller) -> None:
    statuses = request.args.getlist("status")
    if not statuses:
        return
    if any(status.upper() == "DELETED" for status in statuses):
        if not policy.allowed("compute:servers:deleted"):
            raise ForbiddenError("Only administrators may list deleted instances")
        query.deleted = None if len(statuses) > 1 else True
    query.states, query.not_task_states = states_of(statuses)
