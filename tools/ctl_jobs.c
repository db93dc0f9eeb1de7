/* SPDX-License-Identifier: Apache-2.0 */

/* Jobs as people name them: by a number, which is one job's, or by a name, which several may have. */

#include "tools/ctl.h"

#include <stdio.h>

bool ctl_is_job(const struct json_in *job, const char *who)
{
	char id[24];

	snprintf(id, sizeof(id), "%llu",
		 (unsigned long long)json_in_u64(json_in_member(job, "id"), 0));
	return strcmp(who, id) == 0 ||
	       strcmp(who, json_in_string(json_in_member(job, "name"), "-")) == 0;
}

const struct json_in *ctl_stream_of(const struct json_in *status, const struct json_in *job)
{
	const struct json_in *streams = json_in_member(status, "streams");
	uint64_t id = json_in_u64(json_in_member(job, "stream"), 0);

	for (size_t i = 0; i < json_in_count(streams); i++)
		if (json_in_u64(json_in_member(json_in_item(streams, i), "id"), UINT64_MAX) == id)
			return json_in_item(streams, i);
	return NULL;
}

int ctl_no_job(const struct json_in *status, const char *who, struct diag *diag)
{
	char quoted[128];

	diag_set(diag, "there is no job %s among %zu; access-ctl jobs lists numbers and names",
		 base_quote(who, quoted, sizeof(quoted)),
		 json_in_count(json_in_member(status, "jobs")));
	return CTL_E_NONE;
}
