/* SPDX-License-Identifier: Apache-2.0 */
/* Ops on the colours of pictures, and on parts of them; nothing moves, but by policies such as rand_augment; a part of op_tbl.h. */

OP(COLOR_JITTER, "color_jitter", colour_op_jitter,
   "brightness, contrast, saturation and hue changed at random, in random order")
PARAM(COLOR_JITTER, BRIGHTNESS, "brightness", OP_OR_NULL(OP_TYPE_AROUND_1(1e6)), "null",
      "the factor's [least, most] from 0 on, x for [1 - x, 1 + x], or null")
PARAM(COLOR_JITTER, CONTRAST, "contrast", OP_OR_NULL(OP_TYPE_AROUND_1(1e6)), "null",
      "the factor's [least, most] from 0 on, x for [1 - x, 1 + x], or null")
PARAM(COLOR_JITTER, SATURATION, "saturation", OP_OR_NULL(OP_TYPE_AROUND_1(1e6)), "null",
      "the factor's [least, most] from 0 on, x for [1 - x, 1 + x], or null")
PARAM(COLOR_JITTER, HUE, "hue", OP_OR_NULL(OP_TYPE_AROUND_0(0.5)), "null",
      "the part of the colour circle, [least, most] within -0.5 and 0.5, x for [-x, x], or null")
PARAM(COLOR_JITTER, P, "p", OP_LATE(OP_TYPE_CHANCE), "1", "the probability, from 0 to 1")

OP(RANDOM_PHOTOMETRIC_DISTORT, "random_photometric_distort", colour_op_distort,
   "brightness, contrast, saturation, hue and the channels' order changed, each at random: SSD's")
PARAM(RANDOM_PHOTOMETRIC_DISTORT, BRIGHTNESS, "brightness", OP_TYPE_PAIR(0, 1e6), "[0.875, 1.125]",
      "the factor's [least, most] from 0 on")
PARAM(RANDOM_PHOTOMETRIC_DISTORT, CONTRAST, "contrast", OP_TYPE_PAIR(0, 1e6), "[0.5, 1.5]",
      "the factor's [least, most] from 0 on")
PARAM(RANDOM_PHOTOMETRIC_DISTORT, SATURATION, "saturation", OP_TYPE_PAIR(0, 1e6), "[0.5, 1.5]",
      "the factor's [least, most] from 0 on")
PARAM(RANDOM_PHOTOMETRIC_DISTORT, HUE, "hue", OP_TYPE_PAIR(-0.5, 0.5), "[-0.05, 0.05]",
      "the part of the colour circle, [least, most] within -0.5 and 0.5")
PARAM(RANDOM_PHOTOMETRIC_DISTORT, P, "p", OP_TYPE_CHANCE, "0.5",
      "the probability of each of the five changes, from 0 to 1")

OP(GRAYSCALE, "grayscale", colour_op_grayscale, "the picture in gray")
PARAM(GRAYSCALE, NUM_OUTPUT_CHANNELS, "num_output_channels", OP_TYPE_INTEGER(1, 3), "1",
      "1, or 3 for the same value three times")

OP(RANDOM_GRAYSCALE, "random_grayscale", colour_op_chance,
   "the picture in gray, at random, with as many channels as before")
PARAM(RANDOM_GRAYSCALE, P, "p", OP_TYPE_CHANCE, "0.1", "the probability, from 0 to 1")

OP(AUTOCONTRAST, "autocontrast", colour_op_chance, "each channel stretched to 0 .. 255, at random")
PARAM(AUTOCONTRAST, P, "p", OP_TYPE_CHANCE, "0.5", "the probability, from 0 to 1")

OP(EQUALIZE, "equalize", colour_op_chance, "each channel's histogram made even, at random")
PARAM(EQUALIZE, P, "p", OP_TYPE_CHANCE, "0.5", "the probability, from 0 to 1")

OP(INVERT, "invert", colour_op_chance, "255 - value, at random")
PARAM(INVERT, P, "p", OP_TYPE_CHANCE, "0.5", "the probability, from 0 to 1")

OP(POSTERIZE, "posterize", colour_op_chance, "only the highest bits of each value, at random")
PARAM(POSTERIZE, P, "p", OP_TYPE_CHANCE, "0.5", "the probability, from 0 to 1")
PARAM(POSTERIZE, BITS, "bits", OP_TYPE_INTEGER(1, 8), NULL, "the bits that are kept, 1 to 8")

OP(SOLARIZE, "solarize", colour_op_chance, "values from a threshold on inverted, at random")
PARAM(SOLARIZE, P, "p", OP_TYPE_CHANCE, "0.5", "the probability, from 0 to 1")
PARAM(SOLARIZE, THRESHOLD, "threshold", OP_TYPE_NUMBER(0, 256), NULL,
      "the least value that is inverted, from 0 to 256")

OP(SHARPNESS, "sharpness", colour_op_chance, "the picture sharpened or smoothed, at random")
PARAM(SHARPNESS, P, "p", OP_TYPE_CHANCE, "0.5", "the probability, from 0 to 1")
PARAM(SHARPNESS, SHARPNESS_FACTOR, "sharpness_factor", OP_TYPE_NUMBER(0, 1e6), NULL,
      "0 for smoothed, 1 for as it is, more for sharper")

OP(LEVELS, "levels", levels_op,
   "each value becomes another by gamma, contrast, brightness and shifts, drawn for the picture")
PARAM(LEVELS, P, "p", OP_TYPE_CHANCE, "0.5", "the probability, from 0 to 1")
PARAM(LEVELS, GAMMA, "gamma", OP_TYPE_SPAN(0.01, 100), "1",
      "the power of value / 255, from 0.01 to 100, or [least, most]")
PARAM(LEVELS, CONTRAST, "contrast", OP_TYPE_SPAN(0, 1000), "1",
      "what values are multiplied by, from 0 to 1000, or [least, most]")
PARAM(LEVELS, BRIGHTNESS, "brightness", OP_TYPE_SPAN(-1, 1), "0",
      "what is added, in parts of 255, from -1 to 1, or [least, most]")
PARAM(LEVELS, RED, "red", OP_TYPE_SPAN(-255, 255), "0",
      "what is added to red, from -255 to 255, or [least, most]")
PARAM(LEVELS, GREEN, "green", OP_TYPE_SPAN(-255, 255), "0",
      "what is added to green, from -255 to 255, or [least, most]")
PARAM(LEVELS, BLUE, "blue", OP_TYPE_SPAN(-255, 255), "0",
      "what is added to blue, from -255 to 255, or [least, most]")

OP(HUE_SATURATION_VALUE, "hue_saturation_value", hsv_op,
   "numbers added to hue, saturation and value, drawn for the picture")
PARAM(HUE_SATURATION_VALUE, P, "p", OP_TYPE_CHANCE, "0.5", "the probability, from 0 to 1")
PARAM(HUE_SATURATION_VALUE, HUE, "hue", OP_TYPE_SPAN(-360, 360), "[-20, 20]",
      "what is added to hue, of which 180 are a whole turn, from -360 to 360, or [least, most]")
PARAM(HUE_SATURATION_VALUE, SATURATION, "saturation", OP_TYPE_SPAN(-255, 255), "[-30, 30]",
      "what is added to saturation, from -255 to 255, or [least, most]")
PARAM(HUE_SATURATION_VALUE, VALUE, "value", OP_TYPE_SPAN(-255, 255), "[-20, 20]",
      "what is added to value, from -255 to 255, or [least, most]")

OP(RANDOM_CHANNEL_PERMUTATION, "random_channel_permutation", colour_op_permute,
   "red, green and blue in random order")

OP(RAND_AUGMENT, "rand_augment", augment_rand_op,
   "changes drawn from fourteen, all of one magnitude: RandAugment")
PARAM(RAND_AUGMENT, INTERPOLATION, "interpolation", OP_TYPE_WORD(op_warp_words), "\"nearest\"",
      "the filter of geometric changes: nearest, bilinear or bicubic")
PARAM(RAND_AUGMENT, FILL, "fill", OP_OR_NULL(OP_TYPE_COLOR), "null",
      "the colour of what is outside, 0 to 255: one number or [red, green, blue]; null: black")
PARAM(RAND_AUGMENT, NUM_OPS, "num_ops", OP_TYPE_INTEGER(0, 8), "2",
      "the changes of a picture, one after another, 0 to 8")
PARAM(RAND_AUGMENT, MAGNITUDE, "magnitude", OP_TYPE_INTEGER(0, 999), "9",
      "the bin of the magnitude, from 0 on")
PARAM(RAND_AUGMENT, NUM_MAGNITUDE_BINS, "num_magnitude_bins", OP_TYPE_INTEGER(2, 1000), "31",
      "the bins that magnitudes have, 2 to 1000")

OP(TRIVIAL_AUGMENT, "trivial_augment", augment_trivial_op,
   "one change drawn from fourteen with a drawn magnitude: TrivialAugmentWide")
PARAM(TRIVIAL_AUGMENT, INTERPOLATION, "interpolation", OP_TYPE_WORD(op_warp_words), "\"nearest\"",
      "the filter of geometric changes: nearest, bilinear or bicubic")
PARAM(TRIVIAL_AUGMENT, FILL, "fill", OP_OR_NULL(OP_TYPE_COLOR), "null",
      "the colour of what is outside, 0 to 255: one number or [red, green, blue]; null: black")
PARAM(TRIVIAL_AUGMENT, NUM_MAGNITUDE_BINS, "num_magnitude_bins", OP_TYPE_INTEGER(2, 1000), "31",
      "the bins that magnitudes have, 2 to 1000")

OP(AUTO_AUGMENT, "auto_augment", augment_auto_op,
   "a pair of changes drawn from a policy's 25: AutoAugment")
PARAM(AUTO_AUGMENT, INTERPOLATION, "interpolation", OP_TYPE_WORD(op_warp_words), "\"nearest\"",
      "the filter of geometric changes: nearest, bilinear or bicubic")
PARAM(AUTO_AUGMENT, FILL, "fill", OP_OR_NULL(OP_TYPE_COLOR), "null",
      "the colour of what is outside, 0 to 255: one number or [red, green, blue]; null: black")
PARAM(AUTO_AUGMENT, POLICY, "policy", OP_TYPE_WORD(op_policy_words), "\"imagenet\"",
      "the data set that the policy was found for: imagenet, cifar10 or svhn")

OP(TIMM_RAND_AUGMENT, "timm_rand_augment", augment_timm_op,
   "changes drawn from fifteen as timm makes them: its RandAugment")
PARAM(
    TIMM_RAND_AUGMENT, INTERPOLATION, "interpolation", OP_TYPE_WORD(op_timm_words), "\"random\"",
    "the filter of geometric changes: nearest, bilinear, bicubic, or random: one of the latter two")
PARAM(TIMM_RAND_AUGMENT, FILL, "fill", OP_TYPE_COLOR, "128",
      "the colour of what is outside, 0 to 255: one number or [red, green, blue]")
PARAM(TIMM_RAND_AUGMENT, NUM_OPS, "num_ops", OP_TYPE_INTEGER(0, 5), "2",
      "the changes of a picture, one after another, 0 to 5")
PARAM(TIMM_RAND_AUGMENT, P, "p", OP_TYPE_CHANCE, "0.5", "the probability of each of them")
PARAM(TIMM_RAND_AUGMENT, MAGNITUDE, "magnitude", OP_TYPE_NUMBER(0, 1000), "10",
      "the magnitude, from 0; 10 is timm's usual scale")
PARAM(TIMM_RAND_AUGMENT, MAGNITUDE_STD, "magnitude_std", OP_TYPE_NUMBER(0, 1000), "0",
      "the standard deviation of what is drawn around magnitude")
PARAM(TIMM_RAND_AUGMENT, UNIFORM, "uniform", OP_TYPE_BOOL, "false",
      "true or false: is it drawn from 0 to magnitude instead?")
PARAM(TIMM_RAND_AUGMENT, MAGNITUDE_MAX, "magnitude_max", OP_TYPE_NUMBER(0, 1000), "10",
      "the most that is drawn")
PARAM(TIMM_RAND_AUGMENT, INCREASING, "increasing", OP_TYPE_BOOL, "false",
      "true or false: do all changes grow with the magnitude?")
PARAM(TIMM_RAND_AUGMENT, TRANSLATE, "translate", OP_TYPE_NUMBER(0, 1), "0.45",
      "the share of the side that magnitude 10 moves the picture by")

OP(AUG_MIX, "aug_mix", augment_mix_op, "several chains of changes, mixed with the picture: AugMix")
PARAM(AUG_MIX, INTERPOLATION, "interpolation", OP_TYPE_WORD(op_warp_words), "\"bilinear\"",
      "the filter of geometric changes: nearest, bilinear or bicubic")
PARAM(AUG_MIX, FILL, "fill", OP_OR_NULL(OP_TYPE_COLOR), "null",
      "the colour of what is outside, 0 to 255: one number or [red, green, blue]; null: black")
PARAM(AUG_MIX, SEVERITY, "severity", OP_TYPE_INTEGER(1, 10), "3",
      "how many of the ten magnitudes are drawn from, 1 to 10")
PARAM(AUG_MIX, MIXTURE_WIDTH, "mixture_width", OP_TYPE_INTEGER(1, 16), "3",
      "how many chains there are, 1 to 16")
PARAM(AUG_MIX, CHAIN_DEPTH, "chain_depth", OP_TYPE_INTEGER(-1, 16), "-1",
      "the changes of a chain, 1 to 16; or -1: 1 to 3, drawn for each")
PARAM(AUG_MIX, ALPHA, "alpha", OP_TYPE_NUMBER(0.001, 1000), "1",
      "a number from 0.001 to 1000: weights are drawn from Dirichlet's distribution of it")
PARAM(AUG_MIX, ALL_OPS, "all_ops", OP_TYPE_BOOL, "true",
      "true or false: are brightness, colour, contrast and sharpness changed, too?")

OP(TIMM_AUG_MIX, "timm_aug_mix", augment_timm_mix_op,
   "several chains of changes as timm makes them, mixed with the picture: its AugMix")
PARAM(
    TIMM_AUG_MIX, INTERPOLATION, "interpolation", OP_TYPE_WORD(op_timm_words), "\"random\"",
    "the filter of geometric changes: nearest, bilinear, bicubic, or random: one of the latter two")
PARAM(TIMM_AUG_MIX, FILL, "fill", OP_TYPE_COLOR, "128",
      "the colour of what is outside, 0 to 255: one number or [red, green, blue]")
PARAM(TIMM_AUG_MIX, WIDTH, "width", OP_TYPE_INTEGER(1, 16), "3",
      "how many chains there are, 1 to 16")
PARAM(TIMM_AUG_MIX, DEPTH, "depth", OP_TYPE_INTEGER(-1, 16), "-1",
      "the changes of a chain, 1 to 16; or -1: 1 to 3, drawn for each")
PARAM(TIMM_AUG_MIX, MAGNITUDE, "magnitude", OP_TYPE_NUMBER(0, 1000), "3",
      "the magnitude, from 0; 10 is timm's usual scale")
PARAM(TIMM_AUG_MIX, MAGNITUDE_STD, "magnitude_std", OP_TYPE_NUMBER(0, 1000), "0",
      "the standard deviation of what is drawn around magnitude")
PARAM(TIMM_AUG_MIX, UNIFORM, "uniform", OP_TYPE_BOOL, "true",
      "true or false: is it drawn from 0 to magnitude instead?")
PARAM(TIMM_AUG_MIX, MAGNITUDE_MAX, "magnitude_max", OP_TYPE_NUMBER(0, 1000), "10",
      "the most that is drawn")
PARAM(TIMM_AUG_MIX, INCREASING, "increasing", OP_TYPE_BOOL, "true",
      "true or false: do all changes grow with the magnitude?")
PARAM(TIMM_AUG_MIX, TRANSLATE, "translate", OP_TYPE_NUMBER(0, 1), "0.3",
      "the share of the side that magnitude 10 moves the picture by")
PARAM(TIMM_AUG_MIX, ALPHA, "alpha", OP_TYPE_NUMBER(0.001, 1000), "1",
      "a number from 0.001 to 1000: weights are drawn from Dirichlet's distribution of it")

OP(GAUSSIAN_BLUR, "gaussian_blur", blur_op, "the picture blurred")
PARAM(GAUSSIAN_BLUR, KERNEL_SIZE, "kernel_size", OP_TYPE_ODD(255), NULL,
      "an odd number of pixels from 1 to 255, or two: across and down")
PARAM(GAUSSIAN_BLUR, SIGMA, "sigma", OP_TYPE_SPAN(0.001, 1000), "[0.1, 2]",
      "the deviation in pixels, from 0.001 to 1000, or [least, most]")
PARAM(GAUSSIAN_BLUR, P, "p", OP_LATE(OP_TYPE_CHANCE), "1", "the probability, from 0 to 1")

OP(BOX_BLUR, "box_blur", convolve_square_op, "each value becomes the mean of those around it")
PARAM(BOX_BLUR, P, "p", OP_TYPE_CHANCE, "0.5", "the probability, from 0 to 1")
PARAM(BOX_BLUR, SIZE, "size", OP_TYPE_SPAN(3, 99), "[3, 7]",
      "of the square of them, odd, from 3 to 99, or [least, most]")

OP(MEDIAN_BLUR, "median_blur", convolve_square_op,
   "each value becomes the median of those around it")
PARAM(MEDIAN_BLUR, P, "p", OP_TYPE_CHANCE, "0.5", "the probability, from 0 to 1")
PARAM(MEDIAN_BLUR, SIZE, "size", OP_TYPE_SPAN(3, 15), "[3, 7]",
      "of the square of them, odd, from 3 to 15, or [least, most]")

OP(MOTION_BLUR, "motion_blur", convolve_motion_op,
   "each value becomes the mean of those along a line")
PARAM(MOTION_BLUR, P, "p", OP_TYPE_CHANCE, "0.5", "the probability, from 0 to 1")
PARAM(MOTION_BLUR, SIZE, "size", OP_TYPE_SPAN(3, 99), "[3, 7]",
      "of the square that the line is in, odd, from 3 to 99, or [least, most]")
PARAM(MOTION_BLUR, ANGLE, "angle", OP_TYPE_SPAN(-360, 360), "[0, 360]",
      "the line's, in degrees clockwise, or [least, most]")
PARAM(MOTION_BLUR, DIRECTION, "direction", OP_TYPE_SPAN(-1, 1), "[-1, 1]",
      "to which side of the middle it is longer: 0 for none, -1 or 1 for a half line, or [least, "
      "most]")
PARAM(MOTION_BLUR, SHIFT, "shift", OP_TYPE_BOOL, "true",
      "true or false: is the line moved away from the middle, at random?")

OP(SHARPEN, "sharpen", convolve_sharpen_op, "the picture mixed with a sharper one")
PARAM(SHARPEN, P, "p", OP_TYPE_CHANCE, "0.5", "the probability, from 0 to 1")
PARAM(SHARPEN, ALPHA, "alpha", OP_TYPE_SPAN(0, 1), "[0.2, 0.5]",
      "the sharper one's share, from 0 to 1, or [least, most]")
PARAM(SHARPEN, LIGHTNESS, "lightness", OP_TYPE_SPAN(0, 1000), "[0.5, 1]",
      "what the sharper one is multiplied by, from 0 to 1000, or [least, most]")

OP(GAUSSIAN_NOISE, "gaussian_noise", noise_op, "noise of a normal distribution added to floats")
PARAM(GAUSSIAN_NOISE, MEAN, "mean", OP_TYPE_NUMBER(-1000, 1000), "0",
      "the noise's mean, of values from 0 to 1")
PARAM(GAUSSIAN_NOISE, SIGMA, "sigma", OP_TYPE_SPAN(0, 1000), "0.1",
      "its standard deviation, or [least, most] of what is drawn for each picture")
PARAM(GAUSSIAN_NOISE, CLIP, "clip", OP_TYPE_BOOL, "true",
      "true or false: is the sum cut off at 0 and at 1?")
PARAM(GAUSSIAN_NOISE, P, "p", OP_TYPE_CHANCE, "1", "the probability, from 0 to 1")

OP(JPEG, "jpeg", recode_op, "the picture as a JPEG file of low quality gives it back")
PARAM(JPEG, QUALITY, "quality", OP_TYPE_SPAN(1, 100), NULL,
      "libjpeg's quality, whole, from 1 to 100, or [least, most]")

OP(RANDOM_ERASING, "random_erasing", erase_op, "a rectangle of one colour or of noise, at random")
PARAM(RANDOM_ERASING, P, "p", OP_TYPE_CHANCE, "0.5", "the probability, from 0 to 1")
PARAM(RANDOM_ERASING, SCALE, "scale", OP_TYPE_PAIR(0, 1), "[0.02, 0.33]",
      "[least, most] share of the picture's area, 0 <= least <= most <= 1")
PARAM(RANDOM_ERASING, RATIO, "ratio", OP_TYPE_RANGE, "[0.3, 3.3]",
      "[least, most] height over width of the rectangle, 0 < least <= most")
PARAM(RANDOM_ERASING, VALUE, "value", OP_TYPE_VALUE(op_erase_words), "0",
      "one number, three (red, green, blue) or \"random\"")

OP(COARSE_DROPOUT, "coarse_dropout", erase_holes_op,
   "rectangles of one colour or of noise, at random")
PARAM(COARSE_DROPOUT, P, "p", OP_TYPE_CHANCE, "0.5", "the probability, from 0 to 1")
PARAM(COARSE_DROPOUT, HOLES, "holes", OP_TYPE_SPAN(1, 256), "[1, 2]",
      "how many there are, whole, from 1 to 256, or [least, most]")
PARAM(COARSE_DROPOUT, HEIGHT, "height", OP_TYPE_SPAN(0, OP_MAX_SIDE), "[0.1, 0.2]",
      "of each, a share of the picture's height below 1, or pixels from 1 on, or [least, most]")
PARAM(COARSE_DROPOUT, WIDTH, "width", OP_TYPE_SPAN(0, OP_MAX_SIDE), "[0.1, 0.2]",
      "of each, a share of the picture's width below 1, or pixels from 1 on, or [least, most]")
PARAM(COARSE_DROPOUT, VALUE, "value", OP_TYPE_VALUE(op_hole_words), "0",
      "one number, three (red, green, blue), \"random\" for each pixel its own colour or "
      "\"random_uniform\" for each rectangle")
