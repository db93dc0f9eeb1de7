# SPDX-License-Identifier: Apache-2.0
"""Gridded data of science (weather, climate, ocean, fluids), as xarray opens it: windows over its time as a data set for the pool (wrap())."""

import operator
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..columns import named
from ..errors import ArgumentError, needs
from ..sources.series import ahead_of
from ..sources.tables import CACHE, MOST_PROCESSES, size_of
from ..wrapped import Wrapped

_DTYPES = ("float32", "float16")
_OWN = ("time", "corner")


class Grids(Wrapped):
    """Of from_xarray(), for Loader.

    channels: their names. static: float32 [variables, ...], on the whole grid. stats: {"mean", "std", "min", "max", "count", "diff_mean", "diff_std"},
    float64 [channels] each. times: the time of each sample's own step, as batch["time"] has it. coords: {dimension of space: values}. gaps:
    [(time before, time behind)].
    """

    def __init__(self, rows, static, normalize, index, *, name, version, workers, timeout, room, keep):
        from .xarray_stats import scale_of
        self._rows, self._index, self._stats = rows, index, None
        self.channels, self.static, self.coords, self.gaps = rows.channels, static, rows.coords, rows.gaps
        if normalize is not None and normalize is not False:
            rows.scale = scale_of(self.stats if normalize is True else normalize, rows.channels)
        version = version if name is None else f"{version} windows {rows.digest()}"
        super().__init__(rows, name, version, workers or min(len(os.sched_getaffinity(0)), MOST_PROCESSES), timeout, rows.is_drawn, room, keep, exact=True)

    @property
    def stats(self) -> dict[str, Any]:
        if self._stats is None:
            from .xarray_stats import stats_of
            self._stats = stats_of(self._rows, self._index)
        return self._stats

    @property
    def times(self) -> Any:
        import numpy as np
        return np.repeat(self._rows.times, len(self._rows.corners))


def _parts(delta_steps, stack, dtype):
    from .xarray_rows import Parts
    if not isinstance(delta_steps, Mapping) or not delta_steps or not all(isinstance(name, str) and name and name not in _OWN for name in delta_steps):
        raise ArgumentError(f"delta_steps is {delta_steps!r}: {{field of a batch: steps from the sample's own}}, as {{\"input\": [-1, 0], \"target\": range(1, 5)}}")
    if dtype not in _DTYPES:
        raise ArgumentError(f"dtype is {dtype!r}; there are: {', '.join(_DTYPES)}")
    return Parts({name: ahead_of(name, ahead) for name, ahead in delta_steps.items()}, bool(stack), dtype)


def _patch(patch, jitter):
    if patch is None and jitter:
        raise ArgumentError("jitter= draws where patches are, and there are none: patch=(rows, columns)")
    try:
        patch = None if patch is None else [operator.index(side) for side in patch]
    except TypeError:
        patch = [0]
    if patch is not None and min(patch, default=0) < 1:
        raise ArgumentError("patch is a number of values along each dimension of space, as (128, 128)")
    return patch, bool(jitter)


def from_xarray(data: Any, variables: Sequence[str] | str, delta_steps: Mapping[str, Sequence[int]], *, levels: Any = None, static: Sequence[str] | str = (),
                time: Any = None, stride: int = 1, dim: str = "time", series: str | None = None, space: Sequence[str] | str | None = None,
                patch: Sequence[int] | None = None, jitter: bool = False, normalize: Any = None, stack: bool = True, dtype: str = "float32",
                open: Mapping[str, Any] | None = None, preprocess: Callable | None = None, cache: int | str = CACHE, index: str | os.PathLike | None = None,
                workers: int | None = None, name: str | None = None, version: str = "", timeout: int = 60, room: int | None = None, keep: float = 30.0) -> Grids:
    """Windows over the time of gridded data (weather, climate, ocean, fluids), for Loader. Needs xarray, and what it opens the files by: zarr, netCDF4,
    h5netcdf or scipy.

        data = oa.from_xarray("era5.zarr", ["2m_temperature", "geopotential"], {"input": [-1, 0], "target": range(1, 5)},
                              levels=[500, 850], static=["land_sea_mask"], time=slice("1979", "2015"), normalize=True)
        for batch in oa.Loader(data, batch_size=16):
            batch["input"], batch["target"], batch["time"]          # float32 [16, 2, 3, H, W], [16, 4, 3, H, W], int64 [16]

    data: a Zarr (of version 2 or 3), a NetCDF or HDF5 file, a folder with such in it or below, a pattern, or a list; they are sorted by their times. Or
        a Dataset that the program has opened: jobs share it by name= and version=. A Zarr may be a URL that zarr opens (it needs fsspec).
    variables: of a batch, in this order, all on one grid. A channel is a variable, or a level of one: data.channels has their names, as
        ["2m_temperature", "geopotential_500", "geopotential_850"].
    delta_steps: {field: steps from the sample's own}: [steps, channels, ...space] each, of the times of the files.
    levels: values of the dimension of levels, in the order of the channels; or {variable: values}. Default: all, in the files' order.
    static: variables without time, which do not come with batches: data.static is float32 [variables, ...space], of the first file.
    time: which steps there are, as Dataset.sel(time=...) takes it; no window has a step of outside. Default: all.
    stride: of the steps that can be a sample's own, each stride-th.
    dim: the name of the dimension of time.
    series: the name of a dimension of trajectories, or members of an ensemble: each is a time of its own, in each file.
    space: the names of the dimensions of space: one, two, or, with stack=False and variables without levels, three. Default: the last two of the first
        variable.
    patch: (rows, columns): a sample is a part of the field, of a grid of such that covers it; the last ones end with it. "corner", int64 [2], is the place
        of its first value. Each step has so many samples in a row. jitter: each epoch draws a patch anew, up to its size behind its place.
    normalize: True: (x - mean) / std, by data.stats; or {"mean": [...], "std": [...]} with a number for each channel, as the stats of the data set that a
        model was trained with. A std of 0 counts as 1.
    stack: False: a field for each variable, "input/geopotential" [steps, levels, ...space], without levels [steps, ...space].
    dtype: "float32" or "float16", after the normalization.
    open: arguments of xarray.open_dataset(), as {"engine": "h5netcdf", "group": "fields"}. Values have scale_factor, add_offset and _FillValue
        applied, as xarray does it.
    preprocess: a function of each file's Dataset, as of open_mfdataset(): to rename, or choose by isel(). It is called in each process; arithmetic in
        it reads whole variables.
    cache: bytes of steps that the pool's processes keep together, a number or "4G", and those of a window at least. If it does not hold all, and windows share
        steps, a random order is shuffle="blocks": runs of neighbours come in random order, and the windows of as many as are kept are mixed; see
        from_parquet().
    index: the folder that keeps statistics. Default: $XDG_CACHE_HOME/oneaccess/xarray, else ~/.cache/oneaccess/xarray.

    batch["time"] is that of the sample's own step: int64 seconds since 1970, in the files' calendar; a time that is a number is as it is. data.times has it for
    all samples. Where time goes on by more than 1.5 times its median step is a gap: no window spans one, a UserWarning tells of it, and data.gaps has
    all. A time that occurs twice is an error.

    data.stats["mean"]: float64 [channels] over all steps that windows have, each value with the same weight, NaN left out; "diff_mean" and "diff_std" are of
    differences between steps as far apart as the greatest common divisor of delta_steps. The first look at it reads all these steps, in this process; what was
    found is kept, but of a Dataset, with preprocess= and of URLs.

    Steps that lie in chunks together are decoded once for all processes of the pool. A file that was written to since is noticed; of Zarr, the metadata are looked
    at. What cannot be read makes its windows bad samples. A sample has at most 1 GiB.

    The other arguments are those of wrap().
    """
    needs("xarray", "oneaccess.from_xarray()")
    import numpy as np

    from .xarray_files import Files, found, numbers
    from .xarray_rows import GridRows
    names, extra, space = named(variables), named(static), None if space is None else tuple(named(space))
    if not names:
        raise ArgumentError("variables=[]: name one at least")
    if isinstance(levels, Mapping) and (strange := [each for each in levels if each not in names]):
        raise ArgumentError(f"levels= names {strange[0]!r}, which is none of variables={names}")
    if isinstance(stride, bool) or not isinstance(stride, int) or stride < 1:
        raise ArgumentError(f"stride is {stride!r}: a number of steps, from 1 on")
    levels = {each: list(some) for each, some in levels.items()} if isinstance(levels, Mapping) else None if levels is None else [*levels] if np.iterable(levels) else [levels]
    files = Files(data, [*names, *extra], open or {}, preprocess)
    rows = GridRows(files, names, (dim, series, space), _parts(delta_steps, stack, dtype), levels, time, stride, _patch(patch, jitter), size_of(cache, "cache"))
    first, made = files.get(0), np.empty((len(extra), *rows.sizes), np.float32)
    for at, each in enumerate(extra):
        variable = found(first, each, files.paths[0])
        if {*variable.dims} != {*rows.axes.space}:
            raise ArgumentError(f"static= names {each!r}, which has the dimensions {', '.join(map(str, variable.dims))}: those of {', '.join(rows.axes.space)} alone are meant")
        made[at] = numbers(variable.transpose(*rows.axes.space))
    files.release()
    return Grids(rows, made, normalize, index, name=name, version=version, workers=workers, timeout=timeout, room=room, keep=keep)
