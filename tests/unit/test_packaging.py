# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The product is what is installed: a wheel and a collection, each complete, each at work without this checkout."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import sysconfig
import tarfile
import typing as t
import venv
import zipfile

import pytest

from tests.support.patience import GENEROUS

ROOT = pathlib.Path(__file__).parents[2]
COLLECTION = "collections/ansible_collections/novalite/cloud"
SITE = f"lib/python{sysconfig.get_python_version()}/site-packages"
SPELT_WRONG = ("playbook", "novalite.cloud.launch", "-e", "server=web", "-e", "flavour=m1.tiny")


def run(*command: str | pathlib.Path, **options: t.Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        list(map(str, command)), capture_output=True, text=True, check=False, timeout=GENEROUS, **options
    )


def built(*command: str | pathlib.Path, **options: t.Any) -> None:
    done = run(*command, **options)
    assert done.returncode == 0, done.stdout + done.stderr


def in_git(folder: str) -> set[str]:
    """The files below `folder` that are in git, or new and not to be ignored, by their paths in it."""
    listed = run("git", "ls-files", "--cached", "--others", "--exclude-standard", folder, cwd=ROOT).stdout.splitlines()
    return {name.removeprefix(f"{folder}/") for name in listed if os.path.lexists(ROOT / name)}


class Machine:
    """A virtual environment that sees novalite's dependencies, not this checkout; and a directory of a user's."""

    def __init__(self, path: pathlib.Path) -> None:
        venv.create(path / "venv", symlinks=True)
        self.binaries, self.site, self.elsewhere = path / "venv/bin", path / "venv" / SITE, path / "elsewhere"
        # Directories that are named in such a file are not asked for such files of their own: the checkout's is one.
        (self.site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
        self.elsewhere.mkdir()
        (self.elsewhere / "hosts").write_text("[compute]\nhv1\n")
        kept = {name: value for name, value in os.environ.items() if name in ("LANG", "LC_ALL", "PATH")}
        self.environment = {**kept, "HOME": str(path), "NOVALITE_HOME": str(path / "home"), "COLUMNS": "1000"}

    def __call__(self, *command: str) -> subprocess.CompletedProcess[str]:
        return run(self.binaries / command[0], *command[1:], cwd=self.elsewhere, env=self.environment)

    def pip(self, *words: str | pathlib.Path) -> None:
        built(sys.executable, "-m", "pip", "--python", self.binaries / "python", *words)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    path = tmp_path_factory.mktemp("wheel")
    built(sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", path, ROOT)
    (wheel_path,) = path.iterdir()
    return wheel_path


@pytest.fixture(scope="module")
def tarball(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    path = tmp_path_factory.mktemp("tarball")
    galaxy = pathlib.Path(sys.executable).with_name("ansible-galaxy")
    built(galaxy, "collection", "build", "--output-path", path, ROOT / COLLECTION, cwd=path)
    (tarball_path,) = path.iterdir()
    return tarball_path


def test_the_wheel_has_everything_and_nothing_else(wheel: pathlib.Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
        # a link in git, but not where no link can be
        action = archive.read("ansible_collections/novalite/cloud/plugins/action/flavor.py").decode()
    collection = {f"ansible_collections/novalite/cloud/{name}" for name in in_git(COLLECTION)}
    expected = {name for name in collection if not name.startswith("ansible_collections/novalite/cloud/tests/")}
    expected |= {f"novalite_api/{name}" for name in in_git("api")}
    packages = {name for name in names if name.startswith("novalite_api/dashboard/packages/")}
    assert names - packages == expected
    for name in ("novnc/core/rfb.js", "novnc/LICENSE.txt", "xterm/lib/xterm.mjs", "xterm/LICENSE"):
        assert f"novalite_api/dashboard/packages/{name}" in packages
    assert "class ActionModule" in action


def test_the_tarball_has_everything_and_nothing_else(tarball: pathlib.Path) -> None:
    with tarfile.open(tarball) as archive:
        names = {member.name for member in archive if not member.isdir()}
        manifest = json.load(t.cast("t.IO[bytes]", archive.extractfile("MANIFEST.json")))
    assert names == in_git(COLLECTION) - {"galaxy.yml"} | {"MANIFEST.json", "FILES.json"}
    assert "community.libvirt" in manifest["collection_info"]["dependencies"]


def test_the_wheel_works_without_the_checkout(wheel: pathlib.Path, tmp_path: pathlib.Path) -> None:
    machine = Machine(tmp_path)
    machine.pip("install", "--no-deps", "--no-compile", wheel)

    assert "launch" in machine("novalite", "--help").stdout
    listed = machine("novalite", "list", "--output", "json")
    assert listed.returncode == 1 and "there is no ledger" in listed.stderr, listed.stderr
    assert not (tmp_path / "home").exists()
    assert "--no-worker" in machine("python", "-m", "novalite_api", "serve", "--help").stdout

    # what it serves has its templates and files, and what it runs is what was installed
    program = (
        "import novalite_api.server, json; from novalite_api.jobs.options import Options;"
        "client = novalite_api.create_app().test_client();"
        "answers = [client.get(path, follow_redirects=True) for path in ('/', '/v1/openapi.json')];"
        "from ansible_collections.novalite.cloud.plugins.module_utils._image_catalog.entries import catalog;"
        "assert 'debian-12' in catalog('/');"
        "print(json.dumps([[answer.status_code for answer in answers], Options.from_environment().playbooks]))"
    )
    served = machine("python", "-W", "ignore", "-c", program)
    assert served.returncode == 0, served.stderr
    statuses, playbooks = json.loads(served.stdout)
    assert statuses == [200, 200]
    assert pathlib.Path(playbooks).samefile(machine.site / "ansible_collections/novalite/cloud/playbooks")

    # the role that makes a controller takes along what runs it
    parts = machine.site / "ansible_collections/novalite/cloud/roles/controller/files/parts.py"
    packed = machine("python", str(parts), str(machine.site), "", str(ROOT / ".cache/collections"))
    assert json.loads(packed.stdout)[1::3] == [str(machine.site)] * 2 + [str(ROOT / ".cache/collections")]

    done = machine("novalite", "launch", "-i", "hosts", "web", "-e", "flavour=m1.tiny")
    assert done.returncode == 4 and "did you mean 'flavor'?" in done.stdout + done.stderr, done.stdout + done.stderr

    machine.pip("uninstall", "--yes", "novalite")
    # pip leaves the directories of namespaces; one of a collection would pass for one that is installed
    left = {str(path.relative_to(machine.site)) for path in machine.site.rglob("*")}
    assert left == {"dependencies.pth", "ansible_collections", "ansible_collections/novalite"}


def test_the_collection_works_without_the_checkout(tarball: pathlib.Path, tmp_path: pathlib.Path) -> None:
    machine = Machine(tmp_path)
    # what it depends on is a server's to give
    words = ("collection", "install", "--no-deps", "--offline", str(tarball))
    installed = machine("python", "-m", "ansible", "galaxy", *words)
    assert installed.returncode == 0, installed.stdout + installed.stderr

    record = ("-m", "novalite.cloud.project", "-a", '{"projects": [{"name": "demo"}]}')
    recorded = machine("python", "-m", "ansible", "adhoc", "localhost", *record)
    assert "CHANGED" in recorded.stdout and (tmp_path / "home/ledger.sqlite").exists(), recorded.stderr
    done = machine("python", "-m", "ansible", *SPELT_WRONG, "-i", "hosts")
    assert done.returncode == 4 and "did you mean 'flavor'?" in done.stdout + done.stderr, done.stdout + done.stderr
