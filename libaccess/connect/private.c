/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The private daemon. Where no system accessd runs, the first job of a user starts one, and all
 * other jobs of that user use it. All of them look in one folder that is theirs alone; `socket` is
 * the daemon's, `lock` is the election's:
 *
 *   a client that finds nobody   takes `lock`, looks again, starts accessd, waits till it answers
 *   an idle accessd              takes `lock`, removes its socket, exits
 *
 * so nobody starts a second one, and nobody is left with a socket that is just being removed: it
 * gets a refusal, takes the lock and finds out. The lock is flock() on an open file: it dies with
 * us (spawn.c).
 */

#include "libaccess/connect/private.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
#include "libaccess/error.h"

/* ---- the folder ---- */

static int private_check_folder(const char *folder, struct diag *diag)
{
	struct stat status;
	_cleanup_close_ int fd = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0 && (errno == EMFILE || errno == ENOENT))
		return error_of_errno(diag, -errno, folder);
	if (fd < 0)
		return diag_fail(diag, OA_E_PERMISSION,
				 "%s cannot be used for a private accessd (%s): it must be a "
				 "folder, not a link; remove it or set XDG_RUNTIME_DIR",
				 folder, strerrordesc_np(errno));
	if (fstat(fd, &status) < 0)
		return error_of_errno(diag, -errno, folder);
	if (status.st_uid != geteuid() || (status.st_mode & 077))
		return diag_fail(diag, OA_E_PERMISSION,
				 "%s must belong to uid %u alone (it has uid %u, mode %04o): "
				 "remove it or set XDG_RUNTIME_DIR",
				 folder, (unsigned)geteuid(), (unsigned)status.st_uid,
				 (unsigned)status.st_mode & 07777);
	return 0;
}

int private_folder(char *ret, size_t size, struct diag *diag)
{
	const char *runtime = secure_getenv("XDG_RUNTIME_DIR");
	int length;

	if (runtime && *runtime == '/')
		length = snprintf(ret, size, "%s/oneaccess", runtime);
	else
		length = snprintf(ret, size, "/tmp/oneaccess-%u", (unsigned)geteuid());
	if (length < 0 || (size_t)length >= size)
		return diag_fail(
		    diag, OA_E_INVALID,
		    "XDG_RUNTIME_DIR is too long for a socket below it (at most %zu bytes)", size);
	return 0;
}

int private_make_folder(const char *folder, struct diag *diag)
{
	if (mkdir(folder, 0700) < 0 && errno != EEXIST)
		return diag_fail(diag, OA_E_PERMISSION,
				 "cannot make the folder %s for a private accessd (%s): set "
				 "XDG_RUNTIME_DIR to a folder of yours",
				 folder, strerrordesc_np(errno));
	return private_check_folder(folder, diag);
}

/* ---- the start ---- */

/* $ACCESS_DAEMON, the installed one, else whatever PATH has. */
static const char *private_program(void)
{
	const char *program = secure_getenv("ACCESS_DAEMON");

	if (program && *program)
		return program;
	return access(SBINDIR "/accessd", X_OK) == 0 ? SBINDIR "/accessd" : "accessd";
}

int private_spawn(struct spawn *spawn, const char *folder, struct diag *diag)
{
	const char *program = private_program();
	char *const arguments[] = {(char *)program, (char *)"--private",    (char *)"--dir",
				   (char *)folder,  (char *)"--background", NULL};
	int r = spawn_run(spawn, arguments);

	if (r == -EMFILE)
		return error_of_errno(diag, r, "starting a private accessd");
	if (r)
		return diag_fail(
		    diag, OA_E_UNREACHABLE,
		    "no accessd runs here, and %s could not be started (%s): install accessd, or "
		    "name its program in ACCESS_DAEMON or a socket in ACCESS_SOCKET",
		    program, strerrordesc_np(-r));
	return 0;
}

int private_step(struct spawn *spawn, struct diag *diag)
{
	char what[300];
	int r;

	snprintf(what, sizeof(what), "%s, started as private daemon", private_program());
	r = spawn_step(spawn, what, diag);
	return r == SPAWN_E_FAILED ? OA_E_UNREACHABLE : r;
}
