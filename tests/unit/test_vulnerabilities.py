# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Vulnerabilities that Nova and Glance had with images, disks and the guests made of them: each has a test here."""

from __future__ import annotations

import ast
import pathlib

import pytest

UNIT = pathlib.Path(__file__).parent
PLUGINS = UNIT.parents[1] / "collections/ansible_collections/novalite/cloud/plugins"
# CVE: the tests that fail if novalite had it
TESTS: dict[str, tuple[str, ...]] = {
    # an archive's members leave its directory
    "CVE-2011-4596": ("_image_import/test_hostile.py::test_an_archive_is_refused",),
    # files are injected outside of the guest: by `..`, by its links, by links that only root follows
    "CVE-2012-3360": ("_disk/test_inject.py::test_paths_that_are_none",),
    "CVE-2012-3361": ("_disk/test_inject.py::test_links_do_not_lead_out",),
    "CVE-2012-3447": ("_disk/test_inject.py::test_links_do_not_lead_out",),
    # the next tenant reads a volume's former blocks
    "CVE-2012-5625": ("_disk/test_lvm.py::test_what_cannot_be_wiped_stays", "_disk/test_disks.py::test_a_wiped_disk"),
    # a virtual size that nobody compared with the flavor's
    "CVE-2013-2096": ("_disk/test_disks.py::test_a_base_larger_than_the_flavor_is_refused",),
    # a small compressed file fills the disk
    "CVE-2013-4463": ("_disk/test_cache.py::test_a_disk_too_small_for_what_unfolds",),
    "CVE-2013-4469": ("_disk/test_cache.py::test_the_flavor_bounds_an_image_of_unknown_size",),
    # a property of the image makes base files without end: what is cached has its content's checksum for a name
    "CVE-2013-6437": (
        "_disk/test_cache.py::test_bad_declarations",
        "_disk/test_evict.py::test_by_size_the_least_recently_used_go_first",
    ),
    # others on the host read what is being copied
    "CVE-2013-7048": ("_disk/test_anew.py::test_an_image_of_a_disk_that_is_off",),
    # a disk that moved stands on another file there
    "CVE-2013-7130": ("_disk/test_transfer.py::test_a_disk_that_stands_on_something_else_is_refused",),
    "CVE-2016-2140": ("_disk/test_transfer.py::test_a_disk_whose_content_is_another_file_is_refused",),
    # a guest writes another format's header into its raw disk, and the host believes it
    "CVE-2014-0134": ("_disk/test_anew.py::test_what_a_guest_wrote_into_its_raw_disk_is_never_a_format",),
    "CVE-2015-7548": ("_disk/test_anew.py::test_what_a_guest_wrote_into_its_raw_disk_is_never_a_format",),
    "CVE-2026-24708": ("test_vulnerabilities.py::test_no_program_of_qemu_guesses_a_format",),
    # a crafted image makes QEMU's programs eat memory and time
    "CVE-2015-5162": ("_disk/test_confined.py::test_one_that_was_taken_over_has_what_was_lent_and_nothing_else",),
    # a rebuild with an image that the host was never asked about
    "CVE-2017-16239": ("_ledger/servers/actions/test_reimage.py::test_an_image_that_the_host_cannot_boot_is_refused",),
    # what was attached before a live migration is what is started after it
    "CVE-2020-17376": ("_domain/test_live_moves.py::test_what_is_defined_there_is_what_was_planned",),
    # an image's data are in another file of the host: a VMDK's extents, a qcow2's data file or backing file
    "CVE-2022-47951": ("_image_import/test_hostile.py::test_a_disk_is_refused",),
    "CVE-2024-32498": ("_disk/test_cache.py::test_an_image_that_refers_to_another_file_leaves_nothing",),
    # what was declared raw is something else
    "CVE-2024-40767": (
        "_disk/test_inspect.py::test_other_formats_of_qemu_img_are_refused",
        "_disk/test_inspect.py::test_raw_that_some_program_would_take_for_something_else",
    ),
}


@pytest.mark.parametrize("cve", TESTS)
def test_each_vulnerability_has_a_test(cve: str) -> None:
    for test in TESTS[cve]:
        path, _colons, name = test.partition("::")
        functions = [node for node in ast.parse((UNIT / path).read_text()).body if isinstance(node, ast.FunctionDef)]
        assert name in [function.name for function in functions], test


def test_no_program_of_qemu_guesses_a_format() -> None:
    """CVE-2026-24708: one call without -f, in one back end, was enough."""
    calls, guessing = 0, []
    for path in sorted(PLUGINS.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.List):
                continue
            words = [ast.unparse(word) for word in node.elts]
            passed_on = (
                words[:1] in (["'info'"], ["'check'"]) and "'--output=json'" in words
            )  # behind the program's name
            if passed_on or (words[:1] in (["'qemu-img'"], ["'qemu-nbd'"]) and len(words) > 2):
                calls += 1
                if "'-f'" not in words and not any("json:" in word or "--format" in word for word in words):
                    guessing.append(f"{path.name}:{node.lineno} {' '.join(words)}")
    assert calls >= 10 and not guessing, guessing
