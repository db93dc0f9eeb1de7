/* SPDX-License-Identifier: Apache-2.0 */

/* Jobs as people name them: by a number, which is one job's, or by a name, which several may have. */

#include "tools/ctl.h"
#include "tools/ctl_value.h"

#include <stdio.h>

bool ctl_is_job(const struct json_in *job, const char *who)
{
	char id[24];

	snprintf(id, sizeof(id), "%llu", ctl_u64(job, "id"));
	return strcmp(who, id) == 0 || strcmp(who, ctl_string(job, "name")) == 0;
}

const struct json_in *ctl_stream_of(const struct json_in *status, const struct json_in *job)
{
	return json_in_numbered(json_in_member(status, "streams"), "id", ctl_u64(job, "stream"));
}

int ctl_no_job(const struct json_in *status, const char *who, struct diag *diag)
{
	return diag_fail(diag, CTL_E_NONE,
			 "there is no job %s among %zu; access-ctl jobs lists numbers and names",
			 BASE_QUOTED(who, 128), json_in_count(json_in_member(status, "jobs")));
}
