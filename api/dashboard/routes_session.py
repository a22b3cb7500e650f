# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Logging in and out, by the same proof, locks and tokens as the identity service."""

from __future__ import annotations

import contextlib
import dataclasses

from flask import redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from werkzeug.datastructures import MultiDict

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.identity import tokens

from ..openstack.identity import authenticate
from ..web.errors import BadRequestError, NotFoundError, TooManyRequestsError, UnauthorizedError
from ..web.ledger import writing_ledger
from ..web.services import writes_while_behind
from ..work.calls import calling, proving
from . import session
from .session import field, pages

REFUSED = "Wrong user, password or project."


@pages.get("/login", "pages:login")
def show_login() -> ResponseReturnValue:
    return _form(request.args, None), 200


@pages.post("/login", "pages:login")
def log_in() -> ResponseReturnValue:
    project = field("project").strip()
    identity = {"methods": ["password"], "password": {"user": {"name": field("user"), "password": field("password")}}}
    try:
        if not field("user") or not field("password"):
            raise UnauthorizedError(REFUSED)
        proved = authenticate.prove(identity)
        proved = dataclasses.replace(proved, expires_at=proved.began + session.LIFETIME)
        token, caller, _credential = authenticate.issue(proved, {"project": {"name": project}} if project else None)
    except UnauthorizedError:
        return _form(request.form, REFUSED), 401
    except TooManyRequestsError as error:
        return _form(request.form, str(error)), 429, {"Retry-After": str(error.retry_after)}
    if caller.project_id is None:
        with writing_ledger(while_behind=True) as connection:
            tokens.revoke(proving(connection, caller.user_id), token.text)
        raise BadRequestError("This user has no project of its own: name one.")
    response = redirect(session.local_path(field("next") or "/"), 303)
    session.keep(response, token.text)
    return response


@pages.post("/logout", "pages:logout", writes_while_behind)
def log_out(connection: Connection) -> ResponseReturnValue:
    with contextlib.suppress(NotFoundError):  # or another page logged out just now
        tokens.revoke(calling(connection), session.token())
    response = redirect(url_for(session.LOGIN), 303)
    session.forget(response)
    return response


def _form(values: MultiDict[str, str], message: str | None) -> str:
    fields = {name: values.get(name, "")[: session.MAX_FIELD] for name in ("user", "project", "next")}
    return render_template("pages/login.html", message=message, **fields)
