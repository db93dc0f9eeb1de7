# SPDX-License-Identifier: Apache-2.0
"""Small gridded data for the tests of from_xarray(): a field that is known, and a codec that notes each chunk that is decoded."""

import numcodecs
import numpy as np
import xarray as xr
from numcodecs.abc import Codec
from numcodecs.compat import ensure_ndarray_like

STEPS, LEVELS, SIZES = 60, [1000, 500, 850], (6, 8)
LATITUDES = np.linspace(75, -75, SIZES[0])


def times(count=STEPS, begin="2020-01-01", hours=6):
    return (np.datetime64(begin) + np.arange(count) * np.timedelta64(hours, "h")).astype("datetime64[ns]")


def weather(count=STEPS, begin="2020-01-01", seed=1):
    """Two variables, one of which has levels (not sorted), and one without time."""
    draw = np.random.default_rng(seed)
    where = {"latitude": LATITUDES, "longitude": np.arange(SIZES[1]) * 45.0}
    heat = draw.normal(280, 10, (count, *SIZES)).astype("f4")
    heat[:, 0, 0] = np.nan
    height = draw.normal(5000, 100, (count, len(LEVELS), *SIZES)).astype("f4")
    return xr.Dataset({"heat": (("time", *where), heat), "height": (("time", "level", *where), height), "land": (tuple(where), draw.random(SIZES))},
                      coords={"time": times(count, begin), "level": LEVELS, **where})


class Noted(Codec):
    """Bytes as they are; a line of a file for each chunk."""

    codec_id = "oneaccess_noted"

    def __init__(self, log):
        self.log = log

    def encode(self, buf):
        return buf

    def decode(self, buf, out=None):
        with open(self.log, "a", encoding="utf-8") as file:
            file.write("chunk\n")
        return buf if out is None else numcodecs.compat.ndarray_copy(ensure_ndarray_like(buf).view(out.dtype).reshape(out.shape), out)


numcodecs.register_codec(Noted)


def as_it_is(dataset):
    """A preprocess= for the pool, whose processes import this module with it."""
    return dataset


def the_well(dataset):
    """The fields of a file of The Well: scalars of one group, vectors of another one."""
    path = dataset.encoding["source"]
    dims = ("run", "time", "x", "y")
    vectors = xr.open_dataset(path, engine="h5netcdf", group="t1_fields", phony_dims="access", cache=False)
    axes = xr.open_dataset(path, engine="h5netcdf", group="dimensions", phony_dims="access")
    made = {"density": dataset["density"].variable, "velocity": vectors["velocity"].variable}
    made = {name: xr.Variable((*dims, "component")[:each.ndim], each._data, each.attrs, each.encoding) for name, each in made.items()}
    return xr.Dataset(made, {name: (name, axes[name].to_numpy()) for name in ("time", "x", "y")})
