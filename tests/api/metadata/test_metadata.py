# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
import logging
import pathlib
import time
import typing as t

import pytest
import sqlalchemy as sa
from flask import Flask
from flask.testing import FlaskClient

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._guest import signature
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.ec2 import ec2_records
from api import create_app
from api.metadata import SECONDS_HEADER, TOKEN_HEADER
from api.settings import Settings
from tests.api.conftest import Cloud, Guest


@pytest.fixture
def web(cloud: Cloud, client: FlaskClient) -> Guest:
    cloud.host("hv1", zone="north")
    project = cloud.project("demo")
    network = cloud.network("private", "10.9.0.0/24", cidr_v6="fd00:9::/64", dns=["10.9.0.53"])
    cloud.write(
        sa.insert(tables.security_group).values(id=1, uuid="s", project_id=project, name="default", description="")
    )
    cloud.instance(
        project,
        "web",
        "hv1",
        [(network, "10.9.0.5", "fd00:9::5")],
        user_data=b"#!/bin/sh\n\x00\xff",
        files={"/etc/motd": b"hello", "/etc/issue": b"there"},
        groups=[1],
        key_name="test",
        public_key="ssh-ed25519 AAAA test",
        metadata={"role": "front"},
    )
    return Guest(client, cloud.headers("hv1", network, "10.9.0.5"))


def test_ec2_tree(web: Guest) -> None:
    assert web.text("/").splitlines()[-2:] == ["2009-04-04", "latest"]
    assert web.text("/latest/") == "meta-data/\nuser-data" == web.text("/2009-04-04")
    listing = web.text("/latest/meta-data/").splitlines()
    assert {"ami-id", "instance-id", "public-keys/", "placement/", "mac", "security-groups"} <= set(listing)
    assert listing == sorted(listing)
    root = "/latest/meta-data"
    assert web.text(f"{root}/instance-id") == "i-00000001"
    assert web.text(f"{root}/ami-id").startswith("ami-") and len(web.text(f"{root}/ami-id")) == 12
    assert web.text(f"{root}/hostname") == web.text(f"{root}/local-hostname") == "web.novalocal"
    assert web.text(f"{root}/local-ipv4") == "10.9.0.5"
    assert web.text(f"{root}/public-ipv4") == ""
    assert web.text(f"{root}/public-keys/") == "0=test"
    assert web.text(f"{root}/public-keys/0/") == "openssh-key"
    assert web.text(f"{root}/public-keys/0/openssh-key") == "ssh-ed25519 AAAA test"
    assert web.text(f"{root}/placement/availability-zone") == "north"
    assert web.text(f"{root}/block-device-mapping/") == "ami\nroot"
    assert web.text(f"{root}/block-device-mapping/root") == "/dev/vda"
    assert web.text(f"{root}/security-groups") == "default"
    assert web.text(f"{root}/reservation-id") == "r-00000001"
    mac = web.text(f"{root}/mac")
    assert mac.startswith("fa:16:3e:")
    assert web.text(f"{root}/network/interfaces/macs/{mac}/local-ipv4s") == "10.9.0.5"
    assert web.text(f"{root}/network/interfaces/macs/{mac}/ipv6s") == "fd00:9::5"
    answer = web.ask("/latest/user-data")
    assert answer.data == b"#!/bin/sh\n\x00\xff"
    assert answer.headers["Cache-Control"] == "no-store"


def test_openstack_documents(web: Guest) -> None:
    assert "2018-08-27" in web.text("/openstack").splitlines()
    for version in ("2012-08-10", "latest"):
        assert web.text(f"/openstack/{version}/").splitlines() == [
            "meta_data.json",
            "network_data.json",
            "password",
            "user_data",
            "vendor_data.json",
            "vendor_data2.json",
        ]
    document = web.ask("/openstack/latest/meta_data.json").get_json()
    assert document["hostname"] == "web.novalocal" and document["name"] == "web"
    assert document["public_keys"] == {"test": "ssh-ed25519 AAAA test"}
    assert document["meta"] == {"role": "front"}
    assert document["availability_zone"] == "north"
    assert [file["path"] for file in document["files"]] == ["/etc/motd", "/etc/issue"]
    assert web.ask("/openstack" + document["files"][1]["content_path"]).data == b"there"
    assert document["random_seed"] != web.ask("/openstack/latest/meta_data.json").get_json()["random_seed"]
    assert "admin_pass" not in document
    network = web.ask("/openstack/latest/network_data.json").get_json()
    assert [entry["type"] for entry in network["networks"]] == ["ipv4_dhcp", "ipv6_slaac"]
    assert network["services"] == [{"type": "dns", "address": "10.9.0.53"}]
    assert web.ask("/openstack/latest/user_data").data == b"#!/bin/sh\n\x00\xff"
    assert web.ask("/openstack/latest/vendor_data2.json").get_json() == {}


@pytest.mark.parametrize(
    "path",
    [
        "/latest/meta-data/_name",
        "/latest/meta-data/public-keys/0/_name",
        "/latest/meta-data/public-keys/1/openssh-key",
        "/latest/meta-data/instance-id/x",
        "/latest/nothing",
        "/2042-01-01/meta-data/",
        "/openstack/2042-01-01/meta_data.json",
        "/openstack/latest/meta_data.json/x",
        "/openstack/content/0002",
        "/openstack/content/-001",
        "/openstack/content/\u0660\u0660\u0660\u0661",  # digits, too
        "/../etc/passwd",
        "/%00",
    ],
)
def test_what_is_not_there(web: Guest, path: str) -> None:
    answer = web.ask(path)
    assert (answer.status_code, answer.data) == (404, b"")


def test_a_guest_without_user_data_has_none(cloud: Cloud, client: FlaskClient) -> None:
    cloud.host("hv1")
    network = cloud.network("private", "10.9.0.0/24")
    cloud.instance(cloud.project("demo"), "web", "hv1", [(network, "10.9.0.5")], user_data=None)
    guest = Guest(client, cloud.headers("hv1", network, "10.9.0.5"))
    assert guest.text("/latest/") == "meta-data/"
    assert guest.ask("/latest/user-data").status_code == 404
    assert guest.ask("/openstack/latest/user_data").status_code == 404
    assert "user_data" not in guest.text("/openstack/latest/")
    assert "public-keys/" not in guest.text("/latest/meta-data/")


def test_by_its_ipv6_address(cloud: Cloud, client: FlaskClient) -> None:
    cloud.host("hv1")
    network = cloud.network("six", "10.9.0.0/24", cidr_v6="fd00:9::/64")
    cloud.instance(cloud.project("demo"), "six", "hv1", [(network, "10.9.0.5", "fd00:9::5")])
    guest = Guest(client, cloud.headers("hv1", network, "fd00:9::5"))
    assert guest.text("/latest/meta-data/hostname") == "six.novalocal"
    assert Guest(client, cloud.headers("hv1", network, "fd00:9::6")).ask("/latest/").status_code == 404


def test_a_guest_that_boots_is_answered_and_one_that_is_gone_is_not(cloud: Cloud, client: FlaskClient) -> None:
    cloud.host("hv1")
    network = cloud.network("private", "10.9.0.0/24")
    instance_uuid = cloud.instance(cloud.project("demo"), "web", "hv1", [(network, "10.9.0.5")], vm_state="building")
    guest = Guest(client, cloud.headers("hv1", network, "10.9.0.5"))
    assert guest.text("/latest/meta-data/instance-id") == "i-00000001"
    cloud.delete(instance_uuid)
    assert guest.ask("/latest/meta-data/instance-id").status_code == 404


def test_static_network_data(cloud: Cloud, client: FlaskClient) -> None:
    cloud.host("hv1")
    network = cloud.network(
        "flat",
        "10.9.0.0/24",
        cidr_v6="fd00:9::/64",
        gateway="10.9.0.1",
        gateway_v6="fd00:9::1",
        dhcp=False,
        dns=["10.9.0.53"],
        mtu=1400,
    )
    cloud.instance(cloud.project("demo"), "flat", "hv1", [(network, "10.9.0.5", "fd00:9::5")])
    guest = Guest(client, cloud.headers("hv1", network, "10.9.0.5"))
    network_data = guest.ask("/openstack/latest/network_data.json").get_json()
    four, six = network_data["networks"]
    link = network_data["links"][0]
    assert link["mtu"] == 1400
    assert (four["type"], four["ip_address"], four["netmask"]) == ("ipv4", "10.9.0.5", "255.255.255.0")
    assert four["routes"] == [{"network": "0.0.0.0", "netmask": "0.0.0.0", "gateway": "10.9.0.1"}]
    assert four["services"] == [{"type": "dns", "address": "10.9.0.53"}]
    assert (six["type"], six["ip_address"]) == ("ipv6", "fd00:9::5")
    assert six["routes"][0]["gateway"] == "fd00:9::1"
    assert four["link"] == six["link"] == link["id"]
    assert (four["id"], six["id"]) == ("network0", "network1")


@pytest.mark.parametrize(
    "missing", [signature.HOST_HEADER, signature.NETWORK_HEADER, signature.ADDRESS_HEADER, signature.SIGNATURE_HEADER]
)
@pytest.mark.parametrize("wrong", [None, "", "x", "hv2", "10.9.0.6", "é", "0" * 64, "a, b"])
def test_no_answer_without_a_right_signature(web: Guest, missing: str, wrong: str | None) -> None:
    headers = {name: value for name, value in web.headers.items() if name != missing}
    if wrong is not None:
        headers[missing] = wrong
    for path in ("/", "/latest/meta-data/instance-id", "/openstack/latest/meta_data.json"):
        answer = web.client.get(path, headers=headers)
        assert (answer.status_code, answer.data) == (404, b"")


def test_a_host_speaks_for_its_own_guests_only(cloud: Cloud, web: Guest) -> None:
    cloud.host("hv2")
    headers = cloud.headers("hv2", web.headers[signature.NETWORK_HEADER], "10.9.0.5")
    assert web.client.get("/latest/", headers=headers).status_code == 404


def test_another_secret(cloud: Cloud, web: Guest, tmp_path: pathlib.Path) -> None:
    (tmp_path / "other").touch(0o600)
    (tmp_path / "other").write_text("ab" * 32)
    app = create_app(Settings(home=str(cloud.home), metadata_secret_file=str(tmp_path / "other")), ["metadata"])
    assert app.test_client().get("/latest/", headers=web.headers).status_code == 404


def test_session_tokens(cloud: Cloud, web: Guest, monkeypatch: pytest.MonkeyPatch) -> None:
    def put(seconds: str | None, headers: dict[str, str] = web.headers) -> t.Any:
        more = {} if seconds is None else {SECONDS_HEADER: seconds}
        return web.client.put("/latest/api/token", headers={**headers, **more})

    def get(token: str, path: str = "/latest/user-data", headers: dict[str, str] = web.headers) -> int:
        return int(web.client.get(path, headers={**headers, TOKEN_HEADER: token}).status_code)

    for wrong in (None, "", "0", "21601", "-1", "1e3", "x", "9" * 50):
        assert put(wrong).status_code == 400, wrong
    answer = put("60")
    token = answer.get_data(as_text=True)
    assert (answer.status_code, answer.headers[SECONDS_HEADER], get(token)) == (200, "60", 200)
    # of another guest
    (network,) = [cloud.network("second", "10.10.0.0/24")]
    cloud.instance(cloud.project("alt"), "alts", "hv1", [(network, "10.10.0.5")])
    others = cloud.headers("hv1", network, "10.10.0.5")
    assert get(token, headers=others) == 401
    for wrong in ("", "x", "é", token[:-4], token[:-1] + "A", put("60", others).get_data(as_text=True)):
        assert get(wrong) == 401, wrong
    # and what asks without one, where the instance requires it
    paths = ["/", "/latest/user-data", "/openstack/latest/user_data", "/openstack/latest/meta_data.json"]
    assert [web.ask(path).status_code for path in paths] == [200] * 4
    with transaction(cloud.engine) as connection:
        uuid = connection.execute(sa.select(tables.instance.c.uuid).where(tables.instance.c.name == "web")).scalar_one()
        ec2_records.write_attributes(connection, uuid, {"http_tokens": "required"})
    assert [web.ask(path).status_code for path in paths] == [401] * 4
    assert [get(token, path) for path in paths] == [200] * 4
    later = time.time() + 61
    monkeypatch.setattr(time, "time", lambda: later)
    assert get(token) == 401


@pytest.mark.parametrize("method", ["post", "put", "delete", "patch"])
def test_nothing_can_be_written(web: Guest, method: str) -> None:
    answer = getattr(web.client, method)("/openstack/latest/password", headers=web.headers, data=b"x")
    assert answer.status_code == 405
    assert "web" not in answer.get_data(as_text=True)


def test_health_needs_no_signature(client: FlaskClient) -> None:
    assert client.get("/healthz").get_json() == {"status": "ok"}


def test_a_service_that_is_not_served_is_not_there(cloud: Cloud) -> None:
    client = create_app(Settings(home=str(cloud.home)), services=[]).test_client()
    assert client.get("/latest/").get_json() == {"error": {"code": 404, "message": "Not Found"}}
    assert client.get("/healthz").status_code == 200


def test_a_ledger_that_cannot_be_read_is_no_news_to_a_guest(
    cloud: Cloud, web: Guest, tmp_path: pathlib.Path, caplog: pytest.LogCaptureFixture
) -> None:
    settings = Settings(
        ledger_url=f"sqlite:///{tmp_path}/a/b/none.sqlite", metadata_secret_file=f"{cloud.home}/metadata.secret"
    )
    with caplog.at_level(logging.ERROR):
        answer = create_app(settings, ["metadata"]).test_client().get("/latest/", headers=web.headers)
    assert (answer.status_code, answer.data) == (503, b"")
    assert "cannot be made" in caplog.text


def test_settings_from_the_environment() -> None:
    settings = Settings.from_environment({"NOVALITE_HOME": "/x", "NOVALITE_WORKERS": "3", "NOVALITE_LEDGER_URL": ""})
    assert (settings.home, settings.workers, settings.ledger_url) == ("/x", 3, None)
    assert settings.secret_file == "/x/metadata.secret"
    for bad in ("0", "-1", "two", "1.5", "\u0663"):
        with pytest.raises(NovaliteError, match="NOVALITE_WORKERS"):
            Settings.from_environment({"NOVALITE_WORKERS": bad})


def test_json_is_json(web: Guest, app: Flask) -> None:
    answer = web.ask("/openstack/latest/meta_data.json")
    assert answer.content_type == "application/json"
    assert json.loads(answer.data)["project_id"]
