# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Kind of a job: a playbook of ours, and the variables that it takes from outside.

Nothing else reaches a playbook. A variable that Ansible could take for a template is refused here, and all of them are
handed over marked as unsafe, so that it takes none for one.
"""

from __future__ import annotations

import dataclasses
import functools
import typing as t

import jsonschema

from ansible_collections.novalite.cloud.plugins.module_utils._json import Json, JsonMapping

from ..web.errors import BadRequestError
from ..web.schemas import Schema, an_object

Instances = t.Literal["required", "allowed", "none"]  # whether a job names some

# `--limit`: host names and groups, in Ansible's patterns, and never an option or a file
HOSTS: Schema = {"type": "string", "pattern": r"^[A-Za-z0-9_!&*][A-Za-z0-9_.,:!&*-]*$", "maxLength": 1024}


@dataclasses.dataclass(frozen=True)
class Kind:
    """Kind of job. `operation` is what it does, and the operation whose rule applies to it (operations.py)."""

    name: str
    operation: str
    description: str
    book: str = ""  # the playbook's file, where its name is not the kind's
    variables: t.Mapping[str, Schema] = dataclasses.field(default_factory=dict)
    # Jobs that wait at the same time go into one run: the playbook takes the list `uuids`
    merge: bool = False
    instances: Instances = "none"
    runs: int = 4  # how many of them at once; of several, one project has all but one
    timeout: int = 1800  # seconds
    always_retry: bool = False  # begun again after its worker died however often that was: nothing else ends it well
    project: bool = False  # the playbook acts for one project: the variable `project` is the caller's
    limit: bool = False  # the variable `limit` names the hosts
    hosts: frozenset[str] = frozenset()  # variables that choose hosts as `limit` does
    action: str | None = None  # what the playbook records on each instance
    read_only: bool = False
    # A request's answer waits for it: it goes first, and past the limits of how much is done at once. Read only.
    awaited: bool = False

    @property
    def playbook(self) -> str:
        """The playbook's file."""
        return self.book or f"{self.name}.yml"

    @functools.cached_property
    def schema(self) -> Schema:
        properties = dict(self.variables)
        if self.limit:
            properties["limit"] = HOSTS
        if self.project:
            properties["project"] = {"type": "string", "minLength": 1, "maxLength": 64}
        return an_object(properties)

    @functools.cached_property
    def _validator(self) -> jsonschema.Draft202012Validator:
        return jsonschema.Draft202012Validator(self.schema)

    def check(self, variables: JsonMapping) -> None:
        """Raises BadRequestError for the first variable that this kind does not take."""
        error = jsonschema.exceptions.best_match(self._validator.iter_errors(variables))
        if error is not None:
            where = ".".join(str(part) for part in error.absolute_path) or "variables"
            raise BadRequestError(f"job '{self.name}': {where}: {error.message[:200]}")
        _refuse_templates(self.name, variables)


def _refuse_templates(kind: str, value: Json) -> None:
    if isinstance(value, str) and any(mark in value for mark in ("{{", "{%", "{#")):
        raise BadRequestError(f"job '{kind}': '{value[:70]}' looks like a template: no variable may")
    if isinstance(value, dict):
        value = [*value.keys(), *value.values()]
    if isinstance(value, list):
        for item in value:
            _refuse_templates(kind, item)
