# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""/v1: what hosts and instances used, and who may know."""

from __future__ import annotations

import jsonschema

from api.v1 import openapi
from tests.api import measured, scenes, seeds


def test_an_instances_project_reads_its_samples(api: seeds.Api, scene: scenes.Scene) -> None:
    measured.measure(api.app, "hv1", scene.web)
    client = api.client_as("reader")
    answer = client.get(f"/v1/instances/{scene.web}/samples?window=day").get_json()
    document = openapi.document()
    schema = {"$ref": "#/components/schemas/Samples", "components": document["components"]}
    jsonschema.Draft202012Validator(schema).validate(answer)
    samples = answer["samples"]
    cpu = samples["measures"]["cpu"]
    assert samples["step_seconds"] == 300 and len(cpu["mean"]) == len(cpu["peak"]) == 288
    assert cpu["unit"] == "cores" and max(value for value in cpu["peak"] if value is not None) == measured.CORES
    assert cpu["mean"][0] is None
    assert len(client.get(f"/v1/instances/{scene.web}/samples?window=hour").get_json()["samples"]["measures"]) == 9
    assert client.get(f"/v1/instances/{scene.web}/samples?window=year").status_code == 400


def test_others_do_not(api: seeds.Api, scene: scenes.Scene) -> None:
    measured.measure(api.app, "hv1", scene.foreign, hours=1)
    demo, admin = api.client_as("demo"), api.client_as("admin")
    assert demo.get(f"/v1/instances/{scene.foreign}/samples").status_code == 404
    assert demo.get("/v1/hosts/hv1/samples").status_code == 403
    assert admin.get(f"/v1/instances/{scene.foreign}/samples").status_code == 200
    host = admin.get("/v1/hosts/hv1/samples").get_json()["samples"]["measures"]
    assert max(value for value in host["memory"]["peak"] if value is not None) == 8 * measured.MEMORY
    assert admin.get("/v1/hosts/hv9/samples").status_code == 404


def test_what_was_never_measured_is_null(api: seeds.Api, scene: scenes.Scene) -> None:
    samples = api.client_as("admin").get("/v1/hosts/hv2/samples?window=month").get_json()["samples"]
    assert set(samples["measures"]["net_sent"]["mean"]) == {None}
