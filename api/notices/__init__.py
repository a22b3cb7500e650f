# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Notices: what needs attention is told to people once when it appears, and once when it is over, by a webhook and by
mail."""
