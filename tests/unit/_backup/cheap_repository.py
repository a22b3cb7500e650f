# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A new repository of restic whose key costs little to try: restic derives it in a hundredth of a second. In one that
`restic init` makes that takes a sixth of a second of a processor, of each of its processes, and half a second at first.

It was made by restic, and then its master key sealed anew, with other parameters of scrypt (N=2, r=1, p=1).
"""

from __future__ import annotations

import base64
import hashlib
import json
import pathlib

_CONFIG = (
    "IhGZIKMdy3aDoXEiPSwznoMstZnDibgcSTO8fuaLgPumoyUzoFedX6lMZGlM3rheHNCJm6du0PKUV1QaAmZ8caLJFtE4RUZHhysS"
    "yZQS/dbrkH1dFDqTP3uo0Q3aVJZrFCXumGp1rKF4tik4kuPALdv6hlkSM0dEqawIcGf+/FADI+F3dUGarBFz4GqrOne84bGLrGWV"
    "7NYJ0eY="
)
_KDF = {
    "created": "2026-01-01T00:00:00Z",
    "username": "test",
    "hostname": "test",
    "kdf": "scrypt",
    "N": 2,
    "r": 1,
    "p": 1,
}
_SEALED = {  # salt and master key, by the repository's key
    "secret": (
        "lRp+m40qLtjXORB7Pm08AKS7BKPNzSQuqSRirWIif8C/MQKhgPqwaHRdzi+YtQnYj+0xvgyzbUwm9stRj9827Q==",
        "2+1lLeVfrovvyu2BRXAqaEODN5AffhqFCpcGN2aa+WoEveevvi50T+IFZIITrYnYpgTlAJkTas47UgWmDTJ/Z6nzu2GndiQ1p+38"
        "7gmWbDUcIy0VlHKo5piu4s8DlNSWkSjXimYKI3yHn0UVOrLsutkU7Az8HscTaGHC/nlGpTnDXecTNzcgrZdJ5UNUxsQbtNT6AMW0"
        "6F50xbZ70CMy9Q==",
    ),
    "ab" * 32: (
        "r0g/BG+WuJy2VQ1Coa+KhQNepb9EkWT3B/XCGg0FNSxkxkEtgCzieZNiG7QAsDcGBClsaCO/13ka+uy6J/mZtA==",
        "SCtgmeVuK2UA5orqSk1I4FyQMzg9uxLyJmMEdbYsgM49OIjVTS6y2VrS5UvpbEWYzS8PqkN7Em6DbvyJsAbtHC0YyXexMs/6VivQ"
        "nR81e31N+p+YH/d5wwgdCFZbxg6w2vXnng5iH/rDkoDYObvVNp7h2ohAt9oazQS2ThDRz7YRErlZP+Wzp3YJkQOvH4cf+eRFgHjp"
        "vILpFDsl5/LgbQ==",
    ),
}


def make(path: pathlib.Path, key: str) -> None:
    """Make an empty repository at a path where none is, for one of the keys that tests have."""
    salt, sealed = _SEALED[key]
    text = json.dumps({**_KDF, "salt": salt, "data": sealed})
    path.mkdir(mode=0o700)
    (path / "keys").mkdir(mode=0o700)
    (path / "config").write_bytes(base64.b64decode(_CONFIG))
    (path / "keys" / hashlib.sha256(text.encode()).hexdigest()).write_text(text)
