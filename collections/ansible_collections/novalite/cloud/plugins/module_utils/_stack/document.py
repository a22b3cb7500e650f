# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A stack's document, held against its JSON Schema, and what it asks for as plain data.

Profiles say once what servers have in common; a server's own words win.
"""

from __future__ import annotations

import difflib
import functools
import json
import pathlib
import typing as t

from ansible.module_utils.basic import missing_required_lib

from .._errors import NovaliteError
from .._model.yaml_types import complaint, described
from . import source
from .source import Where

SCHEMA = pathlib.Path(__file__).with_name("schema.json")  # editors read it, too
DEFAULT_PROJECT = "demo"
MAX_SERVERS = 1000

# Kinds of records in the order in which they are made, and the section that holds each
SECTIONS = {
    "flavor": "flavors",
    "image": "images",
    "network": "networks",
    "keypair": "keys",
    "security_group": "security_groups",
    "server_group": "server_groups",
    "volume": "volumes",
}
SHARED = ("image", "network")  # kinds that are a project's own or public
SECRET = frozenset({"admin_password", "files", "user_data"})  # options of a server that no screen shall show
META = ("name", "state", "public")  # what is said about a record, and is no field of it

Item = dict[str, t.Any]
Values = t.Mapping[str, t.Any]


class Record(t.NamedTuple):
    """Flavor, image, network, key pair, security group, server group or volume that the document names."""

    kind: str
    name: str
    fields: Item  # what is said, without nulls
    absent: bool
    public: bool
    where: Where


class Server(t.NamedTuple):
    """Server that the document names, after `count` and profiles were worked in."""

    name: str
    fields: Item  # as the module `server` takes them, without name and count
    absent: bool
    where: Where


class Stack(t.NamedTuple):
    """The stack that a document describes."""

    name: str
    project: str
    quotas: dict[str, int] | str  # as the module project takes them
    prune: bool
    records: list[Record]
    servers: list[Server]
    path: str | None  # of the document, for errors

    def of(self, kind: str, absent: bool = False) -> list[Record]:
        return [record for record in self.records if record.kind == kind and record.absent == absent]

    def error(self, message: str, where: Where = ()) -> NovaliteError:
        """`message`, with the place in the document before it."""
        return NovaliteError(f"{source.place(self.path, where)}{message}")


def load(document: t.Any, path: str | None) -> Stack:
    """The stack that `document` (or, if that is None, the file `path`) describes. Raises NovaliteError."""
    data = source.unwrapped(source.read(path) if document is None and path is not None else document)
    _check(data, path)
    project = data.get("project") or DEFAULT_PROJECT
    project = {"name": project} if isinstance(project, str) else project
    stack = Stack(
        name=data.get("name") or project["name"],
        project=project["name"],
        quotas=project.get("quotas") or {},
        prune=bool(data.get("prune")),
        records=_records(data),
        servers=[],
        path=path,
    )
    stack.servers.extend(_servers(stack, data))
    _refuse_twice(stack)
    return stack


@functools.lru_cache(maxsize=1)
def validator() -> t.Any:
    """The part of the schema that describes a document without its wrapper. Raises NovaliteError without jsonschema."""
    try:
        import jsonschema  # here, for it takes 0.1 s, and only stacks need it of all that ledger_step does
    except ImportError as error:
        raise NovaliteError(missing_required_lib("jsonschema")) from error
    whole = json.loads(SCHEMA.read_text(encoding="utf-8"))
    return jsonschema.Draft202012Validator({"$ref": "#/$defs/stack", "$defs": whole["$defs"]})


def fields_of(kind: str) -> list[str]:
    """List all fields that a record of this kind can have."""
    section = validator().schema["$defs"]["stack"]["properties"][SECTIONS[kind]]
    properties = validator().schema["$defs"][section["items"]["$ref"].rpartition("/")[2]]["properties"]
    return [name for name in properties if name not in META]


def _check(data: t.Any, path: str | None) -> None:
    errors = list(validator().iter_errors(data))
    if not errors:
        return
    from jsonschema.exceptions import best_match

    first = min(errors, key=lambda error: [str(step).zfill(6) for step in error.absolute_path])
    error = best_match([first])
    where: Where = tuple(error.absolute_path)
    message, key = _message(error, data)
    if key is not None:
        where = (*where, key)
    more = "" if len(errors) == 1 else f" (and {len(errors) - 1} more like this)"
    raise NovaliteError(f"{source.place(path, where, key=key is not None)}{message}{more}")


def _message(error: t.Any, data: t.Any) -> tuple[str, str | None]:
    """Return the error in plain words, and the key that is wrong, if it is one."""
    what = described(tuple(error.absolute_path), data) or "the document"
    rule, constraint = error.validator, error.validator_value
    if rule == "additionalProperties":
        known = sorted(error.schema.get("properties", {}))
        unknown = sorted(str(key) for key in error.instance if key not in known)
        near = difflib.get_close_matches(unknown[0], known, 1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}"
        return f"{what}: {unknown[0]!r} is not an option here: {hint}", unknown[0]
    shown = json.dumps(error.instance, default=str)
    shown = shown if len(shown) <= 60 else f"{shown[:57]}..."
    if rule == "required":
        missing = next(name for name in constraint if name not in error.instance)
        return f"{what}: {missing!r} is missing", None
    if rule == "type":
        types = [constraint] if isinstance(constraint, str) else constraint
        if "string" in types and not {"array", "object"}.intersection(types):
            return complaint(what, error.instance, bool(SECRET.intersection(error.absolute_path))), None
        kinds = " or ".join(types)
        return f"{what} is {shown}: give {kinds.replace('object', 'a mapping').replace('array', 'a list')}", None
    if rule == "enum":
        return f"{what} is {shown}: give {' or '.join(str(choice) for choice in constraint)}", None
    if rule in ("minimum", "maximum"):
        return f"{what} is {shown}: give {'at least' if rule == 'minimum' else 'at most'} {constraint}", None
    if rule == "pattern":
        return f"{what} is {shown}: it must match {constraint}", None
    return f"{what} is {shown}: {error.message.split(' ', 1)[-1]}", None


def _records(data: Item) -> list[Record]:
    return [
        Record(
            kind=kind,
            name=item["name"],
            fields={key: value for key, value in item.items() if key not in META and value is not None},
            absent=item.get("state") == "absent",
            public=kind == "flavor" or bool(item.get("public")),
            where=(section, index),
        )
        for kind, section in SECTIONS.items()
        for index, item in enumerate(data.get(section) or [])
    ]


def _servers(stack: Stack, data: Item) -> t.Iterator[Server]:
    profiles = data.get("profiles") or {}
    for name in profiles:  # also those that no server uses
        try:
            resolved({"profile": name}, profiles)
        except ProfileError as error:
            raise stack.error(f"profiles: {name}: {error}", ("profiles", name)) from None
    total = 0
    for index, item in enumerate(data.get("servers") or []):
        where: Where = ("servers", index)
        try:
            fields = resolved(item, profiles)
        except ProfileError as error:
            raise stack.error(f"servers {item['name']!r}: {error}", (*where, "profile")) from None
        name, count = fields.pop("name"), fields.pop("count", 1)
        absent = fields.pop("state", "present") == "absent"
        total += count
        if total > MAX_SERVERS:
            raise stack.error(f"servers: there are more than {MAX_SERVERS}: split the document", where)
        for server_name, hostname in zip(numbered(name, count), numbered(fields.get("hostname", ""), count)):
            own = {**fields, "hostname": hostname} if "hostname" in fields else fields
            yield Server(server_name, own, absent, where)


def numbered(name: str, count: int) -> list[str]:
    """Nova's names for `count` servers: the name itself for one, name-1, name-2 and so on for more."""
    return [name] if count == 1 else [f"{name}-{number}" for number in range(1, count + 1)]


def _refuse_twice(stack: Stack) -> None:
    seen: dict[tuple[t.Any, ...], Where] = {}
    things: list[tuple[tuple[t.Any, ...], Record | Server]] = []
    things += [((record.kind, record.name, record.public), record) for record in stack.records]
    things += [(("server", server.name), server) for server in stack.servers]
    for identity, entry in things:
        if identity in seen:
            section = entry.where[0]
            line = source.place(stack.path, seen[identity]).rstrip(": ") or f"{section}[{seen[identity][1]}]"
            raise stack.error(f"{section}: {entry.name!r} is named twice (first at {line})", entry.where)
        seen[identity] = entry.where


class ProfileError(Exception):
    """A profile that does not exist, or that leads to itself; `str()` says which."""


def merged(below: Values, above: Values) -> dict[str, t.Any]:
    """`below` with `above` laid over it: mappings merge at every depth, everything else is replaced. Lists are
    replaced, not joined: whoever names security groups means these. A null takes away what lay below."""
    result = dict(below)
    for key, value in above.items():
        if isinstance(value, t.Mapping) and isinstance(result.get(key), t.Mapping):
            result[key] = merged(result[key], value)
        elif isinstance(value, t.Mapping):
            result[key] = merged({}, value)
        else:
            result[key] = value
    return result


def without_nulls(value: t.Any) -> t.Any:
    """`value` without the keys whose value is null: they say nothing."""
    if isinstance(value, t.Mapping):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    return value


def resolved(item: Values, profiles: t.Mapping[str, Values]) -> dict[str, t.Any]:
    """`item` over its profiles (`profile`: one name, or several of which later ones win), and theirs. Raises
    ProfileError."""
    return t.cast("dict[str, t.Any]", without_nulls(_flat(item, profiles, ())))


def _flat(item: Values, profiles: t.Mapping[str, Values], path: tuple[str, ...]) -> dict[str, t.Any]:
    named = item.get("profile")
    result: dict[str, t.Any] = {}
    for name in [named] if isinstance(named, str) else named or []:
        if name not in profiles:
            known = ", ".join(sorted(profiles)) or "none"
            raise ProfileError(f"there is no profile {name!r}: the document has {known}")
        if name in path:
            raise ProfileError(f"the profile {name!r} leads to itself: {' -> '.join([*path, name])}")
        result = merged(result, _flat(profiles[name] or {}, profiles, (*path, name)))
    return merged(result, {key: value for key, value in item.items() if key != "profile"})
