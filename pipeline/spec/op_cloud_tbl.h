/* SPDX-License-Identifier: Apache-2.0 */
/* Ops on point clouds, behind cloud; a part of op_tbl.h. */

OP(POINT_RANGE, "point_range", cloud_range_op, "points outside of a box are left out")
PARAM(POINT_RANGE, RANGE, "range", OP_TYPE_NUMBERS(-1e6, 1e6), NULL,
      "x, y and z of its least corner and then of its most, six numbers; its faces are in it")

OP(POINT_SAMPLE, "point_sample", cloud_sample_op, "of more points a part is taken")
PARAM(POINT_SAMPLE, POINTS, "points", OP_TYPE_INTEGER(1, 1 << 20), NULL,
      "the most points that are left, 1 to 1048576, and so many come out")
PARAM(POINT_SAMPLE, PICK, "pick", OP_TYPE_WORD(op_pick_words), "\"random\"",
      "which: random, even or first")

OP(POINT_ROTATION, "point_rotation", cloud_rotation_op,
   "the points turn about an axis, by an angle that is drawn")
PARAM(POINT_ROTATION, DEGREES, "degrees", OP_TYPE_AROUND_0(360), "180",
      "[least, most], or a number x for [-x, x], up to 360; counter-clockwise against the axis")
PARAM(POINT_ROTATION, AXIS, "axis", OP_TYPE_WORD(op_axis_words), "\"z\"",
      "x, y or z; or any: each rotation alike")
PARAM(POINT_ROTATION, P, "p", OP_TYPE_CHANCE, "1", "the probability, from 0 to 1")

OP(POINT_FLIP, "point_flip", cloud_flip_op, "a coordinate of all points is negated, at random")
PARAM(POINT_FLIP, AXIS, "axis", OP_TYPE_WORD(op_flip_words), NULL, "which: x, y or z")
PARAM(POINT_FLIP, P, "p", OP_TYPE_CHANCE, "0.5", "the probability, from 0 to 1")

OP(POINT_SCALE, "point_scale", cloud_scale_op, "x, y and z times a number that is drawn")
PARAM(POINT_SCALE, SCALE, "scale", OP_TYPE_SPAN(1e-6, 1e6), "[0.95, 1.05]",
      "it, or [least, most], 0.000001 to 1000000")
PARAM(POINT_SCALE, ANISOTROPIC, "anisotropic", OP_TYPE_BOOL, "false",
      "true or false: is one drawn for each of x, y and z?")
PARAM(POINT_SCALE, P, "p", OP_TYPE_CHANCE, "1", "the probability, from 0 to 1")

OP(POINT_TRANSLATION, "point_translation", cloud_translation_op,
   "all points move by what is drawn of each axis")
PARAM(POINT_TRANSLATION, TRANSLATE, "translate", OP_TYPE_NUMBERS(0, 1e6), NULL,
      "how far at most, in both directions: a number, or one for each of x, y and z, 0 to 1000000")
PARAM(POINT_TRANSLATION, P, "p", OP_TYPE_CHANCE, "1", "the probability, from 0 to 1")

OP(POINT_JITTER, "point_jitter", cloud_jitter_op,
   "each point moves a little, by normal noise on x, y and z")
PARAM(POINT_JITTER, SIGMA, "sigma", OP_TYPE_NUMBER(0, 1e6), "0.01",
      "the noise's standard deviation, 0 to 1000000")
PARAM(POINT_JITTER, CLIP, "clip", OP_OR_NULL(OP_TYPE_NUMBER(0, 1e6)), "0.05",
      "what it is cut off at, 0 to 1000000; or null")
PARAM(POINT_JITTER, P, "p", OP_TYPE_CHANCE, "1", "the probability, from 0 to 1")

OP(POINT_DROPOUT, "point_dropout", cloud_dropout_op,
   "each point is left out with a probability that is drawn")
PARAM(POINT_DROPOUT, RATIO, "ratio", OP_TYPE_SPAN(0, 1), "[0, 0.875]",
      "it, or [least, most], 0 to 1")
PARAM(POINT_DROPOUT, P, "p", OP_TYPE_CHANCE, "1", "the probability, from 0 to 1")

OP(POINT_SHUFFLE, "point_shuffle", cloud_shuffle_op, "the points come in random order")

OP(POINT_CENTER, "point_center", cloud_center_op, "the points' middle becomes 0")
PARAM(POINT_CENTER, BY, "by", OP_TYPE_WORD(op_middle_words), "\"mean\"",
      "what that is: mean, or box, the middle of the least and the most of each of x, y and z")

OP(POINT_UNIT, "point_unit", cloud_unit_op,
   "the points' mean becomes 0, and the farthest point is 1 away")
PARAM(POINT_UNIT, TO, "to", OP_TYPE_WORD(op_unit_words), "\"sphere\"",
      "how far is told: sphere, or cube, by the most of |x|, |y| and |z|")
