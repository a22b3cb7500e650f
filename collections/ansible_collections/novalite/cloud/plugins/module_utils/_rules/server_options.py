# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Options of a server, declared once for all who take it: the documentation of module `server`, of which its arguments
are made (and with them the variables of playbooks), /v1's JSON Schema of a server, and the one of a site's document for
servers and profiles.

Limits are those of whoever records the server, so that a door refuses early what could not be carried out.
"""

from __future__ import annotations

import typing as t
from dataclasses import dataclass

from .._json import Json, JsonObject

Schema = JsonObject  # a JSON Schema, or the options block of a module's documentation

MAX_SERVERS = 1000  # in one call; a project's quota is usually far below
MAX_NICS = 10
MAX_GROUPS = 10
MAX_VOLUMES = 20  # its PCI slots bound them
MAX_TEXT = 255  # Nova's bound for metadata keys and values, and the ledger's for names
MAX_HINTS = 4096  # characters of JSON (CVE-2012-3371: a long list of hints stalled the scheduler)
MAX_EXPRESSION = 1024  # characters

Kind = t.Literal["str", "int", "bool", "list", "dict", "raw"]  # Ansible's word for a type
Limits = tuple[t.Optional[int], t.Optional[int]]
NAME: Limits = (1, MAX_TEXT)
LABEL: Limits = (1, 63)  # RFC 1035
EXPRESSION: Limits = (1, MAX_EXPRESSION)

JSON_TYPES = {"str": "string", "int": "integer", "bool": "boolean", "list": "array", "dict": "object"}
JSON_LIMITS = {"str": "Length", "raw": "Length", "int": "imum", "list": "Items"}  # behind min and max


@dataclass(frozen=True)
class Option:
    """Option of a server. `limits` are the least and the most: of a number, of a text's characters, of a list's items,
    and of the characters of each value of a dict without suboptions."""

    name: str
    kind: Kind = "str"
    limits: Limits = (None, None)
    description: str = ""  # for those who write a site in an editor; `ansible-doc` says it at length
    elements: Kind = "str"  # of a list; "raw": names, or the suboptions
    suboptions: tuple[Option, ...] = ()
    required: bool = False
    choices: tuple[str, ...] = ()
    default: str | None = None
    lists: int = 0  # instead of one, a list of at most so many of them
    module: Kind | None = None  # the type for the module, where that takes more and checks it itself
    no_log: bool | None = None  # None: Ansible decides by the name

    @property
    def secret(self) -> bool:
        return bool(self.no_log) or any(option.secret for option in self.suboptions)

    def documented(self, texts: t.Mapping[str, Json], path: str) -> Schema:
        """The option in the documentation of a module. `texts` are descriptions by path, such as `files.content`."""
        fields = {
            "elements": self.kind == "list" and self.elements,
            "required": self.required,
            "choices": list(self.choices),
            "default": self.default,
            "suboptions": self.elements == "dict" and documented(self.suboptions, texts, f"{path}."),
        }
        words = {key: value for key, value in fields.items() if value}
        return {"description": texts[path], "type": self.module or self.kind, **words}

    def schema(self, site: bool) -> Schema:
        """The option in a JSON Schema: of /v1, or of a site's document. Only there metadata can be taken back, and any
        hint is handed on; what the API's users may say to the scheduler is listed."""
        if self.choices:
            return {"enum": list(self.choices)}
        schema: Schema = {"type": JSON_TYPES.get(self.kind, ["string", "array"])}
        if site and self.description:
            schema["description"] = self.description
        if self.kind == "list":
            name, item = _NAME.schema(site), closed(self.suboptions, site)
            schema["items"] = {"str": name, "dict": item, "raw": {"anyOf": [name, item]}}[self.elements]
        elif self.kind == "dict" and not self.suboptions:
            types = ["string", *(["null"] if site else [])]
            schema["additionalProperties"] = {"type": types, "maxLength": self.limits[1]}
        elif self.suboptions and not site:
            schema = closed(self.suboptions, site)
        if (word := JSON_LIMITS.get(self.kind)) is not None:
            limits = zip((f"min{word}", f"max{word}"), self.limits)
            schema.update({bound: limit for bound, limit in limits if limit is not None})
        if self.lists:
            return {"anyOf": [schema, {"type": "array", "items": schema, "minItems": 1, "maxItems": self.lists}]}
        return schema


def documented(options: t.Iterable[Option], texts: t.Mapping[str, Json], path: str = "") -> Schema:
    """The options block of a module's documentation, of which its argument spec is made."""
    return {option.name: option.documented(texts, path + option.name) for option in options}


def no_log(options: t.Iterable[Option], path: str) -> dict[str, bool]:
    """Return `no_log` by the option's path, for which documentation has no word."""
    said: dict[str, bool] = {}
    for option in options:
        if option.no_log is not None:
            said[path + option.name] = option.no_log
        said.update(no_log(option.suboptions, f"{path}{option.name}."))
    return said


def closed(options: t.Sequence[Option], site: bool) -> Schema:
    """The JSON Schema of an object that has these options and no others."""
    return {
        "type": "object",
        "required": [option.name for option in options if option.required],
        "additionalProperties": False,
        "properties": {option.name: option.schema(site) for option in options},
    }


_NAME = Option("", limits=NAME)
HINTS = (
    Option("group", limits=NAME),
    Option("same_host", limits=NAME, lists=100),
    Option("different_host", limits=NAME, lists=100),
    Option("build_near_host_ip", limits=(None, 45)),
    Option("cidr", limits=(None, 4)),
    # its depth, its operators and its length: _scheduling, when the request is recorded
    Option("query", "raw", (None, MAX_HINTS)),
)
FILE = (
    Option("path", required=True),
    Option("content", required=True, no_log=True),
    Option("encoding", choices=("text", "base64"), default="text"),
)
NETWORK = (Option("name", limits=NAME, required=True), Option("fixed_ip", limits=NAME))
VOLUME = (
    Option("volume", limits=NAME, description="One that there is."),
    Option("size", "int", (1, 2**31 - 1), "GiB of one that is made."),
    Option("type", limits=NAME),
    Option("snapshot", limits=NAME),
    Option("boot", "bool"),
    Option("delete_on_termination", "bool"),
    Option("device", limits=(1, 32)),
)
SERVER = (
    Option("name", limits=LABEL, required=True),
    # the module takes `-e count=3`, which arrives as text
    Option("count", "int", (1, MAX_SERVERS), "2 and more are named name-1, name-2 and so on; 0 is none.", module="raw"),
    Option("flavor", limits=NAME, description="Name of the flavor. Another one needs a new instance."),
    Option("image", limits=NAME, description="Name or id of the image. Another one needs a new instance."),
    Option("key", limits=NAME, description="Name of the key pair.", no_log=False),
    Option("networks", "list", (1, MAX_NICS), "One interface for each, in this order.", "raw", NETWORK),
    Option("security_groups", "list", (None, MAX_GROUPS), "All groups that it is in; changed while it runs."),
    Option("availability_zone", limits=NAME),
    Option("metadata", "dict", (None, MAX_TEXT), "Keys that are not named stay as they are; changed while it runs."),
    Option("hostname", limits=LABEL),
    Option("user_data", no_log=True),
    Option("user_data_encoding", choices=("text", "base64"), description="How user_data is given: text by default."),
    Option("config_drive", "bool"),
    Option("files", "list", elements="dict", suboptions=FILE),
    Option("admin_password", description="Counts when the server is made.", no_log=True),
    Option("volumes", "list", (None, MAX_VOLUMES), "Given when it is built; not looked at afterwards.", "dict", VOLUME),
    Option("hints", "dict", description="For the scheduler, when the server is made.", suboptions=HINTS),
    Option("requirements", limits=EXPRESSION),
    Option("rank", limits=EXPRESSION),
)


def v1_schema() -> Schema:
    """A server in a job of /v1: without what is secret, for the variables of a job are kept."""
    return closed([option for option in SERVER if not option.secret], site=False)


def _or_null(schema: Schema) -> Schema:
    if "enum" in schema:
        return {"enum": [*schema["enum"], None]}
    return {**schema, "type": [schema["type"], "null"]}


def stack_schemas() -> dict[str, Schema]:
    """`profile` and `server` of a site's document. null takes away what a profile said."""
    profile = {
        "description": "One profile, or several of which later ones win.",
        "anyOf": [_NAME.schema(True), {"type": "array", "items": _NAME.schema(True), "minItems": 1}],
    }
    options = closed(SERVER, site=True)["properties"]
    own = {"name": options.pop("name"), "count": {**options.pop("count"), "minimum": 0}}
    shared = {name: _or_null(schema) for name, schema in options.items()}
    of_profile = {"profile": profile, **shared}
    return {
        "profile": {"type": ["object", "null"], "additionalProperties": False, "properties": of_profile},
        "server": {
            "type": "object",
            "required": ["name"],
            "additionalProperties": False,
            "properties": {
                **own,
                "state": {"$ref": "#/$defs/state"},
                **{name: {"$ref": f"#/$defs/profile/properties/{name}"} for name in of_profile},
            },
        },
    }
