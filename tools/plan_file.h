/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Recorded plans as files (access-plan(5)): read whole, the parts of several ranks joined. */

#include "plan/recording.h"

enum { PLAN_FILE_E_BAD = 1 };

struct plan_file_batch {
	struct recording_batch batch;
	uint8_t *bytes; /* owned; batch.runs and batch.ids are in it */
};

struct plan_file {
	struct recording_head head;
	/* Owned; after plan_file_join() in the order of delivery */
	struct plan_file_batch *batches;
	size_t n, room;
	unsigned parts;
	bool is_cut; /* something at the end is missing */
};

/* Adds the batches of a file, which must be of the same plan as those before. 0, PLAN_FILE_E_BAD or
 * negative errno, with diag. */
int plan_file_add(struct plan_file *plan, const char *path, struct diag *diag);
/* All parts are there: puts them in order. PLAN_FILE_E_BAD: a rank's part is missing, or there twice. */
int plan_file_join(struct plan_file *plan, struct diag *diag);
void plan_file_fini(struct plan_file *plan);
