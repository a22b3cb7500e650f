# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Parameters of the Query API: `Filter.1.Value.2=x` and its like, held against what an action takes.

A shape says what a value may be, as a JSON schema does for other dialects; parse() gives it back converted. What an
action does not take is refused (UnknownParameter), as Amazon does: a client that believes to have been understood is
worse off than one that was told.
"""

from __future__ import annotations

import base64
import binascii
import re
import typing as t

from ansible_collections.novalite.cloud.plugins.module_utils._json import JsonObject

from .faults import Ec2Error, invalid, missing

MOST_PARAMETERS = 2000  # in one request
DEEPEST = 8
_INDEX = re.compile(r"[0-9]{1,9}")

Raw = t.Union[str, "dict[str, Raw]"]


def nested(flat: t.Mapping[str, str]) -> dict[str, Raw]:
    """{"A.1.B": "x"} as {"A": {"1": {"B": "x"}}}. Raises Ec2Error."""
    tree: dict[str, Raw] = {}
    for name, value in flat.items():
        parts = name.split(".")
        if len(parts) > DEEPEST:
            raise Ec2Error("UnknownParameter", f"The parameter {name[:100]} is not recognized")
        node = tree
        for part in parts[:-1]:
            below = node.setdefault(part, {})
            if isinstance(below, str):
                raise _conflict(name)
            node = below
        if parts[-1] in node:
            raise _conflict(name)
        node[parts[-1]] = value
    return tree


def _conflict(name: str) -> Ec2Error:
    return Ec2Error("InvalidParameterCombination", f"The parameter {name[:100]} is both a value and a structure")


class Shape:
    """The type of a parameter, which checks and converts it.

    Amazon's clients send what their users left out as an empty text (`VpcId=`): that is to leave it out, unless the
    shape `takes_empty` values.
    """

    takes_empty = False

    def parse(self, raw: Raw, name: str) -> object:
        raise NotImplementedError

    def is_there(self, raw: Raw) -> bool:
        """Tell whether a parameter with this value was given."""
        return self.takes_empty or raw != ""

    def _value(self, raw: Raw, name: str) -> str:
        if not isinstance(raw, str):
            raise Ec2Error("UnknownParameter", f"The parameter {name}.{next(iter(raw))[:60]} is not recognized")
        return raw


class Text(Shape):
    def __init__(
        self, longest: int = 255, choices: t.Collection[str] = (), pattern: str | None = None, takes_empty: bool = False
    ) -> None:
        self._longest, self._choices, self.takes_empty = longest, choices, takes_empty
        self._pattern = None if pattern is None else re.compile(pattern, re.ASCII)

    def parse(self, raw: Raw, name: str) -> str:
        value = self._value(raw, name)
        if len(value) > self._longest:
            raise invalid(name, value, f"it has {len(value)} characters, and {self._longest} is the limit")
        if self._choices and value not in self._choices:
            raise invalid(name, value, f"it is one of {', '.join(self._choices)}")
        if self._pattern is not None and self._pattern.fullmatch(value) is None:
            raise invalid(name, value)
        return value


class Number(Shape):
    takes_empty = True  # to refuse it

    def __init__(self, least: int = 0, most: int = 2**31 - 1, why: str = "") -> None:
        """`why` says in a message what sets the bounds, where they are not Amazon's."""
        self._least, self._most, self._why = least, most, why

    def parse(self, raw: Raw, name: str) -> int:
        value = self._value(raw, name)
        if re.fullmatch(r"-?[0-9]{1,12}", value, re.ASCII) is None:
            raise invalid(name, value, "it is not a number")
        if not self._least <= int(value) <= self._most:
            raise invalid(name, value, self._why or f"it must lie between {self._least} and {self._most}")
        return int(value)


class Boolean(Shape):
    takes_empty = True  # to refuse it

    def parse(self, raw: Raw, name: str) -> bool:
        value = self._value(raw, name).lower()
        if value not in ("true", "false", "1", "0"):
            raise invalid(name, value, "it is true or false")
        return value in ("true", "1")


class Base64(Shape):
    """Bytes of at most `most`."""

    def __init__(self, most: int) -> None:
        self._most = most

    def parse(self, raw: Raw, name: str) -> bytes:
        value = self._value(raw, name)
        try:
            content = base64.b64decode("".join(value.split()).encode(), validate=True)
        except (binascii.Error, ValueError):
            raise invalid(name, value, "it must be encoded in base64") from None
        if len(content) > self._most:
            raise invalid(name, value, f"it has {len(content)} bytes, and {self._most} is the limit")
        return content


class ListOf(Shape):
    """Members by their numbers, which need not be without gaps."""

    takes_empty = True  # a list without members

    def __init__(self, member: Shape, most: int = 1000) -> None:
        self._member, self._most = member, most

    def parse(self, raw: Raw, name: str) -> list[object]:
        if raw == "":
            return []
        if isinstance(raw, str):  # libcloud writes KeyName=x for a list of a single name, which Amazon takes
            return [self._member.parse(raw, name)]
        for index in raw:
            if _INDEX.fullmatch(index) is None:
                raise Ec2Error("UnknownParameter", f"The parameter {name}.{index[:60]} is not recognized")
        if len(raw) > self._most or len({int(index) for index in raw}) != len(raw):
            raise invalid(name, f"{len(raw)} members", f"{self._most} is the limit, each once")
        return [self._member.parse(raw[index], f"{name}.{index}") for index in sorted(raw, key=int)]


class Group(Shape):
    """A structure: {field: shape}. A field that is not there is not in the result."""

    def __init__(self, fields: t.Mapping[str, Shape], required: t.Collection[str] = ()) -> None:
        self._fields, self._required = fields, required

    def parse(self, raw: Raw, name: str = "") -> JsonObject:
        if isinstance(raw, str):
            raise Ec2Error("InvalidParameterValue", f"The parameter {name} is a structure")
        prefix = f"{name}." if name else ""
        fields: JsonObject = {}
        for field, below in raw.items():
            shape = self._fields.get(field)
            if shape is None:
                raise Ec2Error("UnknownParameter", f"The parameter {prefix}{field[:100]} is not recognized")
            if shape.is_there(below):
                fields[field] = shape.parse(below, f"{prefix}{field}")
        for field in self._required:
            if field not in fields or fields[field] in ("", []):
                raise missing(f"{prefix}{field}")
        return fields


class Ignored(Shape):
    """A parameter that is accepted and has no effect here."""

    def is_there(self, raw: Raw) -> bool:
        """Tell whether anything is in it."""
        return raw != "" and (isinstance(raw, str) or any(map(self.is_there, raw.values())))

    def parse(self, raw: Raw, name: str) -> None:
        return None


def each(shape: Shape, names: str) -> dict[str, Shape]:
    """Fields of one shape: `names`, with spaces between them."""
    return dict.fromkeys(names.split(), shape)


def an_attribute(number: str, names: t.Collection[str]) -> tuple[dict[str, Shape], list[str]]:
    """The parameters of what describes one attribute, and which it needs: both. `number`: the one that is an id."""
    return {number: Text(), "Attribute": Text(choices=names)}, [number, "Attribute"]


TEXTS = ListOf(Text())
FILTERS = ListOf(Group({"Name": Text(), "Value": ListOf(Text(), 200)}, ["Name"]), 200)
TAGS = ListOf(Group({"Key": Text(128), "Value": Text(256, takes_empty=True)}, ["Key"]), 200)
TAG_SPECIFICATIONS = ListOf(Group({"ResourceType": Text(64), "Tag": TAGS}, ["ResourceType"]), 20)
LISTING: t.Mapping[str, Shape] = {"Filter": FILTERS, "MaxResults": Number(1, 1000), "NextToken": Text(1024)}
METADATA_HOPS = 64  # Linux' own limit (ip_default_ttl): nothing on a host shortens it for one guest
# What a guest needs for its metadata. But for HttpTokens, things are as they are, which may be said
METADATA_OPTIONS: t.Mapping[str, Shape] = {
    "HttpTokens": Text(choices=("optional", "required")),
    "HttpEndpoint": Text(choices=("enabled",)),
    "HttpPutResponseHopLimit": Number(
        METADATA_HOPS, METADATA_HOPS, f"answers of the metadata service travel {METADATA_HOPS} hops: leave it out"
    ),
    "HttpProtocolIpv6": Text(choices=("disabled",)),
    "InstanceMetadataTags": Text(choices=("disabled",)),
}
TOKEN = Text(64, pattern=r"[\x21-\x7e]*")
