/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What is wrong with a stream, in words. diag_fail(&trouble->error, ...) says why a call fails. */

#include "base/base.h"

struct trouble {
	int failed;          /* sticky code, 0: none */
	struct diag failure; /* text of it */
	struct diag error;   /* of the last call that failed */
	struct diag notice;  /* what accessd last said by itself; "": nothing */
};

/* This call fails, and all calls from now on do. Returns the code of the first time. */
BASE_COLD int trouble_fail(struct trouble *trouble, int code, const char *text);
/* A call fails because of that: its code. 0: nothing has failed for good. */
int trouble_repeat(struct trouble *trouble);
