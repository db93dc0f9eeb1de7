# SPDX-License-Identifier: Apache-2.0
"""Data sets of graphs: batches as one graph, against NumPy graph by graph, and where they are installed against PyTorch Geometric, jraph and ASE; databases of
ASE, written here as ASE and fairchem write them."""

import importlib.util
import json
import os
import sqlite3
import sys
import unittest
import zlib

try:
    import numpy as np
except ImportError as missing:
    print(f"graphs_test: skipped: {missing}")
    sys.exit(77)

import oneaccess as oa
from oneaccess.errors import ArgumentError, DatasetError, SampleError, TransformError
from oneaccess.graphs import GraphsTuple
from oneaccess.ragged import Ragged
from support import PoolCase, needs

GRAPHS, BATCH = 50, 8
MOST = {"x": 9, "edge_index": 12, "edge_attr": 12, "face": 3}


def graph_of(number):
    """One whose sizes its number says; some have no edge."""
    draw = np.random.default_rng(number)
    nodes, edges = 1 + number % 9, number % 13
    return {"x": draw.random((nodes, 3), np.float32), "edge_index": draw.integers(0, nodes, (edges, 2)), "edge_attr": draw.random((edges, 2), np.float32),
            "face": draw.integers(0, nodes, (number % 4, 3)), "y": draw.random(4, np.float32), "name": "C" * (number % 5)}


def whole_of(numbers):
    """What graphs() is to make of them, graph by graph."""
    parts, made = [graph_of(number) for number in numbers], {}
    starts = np.cumsum([0] + [len(part["x"]) for part in parts])
    for name in ("x", "edge_attr"):
        made[name] = np.concatenate([part[name] for part in parts])
    for name in ("edge_index", "face"):
        made[name] = np.concatenate([part[name] + start for part, start in zip(parts, starts)]).T
    made["y"], made["name"] = np.stack([part["y"] for part in parts]), [part["name"] for part in parts]
    made["batch"], made["ptr"] = np.concatenate([[at] * len(part["x"]) for at, part in enumerate(parts)]), starts
    return made


def ragged(values):
    made = np.zeros((len(values), max(1, *map(len, values)), *values[0].shape[1:]), values[0].dtype)
    for at, value in enumerate(values):
        made[at, :len(value)] = value
    return Ragged(made, np.array([*map(len, values)]), False)


def batch_of(numbers, names=("x", "edge_index", "edge_attr", "face", "y", "name")):
    parts = [graph_of(number) for number in numbers]
    return {name: [part[name] for part in parts] if name == "name" else np.stack([part[name] for part in parts]) if name == "y" else
            ragged([part[name] for part in parts]) for name in names}


class Graphs:
    def __len__(self):
        return GRAPHS

    def __getitem__(self, index):
        return graph_of(index)


if importlib.util.find_spec("torch_geometric"):
    from torch_geometric.data import InMemoryDataset

    class InMemory(InMemoryDataset):
        def __init__(self, data_list, transform=None):
            super().__init__(None, transform)
            self.data, self.slices = self.collate(data_list)


def with_edges(sample):
    """All pairs of atoms that are near each other."""
    far = np.linalg.norm(sample["pos"][:, None] - sample["pos"][None], axis=-1)
    return {**sample, "edge_index": np.argwhere((far < 0.7) & (far > 0))}


class GraphsTest(PoolCase):
    def same(self, found, wanted):
        self.assertEqual({*found}, {*wanted})
        for name, value in wanted.items():
            if isinstance(value, list):
                self.assertEqual(found[name], value)
            else:
                np.testing.assert_array_equal(found[name], value, name)
                self.assertEqual(str(found[name].dtype).rpartition(".")[2], value.dtype.name, name)

    # ---- batches ----

    def test_a_batch_as_one_graph(self):
        for numbers in ([3, 0, 13, 7], [0], [12, 0]):
            self.same(oa.graphs(batch_of(numbers), "dict"), whole_of(numbers))
        made = oa.graphs(batch_of([13, 0, 26]), "dict")
        self.assertEqual((made["edge_index"].shape, made["edge_attr"].shape), ((2, 0), (0, 2)))
        self.assertTrue(oa.graphs(batch_of([5, 6]), "dict")["edge_index"].flags.c_contiguous)

    def test_how_many_nodes(self):
        batch = batch_of([5, 2], ["edge_index", "y"])
        with self.assertRaisesRegex(ArgumentError, "by num_nodes; the batch has: edge_index, y"):
            oa.graphs(batch)
        made = oa.graphs({**batch, "num_nodes": np.array([6, 4])}, "dict")
        self.assertEqual((made["num_nodes"], made["ptr"].tolist(), made["edge_index"][:, 5:].min() >= 6), (10, [0, 6, 10], True))
        batch = batch_of([5, 2], ["face", "edge_attr", "x"])
        self.assertEqual(oa.graphs({**batch, "other": batch_of([1, 1])["x"]}, "dict")["ptr"].tolist(), [0, 6, 9])
        self.assertEqual(oa.graphs({**batch, "other": batch_of([1, 1])["x"]}, "dict", nodes="other")["ptr"].tolist(), [0, 2, 4])

    def test_padding(self):
        numbers = [3, 0, 13, 7]
        batch, whole = batch_of(numbers, ("x", "edge_index", "edge_attr", "y")), whole_of(numbers)
        (nodes, edges), made = (len(whole["x"]), len(whole["edge_attr"])), oa.graphs(batch, "dict", pad=(32, 20, 7))
        self.assertEqual({name: values.shape for name, values in made.items()},
                         {"x": (32, 3), "edge_index": (2, 20), "edge_attr": (20, 2), "y": (7, 4), "batch": (32,), "ptr": (8,)})
        for name, end in (("x", nodes), ("edge_attr", edges), ("y", 4)):
            np.testing.assert_array_equal(made[name][:end], whole[name])
            self.assertFalse(made[name][end:].any())
        np.testing.assert_array_equal(made["edge_index"][:, :edges], whole["edge_index"])
        self.assertEqual(({*made["edge_index"][:, edges:].flat}, {*made["batch"][nodes:]}, made["ptr"][4:].tolist()), ({nodes}, {4}, [nodes, 32, 32, 32]))
        for pad in ((nodes, 20, 7), (32, edges - 1, 7), (32, 20, 4)):
            with self.assertRaisesRegex(ArgumentError, "no room for this batch of"):
                oa.graphs(batch, pad=pad)
        with self.assertRaisesRegex(ArgumentError, "face is of neither"):
            oa.graphs(batch_of(numbers), pad=(32, 20, 7))

    def test_of_jraph(self):
        numbers = [3, 0, 13, 7]
        batch, whole = batch_of(numbers, ("x", "edge_index", "edge_attr", "y", "name")), whole_of(numbers)
        plain, padded = oa.graphs(batch, "jraph"), oa.graphs(batch, "jraph", pad=(32, 20, 7))
        self.assertEqual(plain._fields, GraphsTuple._fields)
        np.testing.assert_array_equal([plain.senders, plain.receivers], whole["edge_index"])
        self.assertEqual((plain.n_node.tolist(), plain.n_edge.tolist(), padded.n_node.tolist(), padded.n_edge.tolist()),
                         ([4, 1, 5, 8], [3, 0, 0, 7], [4, 1, 5, 8, 14, 0, 0], [3, 0, 0, 7, 10, 0, 0]))
        self.assertEqual((plain.senders.dtype, [*plain.nodes], [*plain.edges], [*plain.globals]), (np.int32, ["x"], ["edge_attr"], ["y"]))
        with self.assertRaisesRegex(ArgumentError, "face is of neither"):
            oa.graphs(batch_of(numbers), "jraph")

    @needs("jraph")
    def test_against_jraph(self):
        import jax
        import jraph
        numbers = [3, 0, 13, 7]
        parts = [graph_of(number) for number in numbers]
        wanted = jraph.batch_np([jraph.GraphsTuple(nodes={"x": part["x"]}, edges={"edge_attr": part["edge_attr"]}, senders=part["edge_index"][:, 0],
                                                   receivers=part["edge_index"][:, 1], globals={"y": part["y"][None]}, n_node=np.array([len(part["x"])]),
                                                   n_edge=np.array([len(part["edge_attr"])])) for part in parts])
        batch = batch_of(numbers, ("x", "edge_index", "edge_attr", "y"))
        for pad in (None, (32, 20, 7), (19, 10, 5)):
            found, kind = jax.tree_util.tree_flatten(oa.graphs(batch, "jraph", pad=pad))
            leaves, wanted_kind = jax.tree_util.tree_flatten(wanted if pad is None else jraph.pad_with_graphs(wanted, *pad))
            self.assertEqual(kind, wanted_kind)
            for one, other in zip(found, leaves):
                np.testing.assert_array_equal(one, other)

    def test_errors(self):
        batch = batch_of([1, 2])
        for told, words in ((dict(as_="dgl"), "there are: dict, pyg, jraph"), (dict(nodes="y"), "ragged field that has a row for each node"), (dict(pad=5), "how many nodes, edges")):
            with self.assertRaisesRegex(ArgumentError, words):
                oa.graphs(batch, **told)
        with self.assertRaisesRegex(ArgumentError, "a batch with names"):
            oa.graphs((1, 2))
        with self.assertRaisesRegex(ArgumentError, "rings has lists of lists"):
            oa.graphs({**batch, "rings": Ragged(np.zeros((2, 3, 4)), np.array([1, 2]), False, np.ones((2, 3)))})
        with self.assertRaisesRegex(ArgumentError, "has numbers of nodes by its name, and is float32"):
            oa.graphs({**batch, "x_index": batch["x"]})
        for wrong in ([2, -1], [1.5, 2], ["a", "b"]):
            with self.assertRaisesRegex(ArgumentError, "num_nodes is"):
                oa.graphs({**batch, "num_nodes": np.array(wrong)})

    # ---- data sets ----

    def check(self, loader, as_="dict"):
        seen = []
        for batch in loader:
            self.same(oa.graphs(batch, as_), whole_of(batch.ids))
            seen += batch.ids.tolist()
        self.assertEqual(sorted(seen), [*range(GRAPHS)])

    def test_by_the_pool_and_from_a_folder(self):
        """compute() keeps the samples themselves, and accessd reads them alone."""
        data = oa.wrap(Graphs(), ragged=MOST, random=False, keep=0.5)
        self.check(self.open(data, batch_size=BATCH, epochs=1, as_="numpy"))
        folder = self.work / "graphs"
        oa.compute(folder, data, dict, batch_size=16, socket=self.socket, as_="numpy")
        self.assertEqual(len(oa.beside(None, folder, images=False)), GRAPHS)
        for as_ in ("numpy", *(["torch"] if importlib.util.find_spec("torch") else [])):
            self.check(self.open(folder, batch_size=BATCH, epochs=1, as_=as_))
        for made, words in ((lambda batch: batch["y"], "by name"), (lambda batch: {"y": [1, 2]}, "y is a list: say what it is, by fields=")):
            with self.assertRaisesRegex(ArgumentError, words):
                oa.compute(self.work / "other", data, made, socket=self.socket)

    @needs("torch_geometric")
    def test_against_pytorch_geometric(self):
        import torch
        from torch_geometric.data import Batch, Data, HeteroData
        from torch_geometric.transforms import Constant

        def data_of(number):
            part = {name: value if name == "name" else torch.from_numpy(value) for name, value in graph_of(number).items()}
            return Data(**{**part, "edge_index": part["edge_index"].t().contiguous(), "face": part["face"].t().contiguous(), "y": part["y"][None], "weight": number / 4,
                           "flag": part["x"][:, 0] > 0.5})

        everything = [data_of(number) for number in range(GRAPHS)]
        chosen = [7, 3, 49, 12, 0]
        without_x = [Data(edge_index=one.edge_index, num_nodes=one.num_nodes) for one in everything]
        for dataset, objects in ((everything, everything), (InMemory(everything), everything), (InMemory(everything)[chosen], [everything[number] for number in chosen]),
                                 (InMemory(everything, Constant()), [Constant()(one.clone()) for one in everything]), (without_x, without_x)):
            data = oa.from_pyg(dataset, keep=0.5, random=True if dataset is everything else None)
            self.assertEqual(len(data), len(objects))
            for batch in self.open(data, batch_size=BATCH, epochs=1, as_="torch"):
                found, wanted = oa.graphs(batch), Batch.from_data_list([objects[number] for number in batch.ids])
                self.assertIs(type(found), type(wanted))
                self.assertEqual({*found.keys()}, {*wanted.keys()})
                for one, other in ((found, wanted), *zip(found.to_data_list(), wanted.to_data_list())):
                    for name in wanted.keys() if one is found else other.keys():
                        if isinstance(other[name], torch.Tensor):
                            self.assertTrue(torch.equal(one[name], other[name].to(torch.uint8) if name == "flag" else other[name]), name)
                        else:
                            self.assertEqual(one[name], other[name], name)
        for told, words in (([HeteroData()], "one kind of nodes"), ([Data(x=torch.ones(2, 1).to_sparse())], "columns=")):
            with self.assertRaisesRegex((ArgumentError, DatasetError), words):
                oa.from_pyg(told)
        with self.assertRaisesRegex(ArgumentError, "the graphs have: x"):
            oa.from_pyg(everything, ["z"])
        with self.assertRaisesRegex(SampleError, "field x: length 9, at most 8"):
            [*self.open(oa.from_pyg(everything, ragged={"x": 8}, keep=0.5), epochs=1, shuffle=False)]

    def test_what_is_no_graph(self):
        for told, words in (([], "no graphs"), ([Graphs()], "one kind of nodes"), ([1], "one kind of nodes")):
            with self.assertRaisesRegex((ArgumentError, DatasetError), words):
                oa.from_pyg(told)
        with self.assertRaisesRegex(ArgumentError, "ragged="):
            oa.from_pyg([1], ragged=["x"])

    # ---- ASE ----

    @staticmethod
    def structure(number):
        draw, count = np.random.default_rng(number), 1 + number % 5
        return {"numbers": draw.integers(1, 90, count), "positions": draw.random((count, 3)), "cell": draw.random((3, 3)), "pbc": draw.integers(0, 2, 3),
                "energy": -number / 3, "forces": draw.random((count, 3)), "q": draw.random((2, 2))}

    def write_db(self, name="atoms.db", numbers=range(1, 13), **other):
        """As ase.db.sqlite does; other: {column: value} of all."""
        path, integers, floats = self.work / name, lambda values: values.astype("<i4").tobytes(), lambda values: values.astype("<f8").tobytes()
        path.unlink(missing_ok=True)
        with sqlite3.connect(path) as database:
            database.execute("CREATE TABLE systems (id INTEGER PRIMARY KEY, numbers BLOB, positions BLOB, cell BLOB, pbc INTEGER, energy REAL, forces BLOB,"
                             " key_value_pairs TEXT, data BLOB)")
            for number in numbers:
                one = self.structure(number)
                data = b"".join([(8 + 32).to_bytes(8, "little"), floats(one["q"]), json.dumps({"q": {"__ndarray__": [[2, 2], "float64", 8]}}).encode()])
                row = {"id": number, "numbers": integers(one["numbers"]), "positions": floats(one["positions"]), "cell": floats(one["cell"]),
                       "pbc": int(one["pbc"] @ [1, 2, 4]), "energy": one["energy"], "forces": floats(one["forces"]),
                       "key_value_pairs": json.dumps({"gap": number / 7, "site": f"s{number}"}), "data": data, **other}
                database.execute(f"INSERT INTO systems ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})", [*row.values()])
        database.close()
        return path

    def same_structure(self, sample, number, names):
        one = {**self.structure(number), "gap": number / 7, "site": f"s{number}"}
        for field, name in names.items():
            np.testing.assert_array_equal(sample[field], one[name], name)

    def test_a_database_of_ase(self):
        self.write_db(numbers=[*range(1, 7), *range(8, 13)])       # of which one was deleted
        numbers = [*range(1, 7), *range(8, 13)]
        data = oa.from_ase(self.work / "atoms.db", ["numbers", "positions", "cell", "pbc", "energy", "forces", "gap", "site", "data.q"])
        self.assertEqual((len(data), data.ragged), (11, {"numbers": 5, "positions": 5, "forces": 5}))
        for number, sample in zip(numbers, data.dataset.__getitems__([*range(11)])):
            self.same_structure(sample, number, {name: name for name in sample})
        self.assertEqual([*oa.from_ase(self.work / "atoms.db").dataset[0]], ["numbers", "positions", "cell", "pbc", "energy", "forces"])
        data = oa.from_ase(self.work / "atoms.db", {"z": "numbers", "pos": "positions", "y": "energy"}, dtype="float32", transform=with_edges, random=False,
                           ragged={"edge_index": 20}, keep=0.5)
        for batch in self.open(data, batch_size=4, epochs=1, as_="numpy"):
            made, parts = oa.graphs(batch, "dict"), [self.structure(numbers[number]) for number in batch.ids]
            np.testing.assert_array_equal(made["pos"], np.concatenate([part["positions"] for part in parts]).astype(np.float32))
            np.testing.assert_array_equal(made["y"], np.float32([part["energy"] for part in parts]))
            near = [with_edges({"pos": part["positions"].astype(np.float32)})["edge_index"] + start for part, start in zip(parts, made["ptr"])]
            np.testing.assert_array_equal(made["edge_index"], np.concatenate(near).T)

    def test_databases_that_are_wrong(self):
        for other, words in (({"energy": None}, "structure 1 of .* has no energy"), ({"positions": bytes(7)}, "structure 1 of .* is damaged"),
                             ({"positions": bytes(8 * 3 * 9)}, r"positions has the shape \(9, 3\), of 2 atoms"), ({"cell": bytes(8)}, "damaged"),
                             ({"data": (1 << 40).to_bytes(8, "little")}, "damaged"), ({"key_value_pairs": "["}, "damaged"),
                             ({"data": json.dumps({"q": ["a"]})}, "^structure 1 of [^:]*: data.q is no array of numbers"), ({"key_value_pairs": "[1]"}, "damaged"),
                             ({"data": (8).to_bytes(8, "little") + b'{"q": {"__ndarray__": [[9], "float64", 8]}}'}, "damaged")):
            path = self.write_db("wrong.db", [1], **other)
            with self.subTest(other), self.assertRaisesRegex((DatasetError, TransformError), words):
                oa.from_ase(path, ["numbers", "positions", "cell", "energy", "gap", "data.q"]).dataset[0]
        with self.assertRaisesRegex(DatasetError, "structure 1 of .* is damaged"):
            oa.from_ase(self.write_db("wrong.db", [1], forces=b"abc"))
        data = oa.from_ase(self.write_db("wrong.db", [1, 2, 3]), keep=0.5)
        with sqlite3.connect(self.work / "wrong.db") as database:
            database.execute("UPDATE systems SET forces = x'00' WHERE id = 2")
        database.close()
        os.utime(self.work / "wrong.db", ns=(1, data.dataset.files[0][1][1]))
        with self.assertRaisesRegex(SampleError, "structure 2 of .* is damaged"):
            [*self.open(data, batch_size=1, epochs=1, shuffle=False)]
        os.utime(self.work / "wrong.db", ns=(1, 1))
        with self.assertRaisesRegex(DatasetError, "was written to since"):
            data.dataset[0]
        (self.work / "no.db").write_bytes(b"SQLite format 3\0" + bytes(100))
        for told, words in (((self.work / "no.db",), "no database of ASE"), ((self.work / "none.db",), "no ASE file is at"), ((self.work / "atoms.db", None), "atoms is 0")):
            with self.assertRaisesRegex((DatasetError, ArgumentError), words):
                oa.from_ase(told[0], atoms=None if len(told) == 1 else 0)

    @needs("lmdb")
    def test_lmdb_of_fairchem(self):
        import lmdb

        def write(name, ids, **other):
            path = self.work / name
            with lmdb.open(str(path), map_size=1 << 24, subdir=False) as environment, environment.begin(write=True) as transaction:
                for number in ids:
                    one = {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in self.structure(number).items()}
                    one.update(pbc=[bool(axis) for axis in one["pbc"]], key_value_pairs={"gap": number / 7, "site": f"s{number}"}, data={"q": one.pop("q")}, **other)
                    transaction.put(b"%d" % number, zlib.compress(json.dumps(one).encode()))
                transaction.put(b"nextid", zlib.compress(b"13"))
            return path

        for numbers in (3, "abc", [[1], [2, 3]], {"__ndarray__": [[-1, 9], "int64", [1]]}):      # which are read to see how many there are
            with self.subTest(numbers), self.assertRaisesRegex(DatasetError, "structure 1 of .* is damaged"):
                oa.from_ase(write("a.aselmdb", [1], numbers=numbers))
        for name, numbers in (("a.aselmdb", [1, 2, 12]), ("b.aselmdb", [3, 9])):
            write(name, numbers)
        (self.work / "metadata.npz").write_bytes(b"PK\x03\x04")
        data = oa.from_ase(str(self.work / "*.aselmdb"), ["numbers", "positions", "cell", "pbc", "energy", "forces", "gap", "site", "data.q"])
        self.assertEqual(data.ragged, {"numbers": 5, "positions": 5, "forces": 5})
        for number, sample in zip((1, 2, 12, 3, 9), data.dataset.__getitems__([*range(5)])):
            self.same_structure(sample, number, {name: name for name in sample})
        np.savez(self.work / "metadata.npz", natoms=np.array([2, 7]))
        self.assertEqual((oa.from_ase(self.work / "a.aselmdb").ragged["numbers"], oa.from_ase(self.work / "a.aselmdb", atoms=30).ragged["numbers"]), (7, 30))
        for other, words in (({"positions": [[1, 2], [3]]}, "damaged"), ({"positions": {"__ndarray__": [[3, 3], "float64", [0] * 6]}}, "damaged"), ({"energy": "much"}, "energy is no"),
                             ({"forces": None}, "has no forces")):
            with self.subTest(other), self.assertRaisesRegex((DatasetError, TransformError), words):
                oa.from_ase(write("wrong.lmdb", [1], **other), ["numbers", "positions", "energy", "forces"], atoms=5).dataset[0]

    @needs("ase")
    def test_against_ase(self):
        import ase
        import ase.db
        from ase.calculators.singlepoint import SinglePointCalculator
        path = self.work / "theirs.db"
        with ase.db.connect(path) as database:
            for number in range(9):
                one = self.structure(number)
                atoms = ase.Atoms(one["numbers"], one["positions"], cell=one["cell"], pbc=one["pbc"])
                atoms.calc = SinglePointCalculator(atoms, energy=one["energy"], forces=one["forces"], stress=np.arange(6.) + number)
                database.write(atoms, gap=number / 7, data={"q": one["q"], "deep": {"s": number / 2}})
        del ase.db.connect(path)[4]
        names = ["numbers", "positions", "cell", "pbc", "energy", "forces", "stress"]
        data = oa.from_ase(path, [*names, "gap", "data.q", "data.deep.s"])
        rows = [*ase.db.connect(path).select()]
        self.assertEqual(len(data), len(rows))
        for row, sample in zip(rows, data.dataset.__getitems__([*range(len(rows))])):
            for name in names:
                np.testing.assert_array_equal(sample[name], row[name], name)
            np.testing.assert_array_equal(sample["q"], row.data.q)
            self.assertEqual((sample["gap"], sample["deep.s"]), (row.gap, row.data.deep["s"]))


if __name__ == "__main__":
    unittest.main()
