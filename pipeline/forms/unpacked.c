/* SPDX-License-Identifier: Apache-2.0 */

#include "pipeline/forms/unpacked.h"

#include <stdlib.h>

#include "base/base.h"

#define UNPACKED_KEPT (16u << 20) /* bytes that stay reserved */

void unpacked_fini(struct unpacked *unpacked)
{
	free(unpacked->bytes);
	*unpacked = (struct unpacked){.bytes = NULL};
}

void unpacked_rest(struct unpacked *unpacked)
{
	if (unpacked->room > UNPACKED_KEPT)
		unpacked_fini(unpacked);
}

bool unpacked_reserve(struct unpacked *unpacked, size_t bytes)
{
	if (bytes <= UNPACKED_KEPT)
		unpacked_rest(unpacked);
	if (bytes <= unpacked->room)
		return true;
	free(unpacked->bytes);
	unpacked->bytes = malloc(bytes);
	unpacked->room = unpacked->bytes ? bytes : 0;
	return unpacked->bytes != NULL;
}

bool unpacked_grow(struct unpacked *unpacked)
{
	const size_t room = BASE_MIN(2 * unpacked->room, (size_t)UNPACKED_MOST + 1);
	uint8_t *bytes = realloc(unpacked->bytes, room);

	if (!bytes)
		return false;
	unpacked->bytes = bytes;
	unpacked->room = room;
	return true;
}
