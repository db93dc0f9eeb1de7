/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Errors of the library. A code says which kind of outcome it is, a text says to a person what,
 * where and how to mend it. Limits of the process that uses us (descriptors, address space) are
 * common in batch systems and show themselves as bare errnos far from their cause, so they are
 * named here with the value they have.
 */

#include "libaccess/error.h"

#include <stdio.h>
#include <sys/resource.h>

static const char *error_limit_value(int which, char *ret, size_t size)
{
	struct rlimit limit;

	if (getrlimit(which, &limit) < 0 || limit.rlim_cur == RLIM_INFINITY)
		snprintf(ret, size, "unlimited");
	else
		snprintf(ret, size, "%llu", (unsigned long long)limit.rlim_cur);
	return ret;
}

int error_of_files(struct diag *diag, const char *what)
{
	char value[32];

	return diag_fail(diag, OA_E_LIMIT,
			 "%s: no descriptor left: RLIMIT_NOFILE of this process is %s; raise it "
			 "(ulimit -n) or close descriptors",
			 what, error_limit_value(RLIMIT_NOFILE, value, sizeof(value)));
}

int error_of_errno(struct diag *diag, int negative_errno, const char *what)
{
	char value[32];

	if (negative_errno == -EMFILE)
		return error_of_files(diag, what);
	error_limit_value(RLIMIT_AS, value, sizeof(value));
	if (negative_errno == -ENOMEM && strcmp(value, "unlimited") != 0)
		return diag_fail(diag, OA_E_LIMIT,
				 "%s: no address space left: RLIMIT_AS of this process is %s "
				 "bytes; raise it (ulimit -v)",
				 what, value);
	return diag_fail(diag, negative_errno, "%s: %s", what, strerrordesc_np(-negative_errno));
}

int error_export(struct oa_error *error, int code, const char *text)
{
	size_t room;

	if (!error || error->size < offsetof(struct oa_error, text))
		return code;
	error->code = code;
	room = BASE_MIN(error->size, sizeof(*error)) - offsetof(struct oa_error, text);
	if (room > 0)
		snprintf(error->text, room, "%s", text);
	return code;
}

const char *oa_error_name(int code)
{
	static const char *const names[] = {
	    [0] = "0 (no error)",
	    [OA_E_END] = "OA_E_END",
	    [OA_E_TIMEOUT] = "OA_E_TIMEOUT",
	    [OA_E_PINS] = "OA_E_PINS",
	    [OA_E_REFUSED] = "OA_E_REFUSED",
	    [OA_E_MEMORY] = "OA_E_MEMORY",
	    [OA_E_DATASET] = "OA_E_DATASET",
	    [OA_E_PIPELINE] = "OA_E_PIPELINE",
	    [OA_E_SAMPLE] = "OA_E_SAMPLE",
	    [OA_E_TOKEN] = "OA_E_TOKEN",
	    [OA_E_VERSION] = "OA_E_VERSION",
	    [OA_E_UNREACHABLE] = "OA_E_UNREACHABLE",
	    [OA_E_PERMISSION] = "OA_E_PERMISSION",
	    [OA_E_FORKED] = "OA_E_FORKED",
	    [OA_E_INTERRUPTED] = "OA_E_INTERRUPTED",
	    [OA_E_INVALID] = "OA_E_INVALID",
	    [OA_E_LIMIT] = "OA_E_LIMIT",
	};
	const char *text = NULL;

	if (code >= 0 && (size_t)code < BASE_ARRAY_LEN(names))
		return names[code];
	if (code < 0 && code > -4096)
		text = strerrordesc_np(-code);
	return text ? text : "unknown error";
}

const char *oa_version(void)
{
	return PACKAGE_VERSION;
}

int error_read(void *ret, size_t bytes, const void *from, size_t from_bytes, const char *what,
	       struct diag *diag)
{
	for (size_t i = bytes; i < from_bytes; i++)
		if (((const uint8_t *)from)[i])
			return diag_fail(diag, OA_E_VERSION,
					 "%s of a newer libaccess: upgrade libaccess", what);
	memset(ret, 0, bytes);
	memcpy(ret, from, BASE_MIN(bytes, from_bytes));
	return 0;
}
