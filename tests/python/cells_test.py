# SPDX-License-Identifier: Apache-2.0
"""Files of AnnData: all encodings, genes by name, normalisation, damage, orders, against a real daemon. The files are written by hand, as anndata writes
them and wrote them; what needs another package is tried where that is installed."""

import importlib.util
import os
import sys
import unittest
import warnings
from unittest import mock

try:
    import h5py
    import numpy as np
except ImportError as missing:
    print(f"cells_test: skipped: {missing}")
    sys.exit(77)

import oneaccess as oa
from support import PoolCase, needs

warnings.simplefilter("error")
warnings.filterwarnings("ignore", module="^(?!oneaccess)")  # of packages

CELLS, GENES = 300, 40
TYPES = ["B cell", "T cell", "NK"]
TEXT = h5py.string_dtype()
# By scanpy 1.11: normalize_total(target_sum=100) and log1p() of [[1, 0, 3, 0], [0, 0, 0, 0], [10, 20, 30, 40]], float32.
COUNTS = [[1, 0, 3, 0], [0, 0, 0, 0], [10, 20, 30, 40]]
NORMALISED = [[3.2580965, 0, 4.3307333, 0], [0, 0, 0, 0], [2.3978953, 3.0445225, 3.4339871, 3.713572]]


def counts(cells=CELLS, genes=GENES, seed=1):
    draw = np.random.default_rng(seed)
    return np.where(draw.random((cells, genes)) < 0.2, draw.integers(1, 50, (cells, genes)), 0)


def csr(matrix):
    """indptr, indices, data."""
    cells, genes = np.nonzero(matrix)
    return np.concatenate([[0], np.cumsum(np.bincount(cells, minlength=len(matrix)))]), genes, matrix[cells, genes]


def names(what, count):
    return [f"{what}{number}" for number in range(count)]


def encoded(node, kind, version):
    node.attrs["encoding-type"], node.attrs["encoding-version"] = kind, version
    return node


def write_matrix(root, key, matrix, kind="csr", dtype="f4", index="i4", **how):
    if kind == "dense":
        root.create_dataset(key, data=matrix.astype(dtype), **how)
        return
    group = encoded(root.create_group(key), f"{kind}_matrix", "0.1.0")
    group.attrs["shape"] = matrix.shape
    for name, values, type_ in zip(("indptr", "indices", "data"), csr(matrix if kind == "csr" else matrix.T), (index, index, dtype)):
        group.create_dataset(name, data=values.astype(type_), **how)


def write_frame(root, key, index, columns, style="new"):
    """columns: {name: values}, those of texts in a list being categories by TYPES."""
    if style == "oldest":       # one array of structs, before 0.7
        coded = {name: np.array([TYPES.index(value) for value in values], "i1") if isinstance(values, list) else values for name, values in columns.items()}
        table = np.empty(len(index), [("index", TEXT), *((name, values.dtype) for name, values in coded.items())])
        table["index"] = index
        for name, values in coded.items():
            table[name] = values
            if isinstance(columns[name], list):
                root.create_dataset(f"uns/{name}_categories", data=TYPES, dtype=TEXT)
        root.create_dataset(key, data=table)
        return
    frame = encoded(root.create_group(key), "dataframe", "0.2.0" if style == "new" else "0.1.0")
    frame.attrs["_index"] = "names"
    frame.create_dataset("names", data=index, dtype=TEXT)
    for name, values in columns.items():
        if not isinstance(values, list):
            frame[name] = values
            continue
        codes = np.array([TYPES.index(value) if value in TYPES else -1 for value in values], "i1")
        if style == "new":
            group = encoded(frame.create_group(name), "categorical", "0.2.0")
            group["codes"] = codes
            group.create_dataset("categories", data=TYPES, dtype=TEXT)
        else:                   # of 0.7
            frame[name] = codes
            categories = frame.create_dataset(f"__categories/{name}", data=TYPES, dtype=TEXT)
            frame[name].attrs["categories"] = categories.ref


class CellsCase(PoolCase):
    def setUp(self):
        self.matrix = counts()
        draw = np.random.default_rng(2)
        self.types = [TYPES[at] for at in draw.integers(0, 3, CELLS)]
        self.ages = draw.normal(50, 10, CELLS)

    def write(self, name="cells", matrix=None, genes=None, style="new", types=None, **how):
        path, matrix = self.work / f"{self.id()}-{name}.h5ad", self.matrix if matrix is None else np.asarray(matrix)
        path.unlink(missing_ok=True)
        cells = len(matrix)
        with h5py.File(path, "w") as root:
            write_matrix(root, "X", matrix, **how)
            write_frame(root, "obs", names("cell-", cells), {"type": types or self.types[:cells], "age": self.ages[:cells]}, style)
            write_frame(root, "var", genes or names("gene", matrix.shape[1]), {}, style)
        return path

    def rows(self, *args, **kwargs):
        """Of the data set itself, without its pool."""
        data = oa.from_h5ad(*args, **kwargs)
        return data.dataset.__getitems__([*range(len(data))])

    def check(self, data, matrix, fields=True, **kwargs):
        """Each cell once, with what it has. Returns their order."""
        seen = []
        for batch in self.open(data, epochs=1, **kwargs):
            ids = np.array(batch.ids)
            np.testing.assert_array_equal(batch["X"], matrix[ids])
            self.assertEqual(batch["X"].dtype, np.float32)
            if fields:
                self.assertEqual([data.classes["type"][code] for code in batch["type"]], [self.types[at] for at in ids])
                np.testing.assert_array_equal(batch["age"], self.ages[ids])
            seen += batch.ids
        self.assertEqual(sorted(seen), [*range(len(matrix))])
        return seen


class LoaderTest(CellsCase):
    def test_dense_batches(self):
        path = self.write()
        self.check(oa.from_h5ad(path, ["type", "age"], keep=0.2), self.matrix, order="carousel")

    def test_sparse_batches(self):
        data = oa.from_h5ad(self.write(), ["type"], sparse=True, keep=0.2)
        seen = []
        for batch in self.open(data, epochs=1):
            self.assertEqual((batch["genes"].dtype, batch["values"].dtype), (np.int64, np.float32))
            for at, cell in enumerate(batch.ids):
                there = np.flatnonzero(self.matrix[cell])
                np.testing.assert_array_equal(batch["genes"][at], there)
                np.testing.assert_array_equal(batch["values"][at], self.matrix[cell, there])
            seen += batch.ids
        self.assertEqual(sorted(seen), [*range(CELLS)])
        self.assertEqual(batch["genes"].shape[1], (self.matrix != 0).sum(1).max())

    def test_blocks(self):
        """More than is kept: a random order is one of blocks, which the pool's processes share."""
        with mock.patch("oneaccess.domains.cell_rows._BLOCK", 2000):
            data = oa.from_h5ad(self.write(), ["type", "age"], cache=8000, keep=0.2)
        blocks = data.dataset.blocks
        self.assertGreater(len(blocks.starts), 4 * blocks.window)
        seen = self.check(data, self.matrix)
        rows, window = blocks.starts[1], blocks.window
        self.assertEqual([*blocks.starts], [*range(0, CELLS, rows)])
        self.assertNotEqual(seen, sorted(seen))
        shortest = CELLS - blocks.starts[-1]        # which may be among the first ones
        self.assertLessEqual(len({cell // rows for cell in seen[:(window - 1) * rows + shortest]}), window)
        with self.assertRaisesRegex(oa.errors.ArgumentError, "chunks.*cache="):
            self.open(data, order="carousel")

    def test_a_damaged_cell_is_a_bad_sample(self):
        path = self.write(index="i8")
        with h5py.File(path, "r+") as root:
            at, indices = root["X/indptr"], root["X/indices"]
            at[8] = 1 << 40             # the end of cell 7, and the begin of cell 8
            at[21] = int(at[20]) - 3    # cell 20 ends before it begins; cell 21 has values of cell 19
            at[31] = int(at[30]) + GENES + 1
            indices[int(at[100])] = GENES
            indices[int(at[200])] = -1
            root["obs/type/codes"][250] = 3
            root["obs/type/codes"][251] = -1
        data = oa.from_h5ad(path, ["type"], keep=0.2)
        loader, seen = self.open(data, bad="skip", epochs=1), []
        for batch in loader:
            for at, cell in enumerate(batch.ids):
                if cell != 21:
                    np.testing.assert_array_equal(batch["X"][at], self.matrix[cell])
            seen += batch.ids
        wrong = {bad.index: bad.error for bad in loader.bad_samples}
        self.assertEqual(sorted(wrong), [7, 8, 20, 30, 31, 100, 200, 250, 251])
        self.assertEqual(sorted([*seen, *wrong]), [*range(CELLS)])
        for cell in wrong:
            with self.assertRaisesRegex(oa.errors.DatasetError, rf"cell 'cell-{cell}' \(number {cell} of .*\.h5ad\): "):
                data.dataset[cell]
        for cell, words in ((7, "1,099,511,627,776 by indptr"), (20, "by indptr"), (30, "at most 40"), (31, "by indptr"), (100, "gene 40"), (200, "gene -1"), (250, "no such category"),
                            (251, "has no value: leave such cells out, by where=")):
            with self.assertRaisesRegex(oa.errors.DatasetError, words):
                data.dataset[cell]

    @needs("pyarrow")
    def test_where(self):
        with mock.patch("oneaccess.domains.cell_rows._BLOCK", 2000):
            data = oa.from_h5ad([self.write("a"), self.write("b", matrix=self.matrix[:100])], ["age"], where=[("type", "in", ["NK", "B cell"]), ("age", ">", 50)], cache=8000,
                                keep=0.2)
        meant = [at for at in [*range(CELLS), *range(100)] if self.types[at] != "T cell" and self.ages[at] > 50]
        self.assertEqual(len(data), len(meant))
        seen = []
        for batch in self.open(data, epochs=1):
            cells = [meant[cell] for cell in batch.ids]
            np.testing.assert_array_equal(batch["X"], self.matrix[cells])
            np.testing.assert_array_equal(batch["age"], self.ages[cells])
            np.testing.assert_array_equal(data.dataset.rows_of(batch.ids) % CELLS, cells)
            seen += batch.ids
        self.assertEqual(sorted(seen), [*range(len(meant))])
        path = self.write("a")
        with self.assertRaisesRegex(oa.errors.ArgumentError, "chooses none of the 300 rows"):
            oa.from_h5ad(path, where=[("type", "==", "mast cell")])
        with self.assertRaisesRegex(oa.errors.ArgumentError, r"does not fit .*Its columns: .*type \(string\)"):
            oa.from_h5ad(path, where=[("tissue", "==", "lung")])


class FilesTest(CellsCase):
    def check_rows(self, path, matrix, **kwargs):
        rows = self.rows(path, ["type", "age"], **kwargs)
        np.testing.assert_array_equal([row["X"] for row in rows], matrix)
        self.assertEqual([TYPES[row["type"]] for row in rows], self.types[:len(rows)])
        self.assertEqual([row["age"] for row in rows], [*self.ages[:len(rows)]])

    def test_encodings(self):
        for style in "new", "old", "oldest":
            self.check_rows(self.write(style, style=style), self.matrix)

    def test_types_and_compression(self):
        for number, how in enumerate(({"dtype": "i8", "index": "i8"}, {"dtype": "u2", "index": "u4"}, {"dtype": "f8"}, {"kind": "dense"}, {"kind": "dense", "dtype": "i4"},
                                      {"compression": "gzip", "chunks": (100,)}, {"kind": "dense", "compression": "lzf", "chunks": (7, 11)})):
            self.check_rows(self.write(str(number), **({"chunks": None} | how if "compression" not in how else how)), self.matrix)

    def test_old_words_of_a_sparse_matrix(self):
        path = self.write()
        with h5py.File(path, "r+") as root:
            for name in [*root["X"].attrs]:
                del root["X"].attrs[name]
            root["X"].attrs["h5sparse_format"], root["X"].attrs["h5sparse_shape"] = np.bytes_("csr"), self.matrix.shape
        self.check_rows(path, self.matrix)

    def test_unsorted_and_repeated(self):
        path, want = self.write(), self.matrix.copy()
        with h5py.File(path, "r+") as root:
            at, genes, values = (root[f"X/{name}"][:] for name in ("indptr", "indices", "data"))
            for begin, end in zip(at[:-1], at[1:]):
                genes[begin:end], values[begin:end] = genes[begin:end][::-1].copy(), values[begin:end][::-1].copy()
            first = int(at[3])
            want[3, genes[first]] += want[3, genes[first + 1]]
            want[3, genes[first + 1]] = 0
            genes[first + 1] = genes[first]
            root["X/indices"][:], root["X/data"][:] = genes, values
        self.check_rows(path, want)
        row = self.rows(path, sparse=True)[3]
        np.testing.assert_array_equal(row["genes"], np.flatnonzero(want[3]))
        np.testing.assert_array_equal(row["values"], want[3][want[3] > 0])

    def test_columns(self):
        path = self.write()
        whole, sure = np.arange(CELLS) - 7, np.arange(CELLS) % 3 == 0
        with h5py.File(path, "r+") as root:
            root["obs/whole"], root["obs/sure"] = whole, sure
            root.create_dataset("obs/donor", data=[f"donor é {cell}" for cell in range(CELLS)], dtype=TEXT)
            maybe = encoded(root.create_group("obs/maybe"), "nullable-integer", "0.1.0")
            maybe["values"], maybe["mask"] = whole, np.arange(CELLS) == 5
            root["obs/pairs"] = np.zeros((CELLS, 2))
        data = oa.from_h5ad(path, ["whole", "sure", "donor", "maybe"], sparse=True, keep=0.2)
        loader = self.open(data, shuffle=False, bad="skip", batch_size=CELLS, epochs=1)
        (batch,) = loader
        self.assertEqual([bad.index for bad in loader.bad_samples], [5])
        left = np.arange(CELLS) != 5
        np.testing.assert_array_equal(batch["whole"], whole[left])
        np.testing.assert_array_equal(batch["sure"], sure[left])
        np.testing.assert_array_equal(batch["maybe"], whole[left])
        self.assertEqual(batch["donor"], [f"donor é {cell}" for cell in np.arange(CELLS)[left]])
        with self.assertRaisesRegex(oa.errors.ArgumentError, "column pairs .* has no place in a batch"):
            oa.from_h5ad(path, ["pairs"])
        with self.assertRaisesRegex(oa.errors.ArgumentError, "no column 'organ'; there are: .*age"):
            oa.from_h5ad(path, "organ")
        for columns, words in ((["age", "age"], "named twice"), (["X"], "is the matrix")):
            with self.assertRaisesRegex(oa.errors.ArgumentError, words):
                oa.from_h5ad(path, columns)

    def test_genes(self):
        one, other = self.write("one"), self.write("other", matrix=counts(50, 30, 3), genes=names("gene", GENES)[:9:-1])
        two = counts(50, 30, 3)
        data = oa.from_h5ad([one, other])
        self.assertEqual((data.genes, len(data)), (names("gene", GENES)[10:], CELLS + 50))
        np.testing.assert_array_equal([row["X"] for row in self.rows([one, other])], np.concatenate([self.matrix[:, 10:], two[:, ::-1]]))
        rows = self.rows([one, other], genes=["gene3", "gene39", "ERCC-1"])
        np.testing.assert_array_equal([row["X"] for row in rows], np.concatenate([
            np.stack([self.matrix[:, 3], self.matrix[:, 39], np.zeros(CELLS)], 1), np.stack([np.zeros(50), two[:, 0], np.zeros(50)], 1)]))
        sparse = self.rows([one, other], genes=["gene39", "gene3"], sparse=True)
        for row, dense in zip(sparse, rows):
            made = np.zeros(2)
            made[row["genes"]] = row["values"]
            np.testing.assert_array_equal(made, dense["X"][[1, 0]])
        with self.assertRaisesRegex(oa.errors.ArgumentError, "none of genes= is in .*, whose genes are gene0, gene1, gene2, .*var= "):
            oa.from_h5ad(one, genes=["CD3E"])
        with self.assertRaisesRegex(oa.errors.DatasetError, "no gene in common"):
            oa.from_h5ad([one, self.write("foreign", genes=names("symbol", GENES))])
        twice = self.write("twice", genes=["gene0", *names("gene", GENES - 1)])
        np.testing.assert_array_equal([row["X"] for row in self.rows(twice)], self.matrix)     # of one file, as they are
        for call in (lambda: oa.from_h5ad([one, twice]), lambda: oa.from_h5ad(twice, genes=["gene1", "gene0"])):
            with self.assertRaisesRegex(oa.errors.ArgumentError, "'gene0'.*var_names_make_unique"):
                call()
        for genes, words in (([], "name one"), ("CD3E", "a list of str"), (["gene1", "gene1"], "'gene1'")):
            with self.assertRaisesRegex(oa.errors.ArgumentError, words):
                oa.from_h5ad(one, genes=genes)

    def test_names_of_genes_in_a_column(self):
        path = self.write()
        with h5py.File(path, "r+") as root:
            root.create_dataset("var/symbol", data=names("S", GENES), dtype=TEXT)
        data = oa.from_h5ad(path, genes=["S7"], var="symbol")
        np.testing.assert_array_equal([data.dataset[cell]["X"][0] for cell in range(CELLS)], self.matrix[:, 7])
        with self.assertRaisesRegex(oa.errors.ArgumentError, "var= .*gone.*there are: names, symbol"):
            oa.from_h5ad(path, var="gone")

    def test_classes_of_several_files(self):
        one, other = self.write("one"), self.write("other")
        with h5py.File(other, "r+") as root:
            root["obs/type/categories"][:] = ["NK", "mast cell", "B cell"]
        data = oa.from_h5ad([one, other], ["type"])
        self.assertEqual(data.classes, {"type": [*TYPES, "mast cell"]})
        theirs = dict(zip(TYPES, ["NK", "mast cell", "B cell"]))
        made = [data.classes["type"][row["type"]] for row in self.rows([one, other], ["type"])]
        self.assertEqual(made, [*self.types, *(theirs[each] for each in self.types)])

    def test_layers(self):
        path = self.write()
        with h5py.File(path, "r+") as root:
            write_matrix(root, "layers/doubled", 2 * self.matrix)
            write_matrix(root, "raw/X", counts(CELLS, 60, 5))
            write_frame(root, "raw/var", names("raw", 60), {})
        self.check_rows(path, 2 * self.matrix, layer="doubled")
        self.check_rows(path, counts(CELLS, 60, 5), layer="raw")
        self.assertEqual(oa.from_h5ad(path, layer="raw").genes, names("raw", 60))
        with self.assertRaisesRegex(oa.errors.ArgumentError, "no layer 'counts'; layers are: doubled, raw"):
            oa.from_h5ad(path, layer="counts")

    def test_normalised_as_by_scanpy(self):
        for kind in "csr", "dense":
            path = self.write(kind, matrix=COUNTS, kind=kind)
            made = np.stack([row["X"] for row in self.rows(path, target_sum=100, log1p=True)])
            np.testing.assert_array_max_ulp(made, np.array(NORMALISED, np.float32), 1)
            # By the sum of all genes, also where few are meant.
            few = np.stack([row["X"] for row in self.rows(path, genes=["gene2"], target_sum=100)])
            np.testing.assert_array_max_ulp(few, np.array([[75], [0], [30]], np.float32), 1)
            np.testing.assert_array_equal([row["X"] for row in self.rows(path, log1p=True)], np.log1p(np.array(COUNTS, np.float32)))
        for number in 0, -1, "1e4", float("inf"), float("nan"):
            with self.assertRaisesRegex(oa.errors.ArgumentError, "target_sum is"):
                oa.from_h5ad(path, target_sum=number)

    def test_by_genes_is_refused(self):
        with self.assertRaisesRegex(oa.errors.ArgumentError, r"sparse by genes \(CSC\).*adata\.X = adata\.X\.tocsr\(\)"):
            oa.from_h5ad(self.write(kind="csc"))

    def test_what_does_not_fit_is_told(self):
        def broken(change):
            path = self.write()
            with h5py.File(path, "r+") as root:
                change(root)
            return path

        def replaced(key, values):
            def change(root):
                del root[key]
                root[key] = values
            return change

        for change, words in ((replaced("X/indptr", np.zeros(7, "i4")), "indptr, indices and data do not fit"), (replaced("X/indices", np.zeros(7, "i4")), "do not fit"),
                              (replaced("X/indices", np.zeros(1)), "do not fit"), (lambda root: root["X"].attrs.modify("shape", (CELLS, 41)), "has the shape .300, 41."),
                              (lambda root: root["X"].attrs.modify("encoding-type", "coo"), "is coo"), (replaced("obs/age", np.zeros(7)), "7 values of 300"),
                              (replaced("X", np.zeros((CELLS, GENES), "c8")), "no numbers"), (lambda root: root.pop("obs"), "no file of AnnData"),
                              (lambda root: root["X"].pop("indices"), "no file of AnnData")):
            with self.assertRaisesRegex(oa.errors.DatasetError, words):
                oa.from_h5ad(broken(change), ["type", "age"])
        with self.assertRaisesRegex(oa.errors.ArgumentError, "has no X; layers are: none"):
            oa.from_h5ad(broken(lambda root: root.pop("X")))
        with self.assertRaisesRegex(oa.errors.DatasetError, "no file of AnnData"):
            oa.from_h5ad(__file__)
        with self.assertRaises(FileNotFoundError):
            oa.from_h5ad("gone.h5ad")
        with self.assertRaisesRegex(oa.errors.DatasetError, "column type of obs is a number in .* and a class in .*strings_to_categoricals"):
            oa.from_h5ad([self.write("one"), broken(replaced("obs/type", np.zeros(CELLS)))], ["type"])

    def test_a_changed_file_is_noticed(self):
        path = self.write()
        data = oa.from_h5ad(path)
        before = data.identity(False)
        self.assertEqual(oa.from_h5ad(path).identity(False), before)
        self.write()
        os.utime(path, (1, 1))
        with self.assertRaisesRegex(oa.errors.DatasetError, "was written to since"):
            data.dataset[0]
        self.assertNotEqual(oa.from_h5ad(path).identity(False), before)

    def test_folders_and_patterns(self):
        folder = self.work / self.id()
        folder.mkdir()
        for name in "b", "a":
            self.write(name).rename(folder / f"{name}.h5ad")
        (folder / "README.md").write_text("Cells.")
        for paths in (folder, str(folder / "*.h5ad"), [folder / "a.h5ad", folder / "b.h5ad"]):
            self.assertEqual([path for path, _ in oa.from_h5ad(paths).dataset.files], [str(folder / "a.h5ad"), str(folder / "b.h5ad")])

    @needs("anndata")
    def test_what_anndata_writes(self):
        import anndata
        import pandas
        import scipy.sparse
        obs = pandas.DataFrame({"type": pandas.Categorical(self.types, TYPES), "age": self.ages}, index=names("cell-", CELLS))
        matrix = scipy.sparse.csr_matrix(self.matrix.astype("f4"))
        adata = anndata.AnnData(matrix, obs, pandas.DataFrame(index=names("gene", GENES)))
        path = self.work / f"{self.id()}.h5ad"
        adata.write_h5ad(path, compression="gzip")
        self.check_rows(path, self.matrix)
        if importlib.util.find_spec("zarr"):
            adata.write_zarr(self.work / f"{self.id()}.zarr")
            self.check_rows(self.work / f"{self.id()}.zarr", self.matrix)


@needs("zarr", 3)
class ZarrTest(CellsCase):
    def test_stores(self):
        import zarr
        for version in 2, 3:
            path = self.work / f"{self.id()}{version}.zarr"
            root = zarr.open_group(str(path), mode="w", zarr_format=version)
            group = root.create_group("X", attributes={"encoding-type": "csr_matrix", "shape": [CELLS, GENES]})
            arrays = {f"X/{name}": values.astype("i4") for name, values in zip(("indptr", "indices", "data"), csr(self.matrix))}
            root.create_group("obs", attributes={"_index": "names"})
            root.create_group("var", attributes={"_index": "names"})
            root.create_group("obs/type", attributes={"encoding-type": "categorical"})
            arrays |= {"obs/type/codes": np.array([TYPES.index(each) for each in self.types], "i1"), "obs/age": self.ages,
                       "obs/names": np.array(names("cell-", CELLS)), "var/names": np.array(names("gene", GENES)), "obs/type/categories": np.array(TYPES)}
            for name, values in arrays.items():
                root.create_array(name, shape=values.shape, dtype=values.dtype, chunks=(50,))[...] = values
            self.assertEqual(group["data"].chunks, (50,))
            with mock.patch("oneaccess.domains.cell_rows._BLOCK", 2000):
                data = oa.from_h5ad(path, ["type", "age"], cache=8000, keep=0.2)
            self.assertGreater(len(data.dataset.blocks.starts), data.dataset.blocks.window)
            self.check(data, self.matrix)


if __name__ == "__main__":
    unittest.main()
