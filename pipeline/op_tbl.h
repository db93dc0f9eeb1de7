/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every op and every parameter, once. Included several times, each time with other meanings of
 *
 *   OP(ident, name, help)
 *   PARAM(op, ident, name, kind, default, help)
 *
 * A parameter follows its op; kind is one of enum op_kind's (op.h); default is the JSON text that
 * stands for a parameter left out, or NULL where it must be given. Names and defaults are
 * torchvision.transforms.v2's. help completes "give ..." in messages and the manual page.
 */

OP(DECODE, "decode", "the picture's bytes become 8-bit RGB, as Pillow's convert(\"RGB\")")

OP(RANDOM_RESIZED_CROP, "random_resized_crop", "a random part of the picture, resized")
PARAM(RANDOM_RESIZED_CROP, SIZE, "size", OP_SIZE, NULL,
      "the output's side in pixels, or [height, width]")
PARAM(RANDOM_RESIZED_CROP, SCALE, "scale", OP_RANGE, "[0.08, 1]",
      "[least, most] share of the picture's area, 0 < least <= most")
PARAM(RANDOM_RESIZED_CROP, RATIO, "ratio", OP_RANGE, "[0.75, 1.3333333333333333]",
      "[least, most] width over height of the part, 0 < least <= most")
PARAM(RANDOM_RESIZED_CROP, INTERPOLATION, "interpolation", OP_FILTER, "\"bilinear\"",
      "the filter: nearest, box, bilinear, hamming, bicubic or lanczos")

OP(RESIZE, "resize", "the picture in another size")
PARAM(RESIZE, SIZE, "size", OP_SIDE, NULL, "the shorter side in pixels, or [height, width]")
PARAM(RESIZE, INTERPOLATION, "interpolation", OP_FILTER, "\"bilinear\"",
      "the filter: nearest, box, bilinear, hamming, bicubic or lanczos")

OP(CENTER_CROP, "center_crop", "the middle of the picture, black around where it is smaller")
PARAM(CENTER_CROP, SIZE, "size", OP_SIZE, NULL, "the output's side in pixels, or [height, width]")

OP(HFLIP, "hflip", "left and right exchanged, at random")
PARAM(HFLIP, P, "p", OP_CHANCE, "0.5", "the probability, from 0 to 1")

OP(NORMALIZE, "normalize", "(value / 255 - mean) / std, in float32")
PARAM(NORMALIZE, MEAN, "mean", OP_CHANNELS, NULL, "three numbers: the mean of red, green and blue")
PARAM(NORMALIZE, STD, "std", OP_SPREAD, NULL,
      "three numbers above 0: the standard deviation of red, green and blue")

OP(CAST, "cast", "the values' type; without normalize a float is value / 255")
PARAM(CAST, DTYPE, "dtype", OP_DTYPE, "\"f32\"", "the type: u8, f16, bf16 or f32")

OP(LAYOUT, "layout", "the order of height, width and channels in memory")
PARAM(LAYOUT, ORDER, "order", OP_ORDER, "\"CHW\"", "the order: HWC or CHW")
