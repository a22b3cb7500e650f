# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Routes that are made quickly."""

from __future__ import annotations

import functools
import typing as t

from werkzeug import routing


class Rule(routing.Rule):
    """A route for which Werkzeug generates no code until somebody asks for its URL.

    It would generate two functions for each of the hundreds of routes, which is most of what making the application
    takes, and only a few pages ever call one (url_for). This method's name is Werkzeug's own affair: where a later
    release calls it something else, applications are made slowly again, and nothing else changes.
    """

    def _compile_builder(self, append_unknown: bool = True) -> t.Callable[..., tuple[str, str]]:
        make = functools.cache(functools.partial(super()._compile_builder, append_unknown))

        def build(rule: Rule, /, **values: t.Any) -> tuple[str, str]:
            return make()(rule, **values)

        return build
