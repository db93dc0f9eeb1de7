/* SPDX-License-Identifier: Apache-2.0 */
/* Ops that crop, resize and move pictures, and with them boxes and masks; a part of op_tbl.h. */

OP(RANDOM_RESIZED_CROP, "random_resized_crop", crop_resized_op,
   "a random part of the picture, resized")
PARAM(RANDOM_RESIZED_CROP, SIZE, "size", OP_TYPE_SIZE, NULL,
      "the output's side in pixels, or [height, width]")
PARAM(RANDOM_RESIZED_CROP, SCALE, "scale", OP_TYPE_RANGE, "[0.08, 1]",
      "[least, most] share of the picture's area, 0 < least <= most")
PARAM(RANDOM_RESIZED_CROP, RATIO, "ratio", OP_TYPE_RANGE, "[0.75, 1.3333333333333333]",
      "[least, most] width over height of the part, 0 < least <= most")
PARAM(RANDOM_RESIZED_CROP, INTERPOLATION, "interpolation", OP_TYPE_FILTER, "\"bilinear\"",
      "the filter: nearest, box, bilinear, hamming, bicubic or lanczos")
PARAM(RANDOM_RESIZED_CROP, OR_INTERPOLATION, "or_interpolation",
      OP_LATE(OP_OR_NULL(OP_TYPE_FILTER)), "null",
      "another filter, drawn for half of the samples; or null")

OP(RESIZE, "resize", scale_op, "the picture in another size")
PARAM(RESIZE, SIZE, "size", OP_OR_NULL(OP_TYPE_SIDE), NULL,
      "the shorter side in pixels, or [height, width]; or null, with max_size")
PARAM(RESIZE, INTERPOLATION, "interpolation", OP_TYPE_FILTER, "\"bilinear\"",
      "the filter: nearest, box, bilinear, hamming, bicubic or lanczos")
PARAM(RESIZE, MAX_SIZE, "max_size", OP_LATE(OP_OR_NULL(OP_TYPE_INTEGER(1, OP_MAX_SIDE))), "null",
      "the most that the longer side gets, in pixels, beside one number as size; or null")
PARAM(RESIZE, ANTIALIAS, "antialias", OP_LATE(OP_TYPE_BOOL), "true",
      "true: Pillow's pictures are always resized so")
PARAM(RESIZE, FIT, "fit", OP_LATE(OP_TYPE_WORD(op_fit_words)), "\"exact\"",
      "what [height, width] means: exact; or, the proportion kept, cover (no side is shorter) or "
      "contain (no side is longer)")

OP(SCALE_JITTER, "scale_jitter", scale_drawn_op,
   "the picture in a size drawn around what fits a target, its proportion kept")
PARAM(SCALE_JITTER, TARGET_SIZE, "target_size", OP_TYPE_SIZE, NULL,
      "the target's side in pixels, or [height, width]")
PARAM(SCALE_JITTER, INTERPOLATION, "interpolation", OP_TYPE_FILTER, "\"bilinear\"",
      "the filter: nearest, box, bilinear, hamming, bicubic or lanczos")
PARAM(SCALE_JITTER, SCALE_RANGE, "scale_range", OP_TYPE_PAIR(0.001, 1000), "[0.1, 2]",
      "[least, most] of what the size that fits is multiplied by, from 0.001 to 1000")

OP(RANDOM_SHORTEST_SIZE, "random_shortest_size", scale_drawn_op,
   "the picture in another size, whose shorter side is drawn from a list")
PARAM(RANDOM_SHORTEST_SIZE, MIN_SIZE, "min_size", OP_TYPE_WHOLES(1, OP_MAX_SIDE), NULL,
      "the shorter side in pixels, or a list of up to 16 to draw from")
PARAM(RANDOM_SHORTEST_SIZE, INTERPOLATION, "interpolation", OP_TYPE_FILTER, "\"bilinear\"",
      "the filter: nearest, box, bilinear, hamming, bicubic or lanczos")
PARAM(RANDOM_SHORTEST_SIZE, MAX_SIZE, "max_size", OP_OR_NULL(OP_TYPE_INTEGER(1, OP_MAX_SIDE)),
      "null", "the most that the longer side gets, in pixels; or null")

OP(RANDOM_RESIZE, "random_resize", scale_drawn_op,
   "the picture in another size, whose shorter side is drawn")
PARAM(RANDOM_RESIZE, MIN_SIZE, "min_size", OP_TYPE_INTEGER(1, OP_MAX_SIDE), NULL,
      "the least that the shorter side gets, in pixels")
PARAM(RANDOM_RESIZE, INTERPOLATION, "interpolation", OP_TYPE_FILTER, "\"bilinear\"",
      "the filter: nearest, box, bilinear, hamming, bicubic or lanczos")
PARAM(RANDOM_RESIZE, MAX_SIZE, "max_size", OP_TYPE_INTEGER(2, OP_MAX_SIDE), NULL,
      "one pixel more than the most that it gets")

OP(PATCHES, "patches", patches_op,
   "the picture in a size near its own proportion, as a sequence of square patches")
PARAM(PATCHES, PATCH_SIZE, "patch_size", OP_TYPE_INTEGER(1, 64), "16",
      "the side of a patch in pixels, 1 to 64")
PARAM(PATCHES, INTERPOLATION, "interpolation", OP_TYPE_FILTER, "\"bilinear\"",
      "the filter: nearest, box, bilinear, hamming, bicubic or lanczos")
PARAM(PATCHES, MAX_PATCHES, "max_patches", OP_OR_NULL(OP_TYPE_INTEGER(1, 65536)), "null",
      "the most patches that a picture gets, 1 to 65536, as many as fit: NaFlex's; or null, with "
      "max_pixels")
PARAM(PATCHES, MAX_PIXELS, "max_pixels", OP_OR_NULL(OP_TYPE_INTEGER(1, OP_MAX_PIXELS)), "null",
      "the most pixels that a picture keeps, no less than a block of patches has: Qwen2-VL's; or "
      "null, with max_patches")
PARAM(PATCHES, MIN_PIXELS, "min_pixels", OP_TYPE_INTEGER(1, OP_MAX_PIXELS), "3136",
      "with max_pixels: a picture of fewer pixels is enlarged")
PARAM(PATCHES, MERGE_SIZE, "merge_size", OP_TYPE_INTEGER(1, 16), "1",
      "with max_pixels: patches come in blocks of so many by so many, 1 to 16")
PARAM(PATCHES, TEMPORAL_PATCH_SIZE, "temporal_patch_size", OP_OR_NULL(OP_TYPE_INTEGER(1, 16)),
      "null",
      "how often a patch has the picture, as if it were so many frames, 1 to 16; the grid then "
      "begins with 1; or null: "
      "once")

OP(CENTER_CROP, "center_crop", crop_center_op,
   "the middle of the picture, black around where it is smaller")
PARAM(CENTER_CROP, SIZE, "size", OP_TYPE_SIZE, NULL,
      "the output's side in pixels, or [height, width]")
PARAM(CENTER_CROP, FILL, "fill", OP_LATE(OP_TYPE_COLOR), "0",
      "the colour around a picture that is smaller, 0 to 255: one number or [red, green, blue]")
PARAM(
    CENTER_CROP, HALF, "half", OP_LATE(OP_TYPE_WORD(op_half_words)), "\"even\"",
    "where half a pixel goes: even (to the even number, as torchvision) or down (as Hugging Face)")

OP(HFLIP, "hflip", flip_across_op, "left and right exchanged, at random")
PARAM(HFLIP, P, "p", OP_TYPE_CHANCE, "0.5", "the probability, from 0 to 1")

OP(VFLIP, "vflip", flip_down_op, "top and bottom exchanged, at random")
PARAM(VFLIP, P, "p", OP_TYPE_CHANCE, "0.5", "the probability, from 0 to 1")

OP(ROTATE, "rotate", turn_rotate_op, "the picture turned by a random angle")
PARAM(ROTATE, DEGREES, "degrees", OP_TYPE_AROUND_0(36000.0), NULL,
      "[least, most] degrees counter-clockwise, or x for [-x, x]")
PARAM(ROTATE, INTERPOLATION, "interpolation", OP_TYPE_WORD(op_warp_words), "\"nearest\"",
      "the filter: nearest, bilinear or bicubic")
PARAM(ROTATE, EXPAND, "expand", OP_TYPE_BOOL, "false",
      "true or false: does the picture grow so that its corners stay in it?")
PARAM(ROTATE, CENTER, "center", OP_OR_NULL(OP_TYPE_TWO(-1e6, 1e6)), "null",
      "[x, y] in pixels from the upper left corner, or null: the middle")
PARAM(ROTATE, FILL, "fill", OP_TYPE_COLOR, "0",
      "the colour of what is outside, 0 to 255: one number or [red, green, blue]")
PARAM(ROTATE, PADDING_MODE, "padding_mode", OP_LATE(OP_TYPE_WORD(op_pad_words)), "\"constant\"",
      "what is outside: constant, edge, reflect or symmetric")

OP(AFFINE, "affine", turn_affine_op, "the picture turned, moved, scaled and sheared at random")
PARAM(AFFINE, DEGREES, "degrees", OP_TYPE_AROUND_0(36000.0), NULL,
      "[least, most] degrees clockwise, or x for [-x, x]")
PARAM(AFFINE, TRANSLATE, "translate", OP_OR_NULL(OP_TYPE_TWO(0, 1)), "null",
      "[a, b], from 0 to 1: the most that is moved, in widths and heights; or null")
PARAM(AFFINE, SCALE, "scale", OP_OR_NULL(OP_TYPE_PAIR(0.001, 1000)), "null",
      "[least, most], from 0.001 to 1000; or null")
PARAM(AFFINE, SHEAR, "shear", OP_OR_NULL(OP_TYPE_SHEAR(89.0)), "null",
      "degrees from -89 to 89: x for [-x, x] across, [least, most] across, or two such pairs, "
      "across and down; or null")
PARAM(AFFINE, INTERPOLATION, "interpolation", OP_TYPE_WORD(op_warp_words), "\"nearest\"",
      "the filter: nearest, bilinear or bicubic")
PARAM(AFFINE, FILL, "fill", OP_TYPE_COLOR, "0",
      "the colour of what is outside, 0 to 255: one number or [red, green, blue]")
PARAM(AFFINE, CENTER, "center", OP_OR_NULL(OP_TYPE_TWO(-1e6, 1e6)), "null",
      "[x, y] in pixels from the upper left corner, or null: the middle")
PARAM(AFFINE, SCALE_Y, "scale_y", OP_LATE(OP_OR_NULL(OP_TYPE_PAIR(0.001, 1000))), "null",
      "[least, most] of what heights are scaled by, before the picture is turned, from 0.001 to "
      "1000; or null: as widths")
PARAM(AFFINE, PADDING_MODE, "padding_mode", OP_LATE(OP_TYPE_WORD(op_pad_words)), "\"constant\"",
      "what is outside: constant, edge, reflect or symmetric")

OP(RANDOM_PERSPECTIVE, "random_perspective", perspective_op,
   "the picture as if seen from elsewhere, at random: each corner goes to another place")
PARAM(RANDOM_PERSPECTIVE, DISTORTION_SCALE, "distortion_scale", OP_TYPE_NUMBER(0, 1), "0.5",
      "from 0 to 1: the most that corners move, in halves of a side")
PARAM(RANDOM_PERSPECTIVE, P, "p", OP_TYPE_CHANCE, "0.5", "the probability, from 0 to 1")
PARAM(RANDOM_PERSPECTIVE, INTERPOLATION, "interpolation", OP_TYPE_WORD(op_warp_words),
      "\"bilinear\"", "the filter: nearest, bilinear or bicubic")
PARAM(RANDOM_PERSPECTIVE, FILL, "fill", OP_TYPE_COLOR, "0",
      "the colour of what is outside, 0 to 255: one number or [red, green, blue]")

OP(ELASTIC_TRANSFORM, "elastic_transform", elastic_op,
   "each pixel moved by smooth noise, as if seen through water")
PARAM(ELASTIC_TRANSFORM, ALPHA, "alpha", OP_TYPE_TWO(0, 1e6), "[50, 50]",
      "[across, down]: how far pixels are moved")
PARAM(ELASTIC_TRANSFORM, SIGMA, "sigma", OP_TYPE_TWO(0, 31.75), "[5, 5]",
      "[across, down]: the deviation in pixels of the blur that makes the noise smooth, to 31.75; "
      "or "
      "0 for both: none")
PARAM(ELASTIC_TRANSFORM, INTERPOLATION, "interpolation", OP_TYPE_WORD(op_plain_warp_words),
      "\"bilinear\"", "the filter: nearest or bilinear")
PARAM(ELASTIC_TRANSFORM, FILL, "fill", OP_OR_NULL(OP_TYPE_COLOR), "0",
      "the colour of what is outside, 0 to 255: one number or [red, green, blue]; null: black, "
      "which a "
      "pixel at the edge is mixed with but once")

OP(PAD, "pad", pad_op, "the picture with more around it")
PARAM(PAD, PADDING, "padding", OP_TYPE_SIDES(0, OP_MAX_SIDE), NULL,
      "pixels: one number, [left and right, top and bottom] or [left, top, right, bottom]")
PARAM(PAD, FILL, "fill", OP_TYPE_COLOR, "0",
      "the colour of a constant padding, 0 to 255: one number or [red, green, blue]")
PARAM(PAD, PADDING_MODE, "padding_mode", OP_TYPE_WORD(op_pad_words), "\"constant\"",
      "the kind: constant, edge, reflect or symmetric")

OP(RANDOM_CROP, "random_crop", window_crop_op, "a part of the picture at a random place")
PARAM(RANDOM_CROP, SIZE, "size", OP_TYPE_SIZE, NULL,
      "the output's side in pixels, or [height, width]")
PARAM(RANDOM_CROP, PADDING, "padding", OP_OR_NULL(OP_TYPE_SIDES(0, OP_MAX_SIDE)), "null",
      "pixels around the picture: one number, [left and right, top and bottom] or [left, top, "
      "right, bottom]; or null")
PARAM(RANDOM_CROP, PAD_IF_NEEDED, "pad_if_needed", OP_TYPE_BOOL, "false",
      "true or false: is a picture that is too small padded?")
PARAM(RANDOM_CROP, FILL, "fill", OP_TYPE_COLOR, "0",
      "the colour of a constant padding, 0 to 255: one number or [red, green, blue]")
PARAM(RANDOM_CROP, PADDING_MODE, "padding_mode", OP_TYPE_WORD(op_pad_words), "\"constant\"",
      "the kind: constant, edge, reflect or symmetric")

OP(FIXED_SIZE_CROP, "fixed_size_crop", window_fixed_op,
   "a part of the picture at a random place; what is missing is added at the bottom and at the "
   "right")
PARAM(FIXED_SIZE_CROP, SIZE, "size", OP_TYPE_SIZE, NULL,
      "the output's side in pixels, or [height, width]")
PARAM(FIXED_SIZE_CROP, FILL, "fill", OP_TYPE_COLOR, "0",
      "the colour of a constant padding, 0 to 255: one number or [red, green, blue]")
PARAM(FIXED_SIZE_CROP, PADDING_MODE, "padding_mode", OP_TYPE_WORD(op_pad_words), "\"constant\"",
      "the kind: constant, edge, reflect or symmetric")

OP(RANDOM_ZOOM_OUT, "random_zoom_out", pad_zoom_op,
   "the picture at a random place of a larger one of one colour, at random")
PARAM(RANDOM_ZOOM_OUT, FILL, "fill", OP_TYPE_COLOR, "0",
      "the colour around it, 0 to 255: one number or [red, green, blue]")
PARAM(RANDOM_ZOOM_OUT, SIDE_RANGE, "side_range", OP_TYPE_PAIR(1, 1000), "[1, 4]",
      "[least, most] of the larger picture's sides, in sides of the picture, from 1 to 1000")
PARAM(RANDOM_ZOOM_OUT, P, "p", OP_TYPE_CHANCE, "0.5", "the probability, from 0 to 1")

OP(RANDOM_IOU_CROP, "random_iou_crop", iou_crop_op,
   "a part of the picture that has a box's middle and overlaps a box by a drawn share: SSD's")
PARAM(RANDOM_IOU_CROP, MIN_SCALE, "min_scale", OP_TYPE_NUMBER(0, 1), "0.3",
      "the least share of each side, from 0 to 1")
PARAM(RANDOM_IOU_CROP, MAX_SCALE, "max_scale", OP_TYPE_NUMBER(0, 1), "1",
      "the greatest share of each side, from min_scale to 1")
PARAM(RANDOM_IOU_CROP, MIN_ASPECT_RATIO, "min_aspect_ratio", OP_TYPE_NUMBER(1e-6, 1e6), "0.5",
      "the least width over height of the part")
PARAM(RANDOM_IOU_CROP, MAX_ASPECT_RATIO, "max_aspect_ratio", OP_TYPE_NUMBER(1e-6, 1e6), "2",
      "the greatest width over height, from min_aspect_ratio on")
PARAM(RANDOM_IOU_CROP, SAMPLER_OPTIONS, "sampler_options", OP_TYPE_NUMBERS(0, 1000),
      "[0, 0.1, 0.3, 0.5, 0.7, 0.9, 1]",
      "overlaps (intersection over union) to draw from, a list of up to 16; 1 and above: the "
      "picture stays as it is")
PARAM(RANDOM_IOU_CROP, TRIALS, "trials", OP_TYPE_INTEGER(1, 1000), "40",
      "the parts that are drawn before another overlap is, 1 to 1000")

OP(FIVE_CROP, "five_crop", window_five_op, "the four corners and the middle: five pictures")
PARAM(FIVE_CROP, SIZE, "size", OP_TYPE_SIZE, NULL, "the side of each in pixels, or [height, width]")

OP(TEN_CROP, "ten_crop", window_ten_op,
   "the four corners and the middle, and those of the flipped picture: ten pictures")
PARAM(TEN_CROP, SIZE, "size", OP_TYPE_SIZE, NULL, "the side of each in pixels, or [height, width]")
PARAM(TEN_CROP, VERTICAL_FLIP, "vertical_flip", OP_TYPE_BOOL, "false",
      "true or false: is it flipped top and bottom, in place of left and right?")
