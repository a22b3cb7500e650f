# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Step `stack_plan`: what stands between the ledger and a stack's document.

The records' own operations are run, and so is all that would be done with servers, inside of savepoints that are rolled
back: the plan says what would happen, in the same words and by the same rules, and what the ledger would refuse is
refused before anything was changed.
"""

from __future__ import annotations

import contextlib
import dataclasses
import re
import typing as t

import sqlalchemy as sa

from ..._errors import NotFoundError, NovaliteError
from ..._image_import.imported import OVA
from ..._json import Json, JsonMapping, JsonObject
from ..._model.rows import InstanceRow
from ..._stack import document, plan
from ..._stack.document import SECTIONS, SHARED, Record, Server, Stack
from ..._stack.plan import ADD, CHANGE, REMOVE, REPLACE, Item
from ..._stack.source import Where
from ..identity.quotas import checked_quotas
from ..operations import servers as operations
from ..operations.call import by_playbook
from ..queries.network.group_records import DEFAULT_GROUP
from ..queries.volumes.volume_views import volumes_by
from ..stack import stack_marks
from ..stack.stack_marks import Made
from ..stack.stack_servers import Live, checked, desired_server, launched_with, live_servers
from ..tasks.image import image, prepare_image
from ..tasks.network import network
from ..tasks.records import flavor, keypair, project, server_group
from ..tasks.security_group import security_group
from ..tasks.server import server
from ..tasks.server_security_groups import server_security_groups
from ..tasks.volume import volume
from .server_state import server_state

ARGUMENT_SPEC = {
    # The YAML file that holds the document, at its top or under the key `stack`, or the document itself. The action
    # reads the file, and resolves its templates with the variables of the play.
    "path": {"type": "path"},
    "document": {"type": "dict"},
    # `plan` changes nothing. `records` makes and changes the project, and all that servers refer to, in one
    # transaction. It is refused as a whole if a server needs a new instance and `replace` does not allow it. `removals`
    # removes the records that are to go, once the servers that used them are gone. `launch` changes nothing, and
    # returns no more than the servers to launch, with what is secret of them: for a task whose result nobody sees.
    "phase": {"type": "str", "choices": ["plan", "records", "launch", "removals"], "default": "plan"},
    # Whether a server that has to be made anew (another image, flavor, network) may be deleted for it.
    "replace": {"type": "bool", "default": False},
    # Whether to remove what the document does not name any more. Only what the same stack made goes. The document's own
    # `prune` counts without it.
    "prune": {"type": "bool"},
    # Take over servers that another run is still building. Only say so when that run is dead.
    "takeover": {"type": "bool", "default": False},
}
SPEC_RULES = {"required_one_of": [("path", "document")]}

OPERATIONS: dict[str, t.Callable[[sa.Connection, JsonMapping], JsonObject]] = {
    "flavor": flavor,
    "image": image,
    "network": network,
    "keypair": keypair,
    "security_group": security_group,
    "server_group": server_group,
    "volume": volume,
}
LOOKING = ("plan", "launch")  # phases that change nothing
REPORTED = ("stack", "project", "pending", "summary", "plan", "refused", "unnamed")


@dataclasses.dataclass
class _Servers:
    """Changes of servers, as arguments of the modules that make them."""

    items: list[Item] = dataclasses.field(default_factory=list)
    launch: list[JsonObject] = dataclasses.field(default_factory=list)
    terminate: list[str] = dataclasses.field(default_factory=list)
    join: list[JsonObject] = dataclasses.field(default_factory=list)
    leave: list[JsonObject] = dataclasses.field(default_factory=list)
    metadata: list[tuple[InstanceRow, dict[str, str]]] = dataclasses.field(default_factory=list)
    refused: list[str] = dataclasses.field(default_factory=list)  # need a new instance, and may not have it
    unnamed: list[str] = dataclasses.field(default_factory=list)  # the stack's, which nobody asked to remove


def prepare_stack_plan(engine: sa.Engine, params: JsonMapping) -> JsonObject:
    """Read the document and measure its images, which can take minutes, before the ledger is locked."""
    stack = document.load(params.get("document"), params.get("path"))
    if params.get("prune") is not None:
        stack = stack._replace(prune=params["prune"])
    measured: dict[tuple[bool, str], JsonObject] = {}
    if params["phase"] != "removals":
        for public in (True, False):
            records = [item for item in stack.of("image") if item.public == public]
            if records:
                with _blamed(stack, records):
                    for item in _measured(engine, params, stack.project, public, records):
                        measured[public, item["name"]] = item
    return {**params, "stack": stack, "measured": measured}


def stack_plan(connection: sa.Connection, params: JsonMapping) -> JsonObject:
    """Return `changed`, and
    * `plan`: what is to be done, in order. `action` (`+` makes, `~` changes, `-/+` deletes and makes anew, `-`
      removes), `kind` and `name` of the record, `changes` (fields with `before` and `after`) and a `note` where that is
      not plain
    * `pending`, `summary`, `in_words`, `table`, `report`: their number, also by action, the same for people, as lines
      of text, and for programs
    * `stack`, `project`: their names
    * `records`, `removals`: how much of the plan is for these phases
    * `launch`, `terminate`: the servers to launch, as `server` takes them but for what is secret, and UUIDs of those to
      delete
    * `volumes`: UUIDs of those that hosts have to make or to delete, for volumes.yml. Empty with `plan`
    * `security_groups`: what changes, and which servers join and leave some, for security_groups.yml
    * `refused`: servers that need a new instance, which `replace` does not allow
    * `unnamed`: servers of the stack that the document does not name any more and that nobody asked to remove
    * `has_secrets`: whether servers to launch have passwords, files or user data, which the phase `launch` returns
    """
    stack: Stack = params["stack"]
    with connection.begin_nested() as recorded:
        project_item, owner = _project(connection, stack)
        items = [project_item] if project_item else []
        changed_groups: list[str] = []
        servers = _Servers()
        if params["phase"] == "removals":
            removals = _remove_records(connection, stack, owner, params)
        else:
            items += _make_records(connection, stack, owner, params)
            changed_groups = [item.name for item in items if (item.kind, item.action) == ("security_group", CHANGE)]
            servers = _servers(connection, stack, owner, params["replace"])
            with connection.begin_nested() as rehearsal:
                _rehearse(connection, stack, servers, params)
                removals = _remove_records(connection, stack, owner, params)
                rehearsal.rollback()
            if params["phase"] in LOOKING:
                recorded.rollback()
            elif servers.refused:
                first = next(instance for instance in stack.servers if instance.name == servers.refused[0])
                raise stack.error(f"{_refusal(servers.refused)}: that is done with replace=true only", first.where)
            else:
                for row, values in servers.metadata:
                    operations.change_metadata(by_playbook(connection), row, values)
    if params["phase"] == "launch":
        return {"changed": False, "launch": servers.launch}
    items += servers.items + removals
    begun: list[str] = []
    if params["phase"] != "plan":  # what the hosts have to make or to delete, also for a run that was cut off
        named = {item.name for item in stack.of("volume")} | {item.name for item in items if item.kind == "volume"}
        waiting = volumes_by(connection, names=named, project_id=owner, statuses=["creating", "extending", "deleting"])
        begun = [row.id for row in waiting]
    return {**_result(stack, items, servers, changed_groups, removals), "volumes": begun}


def _result(
    stack: Stack, items: list[Item], servers: _Servers, changed_groups: list[str], removals: list[Item]
) -> JsonObject:
    title = f"Stack {stack.name!r}, project {stack.project!r}:"
    lines = plan.table(items, title)
    if servers.unnamed:
        lines.append(
            f"Kept, though the document does not name them any more (prune: true removes them): "
            f"{', '.join(servers.unnamed)}"
        )
    if servers.refused:
        lines.append(f"{_refusal(servers.refused)}: not done without -e replace=true")
    groups = [item for item in stack.of("security_group") if item.name in changed_groups]
    result: JsonObject = {
        "changed": bool(items),
        "stack": stack.name,
        "project": stack.project,
        "pending": len(items),
        "plan": [item.as_data() for item in items],
        "summary": plan.summary(items),
        "in_words": plan.in_words(plan.summary(items)),
        "table": lines,
        "refused": servers.refused,
        "unnamed": servers.unnamed,
        "records": sum(item.kind != "server" and item.action != REMOVE for item in items) + len(servers.metadata),
        "removals": len(removals),
        "launch": [{key: entry[key] for key in entry if key not in document.SECRET} for entry in servers.launch],
        "terminate": servers.terminate,
        "security_groups": {
            "security_groups": [{"name": group.name, **group.fields} for group in groups],
            "join": servers.join,
            "leave": servers.leave,
        },
        "has_secrets": any(entry.get(key) is not None for entry in servers.launch for key in document.SECRET),
    }
    result["report"] = {key: result[key] for key in REPORTED}
    if items:
        result["diff"] = {"prepared": "\n".join(lines) + "\n"}
    return result


def _refusal(names: t.Sequence[str]) -> str:
    shown = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
    return f"{shown} would be deleted and launched anew, with an empty disk"


def _project(connection: sa.Connection, stack: Stack) -> tuple[Item | None, str]:
    """Make the project; its item, if anything changes, and its id."""
    entry = {"name": stack.project, "quotas": stack.quotas}
    try:
        result = project(connection, {"projects": [entry], "state": "present"})
    except NovaliteError as error:
        raise stack.error(str(error), ("project",)) from None
    before, after = _sides(result, "projects", stack.project)
    quota_values = {f"quotas.{key}": value for key, value in checked_quotas(stack.quotas).items()}
    return plan.record_item("project", stack.project, quota_values, before, after), result["projects"][0]["id"]


def _make_records(connection: sa.Connection, stack: Stack, owner: str, params: JsonMapping) -> list[Item]:
    """Bring the records to what the document says; what was made is written down as the stack's."""
    items, made = [], []
    for kind in SECTIONS:
        for public in (True, False):
            records = [item for item in stack.of(kind) if item.public == public]
            if not records:
                continue
            entries = _entries(kind, records)
            if kind == "image":
                entries = [params["measured"][public, entry["name"]] for entry in entries]
            with _blamed(stack, records):
                result = OPERATIONS[kind](connection, _arguments(stack, kind, public, entries, "present"))
            for record in records:
                before, after = _sides(result, _plural(kind), record.name)
                item = plan.record_item(kind, record.name, record.fields, before, after)
                if item is not None:
                    items.append(item)
                    if item.action == ADD:
                        made.append(Made(kind, "" if public else owner, record.name))
    if made:
        stack_marks.remember(connection, stack.name, made)
    return items


def _remove_records(connection: sa.Connection, stack: Stack, owner: str, params: JsonMapping) -> list[Item]:
    """Remove what is marked as absent and, if that is asked for, what the stack made and the document does not name."""
    named = {Made(record.kind, "" if record.public else owner, record.name): record for record in stack.records}
    to_delete = [made for made, item in named.items() if item.absent]
    if stack.prune:
        mine = stack_marks.made_by(connection, stack.name, owner)
        to_delete += [
            item for item in mine if item not in named and item != Made("security_group", owner, DEFAULT_GROUP)
        ]
    items: list[Item] = []
    for kind in reversed(SECTIONS):  # what refers to others goes before them
        for public in (False, True):
            going = [item for item in to_delete if item.kind == kind and (item.owner == "") == public]
            if not going:
                continue
            entries = [{"name": item.name} for item in going]
            with _blamed(stack, [named[item] for item in going if item in named]):
                result = OPERATIONS[kind](connection, _arguments(stack, kind, public, entries, "absent"))
            for thing in going:
                before, after = _sides(result, _plural(kind), thing.name)
                item = plan.record_item(kind, thing.name, {}, before, after)
                if item is not None:
                    items.append(item if thing in named else dataclasses.replace(item, note="not named any more"))
            stack_marks.forget(connection, stack.name, going)
    return items


def _measured(
    engine: sa.Engine, params: JsonMapping, owner: str, public: bool, records: list[Record]
) -> list[JsonObject]:
    for record in records:
        if record.fields.get("disk_format") == OVA:  # one entry, and perhaps several images
            raise NovaliteError(f"image '{record.name}' is an OVA: record it with the module image first")
    arguments = {
        **{"images": _entries("image", records), "state": "present", "project": None if public else owner},
        **{"home": params.get("home"), "check_mode": params["check_mode"] or params["phase"] in LOOKING},
    }
    try:
        prepared = prepare_image(engine, arguments)
    except NotFoundError:  # the project is still to be made
        prepared = prepare_image(engine, {**arguments, "project": None})
    return t.cast("list[JsonObject]", prepared["images"])


def _entries(kind: str, records: list[Record]) -> list[JsonObject]:
    fields = document.fields_of(kind)
    return [{"name": record.name, **{key: record.fields.get(key) for key in fields}} for record in records]


def _arguments(stack: Stack, kind: str, public: bool, entries: list[JsonObject], state: str) -> JsonObject:
    owner = None if kind in SHARED and public else stack.project
    return {_plural(kind): entries, "state": state, "project": owner}


def _plural(kind: str) -> str:
    return f"{kind}s"  # the option that lists them in each module, and the key of its result


def _sides(result: JsonMapping, kind: str, name: str) -> tuple[Json, Json]:
    """The record before and after, as the operation's diff has it; both None if nothing changed."""
    diff = result.get("diff")
    return (diff["before"][kind].get(name), diff["after"][kind].get(name)) if diff else (None, None)


@contextlib.contextmanager
def _blamed(stack: Stack, things: t.Sequence[Record | Server]) -> t.Iterator[None]:
    """Put the place in the document before an error: that of the record or server which it speaks of."""
    try:
        yield
    except NovaliteError as error:
        raise stack.error(str(error), _spoken_of(str(error), things)) from None


def _spoken_of(message: str, things: t.Sequence[Record | Server]) -> Where:
    """The place of the thing whose name `message` quotes, or else of the first that names what it quotes."""
    quoted = re.findall(r"'([^']+)'", message)
    by_name = {item.name: item.where for item in reversed(things)}
    for word in quoted:
        if word in by_name:
            return by_name[word]
    for item in things:
        for field, value in item.fields.items():
            if any(word in quoted for word in (value if isinstance(value, list) else [value]) if isinstance(word, str)):
                return (*item.where, field)
    return things[0].where[:1] if things else ()


def _servers(connection: sa.Connection, stack: Stack, owner: str, replace: bool) -> _Servers:
    live = live_servers(connection, stack, owner)
    todo = _Servers()
    going: list[Item] = []
    for instance in stack.servers:
        there = live.get(instance.name)
        if instance.absent:
            if there is not None:
                going.append(Item(REMOVE, "server", instance.name))
                todo.terminate.append(there["uuid"])
            continue
        desired = desired_server(instance, checked(stack, instance), there)
        item = plan.server_item(instance.name, desired, there)
        if item is None:
            continue
        todo.items.append(item)
        if item.action == REPLACE:
            if not replace:
                todo.refused.append(instance.name)
                continue
            todo.terminate.append(t.cast(Live, there)["uuid"])
        if item.action == CHANGE:
            _change_in_place(todo, instance.name, desired, t.cast(Live, there), item)
        else:
            todo.launch.append(launched_with(stack, instance))
    named = {instance.name for instance in stack.servers}
    for name, there in live.items():
        if name not in named and stack.prune:
            going.append(Item(REMOVE, "server", name, note="not named any more"))
            todo.terminate.append(there["uuid"])
        elif name not in named:
            todo.unnamed.append(name)
    todo.items += going
    return todo


def _change_in_place(todo: _Servers, name: str, desired: JsonObject, there: Live, item: Item) -> None:
    fields = {change.field.partition(".")[0] for change in item.changes}
    if "metadata" in fields:
        todo.metadata.append((there["row"], desired["metadata"]))
    if "security_groups" in fields:
        now, then = set(there["security_groups"]), set(desired["security_groups"])
        if then - now:
            todo.join.append({"name": name, "security_groups": sorted(then - now)})
        if now - then:
            todo.leave.append({"name": name, "security_groups": sorted(now - then)})


def _rehearse(connection: sa.Connection, stack: Stack, servers: _Servers, params: JsonMapping) -> None:
    """Do with the servers, in the ledger, what is going to be done. Raises NovaliteError with a place."""
    with _blamed(stack, stack.servers):
        for row, values in servers.metadata:
            operations.change_metadata(by_playbook(connection), row, values)
        if servers.terminate:
            server(connection, {"uuids": servers.terminate, "state": "absent"})
            server_state(connection, {"outcomes": [{"uuids": servers.terminate, "state": "deleted"}]})
        for entries, state in ((servers.join, "present"), (servers.leave, "absent")):
            if entries:
                arguments = {"project": stack.project, "servers": entries, "state": state, "exclusive": False}
                server_security_groups(connection, arguments)
        if servers.launch:
            entries = [{**entry, "admin_password": None} for entry in servers.launch]
            takeover = bool(params.get("takeover"))
            server(connection, {"project": stack.project, "servers": entries, "takeover": takeover})
