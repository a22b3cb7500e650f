# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Code that hosts run on trips (_host/trip.py): the modules and steps in it, its archive, and what takes that there."""

from __future__ import annotations

import collections.abc as c
import contextlib
import functools
import hashlib
import importlib.util
import io
import pathlib
import zipfile

from ..module_utils._host.trip import MARK

PLUGINS = pathlib.Path(__file__).parents[1]
NAME = __package__.rpartition(".")[0]  # of the plugins' package
LIBVIRT = "ansible_collections.community.libvirt.plugins.module_utils.libvirt"
# Rooms of module_utils that no module or step of a host imports (tests/unit/plugin_utils/test_trip.py)
CONTROLLERS_OWN = ("_fencing", "_graph", "_ledger", "_ledger_module.py", "_plan", "_rules", "_scheduling", "_stack")

# What a host runs before it has any code, or knows that the code is what it was. argv: the directory of the code, its
# SHA-256, and whether to keep what is sent. stdin: the length of the deflated archive (0: use what is there), the
# archive, the request. "none" for an answer asks for the archive.
BOOT = (
    """
import hashlib,os,stat,sys
d,h,k=sys.argv[1:4]
i=sys.stdin.buffer
z=i.read(int(i.readline()))
q=i.read().decode()
def good(p):
 s=os.lstat(p)
 if not stat.S_ISREG(s.st_mode) or s.st_uid!=os.geteuid() or s.st_mode&0o22:return
 with open(p,'rb') as f:b=f.read()
 if hashlib.sha256(b).hexdigest()==p.split('.')[-2]:return b
def there():
 try:
  r=p=os.path.realpath(d)
  while p:
   s=os.lstat(p)
   if not stat.S_ISDIR(s.st_mode) or s.st_uid not in(0,os.geteuid()):return
   if s.st_mode&0o22 and(p==r or not s.st_mode&stat.S_ISVTX):return
   p=p!='/'and os.path.dirname(p)
  if os.path.islink(d):return
  e=h+'.'+sys.implementation.cache_tag+'.'
  return next(filter(None,(good(d+'/'+n) for n in os.listdir(d) if n.startswith(e))),None)
 except OSError:return
t=None
if z:
 import tempfile,zlib
 z=zlib.decompress(z)
 if hashlib.sha256(z).hexdigest()!=h:sys.exit('the code came damaged')
 f,t=tempfile.mkstemp(suffix='.zip')
 with open(f,'wb') as f:f.write(z)
 sys.path.insert(0,t)
else:
 b=there()
 if not b:print('MARKnone');sys.exit()
 import marshal
 from importlib.machinery import ModuleSpec
 c=marshal.loads(b)
 class Code:
  def find_spec(n,p=None,t=None):
   if n in c:return ModuleSpec(n,Code,is_package=c[n][0])
  def create_module(s):pass
  def get_code(n):return marshal.loads(c[n][1])
  def exec_module(m):exec(Code.get_code(m.__name__),m.__dict__)
 sys.meta_path.insert(0,Code)
try:
 from NAME.module_utils._host import trip
 if t and k=='1':
  from NAME.module_utils._host import trip_code
  try:trip_code.keep(d,h,z)
  except OSError:pass
 trip.answer(q)
finally:
 if t:os.unlink(t)
""".replace("MARK", MARK)
    .replace("NAME", NAME)
    .strip()
)


@functools.lru_cache(maxsize=1)
def archive() -> tuple[bytes, str]:
    """The code for hosts as a ZIP archive, the same for the same code, and its SHA-256 in hexadecimal."""
    made = io.BytesIO()
    files = {name: path.read_bytes() for name, path in _sources()}
    folders = {parent for name in files for parent in pathlib.PurePath(name).parents if parent.name}
    packages = {f"{folder}/__init__.py": b"" for folder in folders}
    with zipfile.ZipFile(made, "w") as archive:
        for name, content in sorted({**packages, **files}.items()):
            archive.writestr(zipfile.ZipInfo(name), content)  # the time of which is always the same
    return made.getvalue(), hashlib.sha256(made.getvalue()).hexdigest()


@functools.lru_cache(maxsize=1)
def modules_of_hosts() -> frozenset[str]:
    """The names of the modules whose work is on a host."""
    return frozenset(
        path.stem for path in (PLUGINS / "modules").glob("*.py") if b"run_host_module(" in path.read_bytes()
    )


@functools.lru_cache(maxsize=1)
def steps_of_hosts() -> frozenset[str]:
    """The names of the steps that hosts take and that are no modules of their own."""
    return frozenset(path.stem for path in (PLUGINS / "module_utils/_steps").glob("*.py"))


def place_of(name: str) -> str:
    """The file of a step, or else of a module of hosts, as a name in the package of the plug-ins. It has ARGUMENT_SPEC,
    `run`, and maybe SPEC_RULES."""
    return f"module_utils._steps.{name}" if name in steps_of_hosts() else f"modules.{name}"


def _sources() -> c.Iterator[tuple[str, pathlib.Path]]:
    """Name in the archive, and path here, of each file that hosts need."""
    root = NAME.replace(".", "/")
    for path in (PLUGINS / "module_utils").rglob("*.py"):
        inside = path.relative_to(PLUGINS)
        if inside.parts[1] not in CONTROLLERS_OWN:
            yield f"{root}/{inside}", path
    for name in modules_of_hosts():
        yield f"{root}/modules/{name}.py", PLUGINS / "modules" / f"{name}.py"
    # without it the host says what is missing when it is needed, as a module does
    with contextlib.suppress(ModuleNotFoundError):
        spec = importlib.util.find_spec(LIBVIRT)
        if spec and spec.origin:
            yield f"{LIBVIRT.replace('.', '/')}.py", pathlib.Path(spec.origin)
