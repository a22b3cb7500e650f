# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Session tokens of the metadata service, as Amazon's IMDSv2 has them: what makes a guest ask, cannot PUT for it.

Nothing is kept: a token is its end and a MAC over the instance and that end.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac

TOKEN_HEADER = "X-aws-ec2-metadata-token"
SECONDS_HEADER = "X-aws-ec2-metadata-token-ttl-seconds"
MOST_SECONDS = 21600  # Amazon's
_PURPOSE = b"novalite metadata token "


def issue(secret: bytes, instance_uuid: str, seconds: int, now: float) -> str:
    """Return a token that is valid for `seconds` (1 to 21600) for the instance."""
    ends = int(now) + seconds
    return base64.urlsafe_b64encode(ends.to_bytes(8, "big") + _mac(secret, instance_uuid, ends)).decode()


def is_valid(secret: bytes, instance_uuid: str, token: str, now: float) -> bool:
    """Whether `token` was issued for the instance, and has not ended."""
    try:
        data = base64.b64decode(token.encode("ascii"), altchars=b"-_", validate=True)
    except (UnicodeEncodeError, binascii.Error):
        return False
    ends = int.from_bytes(data[:8], "big")
    return hmac.compare_digest(data[8:], _mac(secret, instance_uuid, ends)) and now < ends


def _mac(secret: bytes, instance_uuid: str, ends: int) -> bytes:
    return hmac.digest(secret, _PURPOSE + f"{instance_uuid}/{ends}".encode(), hashlib.sha256)
