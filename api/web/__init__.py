# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Shared parts of all services: who asks, who may, errors, the ledger of a request, logs, metrics."""
