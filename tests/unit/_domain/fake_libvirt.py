# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The parts of libvirt's binding that both tests of domains need: its error, and its numbers."""

from __future__ import annotations

import typing as t

if t.TYPE_CHECKING:
    Fake: t.TypeAlias = t.Any  # the base of what stands in for a class of libvirt's
else:
    Fake = object


class FakeError(Exception):
    def __init__(self, code: int, message: str, domain: int = 0) -> None:
        super().__init__(message)
        self.code, self.domain = code, domain

    def get_error_code(self) -> int:
        return self.code

    def get_error_domain(self) -> int:
        return self.domain

    def get_error_message(self) -> str:
        return str(self)


class FakeLibvirt:
    libvirtError = FakeError
    VIR_FROM_FIREWALL = 59
    VIR_ERR_INTERNAL_ERROR = 1
    VIR_ERR_NO_DOMAIN = 42
    VIR_ERR_OPERATION_INVALID = 55
    VIR_DOMAIN_START_PAUSED = 1
    VIR_DOMAIN_XML_INACTIVE = 2
    VIR_DOMAIN_XML_SECURE = 1
    VIR_DOMAIN_UNDEFINE_MANAGED_SAVE = 1
    VIR_DOMAIN_UNDEFINE_SNAPSHOTS_METADATA = 2
    VIR_DOMAIN_UNDEFINE_NVRAM = 4
    VIR_DOMAIN_UNDEFINE_CHECKPOINTS_METADATA = 16
    VIR_DOMAIN_SAVE_RUNNING = 2
    VIR_DOMAIN_SHUTDOWN_ACPI_POWER_BTN = 1
    VIR_ERR_OPERATION_FAILED = 9
    VIR_ERR_DEVICE_MISSING = 99
    VIR_DOMAIN_AFFECT_LIVE = 1
    VIR_DOMAIN_AFFECT_CONFIG = 2
