/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every op and every parameter, once: here those that a pipeline begins and ends with, and in a file
 * for each medium what may stand between them. Included several times, each time with other meanings of
 *
 *   OP(ident, name, impl, help)
 *   PARAM(op, ident, name, type, default, help)
 *
 * A parameter follows its op. impl is the op's struct op_impl (op_run.h); type is one of op.h's,
 * with OP_OR_NULL() and OP_LATE() around it where they apply; default is the JSON text that stands
 * for a parameter left out, or NULL where it must be given. Names and defaults are
 * torchvision.transforms.v2's. help completes "give ..." in messages and the manual page.
 */

OP(DECODE, "decode", op_run_decode,
   "the picture's bytes become 8-bit RGB, as Pillow's convert(\"RGB\")")
PARAM(DECODE, EXIF_TRANSPOSE, "exif_transpose", OP_LATE(OP_TYPE_BOOL), "false",
      "true or false: is the picture turned as its EXIF orientation says?")
PARAM(DECODE, FAST, "fast", OP_LATE(OP_TYPE_BOOL), "false",
      "true or false: may a JPEG be decoded smaller, and its pixels differ a little, where the "
      "next op "
      "shrinks it?")
PARAM(DECODE, SOURCE, "source", OP_LATE(OP_TYPE_WORD(op_source_words)), "\"file\"",
      "file; or record, random_record: the picture of a wrapped data set's sample, which is the "
      "same, "
      "or another, whenever it is asked for")
PARAM(DECODE, FIELDS, "fields", OP_LATE(OP_OR_NULL(OP_TYPE_LISTS(1, INT32_MAX))), "null",
      "with source record: a list for each field of the sample beside picture and label, as record "
      "has them; or null")
PARAM(DECODE, KINDS, "kinds", OP_LATE(OP_OR_NULL(OP_TYPE_LIST(0, 12))), "null",
      "of each of fields, as record has them; 3: boxes on the picture, which follow its ops; 4: "
      "ragged, with a row for each box; 5: a mask, a picture of labels, which follows, too; 6: the "
      "same, with Pillow's nearest; 7: key points, which follow, too, with a row for each box; 8: "
      "another picture, which follows; 9: the same, without ops on colours; 10: a file that a view "
      "of its name decodes; 12: what was measured of the pixels, which follows; or null")
PARAM(DECODE, NAMES, "names", OP_LATE(OP_OR_NULL(OP_TYPE_NAMES)), "null",
      "of each of fields; or null")
PARAM(
    DECODE, MEMBERS, "members", OP_LATE(OP_OR_NULL(OP_TYPE_TEXTS)), "null",
    "of a sample of shards that were opened with ?members=all: the suffixes of the picture's "
    "file (\"jpg;png\"), its feature or column, then that of each of fields, or a key of its JSON "
    "(\"json:boxes\"); or null")
PARAM(DECODE, COLORS, "colors", OP_LATE(OP_OR_NULL(OP_TYPE_LISTS(0, UINT16_MAX))), "null",
      "of masks in colours: [red, green, blue] of each label from 0 on, or [red, green, blue, "
      "label]; or null: masks are grey or have a palette")
PARAM(DECODE, COLUMNS, "columns", OP_LATE(OP_OR_NULL(OP_TYPE_TEXTS)), "null",
      "with members of MDS shards: all columns that they have, as their index.json and the option "
      "?columns= say (\"NAME:ENCODING\"); or null")
PARAM(
    DECODE, FLIP_INDICES, "flip_indices", OP_LATE(OP_OR_NULL(OP_TYPE_LIST(0, UINT16_MAX))), "null",
    "of each key point of a row, from 0: which one it is when the picture is mirrored, as the left "
    "eye is the right one then; or null: it stays what it is")
PARAM(
    DECODE, ONLY_SIZE, "only_size", OP_LATE(OP_TYPE_BOOL), "false",
    "true or false: does the picture's size, int64 [height, width], take the place of its pixels, "
    "which are not decoded then?")

OP(RECORD, "record", packed_op, "a wrapped data set's sample, its fields as they are")
PARAM(RECORD, FIELDS, "fields", OP_TYPE_LISTS(1, INT32_MAX), NULL,
      "a list for each field: its dtype (1 uint8, 2 float16, 3 float32, 4 int64, 5 bfloat16, 6 "
      "int8, 7 int16, 8 int32, 9 uint16, 10 uint32, 11 uint64, 12 float64, 13 bool) and its shape")
PARAM(RECORD, KINDS, "kinds", OP_LATE(OP_OR_NULL(OP_TYPE_LIST(0, 2))), "null",
      "of each field: 0 dense; 1 ragged: the first dimension is the most that a sample has; 2 a "
      "ragged text; or null, all are dense")
PARAM(RECORD, NAMES, "names", OP_LATE(OP_OR_NULL(OP_TYPE_NAMES)), "null",
      "of each field; or null for image, label, field2, ...")
PARAM(RECORD, RANDOM, "random", OP_TYPE_BOOL, "true",
      "true or false: is a sample another one each time that it is asked for?")
PARAM(RECORD, MEMBERS, "members", OP_LATE(OP_OR_NULL(OP_TYPE_TEXTS)), "null",
      "of a sample of shards that were opened with ?members=all: the file of each of fields, "
      "as decode has it; or null")
PARAM(RECORD, COLUMNS, "columns", OP_LATE(OP_OR_NULL(OP_TYPE_TEXTS)), "null",
      "with members of MDS shards: all of their columns, as decode has them; or null")

OP(AUDIO, "audio", sound_op, "the sound's bytes become float32 of one rate and length")
PARAM(AUDIO, SAMPLE_RATE, "sample_rate", OP_TYPE_INTEGER(1000, 768000), NULL,
      "frames a second, to which every sound is resampled, 1000 to 768000")
PARAM(
    AUDIO, FRAMES, "frames", OP_TYPE_INTEGER(1, 1 << 24), NULL,
    "how many frames each sound has, 1 to 16777216: a part of a longer one, zeros behind a shorter "
    "one")
PARAM(AUDIO, CHANNELS, "channels", OP_OR_NULL(OP_TYPE_INTEGER(1, 16)), "null",
      "how many channels come out, 1 to 16, in a dimension before the frames; or null: the mean of "
      "all, "
      "and no such dimension")
PARAM(AUDIO, CROP, "crop", OP_TYPE_WORD(op_crop_words), "\"random\"",
      "which part of a longer sound: random, center or begin")
PARAM(AUDIO, SOURCE, "source", OP_LATE(OP_TYPE_WORD(op_source_words)), "\"file\"",
      "file; or record, random_record: the sound of a wrapped data set's sample, as decode has it")
PARAM(AUDIO, FIELDS, "fields", OP_LATE(OP_OR_NULL(OP_TYPE_LISTS(1, INT32_MAX))), "null",
      "a list for each field of the sample beside sound and label, as record has them; or null")
PARAM(AUDIO, KINDS, "kinds", OP_LATE(OP_OR_NULL(OP_TYPE_LIST(0, 10))), "null",
      "of each of fields, as record has them; or null")
PARAM(AUDIO, NAMES, "names", OP_LATE(OP_OR_NULL(OP_TYPE_NAMES)), "null",
      "of each of fields; or null")
PARAM(AUDIO, MEMBERS, "members", OP_LATE(OP_OR_NULL(OP_TYPE_TEXTS)), "null",
      "of a sample of shards that were opened with ?members=all: the suffixes of the sound's file "
      "(\"flac;wav\"), its feature or column, then those of fields, as decode has them; or null")
PARAM(AUDIO, COLUMNS, "columns", OP_LATE(OP_OR_NULL(OP_TYPE_TEXTS)), "null",
      "with members of MDS shards: all of their columns, as decode has them; or null")
PARAM(AUDIO, SPEEDS, "speeds", OP_LATE(OP_OR_NULL(OP_TYPE_NUMBERS(0.1, 10))), "null",
      "how fast sounds are played, 0.1 to 10, a list of up to 16 that one is drawn from; or null: "
      "as they are")

#include "pipeline/spec/op_sound_tbl.h"

OP(CLOUD, "cloud", cloud_op, "the file's points become rows of float32, as many for each file")
PARAM(CLOUD, POINTS, "points", OP_TYPE_INTEGER(1, 1 << 20), NULL,
      "how many points come out, 1 to 1048576: a part of those of a larger file")
PARAM(CLOUD, CHANNELS, "channels", OP_OR_NULL(OP_TYPE_INTEGER(3, 32)), "null",
      "numbers of each point, 3 to 32, the first ones of the file, or its properties; the first "
      "three are x, y and "
      "z; or null: as many as there are properties, or 3")
PARAM(CLOUD, PROPERTIES, "properties", OP_OR_NULL(OP_TYPE_TEXTS), "null",
      "names of a PLY's or PCD's properties, one for each channel; or null: the file's first ones")
PARAM(CLOUD, RAW_COLUMNS, "raw_columns", OP_OR_NULL(OP_TYPE_INTEGER(3, 64)), "null",
      "of files that are nothing but float32, how many a point has, 3 to 64; or null: such files "
      "are bad")
PARAM(CLOUD, NORMALS, "normals", OP_OR_NULL(OP_TYPE_INTEGER(3, 29)), "null",
      "the channel, from 0, that is a normal's x, before its y and z, which turn and flip with the "
      "points; or null")
PARAM(CLOUD, PICK, "pick", OP_TYPE_WORD(op_pick_words), "\"random\"",
      "which points of a larger file: random, even or first")
PARAM(CLOUD, PADDING, "padding", OP_TYPE_WORD(op_padding_words), "\"repeat\"",
      "what is behind the points of a smaller one: repeat (the same ones again), zero; or ragged: "
      "the field is so long "
      "as there are points")
PARAM(CLOUD, SOURCE, "source", OP_TYPE_WORD(op_source_words), "\"file\"",
      "file; or record, random_record: the points of a wrapped data set's sample, as decode has it")
PARAM(CLOUD, FIELDS, "fields", OP_OR_NULL(OP_TYPE_LISTS(1, INT32_MAX)), "null",
      "a list for each field of the sample beside points and label, as record has them; or null")
PARAM(CLOUD, KINDS, "kinds", OP_OR_NULL(OP_TYPE_LIST(0, 11)), "null",
      "of each of fields, 0 to 2 and 10 as record has them; 11: boxes in space, which follow the "
      "points; "
      "4: ragged, with a row for each box; or null")
PARAM(CLOUD, NAMES, "names", OP_OR_NULL(OP_TYPE_NAMES), "null", "of each of fields; or null")
PARAM(CLOUD, MEMBERS, "members", OP_OR_NULL(OP_TYPE_TEXTS), "null",
      "of a sample of shards that were opened with ?members=all: the suffixes of the points' file "
      "(\"ply;bin\"), its feature or column, then those of fields, as decode has them; or null")
PARAM(CLOUD, COLUMNS, "columns", OP_OR_NULL(OP_TYPE_TEXTS), "null",
      "with members of MDS shards: all of their columns, as decode has them; or null")
PARAM(CLOUD, SURFACE, "surface", OP_LATE(OP_TYPE_BOOL), "false",
      "true or false: are points drawn uniformly on the faces of a mesh, in place of its vertices?")

OP(DURATION, "duration", duration_op, "how long the sound or video is, which is not decoded")
PARAM(DURATION, OF, "of", OP_TYPE_WORD(op_medium_words), "\"sound\"",
      "sound or video: which of the two is measured of a file that has both")
PARAM(DURATION, SOURCE, "source", OP_TYPE_WORD(op_source_words), "\"file\"",
      "file; or record, random_record: of a wrapped data set's sample, as decode has it")
PARAM(DURATION, FIELDS, "fields", OP_OR_NULL(OP_TYPE_LISTS(1, INT32_MAX)), "null",
      "a list for each field of the sample beside file and label, as record has them; or null")
PARAM(DURATION, KINDS, "kinds", OP_OR_NULL(OP_TYPE_LIST(0, 2)), "null",
      "of each of fields, as record has them; or null")
PARAM(DURATION, NAMES, "names", OP_OR_NULL(OP_TYPE_NAMES), "null", "of each of fields; or null")
PARAM(DURATION, MEMBERS, "members", OP_OR_NULL(OP_TYPE_TEXTS), "null",
      "of a sample of shards that were opened with ?members=all: the suffixes of the file "
      "(\"flac;wav\"), its feature or column, then those of fields, as decode has them; or null")
PARAM(DURATION, COLUMNS, "columns", OP_OR_NULL(OP_TYPE_TEXTS), "null",
      "with members of MDS shards: all of their columns, as decode has them; or null")

#include "pipeline/spec/op_cloud_tbl.h"

OP(VIDEO, "video", video_op,
   "frames of the video become 8-bit RGB pictures, a clip of them; ops on pictures draw once for "
   "all")
PARAM(VIDEO, FRAMES, "frames", OP_TYPE_INTEGER(1, 1024), NULL,
      "how many frames each clip has, 1 to 1024; of a shorter video the last one is repeated")
PARAM(VIDEO, STEP, "step", OP_TYPE_INTEGER(1, 65536), "1",
      "each so many-th frame of the video, 1 to 65536")
PARAM(VIDEO, FPS, "fps", OP_OR_NULL(OP_TYPE_NUMBER(0.001, 1000)), "null",
      "frames a second of the video's time, 0.001 to 1000, in place of step: each the last one "
      "that is "
      "shown by then; or null")
PARAM(VIDEO, CLIP, "clip", OP_TYPE_WORD(op_clip_words), "\"random\"",
      "which part of a longer video: random, center or begin; or spread: the middles of so many "
      "equal "
      "parts of all of it")
PARAM(VIDEO, SOURCE, "source", OP_LATE(OP_TYPE_WORD(op_source_words)), "\"file\"",
      "file; or record, random_record: the video of a wrapped data set's sample, as decode has it")
PARAM(VIDEO, FIELDS, "fields", OP_LATE(OP_OR_NULL(OP_TYPE_LISTS(1, INT32_MAX))), "null",
      "a list for each field of the sample beside video and label, as record has them; or null")
PARAM(VIDEO, KINDS, "kinds", OP_LATE(OP_OR_NULL(OP_TYPE_LIST(0, 10))), "null",
      "of each of fields, as record has them; or null")
PARAM(VIDEO, NAMES, "names", OP_LATE(OP_OR_NULL(OP_TYPE_NAMES)), "null",
      "of each of fields; or null")
PARAM(VIDEO, MEMBERS, "members", OP_LATE(OP_OR_NULL(OP_TYPE_TEXTS)), "null",
      "of a sample of shards that were opened with ?members=all: the suffixes of the video's file "
      "(\"mp4;webm\"), its feature or column, then those of fields, as decode has them; or null")
PARAM(VIDEO, COLUMNS, "columns", OP_LATE(OP_OR_NULL(OP_TYPE_TEXTS)), "null",
      "with members of MDS shards: all of their columns, as decode has them; or null")

OP(BANDS, "bands", bands_op,
   "the file's numbers become float32, a picture of as many channels as there are")
PARAM(BANDS, CHANNELS, "channels", OP_OR_NULL(OP_TYPE_INTEGER(1, 32)), "null",
      "how many channels each file has, 1 to 32; or null, with bands")
PARAM(
    BANDS, BANDS, "bands", OP_OR_NULL(OP_TYPE_LIST(0, 4095)), "null",
    "which of the file's channels, counted from 0, 1 to 32 of them in the order of the output; or "
    "null: all")
PARAM(BANDS, SCALE, "scale", OP_TYPE_NUMBER(-1e9, 1e9), "1", "what each number is multiplied by")
PARAM(BANDS, CLAMP, "clamp", OP_OR_NULL(OP_TYPE_PAIR(-1e9, 1e9)), "null",
      "[least, most] of the numbers then: what is beyond becomes that; or null")
PARAM(BANDS, SOURCE, "source", OP_LATE(OP_TYPE_WORD(op_source_words)), "\"file\"",
      "file; or record, random_record: the file of a wrapped data set's sample, as decode has it")
PARAM(BANDS, FIELDS, "fields", OP_LATE(OP_OR_NULL(OP_TYPE_LISTS(1, INT32_MAX))), "null",
      "a list for each field of the sample beside image and label, as record has them; or null")
PARAM(BANDS, KINDS, "kinds", OP_LATE(OP_OR_NULL(OP_TYPE_LIST(0, 12))), "null",
      "of each of fields, as decode has them; or null")
PARAM(BANDS, NAMES, "names", OP_LATE(OP_OR_NULL(OP_TYPE_NAMES)), "null",
      "of each of fields; or null")
PARAM(BANDS, MEMBERS, "members", OP_LATE(OP_OR_NULL(OP_TYPE_TEXTS)), "null",
      "of a sample of shards that were opened with ?members=all: the suffixes of the file "
      "(\"tif;png\"), its feature or column, then those of fields, as decode has them; or null")
PARAM(BANDS, COLORS, "colors", OP_LATE(OP_OR_NULL(OP_TYPE_LISTS(0, UINT16_MAX))), "null",
      "of masks in colours, as decode has them; or null")
PARAM(BANDS, COLUMNS, "columns", OP_LATE(OP_OR_NULL(OP_TYPE_TEXTS)), "null",
      "with members of MDS shards: all of their columns, as decode has them; or null")
PARAM(BANDS, FLIP_INDICES, "flip_indices", OP_LATE(OP_OR_NULL(OP_TYPE_LIST(0, UINT16_MAX))), "null",
      "of key points, as decode has them; or null")
PARAM(
    BANDS, INVERT, "invert", OP_LATE(OP_TYPE_BOOL), "false",
    "true: of DICOM files whose least number is white (MONOCHROME1) the stored numbers are turned "
    "round; or false")

OP(VOLUME, "volume", volume_op,
   "the file's numbers become float32 of three dimensions: its slices are one volume")
PARAM(VOLUME, CHANNELS, "channels", OP_TYPE_INTEGER(1, 32), "1",
      "how many volumes each file has, 1 to 32")
PARAM(VOLUME, SCALE, "scale", OP_TYPE_NUMBER(-1e9, 1e9), "1", "what each number is multiplied by")
PARAM(VOLUME, CLAMP, "clamp", OP_OR_NULL(OP_TYPE_PAIR(-1e9, 1e9)), "null",
      "[least, most] of the numbers then: what is beyond becomes that; or null")
PARAM(VOLUME, FILL, "fill", OP_TYPE_NUMBER(-1e9, 1e9), "0",
      "the number of what is outside, where a crop is larger than the volume")
PARAM(VOLUME, INVERT, "invert", OP_TYPE_BOOL, "false", "true or false, as bands has it")
PARAM(VOLUME, SOURCE, "source", OP_LATE(OP_TYPE_WORD(op_source_words)), "\"file\"",
      "file; or record, random_record: the file of a wrapped data set's sample, as decode has it")
PARAM(VOLUME, FIELDS, "fields", OP_LATE(OP_OR_NULL(OP_TYPE_LISTS(1, INT32_MAX))), "null",
      "a list for each field of the sample beside image and label, as record has them; or null")
PARAM(VOLUME, KINDS, "kinds", OP_LATE(OP_OR_NULL(OP_TYPE_LIST(0, 10))), "null",
      "of each of fields, 0 to 2 as record has them; 5: a volume of labels, which follows; or null")
PARAM(VOLUME, NAMES, "names", OP_LATE(OP_OR_NULL(OP_TYPE_NAMES)), "null",
      "of each of fields; or null")
PARAM(VOLUME, MEMBERS, "members", OP_LATE(OP_OR_NULL(OP_TYPE_TEXTS)), "null",
      "of a sample of shards that were opened with ?members=all: the suffixes of the file "
      "(\"nii;nii.gz\"), its feature or column, then those of fields, as decode has them; or null")
PARAM(VOLUME, COLUMNS, "columns", OP_LATE(OP_OR_NULL(OP_TYPE_TEXTS)), "null",
      "with members of MDS shards: all of their columns, as decode has them; or null")

#include "pipeline/spec/op_volume_tbl.h"
#include "pipeline/spec/op_geometry_tbl.h"
#include "pipeline/spec/op_colour_tbl.h"

OP(RANDOM_APPLY, "random_apply", apply_op, "the ops behind it, or others, at random")
PARAM(RANDOM_APPLY, P, "p", OP_TYPE_CHANCE, "0.5", "the probability, from 0 to 1")
PARAM(RANDOM_APPLY, OPS, "ops", OP_TYPE_INTEGER(1, PIPELINE_MAX_OPS), "1",
      "how many ops behind it are done with that probability")
PARAM(RANDOM_APPLY, OTHERWISE, "otherwise", OP_TYPE_INTEGER(0, PIPELINE_MAX_OPS), "0",
      "how many ops behind those are done in their place")

OP(VIEW, "view", views_op, "another picture of the sample, with ops and draws of its own")
PARAM(VIEW, NAMES, "names", OP_TYPE_NAMES, NULL,
      "a list of names of fields, each of which gets what the ops behind it make of the decoded "
      "picture")

OP(NORMALIZE, "normalize", op_run_finish, "(value / 255 - mean) / std, in float32")
PARAM(NORMALIZE, MEAN, "mean", OP_TYPE_CHANNELS, NULL,
      "three numbers, the mean of red, green and blue, or one for all")
PARAM(NORMALIZE, STD, "std", OP_TYPE_SPREAD, NULL,
      "three numbers above 0, the standard deviation of red, green and blue, or one for all")
PARAM(NORMALIZE, OF, "of", OP_LATE(OP_OR_NULL(OP_TYPE_NAMES)), "null",
      "the names of further pictures (kinds 8 and 9) that are normalized so, and not as the first "
      "one; "
      "or null: it is of all others")

OP(CAST, "cast", op_run_finish, "the values' type; without normalize a float is value / 255")
PARAM(CAST, DTYPE, "dtype", OP_TYPE_DTYPE, "\"f32\"", "the type: u8, f16, bf16 or f32")

OP(LAYOUT, "layout", op_run_finish, "the order of height, width and channels in memory")
PARAM(LAYOUT, ORDER, "order", OP_TYPE_ORDER, "\"CHW\"", "the order: HWC or CHW")

OP(FILTER, "filter", label_filter_op, "samples that do not fit are left out")
PARAM(FILTER, KEEP, "keep", OP_OR_NULL(OP_TYPE_LIST(0, INT32_MAX)), "null",
      "the data set's classes that stay, a list of their numbers")
PARAM(FILTER, DROP, "drop", OP_OR_NULL(OP_TYPE_LIST(0, INT32_MAX)), "null",
      "the data set's classes that are left out, a list of their numbers")
PARAM(FILTER, MIN_WIDTH, "min_width", OP_OR_NULL(OP_TYPE_INTEGER(1, INT32_MAX)), "null",
      "pixels that the file's picture must be wide")
PARAM(FILTER, MAX_WIDTH, "max_width", OP_OR_NULL(OP_TYPE_INTEGER(1, INT32_MAX)), "null",
      "pixels that the file's picture may be wide")
PARAM(FILTER, MIN_HEIGHT, "min_height", OP_OR_NULL(OP_TYPE_INTEGER(1, INT32_MAX)), "null",
      "pixels that the file's picture must be high")
PARAM(FILTER, MAX_HEIGHT, "max_height", OP_OR_NULL(OP_TYPE_INTEGER(1, INT32_MAX)), "null",
      "pixels that the file's picture may be high")

OP(MAP, "map", label_op, "the label's class number becomes another")
PARAM(MAP, LABELS, "labels", OP_OR_NULL(OP_TYPE_LIST(INT32_MIN, INT32_MAX)), "null",
      "the new numbers of the data set's classes 0, 1, ...")
PARAM(MAP, TABLE, "table", OP_OR_NULL(OP_TYPE_LISTS(INT32_MIN, INT32_MAX)), "null",
      "pairs [[class, new number], ...]")
PARAM(MAP, DEFAULT, "default", OP_OR_NULL(OP_TYPE_INTEGER(INT32_MIN, INT32_MAX)), "null",
      "the number of classes that have no entry")

OP(ONE_HOT, "one_hot", label_op,
   "the label becomes a float32 for each class: 1 for its own, else 0")
PARAM(ONE_HOT, NUM_CLASSES, "num_classes", OP_TYPE_INTEGER(1, OP_MAX_CLASSES), NULL,
      "how many classes there are")

OP(SMOOTH, "smooth", label_op, "1 - epsilon of the label, and epsilon spread over all classes")
PARAM(SMOOTH, EPSILON, "epsilon", OP_TYPE_NUMBER(0, 1), "0.1", "a number from 0 to 1")
PARAM(SMOOTH, NUM_CLASSES, "num_classes", OP_OR_NULL(OP_TYPE_INTEGER(1, OP_MAX_CLASSES)), "null",
      "how many classes there are, without one_hot")

OP(MIXUP, "mixup", tail_batch_op, "each sample of a batch is mixed with the one before it")
PARAM(MIXUP, ALPHA, "alpha", OP_TYPE_NUMBER(0.001, 1000), "1",
      "a number from 0.001 to 1000: the share is drawn from Beta(alpha, alpha)")
PARAM(MIXUP, NUM_CLASSES, "num_classes", OP_OR_NULL(OP_TYPE_INTEGER(1, OP_MAX_CLASSES)), "null",
      "how many classes there are, without one_hot")
PARAM(MIXUP, P, "p", OP_TYPE_CHANCE, "1", "the probability that it is done to a batch")

OP(CUTMIX, "cutmix", tail_batch_op, "a part of each sample is cut out of the one before it")
PARAM(CUTMIX, ALPHA, "alpha", OP_TYPE_NUMBER(0.001, 1000), "1",
      "a number from 0.001 to 1000: the share is drawn from Beta(alpha, alpha)")
PARAM(CUTMIX, NUM_CLASSES, "num_classes", OP_OR_NULL(OP_TYPE_INTEGER(1, OP_MAX_CLASSES)), "null",
      "how many classes there are, without one_hot")
PARAM(CUTMIX, P, "p", OP_TYPE_CHANCE, "1", "the probability that it is done to a batch")

OP(MOSAIC, "mosaic", tail_batch_op, "four pictures of a batch meet at a point of each")
PARAM(MOSAIC, P, "p", OP_TYPE_CHANCE, "1", "the probability that it is done to a picture")
PARAM(MOSAIC, CENTER, "center", OP_TYPE_SPAN(0, 2), "[0.5, 1.5]",
      "where on a canvas of twice the picture's size they meet, in the picture's sides: [least, "
      "most], 0 to 2")
PARAM(MOSAIC, SCALE, "scale", OP_TYPE_SPAN(0.1, 10), "[0.5, 1.5]",
      "how much larger the canvas is seen: a number from 0.1 to 10, or [least, most]")
PARAM(MOSAIC, FILL, "fill", OP_TYPE_COLOR, "114",
      "the colour where no picture is: a number from 0 to 255, or one for red, green and blue")
PARAM(MOSAIC, MIN_SIZE, "min_size", OP_TYPE_NUMBER(0, OP_MAX_SIDE), "1",
      "boxes with a shorter side are removed: pixels, from 0 to 16384")
PARAM(MOSAIC, MIN_VISIBILITY, "min_visibility", OP_TYPE_CHANCE, "0.1",
      "boxes are removed of whose area a smaller share is left: a number from 0 to 1")
PARAM(MOSAIC, EPOCHS, "epochs", OP_OR_NULL(OP_TYPE_INTEGER(1, 1000000000)), "null",
      "it is done in the first so many epochs; or null: in all")
