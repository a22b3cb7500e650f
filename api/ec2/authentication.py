# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Authentication by signature. Every request is signed anew: there are no sessions and no tokens here.

A wrong signature is not counted, as a wrong password is: what it would have to guess are 128 random bits, and a lock
would only serve those who want to lock somebody out whose access key they have seen.
"""

from __future__ import annotations

import secrets
import time
import urllib.parse

from flask import current_app, g, request
from werkzeug.exceptions import RequestEntityTooLarge

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.identity import credential_records

from ..web import rates
from ..web.context import Caller, implied
from ..web.errors import BadRequestError
from ..web.ledger import credentials_seal, reading_ledger
from ..web.request_hooks import unfit
from . import signing
from .faults import Ec2Error
from .parameters import MOST_PARAMETERS

FORM = "application/x-www-form-urlencoded"
_NOBODYS = secrets.token_hex(16)  # what an unknown key's signature is held against: the same work as for a known one


def authenticate() -> None:
    """Find out who asks. Raises Ec2Error unless the request is signed, rightly and just now."""
    g.ec2_parameters = {}
    try:
        caller, parameters = _caller()
    except (Ec2Error, BadRequestError):
        rates.count_nobody()
        raise
    rates.count_caller(caller.user_id, caller.project_id)
    g.caller, g.ec2_parameters = caller, parameters


def _caller() -> tuple[Caller, dict[str, str]]:
    """Return the caller who signed the request, and its parameters. Raises Ec2Error."""
    received_request = _request()
    try:
        claim = signing.claim_of(received_request)
        parameters = received_request.parameters
    except signing.Unsigned as error:
        raise Ec2Error("AuthFailure", f"{error}.", 401) from error
    if unfit(parameters):
        raise BadRequestError("a parameter holds a character that cannot be stored")
    seal = credentials_seal()
    with reading_ledger() as connection:
        credential = (
            credential_records.ec2_credential(connection, seal, claim.access) if len(claim.access) <= 32 else None
        )
    right = signing.is_right(claim, _NOBODYS if credential is None else credential["secret"])
    if credential is None:
        raise Ec2Error("AuthFailure", "AWS was not able to validate the provided access credentials", 401)
    if not right:
        raise Ec2Error(
            "SignatureDoesNotMatch",
            "The request signature we calculated does not match the signature you provided. Check your AWS Secret "
            "Access Key and signing method.",
            403,
        )
    _check_time(claim)
    now = time.time()
    caller = Caller(
        user_id=credential["user_id"],
        user_name=credential["user_name"],
        project_id=credential["project_id"],
        project_name=credential["project_name"],
        roles=implied(set(credential["roles"])),
        token_hash="",
        method="ec2credential",
        audit_id="",
        issued_at=now,
        expires_at=now,
    )
    return caller, parameters


def _check_time(claim: signing.Claim) -> None:
    """Refuse what was signed long ago, or for later. A request that says until when it counts does so until then."""
    window = current_app.extensions["settings"].ec2_window_seconds
    now = time.time()
    if claim.expires_at is None:
        if abs(now - claim.signed_at) > window:
            raise Ec2Error("RequestExpired", f"Request has expired: it was not signed within {window} s of now.")
        return
    if now > claim.expires_at:
        raise Ec2Error("RequestExpired", "Request has expired.")
    latest = signing.LONGEST if claim.signed_at == claim.expires_at else 0
    if claim.signed_at > now + window + latest:
        raise Ec2Error("RequestExpired", "Request was signed for a time that is yet to come.")


def _request() -> signing.Request:
    body = request.get_data(cache=True, parse_form_data=False)
    try:
        query = _pairs(request.query_string)
        form = _pairs(body) if request.method == "POST" and request.mimetype in (FORM, "") else []
    except ValueError:
        raise RequestEntityTooLarge from None
    headers = {name.lower(): value for name, value in request.headers.items()}
    return signing.Request(
        method=request.method,
        host=request.headers.get("Host", ""),
        path=request.script_root + request.path,
        query=query,
        form=form,
        body=body,
        headers=headers,
    )


def _pairs(text: bytes) -> list[tuple[str, str]]:
    """Names and values of a query or a form. Raises ValueError for more than MOST_PARAMETERS."""
    return urllib.parse.parse_qsl(
        text.decode("ascii", "surrogateescape"),
        keep_blank_values=True,
        errors="surrogateescape",
        max_num_fields=MOST_PARAMETERS,
    )
