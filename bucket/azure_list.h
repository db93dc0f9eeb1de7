/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What Azure answers to List Blobs: text of a foreign server. */

#include "bucket/provider.h"

/* Each blob, with `head` before its name, goes to the sink. *ret_marker: the caller's, of the next page; NULL: there is none.
 * 0, -EBADMSG with diag, -ENOMEM, what the sink said. */
int azure_list_read(const char *text, size_t size, const char *head,
		    const struct provider_sink *sink, char **ret_marker, struct diag *diag);
