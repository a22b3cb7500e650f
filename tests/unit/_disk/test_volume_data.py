# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os
import pathlib
import subprocess
import typing as t

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._disk import volumes
from ansible_collections.novalite.cloud.plugins.module_utils._disk.layout import volume_path
from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError

ONE, TWO, THREE = (f"0b9c2f8a-6d1e-4e55-9b1e-0b8f0f6d3a0{number}" for number in (1, 2, 3))


class Guests:
    """A guest that has volume ONE open."""

    def __init__(self, runs: bool = False) -> None:
        self.runs, self.asked = runs, []  # type: bool, list[tuple[t.Any, ...]]

    def running(self, uuid: str) -> bool:
        return self.runs

    def resize(self, uuid: str, serial: str, size: int) -> None:
        self.asked.append(("resize", uuid, serial, size))

    def copy(self, uuid: str, serial: str, path: str, fmt: str, block: bool) -> None:
        self.asked.append(("copy", uuid, serial, fmt, block))
        subprocess.run(["qemu-img", "create", "-q", "-f", fmt, path, "1G"], check=True)


def spec(volume_id: str = ONE, fmt: str = "qcow2", size: int = 1, **more: t.Any) -> dict[str, t.Any]:
    return {"id": volume_id, "backend": "file", "options": {}, "format": fmt, "size_gb": size, **more}


def do(home: pathlib.Path, *specs: dict[str, t.Any], state: str = "present", **more: t.Any) -> list[volumes.Done]:
    guests = more.pop("guests", Guests())
    return volumes.ensure(specs, state, str(home), guests, **more)


@pytest.mark.root
@pytest.mark.parametrize("fmt", ["qcow2", "raw"])
def test_a_volume_is_made_extended_copied_and_deleted(tmp_path: pathlib.Path, fmt: str) -> None:
    path = volume_path(spec(fmt=fmt), str(tmp_path))
    assert [result.action for result in do(tmp_path, spec(fmt=fmt), check_mode=True)] == ["create"]
    assert not os.path.exists(path)
    assert [result.action for result in do(tmp_path, spec(fmt=fmt))] == ["create"]
    assert os.stat(path).st_mode & 0o777 == 0o600 and os.stat(path).st_blocks < 2048  # sparse
    assert [result.action for result in do(tmp_path, spec(fmt=fmt))] == ["none"]
    subprocess.run(["qemu-io", "-f", fmt, "-c", "write -P 7 1M 64k", path], check=True, capture_output=True)
    assert [result.action for result in do(tmp_path, spec(fmt=fmt, size=2))] == ["extend"]
    assert [result.action for result in do(tmp_path, spec(fmt=fmt, size=1))] == ["none"]  # never smaller
    copied = spec(TWO, fmt=fmt, size=3, source=spec(fmt=fmt))
    assert [result.error for result in do(tmp_path, copied)] == [None]
    qemu_io = subprocess.run(
        ["qemu-io", "-f", fmt, "-c", "read -P 7 1M 64k", volume_path(spec(TWO), str(tmp_path))],
        check=True,
        capture_output=True,
        text=True,
    )
    assert "verification failed" not in qemu_io.stdout
    assert [result.action for result in do(tmp_path, spec(fmt=fmt), copied, state="absent")] == ["delete", "delete"]
    assert [result.action for result in do(tmp_path, spec(fmt=fmt), state="absent")] == ["none"]
    assert list((tmp_path / "volumes").iterdir()) == []


@pytest.mark.root
@pytest.mark.parametrize("fmt", ["qcow2", "raw"])
def test_a_volume_gets_back_what_its_snapshot_holds_or_stays_as_it_is(tmp_path: pathlib.Path, fmt: str) -> None:
    taken = spec(TWO, fmt, kind="snapshot", source=spec(fmt=fmt))
    (made,) = do(tmp_path, spec(fmt=fmt))
    do(tmp_path, taken)

    def write(text: str) -> None:
        subprocess.run(
            ["qemu-io", "-f", fmt, "-c", f"write -P {text} 0 64k", made.path], check=True, capture_output=True
        )

    def holds(text: str) -> bool:
        reading = ["qemu-io", "-f", fmt, "-c", f"read -P {text} 0 64k", made.path]
        return subprocess.run(reading, capture_output=True, check=False).returncode == 0

    write("0x77")
    back = spec(fmt=fmt, create=False, restore=True, source=taken)
    (lost,) = do(tmp_path, {**back, "source": {**taken, "id": "33333333-3333-4333-8333-333333333333"}})
    assert "whose data should be at" in str(lost.error) and holds("0x77")
    assert do(tmp_path, back, check_mode=True)[0].action == "restore" and holds("0x77")
    (restored,) = do(tmp_path, back)
    assert (restored.action, restored.error) == ("restore", None) and holds("0")
    assert not [name for name in os.listdir(os.path.dirname(made.path)) if name.endswith(".part")]


@pytest.mark.root
def test_each_volume_for_itself_and_nothing_half_done(tmp_path: pathlib.Path) -> None:
    small = spec(TWO, source=spec(THREE))
    done = do(tmp_path, spec(), small, spec(THREE, create=False))
    assert [result.action for result in done] == ["create", "copy", "none"]
    assert done[0].error is None
    assert "should be at" in str(done[1].error) and "is gone" in str(done[2].error)
    assert [path.name for path in (tmp_path / "volumes").iterdir()] == [ONE]


@pytest.mark.root
def test_a_volume_goes_with_what_a_killed_run_had_begun(tmp_path: pathlib.Path) -> None:
    (tmp_path / "volumes").mkdir()
    (tmp_path / "volumes" / f"{ONE}.part").touch()
    for check_mode, action in ((True, "delete"), (False, "delete"), (False, "none")):
        assert [result.action for result in do(tmp_path, spec(), state="absent", check_mode=check_mode)] == [action]
    assert list((tmp_path / "volumes").iterdir()) == []


@pytest.mark.root
def test_what_a_guest_has_open_is_its_own_qemus_to_change(tmp_path: pathlib.Path) -> None:
    do(tmp_path, spec())
    guests = Guests(runs=True)
    path = volume_path(spec(), str(tmp_path))
    before = os.stat(path).st_mtime_ns
    assert do(tmp_path, spec(size=2, instance_uuid="i"), guests=guests)[0].error is None
    copy = spec(TWO, kind="snapshot", size=1, source=spec(instance_uuid="i"))
    assert do(tmp_path, copy, guests=guests)[0].error is None
    assert guests.asked == [("resize", "i", ONE, 2 << 30), ("copy", "i", ONE, "qcow2", False)]
    assert os.stat(path).st_mtime_ns == before


@pytest.mark.root
def test_a_link_in_the_place_of_a_volume_is_not_followed(tmp_path: pathlib.Path) -> None:
    do(tmp_path, spec())
    path = volume_path(spec(), str(tmp_path))
    other = tmp_path / "other"
    os.rename(path, other)
    os.symlink(other, path)
    for state in ("present", "absent"):
        assert "is not a file" in str(do(tmp_path, spec(size=2), state=state)[0].error)
    assert other.exists()


def test_a_share_that_is_not_mounted_is_not_written_to(tmp_path: pathlib.Path) -> None:
    shared = {**spec(), "backend": "nfs", "options": {"share": "tank"}}
    assert "is not mounted" in str(do(tmp_path, shared)[0].error)
    assert not (tmp_path / "shares").exists()


@pytest.mark.parametrize(
    "volume",
    [
        spec("../../etc/passwd"),
        spec("0B9C2F8A-6D1E-4E55-9B1E-0B8F0F6D3A01"),
        spec(kind="../x"),
        {**spec(), "backend": "tape"},
        {**spec(), "backend": "nfs", "options": {"share": ".."}},
        {**spec(), "backend": "nfs", "options": {"share": "a/b"}},
        {**spec(), "backend": "lvm"},
        {**spec(), "backend": "lvm", "options": {"volume_group": "-f"}},
    ],
)
def test_no_name_leads_anywhere_else(volume: dict[str, t.Any]) -> None:
    with pytest.raises(NovaliteError):
        volume_path(volume, "/var/lib/novalite")
