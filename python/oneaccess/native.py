# SPDX-License-Identifier: Apache-2.0
"""The programs that a wheel brings along: where they are, and those that are commands."""

import os
import pathlib
import sys


_HOME = pathlib.Path(__file__).resolve().parent / "_native"


def find() -> None:
    """Tells libaccess where the wheel's accessd is, for a daemon of this user's own. A system's daemon
    that listens, and variables that are set, come first."""
    daemon = _HOME / "sbin" / "accessd"
    if daemon.is_file():
        os.environ.setdefault("ACCESS_DAEMON", str(daemon))
        os.environ.setdefault("ACCESS_LIBEXEC", str(_HOME / "libexec"))


def main() -> None:
    """Becomes the program of the name by which it was called: every command of a wheel is this one."""
    find()
    program = os.path.basename(sys.argv[0])
    path = _HOME / "bin" / program
    if not path.is_file():
        sys.exit(f"{program}: this package has no programs of its own; the system's packages bring {program}")
    os.execv(path, [program, *sys.argv[1:]])
