/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOLS_CTL_PLAN_H
#define TOOLS_CTL_PLAN_H

/* access-ctl plan: recorded plans, for people and for other programs. Asks no accessd. */

#include "base/base.h"

enum { CTL_PLAN_CSV, CTL_PLAN_JSON, CTL_PLAN_PLAN };

struct ctl_plan {
	unsigned format;
	const char *output; /* NULL: standard output */
};

/* words: "show FILE" or "export FILE...". Returns the exit status; diag says what went wrong. */
int ctl_plan_run(const struct ctl_plan *config, char **words, unsigned n, struct diag *diag);

#endif
