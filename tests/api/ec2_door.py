# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The application on a socket, and Amazon's own client (boto3) for it."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import threading
import typing as t

import botocore.exceptions
import pytest
from werkzeug.serving import WSGIRequestHandler, make_server

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.identity import credentials
from tests.api.seeds import USERS, Api

Client = t.Any


@functools.cache
def session() -> t.Any:
    """The session of all clients: each reads 2 MB of JSON, what Amazon says of its services, and keeps it."""
    import boto3

    return boto3.session.Session()


class _Silent(WSGIRequestHandler):
    def log(self, type: str, message: str, *args: t.Any) -> None:
        pass


@dataclasses.dataclass(frozen=True)
class Door:
    api: Api
    url: str
    keys: t.Mapping[str, tuple[str, str]]  # access and secret by user

    def client(self, user: str = "demo", **config: t.Any) -> Client:
        """boto3's client with that user's key, as its project's member."""
        access, secret = self.keys[user]
        return client(self.url, access, secret, **config)


def client(url: str, access: str, secret: str, **config: t.Any) -> Client:
    import botocore.config

    return session().client(
        "ec2",
        endpoint_url=url,
        region_name="RegionOne",
        aws_access_key_id=access,
        aws_secret_access_key=secret,
        config=botocore.config.Config(retries={"max_attempts": 0}, **config),
    )


@contextlib.contextmanager
def served(api: Api) -> t.Iterator[str]:
    """The application on a socket of this machine; gives its address."""
    server = make_server("127.0.0.1", 0, api.app, threaded=True, request_handler=_Silent)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextlib.contextmanager
def open_door(api: Api) -> t.Iterator[Door]:
    seal = api.seal
    with transaction(api.engine) as connection:
        keys = {}
        for name, (project, _role) in USERS.items():
            row = credentials.create_ec2_credential(connection, seal, api.users[name], api.projects[project])
            keys[name] = (row["access"], row["secret"])
    with served(api) as url:
        yield Door(api, f"{url}/ec2", keys)


@contextlib.contextmanager
def refused(code: str) -> t.Iterator[t.Any]:
    """Within, a call is refused with this code."""
    with pytest.raises(botocore.exceptions.ClientError) as caught:
        yield caught
    assert caught.value.response["Error"]["Code"] == code, caught.value
