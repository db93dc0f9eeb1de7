/* SPDX-License-Identifier: Apache-2.0 */

/* A table of open addresses; hashes are what they are looked up by, so they need no other. */

#include "cluster/names.h"

#define NAMES_PLACES (2 * FRAME_MOST_GROUPS)
_Static_assert((NAMES_PLACES & (NAMES_PLACES - 1)) == 0, "a power of two");

void names_fini(struct names *names)
{
	free(names->group);
	free(names->place);
	*names = (struct names){.n = 0};
}

/* Where it is, or where it would be. */
static uint32_t place_of(const struct names *names, const struct hash_id *group)
{
	uint32_t at = frame_mark(group) % NAMES_PLACES;

	while (names->place[at] &&
	       memcmp(&names->group[names->place[at] - 1], group, sizeof(*group)) != 0)
		at = (at + 1) % NAMES_PLACES;
	return at;
}

uint32_t names_find(const struct names *names, const struct hash_id *group)
{
	uint16_t found = names->place ? names->place[place_of(names, group)] : 0;

	return found ? found - 1U : NAMES_NONE;
}

int names_add(struct names *names, const struct hash_id *group)
{
	if (!names->place)
		names->place = calloc(NAMES_PLACES, sizeof(*names->place));
	if (!names->place ||
	    !base_grow(&names->group, &names->room, names->n + 1, sizeof(*names->group)))
		return -ENOMEM;
	names->group[names->n++] = *group;
	names->place[place_of(names, group)] = (uint16_t)names->n;
	return 0;
}
