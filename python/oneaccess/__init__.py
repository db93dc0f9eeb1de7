# SPDX-License-Identifier: Apache-2.0
"""OneAccess: batches of preprocessed samples that all jobs of a node share.

    import oneaccess as oa
    loader = oa.Loader("/data/imagenet/train", oa.imagenet_train(224), batch_size=256)
    for images, labels in loader:
        ...

Loader opens a data set. wrap() and the from_...() functions make a data set for it of Python code, tables and other files. graphs() makes one graph of a batch.
Writer writes a data set. tokenize() makes a file of tokens of texts, for tokens(), which MaskedLM and the like make other
objectives of. transforms has the pipelines, features what columns of tables become. mix() combines data sets. store() and
compute() keep what a model computed beside one, for beside(). buckets() makes batches of one aspect ratio each. orders has
what order= of a Loader may be. configure() sets parameters of a private accessd. Errors are in errors.
"""

from . import native

native.find()

from . import errors, features, orders, transforms  # noqa: E402
from ._core import version as __version__  # noqa: E402
from .bad import BadSample  # noqa: E402
from .batches import Batch  # noqa: E402
from .columns import Blocks, Pad  # noqa: E402
from .domains.ase import from_ase  # noqa: E402
from .domains.cells import from_h5ad  # noqa: E402
from .domains.decathlon import from_decathlon  # noqa: E402
from .domains.detection import from_coco, from_voc, from_yolo  # noqa: E402
from .domains.episodes import from_episodes  # noqa: E402
from .domains.kaldi import from_kaldi  # noqa: E402
from .domains.kitti import from_kitti  # noqa: E402
from .domains.lhotse import from_lhotse  # noqa: E402
from .domains.nuscenes import from_nuscenes  # noqa: E402
from .domains.pixelwise import Depth, Disparity, Flow, Normals, from_flow  # noqa: E402
from .domains.pyg import from_pyg  # noqa: E402
from .domains.rasters import from_rasters  # noqa: E402
from .domains.recordings import durations, from_recordings  # noqa: E402
from .domains.rlds import from_rlds  # noqa: E402
from .domains.robots import from_lerobot  # noqa: E402
from .domains.semantickitti import from_semantickitti  # noqa: E402
from .domains.sequences import from_fasta  # noqa: E402
from .domains.slides import from_slides  # noqa: E402
from .domains.xarrays import from_xarray  # noqa: E402
from .errors import Error  # noqa: E402
from .graphs import graphs  # noqa: E402
from .grids import patch_grid  # noqa: E402
from .loader import Loader  # noqa: E402
from .masks import Image, Mask  # noqa: E402
from .mix import mix  # noqa: E402
from .objectives import FillInMiddle, MaskedLM, SpanCorruption, words  # noqa: E402
from .orders import fold  # noqa: E402
from .points import Points  # noqa: E402
from .ragged import Ragged  # noqa: E402
from .ratios import buckets, image_sizes  # noqa: E402
from .rows import tokens, varlen  # noqa: E402
from .segments import Segment  # noqa: E402
from .settings import configure  # noqa: E402
from .sources.array_record import from_array_record  # noqa: E402
from .sources.bagz import from_bagz  # noqa: E402
from .sources.beton import from_beton  # noqa: E402
from .sources.folders import from_folders  # noqa: E402
from .sources.hf import from_hf  # noqa: E402
from .sources.lakehouse import from_delta, from_iceberg, from_lance  # noqa: E402
from .sources.lines import from_csv, from_jsonl  # noqa: E402
from .sources.measured import column_stats, column_values  # noqa: E402
from .sources.members import from_mds, from_tar  # noqa: E402
from .sources.series import windows  # noqa: E402
from .sources.stores import from_hdf5, from_lmdb, from_zarr  # noqa: E402
from .sources.tables import from_parquet  # noqa: E402
from .sources.tfds import from_tfds  # noqa: E402
from .sources.tfrecord import from_tfrecord  # noqa: E402
from .transforms import Compose, Pipeline, audio, imagenet_eval, imagenet_train, point_clouds, video, views  # noqa: E402
from .translate.albumentations import from_albumentations  # noqa: E402
from .translate.torchaudio import from_torchaudio  # noqa: E402
from .translate.torchvision import from_torchvision, pipeline_for  # noqa: E402
from .wrapped import wrap  # noqa: E402
from .writing.outputs import beside, compute, store  # noqa: E402
from .writing.tokenizing import tokenize  # noqa: E402
from .writing.writer import Writer, written  # noqa: E402

__all__ = ["BadSample", "Batch", "Blocks", "Compose", "Depth", "Disparity", "Error", "FillInMiddle", "Flow", "Image",
           "Loader", "Mask", "MaskedLM", "Normals", "Pad", "Pipeline", "Points", "Ragged", "Segment",
           "SpanCorruption", "Writer", "__version__", "audio", "beside", "buckets", "column_stats", "column_values",
           "compute", "configure", "durations", "errors", "features", "fold", "from_albumentations",
           "from_array_record", "from_ase", "from_bagz", "from_beton", "from_coco", "from_csv", "from_decathlon",
           "from_delta", "from_episodes", "from_fasta", "from_flow", "from_folders", "from_h5ad", "from_hdf5",
           "from_hf", "from_iceberg", "from_jsonl", "from_kaldi", "from_kitti", "from_lance", "from_lerobot",
           "from_lhotse", "from_lmdb", "from_mds", "from_nuscenes", "from_parquet", "from_pyg", "from_rasters",
           "from_recordings", "from_rlds", "from_semantickitti", "from_slides", "from_tar", "from_tfds",
           "from_tfrecord", "from_torchaudio", "from_torchvision", "from_voc", "from_xarray", "from_yolo",
           "from_zarr", "graphs", "image_sizes", "imagenet_eval", "imagenet_train", "mix", "orders", "patch_grid",
           "pipeline_for", "point_clouds", "store", "tokenize", "tokens", "transforms", "varlen", "video", "views",
           "windows", "words", "wrap", "written"]
