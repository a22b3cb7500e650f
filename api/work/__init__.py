# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Work that several doors begin: recorded in the ledger, in one transaction with the job that carries it out."""
