/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOLS_CTL_CONVERT_H
#define TOOLS_CTL_CONVERT_H

/* access-ctl convert: finds access-convert and becomes it. Asks no accessd. */

#include "base/base.h"

struct ctl_convert {
	unsigned form;        /* of --form: auto, packed, indexed, file; others are refused */
	uint64_t jobs;        /* 0: as many as there are processors */
	uint64_t shard_bytes; /* 0: one tar for all */
	bool force, check;
};

/* words: SOURCE TARGET, or TARGET with check. Returns only when it cannot: an exit status, diag says why. */
int ctl_convert_run(const struct ctl_convert *config, char **words, unsigned n, struct diag *diag);

#endif
