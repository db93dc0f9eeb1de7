/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The two passes of a resize in plain C, on whole pictures: what pipeline/engine/rescale.h is held against. */

#include "pipeline/ops/filter.h"
#include "pipeline/picture.h"

/* Rows of to->height; table->out = to->width. */
void resize_plain_across(const struct filter_table *table, const struct picture *from,
			 const struct picture *to);
/* table->out = to->height; the widths are equal. */
void resize_plain_down(const struct filter_table *table, const struct picture *from,
		       const struct picture *to);
