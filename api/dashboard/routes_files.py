# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Style sheet, script and icon."""

from __future__ import annotations

from flask import Response
from werkzeug.exceptions import NotFound

from ..web import policy
from . import files
from .session import pages


@pages.get("/static/<version>/<name>")
@policy.allows("pages:files")
def show_file(version: str, name: str) -> Response:
    if name not in files.FILES:
        raise NotFound
    kept = "public, max-age=31536000, immutable" if version == files.VERSION else "no-cache"
    return Response(files.FILES[name], content_type=files.type_of(name), headers={"Cache-Control": kept})
