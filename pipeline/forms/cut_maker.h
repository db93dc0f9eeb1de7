/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Makes the pictures that are kept behind a cut. */

#include "pipeline/forms/cut.h"

struct cut_maker; /* memory to make them in, one after the other; not shared */
int cut_maker_new(bool by_exif, struct cut_maker **ret); /* 0 or -ENOMEM */
void cut_maker_free(struct cut_maker *maker);

struct cut_room { /* where the form is to stand */
	uint8_t *form;
	size_t size;
	size_t needed; /* set: the form's bytes, or with PIPELINE_E_ROOM what it may have */
};

/* What the first cut->ops of ops, with key's draws, make of a file's (hostile) bytes, or of what is kept behind fewer of
 * them (at least one; that it is of these ops is the caller's to see). cut has id, ops and label; the rest
 * is set. 0; PIPELINE_E_BAD with *ret_error; PIPELINE_E_ROOM. */
int cut_maker_run(struct cut_maker *maker, const struct op_list *ops, const void *data, size_t size,
		  const struct pipeline_key *key, struct cut *cut, struct cut_room *room,
		  struct pipeline_error *ret_error);
