/* SPDX-License-Identifier: Apache-2.0 */
/* Ops on volumes, behind volume; a part of op_tbl.h. */

OP(RANDOM_CROP_3D, "random_crop_3d", volume_random_crop_op,
   "a part of the volume at a random place")
PARAM(RANDOM_CROP_3D, SIZE, "size", OP_TYPE_WHOLES(1, OP_MAX_SIDE), NULL,
      "the output's side, or [depth, height, width]")

OP(CENTER_CROP_3D, "center_crop_3d", volume_center_crop_op, "the middle of the volume")
PARAM(CENTER_CROP_3D, SIZE, "size", OP_TYPE_WHOLES(1, OP_MAX_SIDE), NULL,
      "the output's side, or [depth, height, width]")

OP(RANDOM_CROP_BY_LABEL, "random_crop_by_label", volume_label_crop_op,
   "a part of the volume around a random place that has a label, or around one that has none")
PARAM(RANDOM_CROP_BY_LABEL, SIZE, "size", OP_TYPE_WHOLES(1, OP_MAX_SIDE), NULL,
      "the output's side, or [depth, height, width]")
PARAM(RANDOM_CROP_BY_LABEL, POS, "pos", OP_TYPE_NUMBER(0, 1e6), "1",
      "pos / (pos + neg) is the probability of a place with a label above 0")
PARAM(RANDOM_CROP_BY_LABEL, NEG, "neg", OP_TYPE_NUMBER(0, 1e6), "1",
      "neg / (pos + neg) is that of a place without one")

OP(RANDOM_FLIP_3D, "random_flip_3d", volume_flip_op, "the volume's axes reversed, at random")
PARAM(RANDOM_FLIP_3D, P, "p", OP_TYPE_CHANCE, "0.5", "the probability, from 0 to 1")
PARAM(RANDOM_FLIP_3D, AXES, "axes", OP_TYPE_WHOLES(0, 2), NULL,
      "one of 0 (depth), 1 (height) and 2 (width), or a list of them, which are reversed together")

OP(RANDOM_ROTATE90, "random_rotate90", volume_rotate_op,
   "the volume turned by a quarter, a half or three quarters, at random")
PARAM(RANDOM_ROTATE90, P, "p", OP_TYPE_CHANCE, "0.5", "the probability, from 0 to 1")
PARAM(RANDOM_ROTATE90, AXES, "axes", OP_TYPE_WHOLES(0, 2), "[1, 2]",
      "two of 0 (depth), 1 (height) and 2 (width): from the first one towards the second")

OP(RANDOM_SCALE_INTENSITY, "random_scale_intensity", volume_scale_op,
   "the volume's numbers times 1 + a drawn factor")
PARAM(RANDOM_SCALE_INTENSITY, P, "p", OP_TYPE_CHANCE, "1", "the probability, from 0 to 1")
PARAM(RANDOM_SCALE_INTENSITY, FACTORS, "factors", OP_TYPE_AROUND_0(1e6), NULL,
      "[least, most] of the factor, or x for [-x, x]")

OP(RANDOM_SHIFT_INTENSITY, "random_shift_intensity", volume_shift_op,
   "a drawn number is added to the volume's")
PARAM(RANDOM_SHIFT_INTENSITY, P, "p", OP_TYPE_CHANCE, "1", "the probability, from 0 to 1")
PARAM(RANDOM_SHIFT_INTENSITY, OFFSETS, "offsets", OP_TYPE_AROUND_0(1e9), NULL,
      "[least, most] of it, or x for [-x, x]")
