/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * access-ctl cache warm: what can be kept of a dataset is made before a job needs it; cache lend: of it, what this node owns in a
 * cluster, for the jobs of other nodes.
 */

#include "base/json.h"
#include "tools/ctl.h"

struct ctl_warm {
	const char *dataset, *pipeline;
	const char *form; /* "auto": the one that measurements choose */
	bool lends;
};

/* How it stands with the form that is made, from accessd's status. */
struct ctl_warm_look {
	bool is_there; /* the job, with a stream that runs */
	bool is_on;
	bool is_measured; /* it was decided */
	char form[24];    /* "file": none is worth it */
	char why[256];    /* nothing is kept */
	uint64_t found, kept, bytes, unfit;
	uint64_t used, limit; /* of the fullest store */
	char ahead[16]; /* what is made for other nodes: "alone", "makes", ... (sched/ahead.h) */
	char not_shared[256]; /* why no other node is asked; "": they are */
	uint64_t made_ahead;
};

struct ctl_warm_passes {
	unsigned n;
	unsigned stale; /* on end that brought nothing, though it was decided what is made */
	uint64_t kept;  /* after the last one; at first what there was before */
};

/*
 * The exit status: 0 all that has the form is kept, or none is worth it; 128 + signal: ended by it; else diag says what.
 * Lending ends with a signal alone, and with 0.
 */
int ctl_warm_run(const struct ctl_warm *warm, const char *socket, struct diag *diag);
/* Of the job with that name. false: it is not there. */
bool ctl_warm_read(const struct json_in *status, const char *job, struct ctl_warm_look *ret);
/* A pass has ended, and this is how it stands: would another one bring something? */
bool ctl_warm_needs_more(struct ctl_warm_passes *passes, const struct ctl_warm_look *look,
			 uint64_t samples, uint64_t broken);
/* samples: of an epoch; broken: of them, those that cannot be decoded. What is missing: 0 or CTL_E_NONE with
 * diag. */
int ctl_warm_tell(const struct ctl_warm_look *look, uint64_t samples, uint64_t broken, FILE *out,
		  struct diag *diag);
