/* SPDX-License-Identifier: Apache-2.0 */

/* access-ctl convert: the work is access-convert's, a program beside access-reader and access-worker. */

#include "tools/ctl.h"

#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "base/library.h"

#define CTL_PROGRAM "access-convert"
#define CTL_DIGITS 24

static const char *const ctl_forms[] = /* by --form; "auto" is what goes with TARGET */
    {NULL, "packed", "indexed", "file"};

static bool ctl_is_program(const char *path)
{
	return access(path, X_OK) == 0;
}

static int ctl_find_program(char ret[PATH_MAX], struct diag *diag)
{
	char own[PATH_MAX];

	if (library_find_own(CTL_PROGRAM, secure_getenv("ACCESS_LIBEXEC"), ctl_is_program, ret))
		return 0;
	library_own_folder(own);
	return diag_fail(diag, 1,
			 "cannot find the program " CTL_PROGRAM
			 ": looked near %s and in %s; is the package "
			 "installed whole?",
			 own, LIBEXECDIR);
}

/* An option and its number, unless that is 0; text is borrowed. */
static unsigned ctl_add_number(char **argv, unsigned argc, const char *option, uint64_t value,
			       char text[CTL_DIGITS])
{
	if (!value)
		return argc;
	snprintf(text, CTL_DIGITS, "%llu", (unsigned long long)value);
	argv[argc++] = (char *)(uintptr_t)option;
	argv[argc++] = text;
	return argc;
}

int ctl_convert_run(const struct ctl_convert *config, char **words, unsigned n, struct diag *diag)
{
	char path[PATH_MAX], jobs[CTL_DIGITS], shard[CTL_DIGITS];
	char *argv[12];
	unsigned argc = 0;

	if (n != (config->check ? 1 : 2))
		return diag_fail(
		    diag, 2,
		    "convert needs SOURCE and TARGET, or --check and TARGET; --help says more");
	if (config->form >= BASE_ARRAY_LEN(ctl_forms))
		return diag_fail(diag, 2,
				 "convert makes packed, indexed and file, no other --form");
	if (ctl_find_program(path, diag))
		return 1;
	argv[argc++] = (char *)CTL_PROGRAM;
	if (ctl_forms[config->form]) {
		argv[argc++] = (char *)"--form";
		argv[argc++] = (char *)(uintptr_t)ctl_forms[config->form];
	}
	argc = ctl_add_number(argv, argc, "--jobs", config->jobs, jobs);
	argc = ctl_add_number(argv, argc, "--shard-size", config->shard_bytes, shard);
	if (config->force)
		argv[argc++] = (char *)"--force";
	if (config->check)
		argv[argc++] = (char *)"--check";
	argv[argc++] = (char *)"--";
	for (unsigned i = 0; i < n; i++)
		argv[argc++] = words[i];
	argv[argc] = NULL;
	execv(path, argv);
	return diag_fail(diag, 1, "cannot start %s: %s", path, strerror(errno));
}
