# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A cloud with all of its doors, and callers that ask there."""

from __future__ import annotations

import dataclasses
import typing as t

import botocore.exceptions
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from api.dashboard import session
from tests.api.agreement.operations import Ec2, Page, Request
from tests.api.seeds import Api

Ids = t.Mapping[str, str]

# caller -> (project, role). The objects are alt's.
CALLERS: dict[str, tuple[str, str] | None] = {
    "nobody": None,
    "reader": ("alt", "reader"),
    "member": ("alt", "member"),
    "manager": ("alt", "manager"),
    "administrator": ("alt", "admin"),
    "another project's reader": ("demo", "reader"),
    "another project's member": ("demo", "member"),
    "another project's manager": ("demo", "manager"),
    "another project's administrator": ("demo", "admin"),
}


@dataclasses.dataclass(frozen=True)
class Answer:
    """Answer of a door. Of EC2, `text` is the error's code; of the rest it is the body."""

    status: int
    text: str = ""

    @classmethod
    def of(cls, response: TestResponse) -> Answer:
        text = response.get_data(as_text=True)
        assert response.status_code < 500, (response.request.path, text)
        return cls(401 if "/login" in response.headers.get("Location", "") else response.status_code, text)

    @property
    def verdict(self) -> str:
        """Tell whether the caller is `unknown`, `refused`, sees no such thing (`hidden`), or `may`."""
        if self.status == 401 or self.text in ("AuthFailure", "InvalidClientTokenId"):
            return "unknown"
        if self.status == 403 or self.text == "UnauthorizedOperation":
            return "refused"
        return "hidden" if self.status == 404 or self.text.endswith((".NotFound", ".Unknown")) else "may"


@dataclasses.dataclass(frozen=True)
class Cloud:
    api: Api
    tokens: t.Mapping[str, str]
    clients: t.Mapping[str, t.Any]  # boto3's
    ids: Ids
    spares: t.Mapping[str, str]  # users by callers, of these' projects

    def ask(self, caller: str, request: Request) -> Answer:
        project_and_role = CALLERS[caller]
        own = {**self.ids, "own_project": self.api.projects[project_and_role[0] if project_and_role else "demo"]}
        own["spare_user"] = self.spares.get(caller, "nosuch")
        if isinstance(request, Ec2):
            try:
                getattr(self.clients[caller], request.action)(**filled(dict(request.parameters), own))
            except botocore.exceptions.ClientError as error:
                return Answer(error.response["ResponseMetadata"]["HTTPStatusCode"], error.response["Error"]["Code"])
            return Answer(200)
        client = self.api.app.test_client()
        if isinstance(request, Page):
            return self._open_page(client, caller, request.method, filled(request.path, own))
        # os-... and images are there in old versions of Compute only
        old = "os-" in request.path or "/images" in request.path
        headers = {} if old else {"OpenStack-API-Version": "compute 2.37"}
        if project_and_role is not None:
            headers["X-Auth-Token"] = self.tokens[caller]
        if request.method == "PATCH":
            headers["Content-Type"] = "application/openstack-images-v2.1-json-patch"
        path, body = filled(request.path, own), filled(request.body, own)
        return Answer.of(client.open(path, method=request.method, json=body, headers=headers))

    def _open_page(self, client: FlaskClient, caller: str, method: str, path: str) -> Answer:
        form = None
        if caller in self.tokens:
            client.set_cookie(session.COOKIE, self.tokens[caller])
            with self.api.app.test_request_context(headers={"Cookie": f"{session.COOKIE}={self.tokens[caller]}"}):
                form = {"csrf": session.csrf()}
        return Answer.of(client.open(path, method=method, data=form if method == "POST" else None))


def filled(value: t.Any, own: Ids) -> t.Any:
    if isinstance(value, dict):
        return {key: filled(item, own) for key, item in value.items()}
    if isinstance(value, list):
        return [filled(item, own) for item in value]
    if isinstance(value, str):
        for kind, number in own.items():
            value = value.replace(f"{{{kind}}}", number)
    return value
