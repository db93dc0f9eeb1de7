/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What warming and lending share (ctl_warm.c, ctl_lend.c): a job of their own, and what accessd says of it. */

#include "libaccess/libaccess.h"
#include "tools/ctl_warm.h"

#define WARM_LINE_NS UINT64_C(10000000000) /* between lines where no terminal is */

struct warming {
	struct oa_client *client;
	struct oa_stream *stream;
	char name[64];
	struct ctl_warm_look look;
	uint64_t start_ns, look_ns, line_ns;
	uint64_t n_samples, in_pass; /* of the dataset; taken in this pass */
	uint64_t samples, broken;    /* of the first pass, when it is over */
	struct ctl_warm_passes passes;
	bool draws, lends;
	bool is_away; /* accessd; it was said */
};

/* The signal that came; 0: none. */
int warm_signalled(void);
/* 0, or CTL_E_NONE with diag. */
int warm_look(struct warming *warming, struct diag *diag);
/* A batch, and gives it back, or waits for a second. */
int warm_take(struct warming *warming, bool *ret_last, struct diag *diag);
/* After the first passes, until a signal: the exit status. */
int ctl_lend(struct warming *warming, struct diag *diag);
