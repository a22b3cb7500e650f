# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The blueprint of the Block Storage API: who asks, in which microversion, and errors in Cinder's words."""

from __future__ import annotations

import contextlib
import re
import typing as t

from flask import Blueprint, Response, g, request
from werkzeug.exceptions import NotFound

from ansible_collections.novalite.cloud.plugins.module_utils._errors import ConflictError, NovaliteError, QuotaError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.volume_views import Stored

from ...jobs import queue
from ...web import policy
from ...web.context import current, request_id
from ...web.errors import BadRequestError, NotAcceptableError, TooLargeError

Answer = tuple[t.Any, int]
Record = dict[str, t.Any]

volume_versions = Blueprint("volume_versions", __name__, url_prefix="/volume")
volume = Blueprint("volume", __name__, url_prefix="/volume/v3")
volume.before_request(policy.guard)


MIN_VERSION, MAX_VERSION = (3, 0), (3, 71)
UPDATED = "2026-01-01T00:00:00Z"


@volume.before_request
def _begin() -> None:
    _negotiate()
    project = (request.view_args or {}).pop("project", None)
    if project is not None and project != current().project:
        raise NotFound()


def _negotiate() -> None:
    """Find out what the request speaks: the header is Nova's, with another service's name."""
    g.volume_version = MIN_VERSION
    for part in request.headers.get("OpenStack-API-Version", "").split(","):
        service, _blank, version = part.strip().partition(" ")
        if service.lower() not in ("volume", "block-storage") or not version:
            continue
        if version.strip() == "latest":
            g.volume_version = MAX_VERSION
            continue
        match = re.fullmatch(r"([1-9][0-9]{0,3})\.(0|[1-9][0-9]{0,3})", version.strip())
        if match is None:
            raise BadRequestError(
                f"API Version String {version[:40]} is of invalid format. Must be of format MajorNum.MinorNum."
            )
        g.volume_version = int(match[1]), int(match[2])
        if not MIN_VERSION <= g.volume_version <= MAX_VERSION:
            raise NotAcceptableError(f"Version {version[:40]} is not supported by the API.")


@volume.after_request
def _end(response: Response) -> Response:
    response.headers["OpenStack-API-Version"] = "volume {}.{}".format(*g.get("volume_version", MIN_VERSION))
    response.vary.add("OpenStack-API-Version")
    return response


def speaks(minor: int) -> bool:
    """Whether this request speaks microversion 3.`minor`, or a later one."""
    return bool(g.get("volume_version", MIN_VERSION) >= (3, minor))


def whose() -> str | None:
    """The project whose objects the caller may ask for by id; None: any, for administrators, as in Cinder."""
    return current().reach


@contextlib.contextmanager
def in_cinders_words() -> t.Iterator[None]:
    """What the ledger calls a conflict is a bad request here, and a quota is a limit."""
    try:
        yield
    except QuotaError as error:
        raise TooLargeError(str(error)) from error
    except ConflictError as error:
        raise BadRequestError(str(error)) from error
    except NovaliteError as error:
        if type(error) is not NovaliteError:
            raise
        raise BadRequestError(str(error)) from error


def enqueue(connection: Connection, kind: str, row: Stored, instances: t.Collection[str] = (), **ids: str) -> None:
    """Have hosts do what was begun. `ids`: what it is about, as volumes=, snapshots= or attachments=."""
    queue.enqueue(
        connection,
        kind,
        instances=instances,
        variables={name: [resource_id] for name, resource_id in ids.items()},
        project_id=row.project_id,
        user_id=current().user_id,
        request_id=request_id(),
    )
