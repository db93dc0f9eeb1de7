# SPDX-License-Identifier: Apache-2.0
"""Parameters of the accessd that a program starts: accessd.conf(5), from Python."""

import json
import os
import re

from .errors import ArgumentError, warn

_VARIABLE = "ACCESSD_"
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_asked = {}  # of configure(), until a daemon is found


def configure(**parameters) -> None:
    """Sets parameters of a private accessd: names and values of accessd.conf(5).

        oa.configure(memory="8G", workers=4, cache_size="50G")

    Where there is no system accessd, the first Loader of a user starts a private one, which all jobs of the user then use:
    call this before. It sets ACCESSD_MEMORY and so on in this process's environment; a shell can do the same.
    ~/.config/oneaccess/accessd.conf is for permanent settings; these override it. Sizes are bytes or texts such as "512M"
    and "1.5G"; None removes a setting.

    A Loader that finds an accessd with other values warns, names them, and says how to change them. ArgumentError: a value
    is no number and no text. accessd refuses unknown names and values at the first Loader.
    """
    for name, value in parameters.items():
        if isinstance(value, bool) or not isinstance(value, (int, str, os.PathLike, type(None))):
            raise ArgumentError(f"configure({name}={value!r}): give a number, or a text as \"8G\"")
        variable = _VARIABLE + name.upper()
        if value is None:
            os.environ.pop(variable, None)
            _asked.pop(name, None)
        else:
            os.environ[variable] = _asked[name] = str(os.fspath(value) if isinstance(value, os.PathLike) else value)


def forget_unknown(error: Exception) -> None:
    """A name that accessd has refused would be refused again, however often configure() is called with the right one."""
    unknown = re.search(r'in the environment: no parameter is called "(\w+)"', str(error))
    if unknown and unknown[1] in _asked:
        configure(**{unknown[1]: None})


def _same(asked, has):
    if isinstance(has, str):
        return asked == has
    size = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)\s*([KMGT]?)(?:i?B)?", asked)
    return size is not None and int(float(size[1]) * _UNITS[size[2]]) == has


def check(client) -> None:
    """Warns, once for each call of configure(), where the daemon that is there has other values."""
    if not _asked:
        return
    asked = dict(_asked)
    _asked.clear()
    status = json.loads(client.status())
    has = status.get("parameters")
    if has is None:
        warn(f"configure({', '.join(asked)}) has no effect: an accessd of the system serves this program, whose"
             " parameters its administrator sets in accessd.conf(5); Loader(socket=\"private\") has one of its own", RuntimeWarning)
        return
    other = {name: has[name] for name, value in asked.items() if name in has and not _same(value, has[name])}
    if other:
        values = ", ".join(f"{name}={value}" for name, value in other.items())
        ends = f"{has['idle_exit_s']} s after its last job" if has["idle_exit_s"] else "when it is told to"
        warn(f"configure() came too late for an accessd that runs already (pid {status['pid']}), with {values}."
             f" It ends {ends}, and the next one has what was asked for; or end its jobs and it, by kill {status['pid']}", RuntimeWarning)
