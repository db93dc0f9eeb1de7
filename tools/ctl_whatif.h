/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What limits a job of the status, and what each change would bring: tools/whatif.h, asked with accessd's figures. */

#include "base/json.h"
#include "tools/whatif.h"

#define CTL_WHATIF_ROWS 24

struct ctl_whatif_row {
	const char *key;   /* of the JSON: "workers", "kept", ... */
	const char *form;  /* that would be kept, as the status has it; NULL: another change */
	bool fits;         /* all of it, into the cache */
	double bytes;      /* all of it takes; 0: another change */
	char change[96];   /* in words, not quoted */
	char how[160];     /* what makes it so */
	double rate, gain; /* samples a second; of the rate now, 0: none */
};

struct ctl_whatif {
	bool is_known; /* the job has a rate, and its waits were measured */
	/* "read", "decode", "slots", "cache", "job", "listing", "accessd" or "unknown" */
	const char *limit;
	struct whatif_input in;
	struct whatif at;
	struct ctl_whatif_row
	    row[CTL_WHATIF_ROWS + 1]; /* the last one takes what there is no room for */
	unsigned n;
};

void ctl_whatif_of(const struct json_in *status, const struct json_in *job, struct ctl_whatif *ret);
void ctl_whatif_draw(const struct json_in *status, const struct json_in *job, FILE *out);
/* One object. */
void ctl_whatif_json(const struct json_in *status, const struct json_in *job, struct json_out *out);
