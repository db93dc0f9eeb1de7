/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* access-ctl bad: the bad samples of a job's stream. */

#include "shmring/bad_list.h"
#include "tools/ctl.h"

/* Lists those of the streams of the jobs of that number or name, as accessd at socket knows them. The exit
 * status; diag when not 0. */
int ctl_bad_run(const char *socket, uint64_t until_ns, const char *who, bool json,
		struct diag *diag);

/* A stream's list, with the job by which it was asked for; lost: samples that it lacks. */
struct ctl_bad {
	const struct json_in *job, *stream; /* of the status */
	struct bad_list list;               /* ordered */
	uint64_t lost;
};
void ctl_bad_draw(const struct ctl_bad *bad, FILE *out);
/* An array of n of them as JSON text, with a line feed. 0 or negative errno. */
int ctl_bad_print(const struct ctl_bad *bad, unsigned n, FILE *out);
/* The jobs of that number or name, one of each stream: at most `most` of them. */
unsigned ctl_bad_find(const struct json_in *status, const char *who, struct ctl_bad *ret,
		      unsigned most);
