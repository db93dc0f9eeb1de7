/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* HTTP, for whoever asks. */

#include "base/base.h"

struct serve_config {
	const char *listen; /* "ADDRESS:PORT", "[ADDRESS]:PORT", "/PATH" of a Unix socket */
	const char *socket; /* of accessd; NULL: that which access-ctl would find */
};

enum { SERVE_E_BAD = 1 };
/* Until SIGTERM or SIGINT. 0, SERVE_E_BAD with diag: it cannot listen there. */
int serve_run(const struct serve_config *config, struct diag *diag);
