/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* decode's parameter "fast": how small a picture may be decoded. */

#include "pipeline/formats/decode.h"
#include "pipeline/ops/draw.h"
#include "pipeline/ops/resize.h"
#include "pipeline/spec/op.h"

struct reduce {
	unsigned shift;         /* 0: as it is, and nothing below is set */
	struct picture_box box; /* of the smaller picture: the pixels that op 1 works on */
	struct resize_cut cut;  /* of them */
	enum filter_id filter;
	uint32_t height, width; /* what op 1 makes of them */
};

/* For an open picture and a sample's draws. */
void reduce_choose(const struct op_list *ops, const struct draw *draw,
		   const struct decode_about *about, struct reduce *ret);
