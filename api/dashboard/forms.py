# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Forms that make, change and delete things: each is its fields, the entries of the policy that it takes, and the
operation that does it. What holds for the things themselves is the operation's to say."""

from __future__ import annotations

import dataclasses
import typing as t

from flask import request, url_for

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.call import Call

from ..web.errors import BadRequestError
from . import session

Choice = tuple[str, str]  # what is sent, what is shown
Values = dict[str, t.Any]
LARGEST = 2**31 - 1


class Thing(t.NamedTuple):
    """Something that a form is about: its name, and what the ledger has of it; of what is yet to be made, neither."""

    name: str
    record: t.Any


NOTHING = Thing("", None)
Find = t.Callable[[Call, str], Thing]


class Secret(t.NamedTuple):
    """A text that is shown once, and kept nowhere."""

    title: str
    text: str
    note: str


@dataclasses.dataclass(frozen=True)
class Field:
    """A field of a form. `kind`: text, lines, password, number, check or choice (of `options`)."""

    name: str
    label: str
    kind: str = "text"
    note: str = ""
    required: bool = False
    options: t.Callable[[Call, Thing], t.Sequence[Choice]] | None = None
    none: str = ""  # what is shown for no choice
    entry: str = ""  # of the policy, beside the form's
    initial: t.Callable[[Call, Thing], object] | None = None
    least: int = 0  # as `greatest`, of a number
    greatest: int = LARGEST
    most: int = 255  # characters

    def value(self, call: Call, thing: Thing) -> t.Any:
        """Return what was sent. Raises BadRequestError for what the field cannot hold."""
        text = session.field(self.name)
        text = text if self.kind == "password" else text.strip()
        if self.kind == "check":
            return bool(text)
        if self.required and not text:
            raise BadRequestError(f"{self.label}: it is empty: give one")
        if self.kind == "number":
            return self._number(text)
        if len(text) > self.most and self.kind != "lines":
            raise BadRequestError(f"{self.label}: it has {len(text)} characters: give at most {self.most}")
        if self.options is not None and text and text not in dict(self.options(call, thing)):
            raise BadRequestError(f"{self.label}: '{text[:60]}' cannot be chosen any more: load the page again")
        return text

    def _number(self, text: str) -> int | None:
        if not text:
            return None
        digits = text.removeprefix("-")
        is_number = digits.isascii() and digits.isdigit() and len(digits) <= 10
        if not (is_number and self.least <= int(text) <= self.greatest):
            raise BadRequestError(
                f"{self.label}: '{text[:60]}': give a whole number from {self.least} to {self.greatest}"
            )
        return int(text)


class Shown(t.NamedTuple):
    """A field as it is put into a page."""

    field: Field
    value: t.Any
    choices: t.Sequence[Choice]


def _no_lines(_call: Call, _thing: Thing) -> t.Sequence[str]:
    return ()


@dataclasses.dataclass(frozen=True)
class Form:
    """A form at `path`, which is about something where that has a <number>. Links to it say `link`.

    `do` is the operation, with what `prepare` made of the values outside of its transaction. A form with `goes`
    deletes: that says, line by line, what goes with the thing.
    """

    path: str
    link: str
    title: str
    do: t.Callable[[Call, Thing, Values], Secret | None]
    fields: t.Sequence[Field] = ()
    find: Find | None = None
    goes: t.Callable[[Call, Thing], t.Sequence[str]] | None = None
    fits: t.Callable[[t.Any], bool] = lambda _record: True
    prepare: t.Callable[[Values], Values] = dict
    entry: str = ""  # of the policy
    page: str = ""  # endpoint of the page of what it is about, by UUID, which shows more of that than the list

    @property
    def noun(self) -> str:
        return self.path.split("/")[1]

    @property
    def endpoint(self) -> str:
        return self.path.strip("/").replace("/<number>", "").replace("/", "_").replace("-", "_")

    @property
    def back(self) -> str:
        """The endpoint of the list in which is what it is about."""
        return f"pages.list_{self.noun.replace('-', '_')}"

    def shows(self, number: str | None) -> str:
        """Return the path of what shows what came of it: a page, or the list."""
        return url_for(self.page, uuid=number) if self.page else url_for(self.back)

    @property
    def button(self) -> str:
        return self.link.removesuffix("…")

    def url(self, number: str | None = None) -> str:
        return url_for(f"pages.show_{self.endpoint}", number=number)

    def open_fields(self, call: Call) -> list[Field]:
        """Return the fields that the caller may fill in."""
        return [field for field in self.fields if not field.entry or call.permits(field.entry)]

    def shown(self, call: Call, thing: Thing, sent: bool) -> list[Shown]:
        """Return the fields with their values: those that were `sent`, or those to begin with."""
        rows = []
        for field in self.open_fields(call):
            if field.kind == "password":
                value: object = ""
            elif sent:
                value = session.field(field.name)
            else:
                value = field.initial(call, thing) if field.initial is not None else ""
            rows.append(Shown(field, value, field.options(call, thing) if field.options is not None else ()))
        return rows

    def values(self, call: Call, thing: Thing) -> Values:
        """Return what was sent. Raises BadRequestError, and ForbiddenError for a field that is not the caller's."""
        allowed = self.open_fields(call)
        for field in self.fields:
            if field not in allowed and request.form.get(field.name):
                call.check(field.entry)
        return {field.name: field.value(call, thing) for field in allowed}


def forms_of(entry: str, *forms: Form) -> tuple[Form, ...]:
    """Return the forms, each with this entry of the policy unless it has its own."""
    return tuple(dataclasses.replace(form, entry=form.entry or entry) for form in forms)


NAME = Field("name", "Name", required=True)
DESCRIPTION = Field("description", "Description")


class Link(t.NamedTuple):
    """A way to a form."""

    label: str
    path: str
    danger: bool
