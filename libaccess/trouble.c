/* SPDX-License-Identifier: Apache-2.0 */

#include "libaccess/trouble.h"

int trouble_fail(struct trouble *trouble, int code, const char *text)
{
	if (!trouble->failed) {
		trouble->failed = code;
		diag_set(&trouble->failure, "%s", text);
	}
	return trouble_repeat(trouble);
}

int trouble_repeat(struct trouble *trouble)
{
	if (trouble->failed)
		trouble->error = trouble->failure;
	return trouble->failed;
}
