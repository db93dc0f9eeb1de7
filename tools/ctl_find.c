/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Where accessd is. The order is libaccess's, but for its last step: a tool that looks must not
 * start a daemon only to look at it.
 */

#include "tools/ctl.h"

#include "base/wire.h"

#include <unistd.h>

/* 0, or the errno of the connection. */
static int ctl_try(const char *path)
{
	_cleanup_close_ int sock = wire_connect(path);

	return sock >= 0 || sock == -EAGAIN ? 0 : -sock;
}

static const char *ctl_hint(int error)
{
	switch (error) {
	case ENOENT:
		return "there is no such socket; is accessd started? (systemctl start accessd)";
	case ECONNREFUSED:
		return "nobody listens there: accessd has ended; the next job or start mends it";
	case EACCES:
		return "this user may not connect; ask the administrator for access to its folder";
	default:
		return strerror(error);
	}
}

static int ctl_find_named(const char *path, char *ret, size_t size, struct diag *diag)
{
	int error = ctl_try(path);

	if (error)
		return diag_fail(diag, CTL_E_NONE, "no accessd at %s: %s", path, ctl_hint(error));
	snprintf(ret, size, "%s", path);
	return 0;
}

int ctl_find(const char *named, char *ret, size_t size, struct diag *diag)
{
	const char *variable = getenv("ACCESS_SOCKET"), *runtime = getenv("XDG_RUNTIME_DIR");
	char paths[2][256];
	int error = 0;

	if (!named && variable && *variable)
		named = variable;
	if (named && strcmp(named, "private") != 0)
		return ctl_find_named(named, ret, size, diag);
	snprintf(paths[0], sizeof(paths[0]), "%s/accessd/socket", RUNSTATEDIR);
	if (runtime && *runtime)
		snprintf(paths[1], sizeof(paths[1]), "%s/oneaccess/socket", runtime);
	else
		snprintf(paths[1], sizeof(paths[1]), "/tmp/oneaccess-%u/socket",
			 (unsigned)geteuid());
	if (named)
		return ctl_find_named(paths[1], ret, size, diag);
	for (size_t i = 0; i < BASE_ARRAY_LEN(paths); i++) {
		int r = ctl_try(paths[i]);

		if (r == 0) {
			snprintf(ret, size, "%s", paths[i]);
			return 0;
		}
		error = error == EACCES ? error : r;
	}
	return diag_fail(
	    diag, CTL_E_NONE,
	    "no accessd runs for this user, neither at %s nor at %s: %s. --socket names another "
	    "one; a job starts a private one by itself",
	    paths[0], paths[1], ctl_hint(error));
}
