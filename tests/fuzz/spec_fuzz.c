/* SPDX-License-Identifier: Apache-2.0 */

/* Specs that anybody could have sent. What compiles has a canonical text that compiles to
 * itself. */

#include <stdlib.h>
#include <string.h>
#include "pipeline/pipeline.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pipeline *first, *again;
	struct hash_id a, b;
	struct diag diag;

	if (pipeline_compile((const char *)data, size, &first, &diag) != 0)
		return 0;
	if (pipeline_compile(pipeline_canonical(first), strlen(pipeline_canonical(first)), &again,
			     &diag) != 0 ||
	    strcmp(pipeline_canonical(first), pipeline_canonical(again)) != 0)
		abort();
	pipeline_hash(first, &a);
	pipeline_hash(again, &b);
	if (memcmp(&a, &b, sizeof(a)) != 0)
		abort();
	pipeline_free(first);
	pipeline_free(again);
	return 0;
}
