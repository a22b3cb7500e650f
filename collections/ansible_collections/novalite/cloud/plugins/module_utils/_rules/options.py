# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Options of the nouns that people declare (servers, networks, volumes, ...), each said once: the options block of the
module's documentation, of which its argument spec is made, the JSON Schema of /v1, the one of a site's document, and
what a new one has that nobody said otherwise of, are made of it.
"""

from __future__ import annotations

import copy
import json
import typing as t
from dataclasses import dataclass

from .._json import Json, JsonObject

Schema = JsonObject  # a JSON Schema, or the options block of a module's documentation
Texts = t.Mapping[str, Json]  # descriptions by the option's path, such as `files.content`

MAX_TEXT = 255  # Nova's bound for metadata keys and values, and the ledger's for names

Kind = t.Literal["str", "int", "bool", "list", "dict", "raw"]  # Ansible's word for a type
Limits = tuple[t.Optional[int], t.Optional[int]]
NAME: Limits = (1, MAX_TEXT)

# When another value is taken: whenever it is said; while nothing uses the thing; never; or, as what is said only to
# make the thing, it is not looked at
Change = t.Literal["any", "unused", "never", "ignored"]

JSON_TYPES = {"str": "string", "int": "integer", "bool": "boolean", "list": "array", "dict": "object"}
JSON_LIMITS = {"str": "Length", "raw": "Length", "int": "imum", "list": "Items"}  # behind min and max


@dataclass(frozen=True)
class Option:
    """Option of a noun. `limits` are the least and the most: of a number, of a text's characters, of a list's items,
    and of the characters of each value of a dict without suboptions."""

    name: str
    kind: Kind = "str"
    limits: Limits = (None, None)
    description: str = ""  # for those who write a site in an editor; `ansible-doc` says it at length
    elements: Kind = "str"  # of a list; "raw": names, or the suboptions
    suboptions: tuple[Option, ...] = ()
    required: bool = False
    choices: tuple[str, ...] = ()
    default: Json = None  # of the module's argument
    new: Json = None  # what a new one has that does not say; an existing one stays as it is
    change: Change = "any"
    nullable: bool = False  # a text that an empty one takes away
    json_schema: Schema | None = None  # its JSON Schema, where none follows from the kind
    lists: int = 0  # instead of one, a list of at most so many of them
    module: Kind | None = None  # the type for the module, where that takes more and checks it itself
    no_log: bool | None = None  # None: Ansible decides by the name

    @property
    def secret(self) -> bool:
        return bool(self.no_log) or any(option.secret for option in self.suboptions)

    def documented(self, texts: Texts, path: str) -> Schema:
        """The option in the documentation of a module."""
        fields = {
            "elements": self.elements if self.kind == "list" else None,
            "required": self.required or None,
            "choices": list(self.choices) or None,
            "default": self.default,
            "suboptions": documented(self.suboptions, texts, f"{path}.") if self.elements == "dict" else None,
        }
        words = {key: value for key, value in fields.items() if value is not None}
        text = texts[path]
        if self.new not in (None, "", [], {}):
            word = self.new if isinstance(self.new, str) else json.dumps(self.new)
            text = [*(text if isinstance(text, list) else [text]), f"V({word}) for a new one that does not say."]
        return {"description": text, "type": self.module or self.kind, **words}

    def schema(self, site: bool) -> Schema:
        """The option in a JSON Schema: of /v1, or of a site's document. Only there metadata can be taken back, and any
        hint is handed on; what the API's users may say to the scheduler is listed."""
        if self.choices:
            return {"enum": list(self.choices)}
        schema: Schema = dict(self.json_schema or {"type": JSON_TYPES.get(self.kind, ["string", "array"])})
        if site and self.description:
            schema["description"] = self.description
        if self.json_schema is not None:
            return schema
        if self.kind == "list":
            name, item = A_NAME.schema(site), closed(self.suboptions, site)
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


def documented(options: t.Iterable[Option], texts: Texts, path: str = "") -> Schema:
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


def new_values(options: t.Iterable[Option]) -> JsonObject:
    """Values of a new one that does not say otherwise, for the caller to change."""
    return {option.name: copy.deepcopy(option.new) for option in options}


def option_names(options: t.Iterable[Option], *changes: Change) -> tuple[str, ...]:
    """Names of the options that can change so."""
    return tuple(option.name for option in options if option.change in changes)


A_NAME = Option("", limits=NAME)
