/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pictures that are kept as pixels (cut.h), as one more format: what decode.c gives of them is what the
 * ops before the cut had made, and who goes on asks how many those are (decode_tell). Planes are given as
 * they stand in the form, all rows of a box at once.
 */

#include "pipeline/engine/finish.h"
#include "pipeline/formats/decode_format.h"
#include "pipeline/forms/cut.h"
#include "pipeline/forms/form.h"

struct decode_kept {
	struct cut cut; /* borrows the form's bytes */
};

static int decode_kept_open(void *state, const uint8_t *data, size_t size, uint32_t *ret_height,
			    uint32_t *ret_width, struct pipeline_error *ret_error)
{
	struct decode_kept *kept = state;
	int r = cut_read(data, size, &kept->cut);

	if (r != 0)
		return decode_fail_form(r, ret_error);
	*ret_height = kept->cut.height;
	*ret_width = kept->cut.width;
	return 0;
}

static void decode_kept_planes(const void *state, const struct picture_box *box,
			       struct decode_band *ret)
{
	const struct cut *cut = &((const struct decode_kept *)state)->cut;
	const size_t plane = cut->planes == 1 ? 0 : (size_t)cut->height * cut->width;

	for (unsigned c = 0; c < 3; c++)
		ret->plane[c] = cut->pixels + c * plane + (size_t)box->top * cut->width + box->left;
	ret->stride = cut->width;
	ret->rows = box->height;
}

static int decode_kept_whole(void *state, struct picture_buffer *buffer, struct picture *ret,
			     struct pipeline_error *ret_error)
{
	const struct cut *cut = &((const struct decode_kept *)state)->cut;
	const struct picture_box all = {0, 0, cut->height, cut->width};
	struct decode_band band;
	int r = decode_make(buffer, cut->height, cut->width, ret, ret_error);

	if (r != 0)
		return r;
	decode_kept_planes(state, &all, &band);
	for (uint32_t y = 0; y < cut->height; y++) {
		finish_join(band.plane, cut->width, picture_row(ret, y));
		for (unsigned c = 0; c < 3; c++)
			band.plane[c] += band.stride;
	}
	return 0;
}

static unsigned decode_kept_done(const void *state)
{
	return ((const struct decode_kept *)state)->cut.ops;
}

static void decode_kept_close(void *state)
{
	((struct decode_kept *)state)->cut = (struct cut){.ops = 0};
}

const struct decode_format decode_kept = {
    .name = "kept pixels",
    .state_size = sizeof(struct decode_kept),
    .probe = form_probe,
    .open = decode_kept_open,
    .whole = decode_kept_whole,
    .planes = decode_kept_planes,
    .done = decode_kept_done,
    .close = decode_kept_close,
    .fini = decode_kept_close,
};
