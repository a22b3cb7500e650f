# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The metadata service: what http://169.254.169.254 answers to a guest, in EC2's and in OpenStack's way.

A proxy on each compute host says, signed, which guest asks. Whatever is wrong with a request, an unknown path, a
missing or false signature, an address of nobody, is one and the same answer: 404 without a word. A guest's session
token (IMDSv2) that is missing where its instance requires one, or is not right, is 401. Nothing is kept of a token: it
is its end and a MAC over the instance and that end. What makes a guest ask, cannot PUT for one.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import time
import typing as t

from flask import Blueprint, Flask, Response, current_app, request
from werkzeug.exceptions import NotFound

from ansible_collections.novalite.cloud.plugins.module_utils._guest import signature
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.compute import guest_lookup
from ansible_collections.novalite.cloud.plugins.module_utils._secret_file import ensure_secret

from ..settings import Settings
from ..web.errors import status_of
from ..web.ledger import reading_ledger
from . import documents
from .documents import Guest

blueprint = Blueprint("metadata", __name__)

SECRET = "metadata_secret"
TOKEN_HEADER = "X-aws-ec2-metadata-token"
SECONDS_HEADER = "X-aws-ec2-metadata-token-ttl-seconds"
MOST_SECONDS = 21600  # Amazon's
TOKEN_PURPOSE = b"novalite metadata token "


def register(app: Flask, settings: Settings) -> None:
    app.extensions[SECRET] = ensure_secret(settings.secret_file)
    app.register_blueprint(blueprint)


@blueprint.get("/", defaults={"path": ""})
@blueprint.get("/<path:path>")
def answer(path: str) -> Response:
    """The document or listing at `path`."""
    guest = _asking()
    token = request.headers.get(TOKEN_HEADER)
    if token is None:
        refused = guest.tokens_required
    else:
        refused = not is_valid(current_app.extensions[SECRET], guest.instance["uuid"], token, time.time())
    if refused:
        return _empty(401)
    document = documents.find(guest, path)
    if document is None:
        raise NotFound
    return Response(document.body, content_type=document.content_type, headers={"Cache-Control": "no-store"})


@blueprint.put("/latest/api/token")
def issue_token() -> Response:
    """A session token for the guest that asks, for as many seconds as it says (Amazon's header; 400 without it)."""
    guest = _asking()
    text = request.headers.get(SECONDS_HEADER, "")
    seconds = int(text) if text.isascii() and text.isdigit() and len(text) <= 5 else 0
    if not 1 <= seconds <= MOST_SECONDS:
        return _empty(400)
    token = new_token(current_app.extensions[SECRET], guest.instance["uuid"], seconds, time.time())
    headers = {SECONDS_HEADER: str(seconds), "Cache-Control": "no-store"}
    return Response(token, content_type=documents.TEXT, headers=headers)


@blueprint.errorhandler(Exception)
def _failed(error: Exception) -> Response:
    status = status_of(error)
    if 400 <= status < 500:
        status = 404
    return _empty(status)


def _empty(status: int) -> Response:
    return Response("", status, content_type=documents.TEXT)


def _asking() -> Guest:
    """The guest that this request comes from. Raises NotFound when no host vouches for it, or it is not there."""
    names = (signature.HOST_HEADER, signature.NETWORK_HEADER, signature.ADDRESS_HEADER, signature.SIGNATURE_HEADER)
    host, network, address, signed = (request.headers.get(name, "") for name in names)
    if not signature.is_signed(current_app.extensions[SECRET], host, network, address, signed):
        raise NotFound
    with reading_ledger() as connection:
        instance = guest_lookup.instance_at(connection, network, address, host)
        if instance is None:
            raise NotFound
        return Guest(
            instance=instance,
            user_data=guest_lookup.user_data_of(connection, instance["uuid"]),
            files=t.cast("list[dict[str, str]]", guest_lookup.files_of(connection, instance["uuid"])),
            tokens_required=guest_lookup.are_tokens_required(connection, instance["uuid"]),
        )


def new_token(secret: bytes, instance_uuid: str, seconds: int, now: float) -> str:
    """Return a token that is valid for `seconds` (1 to 21600) for the instance."""
    ends = int(now) + seconds
    return base64.urlsafe_b64encode(ends.to_bytes(8, "big") + _mac(secret, instance_uuid, ends)).decode()


def is_valid(secret: bytes, instance_uuid: str, token: str, now: float) -> bool:
    """Tell whether `token` was issued for the instance, and has not expired."""
    try:
        data = base64.b64decode(token.encode("ascii"), altchars=b"-_", validate=True)
    except (UnicodeEncodeError, binascii.Error):
        return False
    ends = int.from_bytes(data[:8], "big")
    return hmac.compare_digest(data[8:], _mac(secret, instance_uuid, ends)) and now < ends


def _mac(secret: bytes, instance_uuid: str, ends: int) -> bytes:
    return hmac.digest(secret, TOKEN_PURPOSE + f"{instance_uuid}/{ends}".encode(), hashlib.sha256)
