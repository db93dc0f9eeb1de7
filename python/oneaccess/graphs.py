# SPDX-License-Identifier: Apache-2.0
"""Batches of graphs as one graph each, as PyTorch Geometric, jraph and DGL take them: graphs()."""

import collections
import importlib
import sys
from collections.abc import Mapping
from typing import Any, NamedTuple

from .errors import ArgumentError, needs
from .ragged import Ragged, like

_FORMS = ("dict", "pyg", "jraph")
_NODES = ("x", "pos")
GraphsTuple = collections.namedtuple("GraphsTuple", ("nodes", "edges", "receivers", "senders", "globals", "n_node", "n_edge"))


def names_nodes(name: str) -> bool:
    """Are a field's values numbers of nodes, by PyTorch Geometric's rule?"""
    return "index" in name or name == "face"


def names_edges(name: str) -> bool:
    return "edge" in name


class Pads(NamedTuple):
    """What a batch is padded to."""

    nodes: int
    edges: int
    graphs: int


class _Sizes:
    """How many nodes and edges each graph has, int64 [graphs], and all have, also with padding."""

    def __init__(self, batch, nodes, pad):
        self.node_field, self.nodes = _nodes_of(batch, nodes)
        edges = next((field for name, field in batch.items() if name == "edge_index" and isinstance(field, Ragged)), None) or \
            next((field for name, field in batch.items() if names_edges(name) and isinstance(field, Ragged)), None)
        self.edges = self.nodes * 0 if edges is None else edges.counts
        self.graphs = len(self.nodes)
        self.all_nodes, self.all_edges = int(self.nodes.sum()), int(self.edges.sum())
        self.pad = _pads_of(pad, self)

    def rows_of(self, name, field):
        """To how many rows a field of nodes or edges is padded; None: it is of neither."""
        if names_edges(name) and (field.counts == self.edges).all():
            return self.pad.edges
        if (field.counts == self.nodes).all():
            return self.pad.nodes
        return self.pad.edges if (field.counts == self.edges).all() else None


def _nodes_of(batch, nodes):
    """The field that says how many nodes each graph has, and how many."""
    import numpy as np
    ragged = [name for name, field in batch.items() if isinstance(field, Ragged)]
    if nodes is not None and nodes not in ragged:
        raise ArgumentError(f"nodes={nodes!r}: the ragged field that has a row for each node; there are: {', '.join(ragged) or 'none'}")
    if nodes is None and "num_nodes" in batch:
        counts = np.asarray(_host(batch["num_nodes"])).reshape(-1)
        if counts.dtype.kind not in "iu" or (counts < 0).any():
            raise ArgumentError(f"num_nodes is {counts[:4]}: whole numbers, from 0 on; nodes= names a field with a row for each node")
        return None, counts.astype(np.int64)
    of_nodes = [name for name in ragged if not names_nodes(name) and not names_edges(name)]
    nodes = nodes or next((name for name in (*_NODES, *of_nodes) if name in of_nodes), None)
    if nodes is None:
        raise ArgumentError(f"graphs() knows the number of nodes by a ragged field with a row for each, or by num_nodes; the batch has: {', '.join(batch)}")
    return nodes, batch[nodes].counts


def _host(values):
    return values.cpu() if hasattr(values, "cpu") else values


def _pads_of(pad, sizes):
    if pad is None:
        return Pads(sizes.all_nodes, sizes.all_edges, sizes.graphs)
    try:
        made = Pads(*(int(count) for count in pad))
    except (TypeError, ValueError):
        raise ArgumentError(f"pad={pad!r}: how many nodes, edges and graphs a batch is to have, as (4096, 16384, 129)") from None
    if made.nodes <= sizes.all_nodes or made.edges < sizes.all_edges or made.graphs <= sizes.graphs:
        raise ArgumentError(f"pad={tuple(made)} has no room for this batch of {sizes.all_nodes} nodes, {sizes.all_edges} edges and {sizes.graphs} graphs: there is to be"
                            " room for a node more and a graph more, to which padded edges belong; give more, or a smaller batch_size")
    return made


# ---- arrays of NumPy, or tensors on any device ----


def _padded(values, rows, fill=0):
    """With rows behind, so that there are so many."""
    import numpy as np
    more = rows - len(values)
    if more <= 0:
        return values
    if isinstance(values, np.ndarray):
        return np.concatenate([values, np.full((more, *values.shape[1:]), fill, values.dtype)])
    import torch
    return torch.cat([values, values.new_full((more, *values.shape[1:]), fill)])


def _of_nodes(name, field, sizes, starts):
    """Numbers of nodes in the whole batch, [..., rows], of those within each graph."""
    import numpy as np
    values = field.csr()[0]
    if values.ndim > 2 or str(values.dtype).rpartition(".")[2] not in ("int64", "uint64", "int32"):
        raise ArgumentError(f"field {name} has numbers of nodes by its name, and is {values.dtype} of shape {tuple(field.shape)}: of whole numbers, a row for each edge or face,"
                            " [edges, 2]; give it another name, if it is something else")
    values = values.astype(np.int64) if isinstance(values, np.ndarray) else values.long()
    offsets = like(np.repeat(starts, field.counts), values)
    values += offsets if values.ndim == 1 else offsets[:, None]
    rows = sizes.rows_of(name, field)
    values = _padded(values, len(values) if rows is None else rows, sizes.all_nodes)
    return values if values.ndim == 1 else np.ascontiguousarray(values.T) if isinstance(values, np.ndarray) else values.t().contiguous()


def _all(name, field, sizes, starts, pad):
    """A field of the whole batch."""
    if not isinstance(field, Ragged):
        return field if isinstance(field, list) else _padded(_array(field), sizes.pad.graphs)
    if pad is not None and sizes.rows_of(name, field) is None:
        raise ArgumentError(f"pad= is of nodes and edges, and field {name} is of neither: leave it out, by columns= of the data set")
    if names_nodes(name):
        return _of_nodes(name, field, sizes, starts)
    values = field.csr()[0]
    return values if pad is None else _padded(values, sizes.rows_of(name, field))


def _array(values):
    """JAX's as NumPy's, a view."""
    import numpy as np
    torch = sys.modules.get("torch")
    return values if torch is not None and isinstance(values, torch.Tensor) else np.asarray(values)


# ---- forms ----


def graphs(batch: Mapping[str, Any], as_: str | None = None, *, nodes: str | None = None, pad: tuple[int, int, int] | None = None) -> Any:
    """A batch whose fields of nodes and edges are ragged as one graph of all of them, as a Batch of PyTorch Geometric is.

        for batch in oa.Loader(oa.from_pyg(dataset), batch_size=128):
            graph = oa.graphs(batch)            # x, edge_index, edge_attr, y, batch, ptr

    Of ragged fields the rows of all graphs are one behind the other: ``x`` is [nodes, ...], ``edge_attr`` [edges, ...]. Of those whose
    values are numbers of nodes by PyTorch Geometric's rule ("index" in the name, or "face") the rows [edges, 2] become int64 [2, edges],
    with the number of nodes added that are before the graph. Other fields (``y``, texts) stay, [graphs, ...]. ``batch``, int64 [nodes], is
    the graph of each node, and ``ptr``, int64 [graphs + 1], where each graph's nodes begin and the last one's end. Give fields of edges names
    with "edge", by which they are known. Nothing is done graph by graph. Values are copies, on the device of the batch.

    as_: "pyg": a torch_geometric.data.Batch, with num_graphs, to_data_list() and all else; "jraph": a jraph.GraphsTuple, where jraph is
        imported, else a tuple with the same names, with dicts of fields as nodes, edges and globals, and int32 of NumPy for senders,
        receivers, n_node and n_edge; "dict": tensors or arrays. Default: "pyg" where torch_geometric is imported and the batch has
        tensors, else "dict".
    nodes: the ragged field with a row for each node. Default: a field num_nodes, else x or pos, else the first that is none of edges.
    pad: (nodes, edges, graphs): what each batch then has, for jax.jit, torch.compile() and CUDA graphs, by the rule of
        jraph.pad_with_graphs(): behind the last graph is one with all nodes and edges that are added, zeros, whose edges are of its first
        node to itself, and behind that are graphs of nothing. So nodes and graphs must be more than a batch has.

    Arrays of JAX become NumPy's, which jax.jit takes. Errors are ArgumentError.
    """
    import numpy as np
    if as_ is not None and as_ not in _FORMS:
        raise ArgumentError(f"as_ is {as_!r}; there are: {', '.join(_FORMS)}")
    if not isinstance(batch, Mapping):
        raise ArgumentError("graphs() is of a batch with names, of samples that are dicts, as from_pyg() and from_ase() have them")
    if nested := next((name for name, field in batch.items() if isinstance(field, Ragged) and field.inner is not None), None):
        raise ArgumentError(f"field {nested} has lists of lists, of which graphs() makes nothing: leave it out, by columns= of the data set")
    batch = {name: field.strings() if isinstance(field, Ragged) and field.is_text else field for name, field in batch.items()}
    sizes = _Sizes(batch, nodes, pad)
    ends = np.cumsum(sizes.nodes)
    starts = ends - sizes.nodes
    made = {name: _all(name, field, sizes, starts, pad) for name, field in batch.items() if name != "num_nodes"}
    some = next((values for values in made.values() if not isinstance(values, list)), ends)
    if as_ == "jraph":
        return _as_jraph(made, batch, sizes)
    if "num_nodes" in batch:
        made["num_nodes"] = sizes.pad.nodes
    made["batch"] = like(_padded(np.repeat(np.arange(sizes.graphs), sizes.nodes), sizes.pad.nodes, sizes.graphs), some)
    made["ptr"] = like(_padded(np.concatenate([[0], ends]), sizes.pad.graphs + 1, sizes.pad.nodes), some)
    if as_ == "dict" or as_ is None and ("torch_geometric" not in sys.modules or isinstance(some, np.ndarray)):
        return made
    return _as_pyg(made, batch, sizes, starts, pad)


def _as_jraph(made, batch, sizes):
    import numpy as np
    parts, index = {"nodes": {}, "edges": {}, "globals": {}}, None
    for name, values in made.items():
        field = batch[name]
        if name == "edge_index":
            index = values
        elif not isinstance(field, Ragged):
            parts["globals"].update({} if isinstance(values, list) else {name: values})     # a text is no array
        elif (rows := sizes.rows_of(name, field)) is None:
            raise ArgumentError(f"a graph of jraph has nodes and edges, and field {name} is of neither: leave it out, by columns= of the data set")
        else:
            parts["nodes" if rows == sizes.pad.nodes and (field.counts == sizes.nodes).all() and not names_edges(name) else "edges"][name] = values
    index = np.zeros((2, 0), np.int32) if index is None else np.asarray(_host(index)).astype(np.int32)
    counts = [_counts(each, rest, sizes) for each, rest in ((sizes.nodes, sizes.pad.nodes), (sizes.edges, sizes.pad.edges))]
    form = importlib.import_module("jraph").GraphsTuple if "jraph" in sys.modules else GraphsTuple
    return form(nodes=parts["nodes"], edges=parts["edges"], receivers=index[1], senders=index[0], globals=parts["globals"], n_node=counts[0], n_edge=counts[1])


def _counts(each, rows, sizes):
    """Of the graphs, with the one that has all that was added, and those of nothing."""
    import numpy as np
    made = np.zeros(sizes.pad.graphs, np.int32)
    made[:sizes.graphs] = each
    if sizes.pad.graphs > sizes.graphs:
        made[sizes.graphs] = rows - each.sum()
    return made


def _as_pyg(made, batch, sizes, starts, pad):
    """With what to_data_list() needs, unless there is padding."""
    import numpy as np
    data = needs("torch_geometric.data", "as_=\"pyg\"", "torch_geometric")
    torch = importlib.import_module("torch")
    tensors = {name: torch.from_numpy(values) if isinstance(values, np.ndarray) else values for name, values in made.items()}
    graph = data.Batch(_base_cls=data.Data, **tensors)
    graph._num_graphs = sizes.pad.graphs
    if pad is not None:
        return graph
    each, none, starts = torch.arange(sizes.graphs + 1), torch.zeros(sizes.graphs, dtype=torch.int64), torch.from_numpy(starts)
    fields = {name: field for name, field in batch.items() if name != "num_nodes"}
    graph._slice_dict = {name: torch.from_numpy(np.concatenate([[0], np.cumsum(field.counts)])) if isinstance(field, Ragged) else each for name, field in fields.items()}
    graph._inc_dict = {name: None if isinstance(field, list) else starts if isinstance(field, Ragged) and names_nodes(name) else none for name, field in fields.items()}
    if "num_nodes" in batch:
        graph._num_nodes = sizes.nodes.tolist()
    return graph
