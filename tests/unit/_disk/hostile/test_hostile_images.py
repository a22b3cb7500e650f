# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The corpus of hostile disk images, each pushed to a cache as its owner would have it; needs no root."""

from __future__ import annotations

import dataclasses
import os
import pathlib
import typing as t

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._disk import inspect
from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError
from tests.unit._disk.hostile.images import IMAGES, HostileImage
from tests.unit._disk.state import files, image_of, needs_qemu_img, push

pytestmark = needs_qemu_img


def test_the_corpus_is_large() -> None:
    assert len({image.name for image in IMAGES}) == len(IMAGES) >= 40


@pytest.mark.parametrize("hostile", IMAGES, ids=lambda image: image.name)
def test_it_is_refused_and_leaves_nothing(
    tmp_path: pathlib.Path, state: str, hostile: HostileImage, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []
    pread = os.pread

    def counted(fd: int, length: int, offset: int) -> bytes:
        read.append(length)
        return pread(fd, length, offset)

    monkeypatch.setattr(inspect.os, "pread", counted)
    path = tmp_path / "image"
    hostile.write(path)
    options: dict[str, t.Any] = dict(hostile.options)
    image = dataclasses.replace(image_of(path, disk_format=hostile.declared), **options)
    with pytest.raises(NovaliteError, match=hostile.refusal) as caught:
        push(image, state)
    assert str(caught.value).startswith(f"image '{path}'") and str(caught.value).isprintable()
    assert files(state) == []
    assert sum(read) <= 2 * (inspect.HEAD_BYTES + 512 + 8 * inspect.MAX_EXTENSIONS)
