/* SPDX-License-Identifier: Apache-2.0 */

/* Which kinds of files are written, and what they have in common. */

#include "convert/convert.h"

const struct convert_output_ops *convert_output_of(const char *target)
{
	const size_t length = strlen(target);

	return length > 4 && strcmp(target + length - 4, ".tar") == 0 ? &convert_tar_ops
								      : &convert_oads_ops;
}

int convert_output_fail(const char *path, int error, struct diag *diag)
{
	return diag_fail(diag, CONVERT_FAILED, "cannot write \"%s\": %s; nothing of it is left",
			 BASE_QUOTED(path, 512), strerror(error));
}
