# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What all services share: who asks, who may, errors, the ledger of a request, logs, metrics."""
