/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The sandbox of a build with sanitizers: no filter and no memory limit, because their run-time
 * maps terabytes of shadow and, to report what it found, opens files and starts a symbolizer.
 * What does not hinder it stays: no new privileges, no core files.
 */

#include "base/sandbox.h"

#include <sys/prctl.h>
#include <sys/resource.h>

static int sandbox_limit(void)
{
	const struct rlimit none = {0, 0};

	if (setrlimit(RLIMIT_CORE, &none) < 0)
		return -errno;
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ? -errno : 0;
}

int sandbox_enter(const struct sandbox_limits *limits)
{
	(void)limits;
	return sandbox_limit();
}

int sandbox_drop_capabilities(void)
{
	return 0;
}

int sandbox_enter_talking(uint64_t memory, int verbs_fd)
{
	(void)memory;
	(void)verbs_fd;
	return sandbox_limit();
}

bool sandbox_is_strict(void)
{
	return false;
}
