# SPDX-License-Identifier: Apache-2.0
"""Gridded data by from_xarray(): values beside xarray's own, of all formats; gaps, parts, orders, chunks that are read once, against a real daemon."""

import importlib.util
import os
import pathlib
import shutil
import sys
import tempfile
import unittest
import warnings
from unittest import mock

try:
    import h5netcdf  # noqa: F401
    import h5py
    import netCDF4  # noqa: F401
    import numpy as np
    import scipy.io  # noqa: F401
    import xarray as xr
    import zarr
except ImportError as missing:
    print(f"xarray_test: skipped: {missing}")
    sys.exit(77)

import grid_samples as samples
import oneaccess as oa
from oneaccess.domains import xarray_stats
from support import PoolCase

warnings.simplefilter("error")
warnings.filterwarnings("ignore", module="^(?!oneaccess)")  # of packages

WINDOW = {"input": [-1, 0], "target": range(1, 5)}
NAMES = ["heat", "height"]
HAS_V3 = int(zarr.__version__.partition(".")[0]) >= 3
VERSION = "zarr_format" if HAS_V3 else "zarr_version"


def channels(dataset, levels=None):
    """[steps, channels, ...] by xarray itself."""
    height = dataset["height"] if levels is None else dataset["height"].sel(level=levels)
    return np.concatenate([dataset["heat"].to_numpy()[:, None], height.to_numpy()], 1).astype(np.float32)


class GridsCase(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        if not hasattr(cls, "work"):        # of a daemon
            cls.work = pathlib.Path(tempfile.mkdtemp(prefix="access-python."))
            cls.addClassCleanup(shutil.rmtree, cls.work)
        os.environ["XDG_CACHE_HOME"] = str(cls.work / "kept")
        cls.dataset = samples.weather()
        cls.want = channels(cls.dataset)

    def path(self, suffix):
        return self.work / f"{self.id()}{suffix}"

    def write(self, suffix=".zarr", dataset=None, chunk=4, **encoding):
        path, dataset = self.path(suffix), self.dataset if dataset is None else dataset
        chunks = {"heat": (chunk, *samples.SIZES), "height": (chunk, len(samples.LEVELS), *samples.SIZES)}
        if suffix.endswith(".zarr"):
            dataset.to_zarr(path, mode="w", consolidated=True, encoding={name: {"chunks": each, **encoding} for name, each in chunks.items()}, **{VERSION: 2})
        else:
            dataset.to_netcdf(path, engine="h5netcdf", encoding={name: {"chunksizes": each, **encoding} for name, each in chunks.items()})
        return path

    def check(self, data, dataset, own, levels=None):
        """Each sample, without a pool."""
        self.assertEqual(len(data), len(own))
        want, times = channels(dataset, levels), dataset["time"].to_numpy().astype("datetime64[s]").astype(np.int64)
        for index, step in enumerate(own):
            sample = data.dataset[index]
            for name, steps in WINDOW.items():
                np.testing.assert_array_equal(sample[name], want[[step + each for each in steps]])
                self.assertEqual(sample[name].dtype, np.float32)
            self.assertEqual(sample["time"], times[step])


class FormatsTest(GridsCase):
    def test_formats(self):
        """Values are those of xarray, to the last bit."""
        packed = {"dtype": "i2", "scale_factor": 0.01, "add_offset": 300.0, "_FillValue": -32768}
        ways = {"4.nc": {"engine": "netcdf4", "encoding": {"heat": {**packed, "zlib": True, "chunksizes": (7, 3, 8)}, "height": {"dtype": "f8", "chunksizes": (7, 2, 3, 8)}}},
                "3.nc": {"engine": "scipy", "format": "NETCDF3_CLASSIC", "encoding": {"heat": packed}}, "h.h5": {"engine": "h5netcdf", "encoding": {"height": {"chunksizes": (4, 1, 6, 8)}}}}
        for suffix, how in ways.items():
            path = self.path(suffix)
            self.dataset.to_netcdf(path, **how)
            with xr.open_dataset(path) as dataset:
                self.check(oa.from_xarray(path, NAMES, WINDOW), dataset.load(), range(1, 56))
        for version in (2, 3) if HAS_V3 else (2,):
            path = self.path(f"{version}.zarr")
            self.dataset.to_zarr(path, consolidated=True, encoding={"heat": {**packed, "chunks": (7, 3, 8)}, "height": {"chunks": (8, 1, 6, 8)}}, **{VERSION: version})
            dataset = xr.open_zarr(path).load()
            self.check(oa.from_xarray(path, NAMES, WINDOW, levels=[850, 1000]), dataset, range(1, 56), [850, 1000])

    def test_files_along_time(self):
        """Sorted by their times; a window goes on from file to file, and spans no gap."""
        days = {name: samples.weather(20, f"2020-01-{day:02}", day) for name, day in {"b": 1, "a": 6, "c": 12}.items()}     # the third a day late
        for name, dataset in days.items():
            dataset.to_netcdf(self.path(f"-{name}.nc"))
        whole = xr.concat([days[name][NAMES] for name in "bac"], "time", data_vars="minimal")
        with self.assertWarnsRegex(UserWarning, r"1 gaps, the first from 2020-01-10T18.* to 2020-01-12T00"):
            data = oa.from_xarray(str(self.path("-?.nc")), NAMES, WINDOW)
        self.assertEqual(len(data.gaps), 1)
        self.check(data, whole, [*range(1, 36), *range(41, 56)])
        with self.assertWarnsRegex(UserWarning, "1 gaps"):
            data = oa.from_xarray([self.path(f"-{name}.nc") for name in "cba"], NAMES, WINDOW, time=slice("2020-01-02", "2020-01-13T06"), stride=3)
        self.check(data, whole, [*range(5, 36, 3), 41])
        with self.assertRaisesRegex(oa.errors.DatasetError, "is a time of .*-a.nc and once more of .*-a.nc"):
            oa.from_xarray([self.path("-a.nc")] * 2, NAMES, WINDOW)
        other = days["c"].assign_coords(latitude=-samples.LATITUDES)
        other.to_netcdf(self.path("-d.nc"))
        with self.assertRaisesRegex(oa.errors.DatasetError, "-d.nc has other values along latitude than .*-b.nc"):
            oa.from_xarray([self.path("-b.nc"), self.path("-d.nc")], NAMES, WINDOW)

    def test_other_calendars_and_months(self):
        months = xr.Dataset({"heat": (("time", "x"), np.arange(24.0).reshape(12, 2))}, {"time": np.arange("2001-01", "2002-01", dtype="datetime64[M]").astype("datetime64[ns]")})
        data = oa.from_xarray(months, "heat", {"now": [0], "next": [1]}, space="x")
        self.assertEqual((len(data), data.dataset[3]["next"].tolist()), (11, [[[8, 9]]]))
        cube = xr.Dataset({"heat": (("time", "x", "y", "z"), np.arange(120.0).reshape(5, 2, 3, 4))})
        data = oa.from_xarray(cube, "heat", {"now": [0], "next": [1, 2]}, space=("x", "y", "z"), stack=False, patch=(2, 2, 2))
        self.assertEqual((len(data), data.dataset[11]["next/heat"].tolist()), (3 * 4, cube["heat"].to_numpy()[3:5, :, 1:, 2:].tolist()))
        if importlib.util.find_spec("cftime"):
            short = xr.Dataset({"heat": (("time", "x"), np.arange(8.0).reshape(4, 2))}, {"time": ("time", [58, 59, 60, 61], {"units": "days since 2020-01-01", "calendar": "noleap"})})
            short.to_netcdf(self.path(".nc"))
            data = oa.from_xarray(self.path(".nc"), "heat", {"now": [0], "next": [1]}, space="x", time=slice("2020-02-28", None))
            self.assertEqual([len(data), *np.diff(data.times)], [3, 86400, 86400])


class PartsTest(GridsCase):
    def test_fields(self):
        path = self.write()
        data = oa.from_xarray(path, NAMES, WINDOW, levels={"height": [500]}, static="land", stack=False, dtype="float16", normalize={"mean": [280, 5000], "std": [10, 0]})
        self.assertEqual(data.channels, ["heat", "height_500"])
        np.testing.assert_array_equal(data.static, self.dataset["land"].to_numpy().astype(np.float32)[None])
        np.testing.assert_array_equal(data.coords["latitude"], samples.LATITUDES)
        sample, want = data.dataset[3], channels(self.dataset, [500])[3:5]
        self.assertEqual([*sample], ["input/heat", "input/height", "target/heat", "target/height", "time"])
        np.testing.assert_array_equal(sample["input/heat"], ((want[:, 0] - np.float32(280)) / np.float32(10)).astype(np.float16))
        np.testing.assert_array_equal(sample["input/height"], (want[:, 1:] - np.float32(5000)).astype(np.float16))

    def test_patches(self):
        path = self.write()
        data = oa.from_xarray(path, NAMES, WINDOW, patch=(4, 3))
        corners = [(y, x) for y in (0, 2) for x in (0, 3, 5)]
        self.assertEqual(len(data), 55 * len(corners))
        for index in (0, 5, 100, 329):
            sample, (y, x) = data.dataset[index], corners[index % 6]
            self.assertEqual(sample["corner"].tolist(), [y, x])
            np.testing.assert_array_equal(sample["target"], self.want[index // 6 + 2:index // 6 + 6, :, y:y + 4, x:x + 3])
        data, places = oa.from_xarray(path, NAMES, WINDOW, patch=(4, 3), jitter=True), set()
        self.assertEqual((len(data), data.random), (55 * 2, True))
        for index in range(110):
            sample = data.dataset[index]
            y, x = sample["corner"].tolist()
            places.add((y, x))
            np.testing.assert_array_equal(sample["input"], self.want[index // 2:index // 2 + 2, :, y:y + 4, x:x + 3])
        self.assertEqual(places, {(y, x) for y in range(3) for x in range(6)})

    def test_statistics(self):
        """Over all steps that windows have; kept, and used."""
        path = self.write()
        data = oa.from_xarray(path, NAMES, WINDOW, time=slice("2020-01-03", "2020-01-12"), normalize=True)
        values = self.want[8:48].astype(np.float64)
        for kind, want in {"mean": np.nanmean(values, (0, 2, 3)), "std": np.nanstd(values, (0, 2, 3)), "min": np.nanmin(values, (0, 2, 3)), "diff_mean": np.nanmean(np.diff(values, axis=0), (0, 2, 3)),
                           "diff_std": np.nanstd(np.diff(values, axis=0), (0, 2, 3)), "count": (~np.isnan(values)).sum((0, 2, 3))}.items():
            np.testing.assert_allclose(data.stats[kind], want, rtol=1e-9, atol=1e-9)
        mean, std = (data.stats[kind].astype(np.float32)[:, None, None] for kind in ("mean", "std"))
        np.testing.assert_array_equal(data.dataset[0]["input"], (self.want[8:10] - mean) / std)
        with mock.patch.object(xarray_stats, "computed", side_effect=AssertionError("once more")):
            again = oa.from_xarray(path, NAMES, WINDOW, time=slice("2020-01-03", "2020-01-12"), normalize=True)
            self.assertRaises(AssertionError, lambda: oa.from_xarray(path, NAMES, WINDOW).stats)
        np.testing.assert_array_equal(again.stats["diff_std"], data.stats["diff_std"])
        other = oa.from_xarray(path, NAMES, WINDOW, time=slice("2020-01-13", None), normalize=data.stats)
        np.testing.assert_array_equal(other.dataset[0]["input"], (self.want[48:50] - mean) / std)

    def test_trajectories(self):
        """As The Well has them: scalars and vectors in groups, several trajectories in each file."""
        draw, fields = np.random.default_rng(1), []
        for number in range(2):
            density, velocity = draw.random((3, 7, 5, 4), "f4"), draw.random((3, 7, 5, 4, 2), "f4")
            fields.append(np.concatenate([density[:, :, None], np.moveaxis(velocity, -1, 2)], 2))
            with h5py.File(self.path(f"-{number}.hdf5"), "w") as file:
                file["t0_fields/density"], file["t1_fields/velocity"] = density, velocity
                for name, size in (("time", 7), ("x", 5), ("y", 4)):
                    file[f"dimensions/{name}"] = np.arange(size) * 0.5
        data = oa.from_xarray(str(self.path("-?.hdf5")), ["density", "velocity"], {"input": range(-3, 1), "target": [1]}, series="run", space=("x", "y"),
                              open={"engine": "h5netcdf", "group": "t0_fields", "phony_dims": "access"}, preprocess=samples.the_well)
        self.assertEqual((data.channels, len(data)), (["density", "velocity_0", "velocity_1"], 2 * 3 * 3))
        for index in range(len(data)):
            (number, run), step = divmod(index // 3, 3), index % 3
            sample = data.dataset[index]
            np.testing.assert_array_equal(sample["input"], fields[number][run, step:step + 4])
            np.testing.assert_array_equal(sample["target"], fields[number][run, step + 4:step + 5])
            self.assertEqual(sample["time"], (step + 3) * 0.5)

    def test_what_is_wrong(self):
        path, wrong = self.write(), oa.errors.ArgumentError
        for words, change in {"no variable 'wind'; there are: heat, height": {"variables": ["wind"]}, "levels= has 700, and level of height .* has 1000, 500, 850": {"levels": [700]},
                              "land .* has the dimensions latitude, longitude: dim=": {"variables": "land"}, "none of the times|chooses none": {"time": slice("1990", "1991")},
                              "static= names 'heat'": {"static": "heat"}, "give whole numbers": {"delta_steps": {"input": []}}, "as {\"input\"": {"delta_steps": {"time": [0]}},
                              r"patch=\(7, 8\)": {"patch": (7, 8)}, r"\['std'\] has the shape \(2,\), and there are 4 channels: heat, height_1000": {"normalize": {"mean": 0, "std": [1, 2]}},
                              "channel twice": {"variables": ["heat", "heat"]}, "dtype is 'int8'; there are": {"dtype": "int8"}, "a path is 5": {"data": 5}, "empty list of files": {"data": []}, "is a Dataset, which is open": {"data": self.dataset, "open": {"group": "a"}},
                              "has the dimensions level beside|dimensions level, latitude beside": {"variables": "height", "space": "longitude"}}.items():
            with self.subTest(words), self.assertRaisesRegex(wrong, words):
                oa.from_xarray(**{"data": path, "variables": NAMES, "delta_steps": WINDOW, **change})
        with self.assertRaisesRegex(oa.errors.DatasetError, "no window of 61 steps fits into the 60 of"):
            oa.from_xarray(path, NAMES, {"input": [0], "target": [60]})
        self.path(".nc").write_bytes(b"CDF\1 and no more")
        with self.assertRaisesRegex(oa.errors.DatasetError, r"xarray cannot open .*\.nc: "):
            oa.from_xarray(self.path(".nc"), NAMES, WINDOW)

    def test_what_cannot_be_read_is_bad(self):
        path = self.write(chunk=1)
        damaged = path / "heat/20.0.0"
        self.assertTrue(damaged.exists())
        damaged.write_bytes(b"no chunk")
        with mock.patch("oneaccess.domains.xarray_rows._BLOCK", 1):
            rows = oa.from_xarray(path, NAMES, WINDOW).dataset
        for index in range(13, 23):
            if 15 <= index <= 20:
                with self.assertRaisesRegex(oa.errors.DatasetError, r"\.zarr, steps 20 to 20, cannot be read: "):
                    rows[index]
            else:
                np.testing.assert_array_equal(rows[index]["target"], self.want[index + 2:index + 6])
        os.utime(path / "heat/.zarray")
        rows.files.release()
        with self.assertRaisesRegex(oa.errors.DatasetError, "was written to since"):
            rows[0]


class LoaderTest(GridsCase, PoolCase):
    def read(self, data, **kwargs):
        """An epoch, with its values. Returns the order of samples."""
        seen = []
        for batch in self.open(data, epochs=1, batch_size=8, as_="numpy", **kwargs):
            for at, index in enumerate(batch.ids):
                for name, steps in WINDOW.items():
                    np.testing.assert_array_equal(batch[name][at], self.want[[index + 1 + each for each in steps]])
            np.testing.assert_array_equal(batch["time"], data.times[batch.ids])
            seen += batch.ids
        return seen

    def test_each_chunk_is_decoded_once(self):
        """Of overlapping windows, by two processes, where all is kept; and little more in runs, where it is not."""
        log = self.path(".log")
        path = self.write(chunk=2, filters=[samples.Noted(str(log))], compressor=None) if not HAS_V3 else self.write(chunk=2, filters=[samples.Noted(str(log))], compressors=None)
        chunks = 2 * samples.STEPS // 2
        with mock.patch("oneaccess.domains.xarray_rows._BLOCK", 1):
            data = oa.from_xarray(path, NAMES, WINDOW, workers=2, keep=0.2, preprocess=samples.as_it_is)
            few = oa.from_xarray(path, NAMES, WINDOW, workers=1, keep=0.2, cache=2 * 4 * 48 * 4 * 16, preprocess=samples.as_it_is)
        log.write_text("")
        seen = self.read(data)
        self.assertNotEqual(seen, sorted(seen))
        self.assertEqual((sorted(seen), len(log.read_text().split())), ([*range(55)], chunks))
        blocks = few.dataset.blocks
        self.assertEqual((blocks.window, len(blocks.starts)), (1, 3))
        log.write_text("")
        seen = self.read(few)
        self.assertNotEqual(seen, sorted(seen))
        self.assertEqual(sorted(seen), [*range(55)])
        self.assertLessEqual(len(log.read_text().split()), 1.5 * chunks)


if __name__ == "__main__":
    unittest.main(verbosity=2)
