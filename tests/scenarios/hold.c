/* SPDX-License-Identifier: Apache-2.0 */

#include "tests/scenarios/hold.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fanotify.h>
#include <unistd.h>

#include "tests/patience.h"

static int start(void)
{
	return fanotify_init(FAN_CLASS_CONTENT | FAN_CLOEXEC, O_RDONLY | O_CLOEXEC);
}

static int mark(int hold, const char *path)
{
	return fanotify_mark(hold, FAN_MARK_ADD, FAN_OPEN_PERM | FAN_ONDIR, AT_FDCWD, path);
}

/* There are kernels that tell of openings and do not ask. */
bool hold_is_possible(void)
{
	char path[] = "/tmp/hold-XXXXXX";
	_cleanup_close_ int file = mkstemp(path), fd = start();
	const bool is_possible = file >= 0 && fd >= 0 && mark(fd, path) == 0;
	const int saved = errno;

	unlink(path);
	errno = saved;
	if (is_possible)
		return true;
	printf("not tested: files cannot be held here (fanotify: %s)\n", strerror(errno));
	return false;
}

int hold_path(const char *path)
{
	int fd = start();

	ck_assert_int_ge(fd, 0);
	ck_assert_msg(mark(fd, path) == 0, "%s: %s", path, strerror(errno));
	return fd;
}

bool hold_is_met(int hold)
{
	struct pollfd waiting = {.fd = hold, .events = POLLIN};

	return poll(&waiting, 1, PATIENCE_MS) == 1;
}

void hold_end(int hold)
{
	close(hold); /* the kernel lets all of them open it */
}
