# SPDX-License-Identifier: Apache-2.0
"""Data sets of PyTorch Geometric: from_pyg(). One that lies in memory, the rows of all graphs one behind the other, is read there, without its Data objects."""

from collections.abc import Sequence
from typing import Any

from .. import record
from ..columns import named
from ..errors import ArgumentError, DatasetError, TransformError, needs
from ..graphs import names_edges, names_nodes
from ..ragged import places
from ..wrapped import Wrapped, wrap

_ROWS = ("x", "pos", "z", "batch")      # of nodes, also where each graph has one


def _mapping(data):
    """The fields of a Data object, or of one that holds all graphs."""
    if hasattr(data, "edge_types") or not hasattr(data, "to_dict"):
        raise ArgumentError(f"from_pyg() is of graphs of one kind of nodes, torch_geometric.data.Data, and these are {type(data).__name__}: give oneaccess.wrap() a data set"
                            " whose samples are dicts of arrays")
    base = needs("torch_geometric.data", "oneaccess.from_pyg()", "torch_geometric").Data
    if type(data).__inc__ is not base.__inc__ or type(data).__cat_dim__ is not base.__cat_dim__:
        raise ArgumentError(f"{type(data).__name__} has rules of its own (__inc__ or __cat_dim__), which graphs() does not know: give oneaccess.wrap() the data set, and"
                            " collate in the job")
    return {name: value for name, value in data.to_dict().items() if name != "_num_nodes"}


def _rows(data, name, value):
    """A tensor as [rows, ...] of NumPy: of edge_index [edges, 2]."""
    import numpy as np
    torch = needs("torch", "oneaccess.from_pyg()")
    if not isinstance(value, torch.Tensor) or value.layout != torch.strided:
        raise ArgumentError(f"field {name} of the graphs is a {type(value).__name__}: fields are tensors, numbers and texts; name those that a batch is to have, by columns=")
    value = value.detach().cpu()
    array = (value.float() if value.dtype == torch.bfloat16 else value).numpy()
    dim = data.__cat_dim__(name, value)
    return np.ascontiguousarray(array if dim is None or not array.ndim else np.moveaxis(array, dim, 0))


def _is_of_rows(name):
    return name in _ROWS or names_nodes(name) or names_edges(name)


# ---- in memory ----


class Collated:
    """Graphs whose fields lie one behind the other. fields: {name: (rows of all graphs, where each graph's begin and the last one's end)}."""

    def __init__(self, data, slices, count, chosen, columns, exact):
        import numpy as np
        found = _mapping(data)
        numbers = getattr(data, "_num_nodes", None)
        if isinstance(numbers, list):       # of each graph; the field is their sum
            found["num_nodes"] = numbers
        self.count, self.chosen, self.exact = count, chosen, exact
        self.fields, self.most, self.bytes_of_texts = {}, {}, {}
        for name in _columns(columns, found):
            rows, starts = self._field(data, name, found[name], None if slices is None else slices.get(name))
            counts = np.diff(starts) if chosen is None else starts[chosen + 1] - starts[chosen]
            if name in self.bytes_of_texts:
                self.bytes_of_texts[name] = int(counts.max(initial=1))
            elif _is_of_rows(name) or (counts != 1).any():
                self.most[name] = int(counts.max(initial=1))
            self.fields[name] = rows, starts

    def _field(self, data, name, value, slices):
        import numpy as np
        each = np.arange(self.count + 1)
        if isinstance(value, str):
            value = [value]
        if isinstance(value, (list, tuple)) and len(value) == self.count and all(isinstance(one, str) for one in value):
            self.bytes_of_texts[name] = 1
            parts = [one.encode() for one in value]
            return np.frombuffer(b"".join(parts), np.uint8), np.concatenate([[0], np.cumsum([len(part) for part in parts])])
        if isinstance(value, (int, float)) or isinstance(value, list) and all(isinstance(one, (int, float)) for one in value):
            rows, starts = np.asarray(value).reshape(-1), each
            rows = rows.astype(np.float32) if rows.dtype.kind == "f" else rows      # as torch.tensor() has them
        else:
            rows = _rows(data, name, value)
            rows = rows[None] if not rows.ndim else rows
            starts = np.asarray([0, len(rows)] if slices is None else slices, np.int64)
        if len(starts) != self.count + 1 or starts[0] != 0 or starts[-1] != len(rows) or (np.diff(starts) < 0).any():
            raise DatasetError(f"field {name} of the graphs has {len(rows)} rows, of which the slices of {self.count} graphs are not parts")
        return rows if self.exact else rows.astype(record.wider(rows.dtype.name), copy=False), starts

    def __len__(self):
        return self.count if self.chosen is None else len(self.chosen)

    def __getitem__(self, index):
        at = index if self.chosen is None else self.chosen[index]
        sample = {}
        for name, (rows, starts) in self.fields.items():
            some = rows[starts[at]:starts[at + 1]]
            sample[name] = bytes(some).decode() if name in self.bytes_of_texts else some if name in self.most else some[0]
        return sample

    def __getrecords__(self, indices, layout, words=None):
        """Of many samples at once what Record would make of each."""
        import numpy as np
        at, columns = np.asarray(indices) if self.chosen is None else self.chosen[np.asarray(indices)], {}
        for name in layout["names"]:
            rows, starts = self.fields[name]
            if name in self.most or name in self.bytes_of_texts:
                counts = starts[at + 1] - starts[at]
                columns[name] = rows[places(starts[at], counts)], np.concatenate([[0], np.cumsum(counts)])
            else:
                columns[name] = rows[starts[at]]
        return record.records(columns, layout)


def _columns(columns, found):
    names = list(found) if columns is None else columns
    if missing := next((name for name in names if name not in found), None):
        raise ArgumentError(f"columns= names {missing!r}; the graphs have: {', '.join(found)}")
    return names


# ---- one by one ----


class Each:
    """Data objects as dicts of arrays, as the data set gives them. most: the fields of rows, and how many there are at most; others have one value in each graph."""

    def __init__(self, dataset, columns, ragged):
        self.dataset, self.columns = dataset, columns
        self.bytes_of_texts = {}
        self.most = self._bounds() if ragged is None else ragged

    def _parts(self, index):
        data = self.dataset[index]
        found = _mapping(data)
        return {name: found[name] if isinstance(found[name], (str, int, float)) else _rows(data, name, found[name]) for name in _columns(self.columns, found)}

    def _bounds(self):
        """By a look at all graphs."""
        most, differ = {}, set()
        for index in range(len(self)):
            for name, value in self._parts(index).items():
                if isinstance(value, str):
                    self.bytes_of_texts[name] = max(self.bytes_of_texts.get(name, 1), len(value.encode()))
                    continue
                count = len(value) if getattr(value, "ndim", 0) else 1
                most[name] = max(most.get(name, 1), count)
                if _is_of_rows(name) or count != 1:
                    differ.add(name)
        return {name: count for name, count in most.items() if name in differ}

    def __len__(self):
        return len(self.dataset)

    def __getitem__(self, index):
        return {name: value if name in self.most or not getattr(value, "ndim", 0) else self._one(name, value) for name, value in self._parts(index).items()}

    @staticmethod
    def _one(name, value):
        if len(value) != 1:
            raise TransformError(f"field {name} of the graph has {len(value)} rows, and has one in others: name it in ragged=, with the most that there are")
        return value[0]


def from_pyg(dataset: Any, columns: Sequence[str] | None = None, *, ragged: dict[str, int] | None = None, exact: bool = False,
             random: bool | None = None, workers: int | None = None, name: str | None = None, version: str = "", timeout: int = 60,
             room: int | None = None, keep: float = 30.0) -> Wrapped:
    """A data set of PyTorch Geometric, or a list of its Data objects, for Loader: a graph is a sample.

        data = oa.from_pyg(QM9("qm9"))
        for batch in oa.Loader(data, batch_size=128):
            graph = oa.graphs(batch)            # a Batch, as of torch_geometric.loader.DataLoader

    dataset: of ``torch_geometric.data.Data`` (no HeteroData, no Data with an __inc__ of its own). An InMemoryDataset without ``transform``, also one by ``dataset[ids]``, and a list
        are read where they lie in memory, without Data objects; others by ``dataset[i]``, in the pool's processes.
    columns: the fields that a batch has: attributes of Data. Default: all. Sparse matrices (adj_t) and lists of anything but texts are refused.
    ragged: {field: most}: the fields of nodes and edges, and the most rows that a graph has of them (of a text: bytes). Default: what there is in the data set, for
        which one that is not in memory is gone through once. Fields with one row in each graph, as ``y`` [1, targets], are [graphs, targets] in a batch.
    random: whether the data set draws random numbers. Default: if it has a transform, or is not in memory.

    edge_index is ragged rows [edges, 2] in a batch, which graphs() turns to [2, edges]. For each sample there is room for the graph with the most nodes and the one with
    the most edges. compute() writes all graphs to a folder once, which accessd then reads without Python (doc/python/science.md, Graphs).

    The other arguments are those of wrap().
    """
    columns = named(columns)
    if ragged is not None and not isinstance(ragged, dict):
        raise ArgumentError(f"ragged={ragged!r}: {{field: the most rows that a graph has}}")
    if isinstance(dataset, (list, tuple)):
        if not dataset:
            raise DatasetError("the data set has no graphs")
        _mapping(dataset[0])
        data, slices = needs("torch_geometric.data", "oneaccess.from_pyg()", "torch_geometric").InMemoryDataset.collate(list(dataset))
        rows = Collated(data, slices, len(dataset), None, columns, exact)
    elif getattr(dataset, "_data", None) is not None and hasattr(dataset, "slices") and getattr(dataset, "transform", None) is None:
        rows = Collated(dataset._data, dataset.slices, dataset.len(), _chosen(dataset), columns, exact)
    else:
        rows = Each(dataset, columns, ragged)
    is_random = isinstance(rows, Each) if random is None else random
    return wrap(rows, name=name, version=version, workers=workers, timeout=timeout, random=is_random, room=room, keep=keep, ragged={**rows.most, **(ragged or {})}, exact=exact)


def _chosen(dataset):
    """The graphs of a part of a data set, int64; None: all."""
    import numpy as np
    return None if dataset._indices is None else np.asarray(list(dataset._indices), np.int64)
