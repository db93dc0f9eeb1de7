# SPDX-License-Identifier: Apache-2.0
"""Files of gridded data as xarray opens them (Zarr, NetCDF, HDF5), each process for itself and without dask: which variables and levels are
channels, and the times of each file."""

import contextlib
import importlib
import os
import sys
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from .. import urls
from ..errors import ArgumentError, DatasetError, TransformError, needs
from ..sources.folders import shown
from ..sources.stores import BROKEN, PerProcess, all_unchanged, is_zarr, stamps_of, stores_of
from ..sources.tables import Kept

_SUFFIXES = (".nc", ".nc4", ".netcdf", ".cdf", ".h5", ".hdf5", ".zarr")
_MOST_OPEN = 16
_MOST_TIMES = 1 << 28       # of all files


class Files(PerProcess):
    """Files, or one Dataset that a program has opened: as Datasets of xarray, by number."""

    def __init__(self, data: Any, names: Sequence[str], options: Mapping[str, Any], preprocess: Any):
        xarray = needs("xarray", "oneaccess.from_xarray()")
        self.dataset, self.paths, self.stamps = None, ["the Dataset"], [[]]
        self.options, self.preprocess = dict(options), preprocess
        if isinstance(data, xarray.Dataset):
            if self.options:
                raise ArgumentError("open= is how files are opened, and this is a Dataset, which is open")
            self.dataset = data
            return
        if isinstance(data, xarray.DataArray):
            raise ArgumentError("a DataArray is one variable: give its Dataset, as array.to_dataset(name=\"...\")")
        several = data if isinstance(data, (list, tuple)) and data else [data]
        self.paths = [file for path in several for file in ([path] if urls.is_url(path) else stores_of(path, _SUFFIXES, "NetCDF, HDF5 or Zarr", "from_xarray()"))]
        group = str(self.options.get("group") or "")
        self.stamps = [[] if urls.is_url(path) else stamps_of(path, [os.path.join(group, name) for name in ("", *names)]) for path in self.paths]

    def __setstate__(self, state):
        vars(self).update(state)
        needs("xarray", "oneaccess.from_xarray()")
        for name in {self._engine(path) for path in self.paths}:        # once for all processes that are forked
            with contextlib.suppress(ImportError):
                importlib.import_module({None: "netCDF4", "netcdf4": "netCDF4", "scipy": "scipy.io"}.get(name, name))

    def __len__(self):
        return len(self.paths)

    def _engine(self, path):
        """None: xarray finds out."""
        is_store = is_zarr(path) if not urls.is_url(path) else not urls.suffixed(path, tuple(each for each in _SUFFIXES if each != ".zarr"))
        return self.options.get("engine", "zarr" if is_store else None)

    def open(self):
        return Kept(_MOST_OPEN, self._open, lambda opened: opened.close())

    def get(self, at: int) -> Any:
        return self.opened().get(at) if self.dataset is None else self._prepared(self.dataset)

    def release(self) -> None:
        """What is open in this process."""
        for at in range(len(self)):
            self.opened().forget(at)

    def unchanged(self, at: int) -> None:
        all_unchanged(self.stamps[at])

    def _open(self, at):
        import xarray
        path = self.paths[at]
        self.unchanged(at)
        options = {"chunks": None, "cache": False, "decode_timedelta": False, **self.options, "engine": self._engine(path)}
        try:
            return self._prepared(xarray.open_dataset(path, **options))
        except BROKEN as why:
            if isinstance(why, (ArgumentError, DatasetError)):
                raise
            raise DatasetError(f"xarray cannot open {path}: {type(why).__name__}: {why}. open={{\"engine\": \"h5netcdf\"}} says by what, as of xarray.open_dataset()") from None

    def _prepared(self, opened):
        import xarray
        made = opened if self.preprocess is None else self.preprocess(opened)
        if not isinstance(made, xarray.Dataset):
            raise ArgumentError(f"preprocess= made a {type(made).__name__} of a Dataset: it is to return a Dataset, as that of xarray.open_mfdataset()")
        return made


def numbers(variable: Any) -> Any:
    """All of a variable, which is small or cut small; of one of dask's by this process alone."""
    dask = sys.modules.get("dask")
    with contextlib.nullcontext() if dask is None or not hasattr(dask, "config") else dask.config.set(scheduler="synchronous"), warnings.catch_warnings():
        warnings.simplefilter("ignore")         # of xarray, about what is missing in packed values
        return variable.to_numpy()


# ---- variables ----


class Variable(NamedTuple):
    """What is read of a variable: places along its dimension of levels (None: it has none), which are the channels of these names."""

    name: str
    level: str | None
    places: tuple[int, ...]
    names: tuple[str, ...]


class Axes(NamedTuple):
    """The dimensions that have a meaning: of time, of trajectories (or None), of space."""

    time: str
    series: str | None
    space: tuple[str, ...]


def found(dataset: Any, name: str, path: str) -> Any:
    if name not in dataset.variables:
        there = [each for each in dataset.data_vars if isinstance(each, str)]
        raise ArgumentError(f"{path} has no variable {name!r}; there are: {shown(there)}" + ("; a group of the file is opened by open={\"group\": ...}" if not there else ""))
    variable = dataset.variables[name]
    if variable.dtype.kind not in "fiub":
        raise TransformError(f"variable {name} of {path} is {variable.dtype}, which has no place in a batch")
    return variable


def axes_of(dataset: Any, name: str, path: str, time: str, series: str | None, space: Sequence[str] | None) -> Axes:
    """By the first variable, whose last two dimensions are of space where nothing is said."""
    dims = found(dataset, name, path).dims
    for what, dim in (("dim", time), ("series", series)):
        if dim is not None and dim not in dims:
            raise ArgumentError(f"{name} of {path} has the dimensions {', '.join(map(str, dims))}: {what}= says which is {'time' if what == 'dim' else 'of trajectories'}, not {dim!r}; what"
                                " does not change with time is for static=")
    rest = [dim for dim in dims if dim not in (time, series)]
    return Axes(time, series, tuple(rest[-2:] if space is None else space))


def look(dataset: Any, name: str, path: str, axes: Axes, levels: Any) -> Variable:
    """levels: those that are meant, by the values of their coordinate; None: all, in the file's order."""
    variable = found(dataset, name, path)
    own = [axes.time, *([] if axes.series is None else [axes.series]), *axes.space]
    missing = [dim for dim in own if dim not in variable.dims]
    above = [dim for dim in variable.dims if dim not in own]
    if missing:
        raise ArgumentError(f"{name} of {path} has the dimensions {', '.join(map(str, variable.dims))}, and not {missing[0]}: all variables have one grid, that of space={axes.space}; what"
                            " does not change with time is for static=")
    if len(above) > 1:
        raise ArgumentError(f"{name} of {path} has the dimensions {', '.join(map(str, above))} beside time and {', '.join(axes.space)}, and one, of levels, has a place: choose along the others by"
                            f" preprocess=, a function as lambda dataset: dataset.isel({above[0]}=0), or say which are of space by space=")
    if not above:
        return Variable(name, None, (), (name,))
    there = coordinate(dataset, above[0], variable.sizes[above[0]])
    places = range(len(there)) if levels is None else [_place(there, level, name, above[0], path) for level in levels]
    if not places:
        raise ArgumentError(f"levels= names none of {name}: leave the variable out, or levels=, for all")
    return Variable(name, above[0], tuple(places), tuple(f"{name}_{_shown(there[place])}" for place in places))


def _place(there, level, name, dim, path):
    at = np.flatnonzero(there == level)
    if len(at) != 1:
        raise ArgumentError(f"levels= has {level!r}, and {dim} of {name} in {path} has {', '.join(map(_shown, there[:60]))}")
    return int(at[0])


def _shown(level):
    return f"{level:g}" if isinstance(level, (int, float, np.number)) else str(level)


def coordinate(dataset: Any, dim: str, count: int) -> Any:
    """The values along a dimension; its places, where it has none."""
    variable = dataset.variables.get(dim)
    return np.arange(count) if variable is None or variable.ndim != 1 else numbers(variable)


def chunk_of(variable: Any, dim: str) -> int:
    """How many values along a dimension lie in a chunk; 1: any can be read."""
    size = (variable.encoding.get("preferred_chunks") or {}).get(dim, 1)
    return max(1, min(int(size), variable.sizes[dim])) if isinstance(size, (int, np.integer)) else 1


def values(dataset: Any, axes: Axes, chosen: Variable, series: int, begin: int, end: int) -> Any:
    """[steps, levels, ...] of steps in a row. Levels are read from the first to the last one, where a chunk has several."""
    variable = dataset.variables[chosen.name]
    cut: dict[str, Any] = {axes.time: slice(begin, end)}
    if axes.series is not None:
        cut[axes.series] = series
    if chosen.level is None:
        read = numbers(variable.isel(cut).transpose(axes.time, *axes.space))
        return read[:, None]
    places = np.array(chosen.places)
    if chunk_of(variable, chosen.level) == 1:
        cut[chosen.level], order = np.unique(places, return_inverse=True)
    else:
        cut[chosen.level], order = slice(int(places.min()), int(places.max()) + 1), places - places.min()
    return numbers(variable.isel(cut).transpose(axes.time, chosen.level, *axes.space))[:, order]


# ---- times ----


def seconds_of(times: Any, path: str) -> Any:
    """int64 seconds since 1970, in the calendar of the file; numbers that are no times stay numbers."""
    if times.dtype.kind == "M":
        if np.isnat(times).any():
            raise DatasetError(f"{path} has steps without a time")
        return times.astype("datetime64[s]").astype(np.int64)
    if times.dtype.kind == "O":
        cftime = needs("cftime", "a calendar that is not the usual one")
        try:
            return np.rint(cftime.date2num(times, "seconds since 1970-01-01", calendar=times[0].calendar)).astype(np.int64)
        except (TypeError, ValueError, AttributeError) as why:
            raise DatasetError(f"the times of {path} are no dates of one calendar: {why}") from None
    if times.dtype.kind not in "iuf" or not np.isfinite(times).all():
        raise DatasetError(f"the times of {path} are {times.dtype}, or not all are there: dates or numbers are meant")
    return times.astype(np.float64 if times.dtype.kind == "f" else np.int64)


def times_of(dataset: Any, dim: str, path: str) -> Any:
    count = dataset.sizes[dim]
    if count > _MOST_TIMES:
        raise DatasetError(f"{path} has {count:,} steps, which are more than {_MOST_TIMES:,}")
    return coordinate(dataset, dim, count)


def selected(times: Any, dim: str, time: Any) -> Any:
    """The places that time= means, ascending, as Dataset.sel() has it."""
    if time is None:
        return np.arange(len(times))
    import xarray
    axis = xarray.DataArray(np.arange(len(times)), coords={dim: times}, dims=[dim])
    try:
        return np.sort(np.atleast_1d(axis.sel({dim: time}).to_numpy()))
    except (KeyError, ValueError, TypeError) as why:
        raise ArgumentError(f"time={time!r} is none of the times, {times[0]} to {times[-1]}, as Dataset.sel({dim}=...) has it: {why}") from None
