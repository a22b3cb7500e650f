# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Ownership of things on a host. What novalite makes carries a mark that names its ledger; only who made it removes it.

The mark is `novalite:<identity of the ledger>`. On a network device it is the alias (`ip link show` prints it), in a
file a comment, in a network filter the UUID. What carries none is somebody else's: it is used as it is. Pure.
"""

from __future__ import annotations

import dataclasses
import enum
import re
import typing as t
import uuid

from .._errors import NovaliteError

PREFIX = "novalite:"
COMMENT = "# owner: "  # begins the line of a file of ours that has the mark
_NOBODY = "-"  # in the place of a ledger: the modules were called without one
_IDENTITY = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_MARK = re.compile(rf"{PREFIX}({_IDENTITY.pattern}|{_NOBODY})")
_NAMESPACE = uuid.UUID("5c3f3f0e-6a1f-5d0b-9b1c-7e1c6f1a2d90")  # of the UUIDs below


class Owner(enum.Enum):
    """The owner of a thing that a host has, from one ledger's view."""

    OURS = "ours"
    OTHER_LEDGER = "of another ledger"
    NOT_MARKED = "not novalite's"


@dataclasses.dataclass(frozen=True)
class Mark:
    """The mark of one ledger, by its identity; None: of modules that were called without a ledger."""

    ledger: str | None = None

    @property
    def text(self) -> str:
        return PREFIX + (self.ledger or _NOBODY)

    @property
    def line(self) -> str:
        """The mark as a line of a configuration file."""
        return COMMENT + self.text

    def owner(self, text: str | None) -> Owner:
        """The owner of a thing that carries `text` where marks are."""
        if text == self.text:
            return Owner.OURS
        return Owner.NOT_MARKED if read(text) is None else Owner.OTHER_LEDGER

    def uuid_of(self, name: str, instance: str | None = None) -> str:
        """The UUID of a thing that has one and no place for a mark, by its name and the UUID of its instance."""
        return str(uuid.uuid5(_NAMESPACE, " ".join((self.text, name, *((instance,) if instance else ())))))

    def is_others(self, text: str, name: str, instance: str | None = None) -> bool:
        """Tell whether the UUID `text` was made from a name (RFC 4122, version 5) and another ledger or instance."""
        return uuid.UUID(text).version == 5 and text not in {self.uuid_of(name), self.uuid_of(name, instance)}


NO_LEDGER = Mark()


def of_ledger(identity: str | None) -> Mark:
    """The mark of the module option `ledger`. Raises NovaliteError for what is no identity of a ledger."""
    if identity and not _IDENTITY.fullmatch(identity):
        raise NovaliteError(f"ledger {identity!r} is not an identity of a ledger: give the `ledger` of a plan, or none")
    return Mark(identity or None)


def read(text: str | None) -> Mark | None:
    """The mark that `text` is; None for anything else."""
    match = _MARK.fullmatch(text or "")
    if match is None:
        return None
    return Mark(None if match[1] == _NOBODY else match[1])


def of_file(lines: t.Iterable[str]) -> str | None:
    """The text of the mark in a configuration file of ours; None where there is none."""
    texts = (line[len(COMMENT) :].strip() for line in lines if line.startswith(COMMENT))
    return next((text for text in texts if read(text) is not None), None)
