# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Routes that Nova gave up in 2016 and 2017, for old clients: proxies of other services, os-hosts."""
