/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Memory for data sets that are being opened: the list of a folder, the index that is made of it, what says where
 * the samples of a converted one are. How much that is, files and notes of the user's say, so it is asked
 * for before it is taken. accessd says with each opening what the user may still have; all that are under way
 * have that together. What comes of one, its index, accessd counts itself from then on.
 */

#include "storage/reader_parts.h"

static struct {
	pthread_mutex_t lock;
	uint64_t taken; /* under the lock: of all that are being opened */
} room = {.lock = PTHREAD_MUTEX_INITIALIZER};

bool reader_room_takes(struct reader_room *one, uint64_t bytes)
{
	uint64_t others;
	bool takes;

	BASE_HOLD(&room.lock);
	others = room.taken - one->taken;
	takes = others <= one->most && bytes <= one->most - others;
	if (takes) {
		room.taken = others + bytes;
		one->taken = bytes;
	} else {
		one->refused = bytes;
	}
	return takes;
}

void reader_room_leave(struct reader_room *one)
{
	BASE_HOLD(&room.lock);
	room.taken -= one->taken;
	one->taken = 0;
}

void reader_room_refuse(const struct reader_room *one, const char *path, struct diag *diag)
{
	diag_set(
	    diag,
	    "dataset \"%s\" is not opened: the list of its samples takes %s of memory, or more, "
	    "and its user may have %s now: close another dataset, or raise `memory` or "
	    "`tenant_memory` of accessd",
	    BASE_QUOTED(path, 512), BASE_BYTES(one->refused), BASE_BYTES(one->most));
}
