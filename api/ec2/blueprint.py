# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Endpoint of all EC2 actions, at one address: it reads who asks for what, and answers in EC2's XML."""

from __future__ import annotations

import dataclasses
import functools
import re
import typing as t
import xml.etree.ElementTree as ElementTree

from flask import Blueprint, Response, g

from ansible_collections.novalite.cloud.plugins.module_utils._errors import OtherRequestError
from ansible_collections.novalite.cloud.plugins.module_utils._json import JsonMapping
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.catalog import ec2_requests

from ..web import policy
from ..web.context import Caller, current, request_id
from ..web.errors import in_words, with_headers
from ..web.ledger import reading_ledger, writing_ledger
from ..work.calls import calling
from .authentication import authenticate
from .common import Body, Parameters
from .faults import Ec2Error, translated
from .parameters import Boolean, Group, Shape, nested

View = t.Callable[[Parameters], t.Optional[Body]]  # None: it is done, and that is all there is to say
InLedger = t.Callable[[Connection, Caller, Parameters], t.Optional[Body]]

SIGNED = "ec2:signed"
# what says who asks, and is no action's
ENVELOPE = frozenset(
    [
        *("Action", "Version", "AWSAccessKeyId", "Signature", "SignatureMethod", "SignatureVersion", "Timestamp"),
        *("Expires", "SecurityToken", "X-Amz-Algorithm", "X-Amz-Credential", "X-Amz-Date", "X-Amz-Expires"),
        *("X-Amz-SignedHeaders", "X-Amz-Signature", "X-Amz-Security-Token"),
    ]
)
VERSION = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


@dataclasses.dataclass(frozen=True)
class Action:
    view: View
    operation: str  # which it is, and whose rule it has
    shape: Group


ACTIONS: dict[str, Action] = {}
ec2 = Blueprint("ec2", __name__, url_prefix="/ec2")


def action(
    name: str, operation: str, shapes: t.Mapping[str, Shape] | None = None, required: t.Collection[str] = ()
) -> t.Callable[[View], View]:
    """Let a function answer the action `name`, for those who may do `operation`, with these parameters."""
    policy.POLICY[operation]  # an action without a rule fails when it is declared

    def decorate(view: View) -> View:
        ACTIONS[name] = Action(view, operation, Group({"DryRun": Boolean(), **(shapes or {})}, required))
        return view

    return decorate


def _in_ledger(
    ledger: t.Callable[[], t.ContextManager[Connection]],
    name: str,
    operation: str,
    shapes: t.Mapping[str, Shape] | None = None,
    required: t.Collection[str] = (),
) -> t.Callable[[InLedger], InLedger]:
    """Build a decorator like action(), for a function that gets the ledger and the caller; a dry run is rolled back."""

    def decorate(view: InLedger) -> InLedger:
        def opened(parameters: Parameters) -> Body | None:
            with ledger() as connection:
                body = view(connection, current(), parameters)
                refuse_dry_run()
                return body

        action(name, operation, shapes, required)(opened)
        return view

    return decorate


reads, writes = functools.partial(_in_ledger, reading_ledger), functools.partial(_in_ledger, writing_ledger)


@ec2.before_request
def _begin() -> None:
    authenticate()


@ec2.route("", methods=["GET", "POST"])
@ec2.route("/services/Cloud", methods=["GET", "POST"])  # where Nova's own EC2 API was
@policy.allows(SIGNED)
def call() -> Response:
    """Do what the request asks for."""
    raw_parameters = {name: value for name, value in g.ec2_parameters.items() if name not in ENVELOPE}
    name = g.ec2_parameters.get("Action", "")
    if not name:
        raise Ec2Error("MissingAction", "The request must contain the parameter Action")
    requested_action = ACTIONS.get(name)
    if requested_action is None:
        raise Ec2Error("InvalidAction", f"The action {name[:60]} is not valid for this web service.")
    version = g.ec2_parameters.get("Version", "")
    if version and VERSION.fullmatch(version) is None:
        raise Ec2Error("InvalidParameterValue", f"'{version[:60]}' is not a version of this web service")
    policy.check(requested_action.operation)
    parameters = requested_action.shape.parse(nested(raw_parameters))
    g.ec2_dry_run = parameters.pop("DryRun", False)
    body = requested_action.view(parameters)
    refuse_dry_run()
    return _xml(_answer(name, request_id(), {"return": True} if body is None else body, version), 200)


def refuse_dry_run() -> None:
    """Go no further if the client wants to know only whether it could. Raises Ec2Error."""
    if g.get("ec2_dry_run"):
        raise Ec2Error("DryRunOperation", "Request would have succeeded, but DryRun flag is set.", 412)


def once(connection: Connection, parameters: Parameters, make: t.Callable[[], list[str]]) -> list[str]:
    """The UUIDs of what `make` records; of what it has recorded, if the request's client token was used before. Raises
    Ec2Error for a token that stands for another request."""
    token = parameters.get("ClientToken")
    if not token:
        return make()
    raw_parameters: dict[str, str] = g.ec2_parameters
    same = {name: value for name, value in raw_parameters.items() if name not in ENVELOPE and name != "ClientToken"}
    with in_words({OtherRequestError: lambda message: Ec2Error("IdempotentParameterMismatch", message)}):
        return ec2_requests.once(calling(connection), raw_parameters["Action"], token, same, make)


@ec2.errorhandler(Exception)
def _failed(error: Exception) -> Response:
    known = translated(error)
    return with_headers(_xml(_refusal(known.code, str(known), request_id()), known.status), error)


def _xml(body: bytes, status: int) -> Response:
    return Response(body, status=status, content_type="text/xml;charset=UTF-8")


# --- XML: a dictionary's keys are elements, a list's members are <item>s, what is None is left out ------------------

NAMESPACE = "http://ec2.amazonaws.com/doc/2016-11-15/"
# what XML 1.0 has no way to write
_UNWRITABLE = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_HEAD = b'<?xml version="1.0" encoding="UTF-8"?>\n'


def _answer(action: str, request_id: str, body: JsonMapping, version: str) -> bytes:
    """The answer to `action`. `version` is the one that the client asked in; its namespace is what it looks for."""
    namespace = f"http://ec2.amazonaws.com/doc/{version}/" if version else NAMESPACE
    root = ElementTree.Element(f"{action}Response", {"xmlns": namespace})
    ElementTree.SubElement(root, "requestId").text = request_id
    _fill(root, body)
    return _HEAD + ElementTree.tostring(root)


def _refusal(code: str, message: str, request_id: str) -> bytes:
    root = ElementTree.Element("Response")
    element = ElementTree.SubElement(ElementTree.SubElement(root, "Errors"), "Error")
    ElementTree.SubElement(element, "Code").text = code
    ElementTree.SubElement(element, "Message").text = _text(message)
    ElementTree.SubElement(root, "RequestID").text = request_id
    return _HEAD + ElementTree.tostring(root)


def _fill(parent: ElementTree.Element, value: object) -> None:
    if isinstance(value, t.Mapping):
        for name, item in value.items():
            if item is not None:
                _fill(ElementTree.SubElement(parent, name), item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            _fill(ElementTree.SubElement(parent, "item"), item)
    elif isinstance(value, bool):
        parent.text = "true" if value else "false"
    else:
        parent.text = _text(str(value))


def _text(value: str) -> str:
    return _UNWRITABLE.sub("\ufffd", value)
