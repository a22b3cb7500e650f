# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The page's caller: a token as everywhere else, in a cookie that no script and no other site gets hold of."""

from __future__ import annotations

import hashlib
import hmac
import pathlib
import urllib.parse

from flask import Response, g, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from werkzeug.wrappers import Response as BaseResponse

from ..web import policy, rates
from ..web.context import MAX_TOKEN, find_caller
from ..web.errors import LATER, BadRequestError, ForbiddenError, UnauthorizedError, message_of, status_of
from ..web.ledger import reading_ledger
from ..web.request_hooks import unfit
from ..web.services import Service

COOKIE = "novalite_session"
LIFETIME = 3600  # seconds; then one logs in again
MAX_FIELD = 1024  # characters
MAX_LONG = 65536  # of a field of LONG
LONG = frozenset(["user_data", "public_key"])
LOGIN = "pages.show_login"

# Scripts and styles are files of ours; what is rendered into a page is never run, whatever a guest says
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


def _begin() -> None:
    if request.method == "POST":
        _refuse_other_sites()
        _refuse_unfit_fields()
    if policy.is_for_anybody():
        return
    with reading_ledger() as connection:
        caller = find_caller(connection, token()) if 1 <= len(token()) <= MAX_TOKEN else None
    if caller is None or caller.project_id is None or caller.access_rules is not None:
        rates.count_nobody()
        raise UnauthorizedError("Log in first.")
    rates.count_caller(caller.user_id, caller.project_id)
    g.caller = caller
    # what is about one session is of no use in another
    if request.method == "POST" and not hmac.compare_digest(csrf().encode(), field("csrf").encode()):
        raise ForbiddenError("This form is out of date: load the page again.")


pages = Service("pages", "", _begin, str(pathlib.Path(__file__).with_name("templates")))


@pages.blueprint.after_request
def _end(response: Response) -> Response:
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)
    if not response.headers.get("Cache-Control"):
        response.headers["Cache-Control"] = "no-store"  # a browser's back button shows nothing after the logout
    return response


@pages.blueprint.errorhandler(Exception)
def _failed(error: Exception) -> ResponseReturnValue:
    status = status_of(error)
    if status == 401 and request.method == "GET" and request.endpoint != LOGIN:
        return redirect(url_for(LOGIN, next=request.full_path.rstrip("?")), 303)
    page = render_template("pages/error.html", status=status, message=message_of(error, status))
    wait = {"Retry-After": str(error.retry_after)} if isinstance(error, LATER) else {}
    return page, status, wait


def token() -> str:
    return request.cookies.get(COOKIE, "")


def csrf() -> str:
    """Return the CSRF token of this session's forms. It is derived from the session's token, which nobody else has."""
    return hmac.new(token().encode("utf-8", "replace"), b"novalite form", hashlib.sha256).hexdigest()


def field(name: str) -> str:
    """A field of the form that was sent; "" if it is not there."""
    return request.form.get(name, "")


def keep(response: BaseResponse, text: str) -> None:
    """Give the token to the browser, for as long as it runs."""
    response.set_cookie(COOKIE, text, httponly=True, samesite="Strict", secure=request.is_secure, path="/")


def forget(response: BaseResponse) -> None:
    response.delete_cookie(COOKIE, httponly=True, samesite="Strict", secure=request.is_secure, path="/")


def local_path(text: str) -> str:
    """`text`, if it is a path of this site; else the first page. Another site's address begins with // or a scheme."""
    try:
        parts = urllib.parse.urlsplit(text)
    except ValueError:  # http://[ is not even an address
        return "/"
    plain = text.startswith("/") and not text.startswith("//") and "\\" not in text and text.isprintable()
    return text if plain and not parts.scheme and not parts.netloc else "/"


def _refuse_other_sites() -> None:
    """A form that another site made is not this user's will, logged in or not."""
    origin = request.headers.get("Origin")
    if request.headers.get("Sec-Fetch-Site", "same-origin") not in ("same-origin", "none"):
        raise ForbiddenError("This form was sent by another site.")
    if origin is not None and origin != request.host_url.rstrip("/"):
        raise ForbiddenError("This form was sent by another site.")


def _refuse_unfit_fields() -> None:
    for name, values in request.form.lists():
        longest = MAX_LONG if name in LONG else MAX_FIELD
        for text in (name, *values):
            if len(text) > longest or unfit(text):
                raise BadRequestError("A field of this form cannot be.")
