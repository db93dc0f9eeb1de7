/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What accessd says of the last ops of a pipeline that has mixup, cutmix or mosaic. */

#include "base/wire.h"
#include "plan/mix/batch_mix.h"
#include "shmring/proto.h"

#define MIXED_ASK_NONSENSE                                                                     \
	"accessd's mosaic, mixup or cutmix makes no sense, or does not fit the fields of the " \
	"pipeline: "                                                                           \
	"is it an accessd?"

struct mixed_ask {
	struct batch_mix_op op[BATCH_MIX_MAX];
	uint32_t n;       /* 0: there are none of these */
	bool is_planar;   /* the image is channels, rows, columns; else rows, columns, channels */
	uint32_t classes; /* 0: as many as labels have numbers */
	bool has_mosaic;  /* and none of the others */
	struct proto_mosaic mosaic;
};

/* From OPENED; hostile. 0, or -EPROTO with diag. */
int mixed_ask_read(const struct wire_in *opened, struct mixed_ask *ret, struct diag *diag);
bool mixed_ask_same(const struct mixed_ask *a, const struct mixed_ask *b);
