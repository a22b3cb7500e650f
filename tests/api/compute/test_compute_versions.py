# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Version documents, microversions and faults, before anything of substance is asked."""

from __future__ import annotations

import pathlib

import pytest
from flask import Flask
from flask.testing import FlaskClient

from api import create_app
from api.openstack.compute import blueprint as microversions
from api.settings import Settings
from api.web.errors import BadRequestError


@pytest.fixture(scope="module")
def versions_app(tmp_path_factory: pytest.TempPathFactory) -> Flask:
    home: pathlib.Path = tmp_path_factory.mktemp("versions")
    return create_app(Settings(home=str(home)), ["openstack.compute"])


@pytest.fixture
def asker(versions_app: Flask) -> FlaskClient:
    return versions_app.test_client()


@pytest.mark.parametrize("path", ["/compute/v2.1", "/compute/v2.1/"])
def test_anybody_reads_the_version(asker: FlaskClient, path: str) -> None:
    answer = asker.get(path)
    assert answer.status_code == 200
    version = answer.get_json()["version"]
    assert (version["id"], version["version"], version["min_version"]) == ("v2.1", "2.96", "2.1")
    assert version["links"] == [{"rel": "self", "href": "http://localhost/compute/v2.1/"}]


@pytest.mark.parametrize("path", ["/compute", "/compute/"])
def test_anybody_lists_the_versions(asker: FlaskClient, path: str) -> None:
    assert [version["id"] for version in asker.get(path).get_json()["versions"]] == ["v2.1"]


@pytest.mark.parametrize(
    ("headers", "spoken"),
    [
        ({}, "2.1"),
        ({"OpenStack-API-Version": "compute 2.26"}, "2.26"),
        ({"OpenStack-API-Version": "volume 3.59, compute 2.10"}, "2.10"),
        ({"OpenStack-API-Version": "volume 3.59"}, "2.1"),
        ({"OpenStack-API-Version": "compute latest"}, "2.96"),
        ({"X-OpenStack-Nova-API-Version": "2.37"}, "2.37"),
        ({"X-OpenStack-Nova-API-Version": "2.37", "OpenStack-API-Version": "compute 2.38"}, "2.38"),
    ],
)
def test_a_request_is_answered_in_the_version_that_it_asks_for(
    asker: FlaskClient, headers: dict[str, str], spoken: str
) -> None:
    answer = asker.get("/compute/v2.1", headers=headers)
    assert answer.status_code == 200
    assert answer.headers["OpenStack-API-Version"] == f"compute {spoken}"
    assert answer.headers["X-OpenStack-Nova-API-Version"] == spoken
    assert {"openstack-api-version", "x-openstack-nova-api-version"} <= {
        name.strip().lower() for name in answer.headers["Vary"].split(",")
    }


@pytest.mark.parametrize("version", ["2.0", "2.97", "3.0", "1.1", "9999.9999"])
def test_a_version_that_is_not_spoken_is_not_acceptable(asker: FlaskClient, version: str) -> None:
    answer = asker.get("/compute/v2.1", headers={"OpenStack-API-Version": f"compute {version}"})
    assert answer.status_code == 406
    assert answer.get_json() == {
        "computeFault": {
            "code": 406,
            "message": f"Version {version} is not supported by the API. Minimum is 2.1 and maximum is 2.96.",
        }
    }


@pytest.mark.parametrize("version", ["", "2", "2.01", "2.x", "two", "2.1.1", "-2.1", "2." + "9" * 5000, "2.\u0661"])
def test_a_malformed_version_is_a_bad_request(asker: FlaskClient, version: str) -> None:
    header = f"compute {version}".encode().decode("latin-1")
    answer = asker.get("/compute/v2.1", headers={"OpenStack-API-Version": header})
    assert answer.status_code == 400
    assert answer.get_json()["badRequest"]["message"].startswith("API Version String ")
    with pytest.raises(BadRequestError):
        microversions.parse(version)


def test_who_is_unknown_hears_so_in_this_dialect(asker: FlaskClient) -> None:
    answer = asker.get("/compute/v2.1/servers")
    assert answer.status_code == 401
    assert answer.get_json() == {
        "unauthorized": {"code": 401, "message": "The request you have made requires authentication."}
    }


def test_every_answer_has_the_ids_of_its_request(asker: FlaskClient) -> None:
    mine = "req-01234567-89ab-cdef-0123-456789abcdef"
    answer = asker.get("/compute/v2.1", headers={"X-OpenStack-Request-ID": mine})
    assert answer.headers["X-Compute-Request-Id"] == answer.headers["X-OpenStack-Request-Id"] == mine
    other = asker.get("/compute/v2.1/x", headers={"X-OpenStack-Request-ID": 'mine"><'})
    assert other.headers["X-Compute-Request-Id"].startswith("req-")


@pytest.mark.parametrize(("legacy", "status"), [("on", 401), ("off", 404)])
@pytest.mark.parametrize("path", ["images", "os-networks", "os-floating-ips", "os-volumes", "os-hosts"])
def test_the_operator_leaves_out_what_nova_gave_up(tmp_path: pathlib.Path, path: str, legacy: str, status: int) -> None:
    app = create_app(Settings(home=str(tmp_path), api_legacy=legacy), ["openstack.compute"])
    assert app.test_client().get(f"/compute/v2.1/{path}").status_code == status
    assert app.test_client().get("/compute/v2.1/servers").status_code == 401
