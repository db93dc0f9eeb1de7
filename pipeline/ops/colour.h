/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What colour ops do to a picture: the pixels of Pillow 13.0.0's ImageEnhance, ImageOps and
 * convert(), bit for bit, and so of torchvision's functional ops on Pillow's images. All but
 * sharpness work in place. A picture whose red, green and blue are equal everywhere stays so, and
 * gets what Pillow gives the image of mode L: so a picture of one channel is kept as three.
 */

#include "pipeline/picture.h"

struct steps_scratch;

/* Factors of 1 change nothing; 0: black, the mean gray, gray, smoothed. */
void colour_brightness(const struct picture *picture, float factor);
void colour_contrast(const struct picture *picture, float factor);
void colour_saturation(const struct picture *picture, float factor);
/* to: another picture of that size. */
void colour_sharpness(const struct picture *from, float factor, const struct picture *to);

/* The hue moved by that part of the circle, -0.5 .. 0.5, in torchvision's steps of 1 / 255. */
void colour_hue(const struct picture *picture, double factor);

void colour_grayscale(const struct picture *picture);
void colour_invert(const struct picture *picture);
/* Keeps the highest bits, 0 .. 8, of each value. */
void colour_posterize(const struct picture *picture, unsigned bits);
/* Inverts values from threshold on. */
void colour_solarize(const struct picture *picture, double threshold);
/* Adds `more` to values below 128, up to 255. */
void colour_solarize_add(const struct picture *picture, unsigned more);
void colour_autocontrast(const struct picture *picture);
void colour_equalize(const struct picture *picture);

/* What colour ops and the augmentation policies have in common beside. */

/* colour_sharpness on one of the scratch's pictures; so is the result. 0 or PIPELINE_FAIL_.... */
int colour_op_sharpen(struct steps_scratch *scratch, float factor, struct picture *picture);
