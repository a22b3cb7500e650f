# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The projects' own commands, `nova`, `glance` and `cinder`: what there is none of is an empty list, or said so."""

from __future__ import annotations

import typing as t

from .cloud import Cloud, said
from .report import Report

TIMEOUT = 120.0  # seconds
PART = "commands"

# What they print
SHOWN: t.Mapping[str, str] = {
    "glance image-list": "ami-tiny",
    "glance md-namespace-list": "namespace",
    "glance md-resource-type-list": "name",
    "glance usage": "image_size_total",
    "glance stores-info": "file",
    "cinder list --all-tenants": "Status",
    "cinder transfer-list": "Volume ID",
    "cinder backup-list": "Volume ID",
    "cinder group-list": "Status",
    "cinder message-list": "Resource Type",
    "cinder list-filters": "volume",
    "nova list --all-tenants": "Task State",
    "nova hypervisor-list": "hv1",
    "nova keypair-list": "test",
    "nova usage-list": "Usage from",
}
# What they say of what is not there
REFUSED: t.Mapping[str, str] = {
    "glance md-namespace-show nosuch": "Metadata definition namespace=nosuch was not found.",
    "glance image-show 11111111-1111-1111-1111-111111111111": "No image found with ID 11111111",
    "cinder backup-show nosuch": "No volumebackup with a name or ID of 'nosuch' exists.",
    "nova agent-list": "HTTP 410",
}


def run(report: Report, cloud: Cloud) -> None:
    environment = {**cloud.environment("openrc-admin"), "OS_IMAGE_API_VERSION": "2", "OS_VOLUME_API_VERSION": "3.70"}
    for words, expected in SHOWN.items():
        with report.step(PART, words):
            done = said(words.split(), TIMEOUT, environment)
            assert done.returncode == 0 and expected in done.stdout, f"{done.stdout}\n{done.stderr}"
    for words, expected in REFUSED.items():
        with report.step(PART, words):
            done = said(words.split(), TIMEOUT, environment)
            text = f"{done.stdout}\n{done.stderr}"
            assert done.returncode != 0 and expected in text, text
