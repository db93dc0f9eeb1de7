/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The groups that were told in one direction of a connection, numbered in order (cluster/frame.h). */

#include "cluster/frame.h"

#define NAMES_NONE UINT32_MAX

struct names { /* all 0: none yet */
	struct hash_id *group;
	uint16_t *place; /* of a table by hash: number + 1 */
	uint32_t n;
	size_t room;
};

void names_fini(struct names *names);
/* Its number; NAMES_NONE: was not told. */
uint32_t names_find(const struct names *names, const struct hash_id *group);
/* The next number is that of this one, which was not told yet; there are fewer than FRAME_MOST_GROUPS. 0 or -ENOMEM. */
int names_add(struct names *names, const struct hash_id *group);
