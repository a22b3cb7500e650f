# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""User data and files of a guest: it gets the bytes that were given, by whatever door; none is guessed to be base64."""

from __future__ import annotations

import base64
import gzip
import pathlib
import shutil
import tempfile
import typing as t

import pytest
import sqlalchemy as sa
import yaml
from ansible.parsing.dataloader import DataLoader
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.compute import rebuilds
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.stack import stack_servers
from ansible_collections.novalite.cloud.plugins.module_utils._stack import document
from tests.support.cloud import Cloud, checked, sqlite

PATH = "/etc/app"
KNOWN = [
    gzip.compress(b"#cloud-config\n", mtime=0),
    "#!/bin/sh\necho grün\n".encode("latin-1"),
    base64.b64encode(b"#!/bin/sh"),  # what is base64 may be meant as it is: a key, a checksum, a word
    b"abcd",
    b"MA==\n",
    bytes(range(256)),
    "\ufeff#cloud-config\r\n".encode(),
    b"\xed\xb2\x8b",  # a surrogate in UTF-8, which is none
]
BYTES = (
    st.sampled_from(KNOWN)
    | st.binary(min_size=1, max_size=60)
    | st.text(min_size=1).map(lambda text: text.encode("utf-8", "surrogatepass"))
)


def asked(field: str, value: str, encoding: str | None) -> dict[str, t.Any]:
    if field == "user_data":
        return {"user_data": value, **({"user_data_encoding": encoding} if encoding else {})}
    return {"files": [{"path": PATH, "content": value, **({"encoding": encoding} if encoding else {})}]}


def module(cloud: Cloud, request: dict[str, t.Any]) -> None:
    cloud.run("server", servers=[{"name": "web", "flavor": "m1.nano", "image": "ami-tiny", **request}])


def rebuild(cloud: Cloud, request: dict[str, t.Any]) -> None:
    uuid = cloud.server({"name": "web", "flavor": "m1.nano", "image": "ami-tiny"})["to_build"][0]["uuid"]
    params = checked("server_action", action="rebuild", servers=[{"name": "web"}], request=request)
    with transaction(cloud.engine) as connection:
        rebuilds.ask_rebuild(connection, uuid, params["request"])


def stack(cloud: Cloud, request: dict[str, t.Any]) -> None:
    """A document in a file; of what is in it, what the module `server` is given."""
    server = {"name": "web", "flavor": "m1.nano", "image": "ami-tiny", **request}
    with tempfile.NamedTemporaryFile("w", suffix=".yml", encoding="utf-8") as file:
        yaml.safe_dump({"project": "demo", "servers": [server]}, file)
        file.flush()
        read = document.load(None, file.name)
    (described,) = read.servers
    guest = stack_servers.checked(read, described).guest
    module(cloud, {key: value for key, value in described.fields.items() if key not in ("flavor", "image")})
    assert (guest.user_data, guest.file_records) == stored(cloud)


def stored(cloud: Cloud) -> tuple[str | None, t.Any]:
    (row,) = cloud.rows(sa.select(tables.instance.c.user_data, tables.instance.c.files))
    return tuple(row)


DOORS: dict[str, t.Callable[[Cloud, dict[str, t.Any]], None]] = {"module": module, "rebuild": rebuild, "stack": stack}


def looked_up(raw: bytes) -> str:
    """A file's bytes as the lookup plug-in `file` reads them for a playbook."""
    with tempfile.NamedTemporaryFile(suffix=".gz") as file:
        file.write(raw)
        file.flush()
        return str(DataLoader().get_text_file_contents(file.name))


@pytest.mark.parametrize("field", ["user_data", "files"])
@pytest.mark.parametrize("door", DOORS)
@given(raw=BYTES, spelling=st.sampled_from(["file", "base64"]))
def test_the_guest_gets_the_bytes_that_were_given(
    seeded: pathlib.Path, door: str, field: str, raw: bytes, spelling: str
) -> None:
    is_text = raw.decode("utf-8", "replace").encode() == raw
    if door == "stack" and not is_text:
        spelling = "base64"  # a document is in UTF-8
    value = base64.encodebytes(raw).decode() if spelling == "base64" else looked_up(raw)
    with tempfile.TemporaryDirectory() as home:
        shutil.copy(seeded, home)
        cloud = Cloud(sqlite(pathlib.Path(home)))
        DOORS[door](cloud, asked(field, value, "base64" if spelling == "base64" else None))
        user_data, files = stored(cloud)
        cloud.close()
    packed = user_data if field == "user_data" else files[0]["content"]
    assert base64.b64decode(packed or "") == raw
