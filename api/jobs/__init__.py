# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Durable jobs: what a request asked for and a playbook carries out."""
