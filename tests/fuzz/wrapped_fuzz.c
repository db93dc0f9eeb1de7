/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The note of a wrapped data set, with whatever numbers. Each input is tried as it is and once more with a magic
 * number and what is reserved made right. An index of what is accepted takes no more memory than was granted, and says
 * of each sample what the note says of all. What is behind the note is taken for its pool's answers to one question:
 * their records lie in the memory that the reader has for them, one behind the other.
 */

#include "storage/wrapped.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "storage/index.h"

#define MOST (UINT64_C(96) << 10)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void demand(bool truth)
{
	if (!truth)
		abort();
}

static bool takes(void *arg, uint64_t bytes)
{
	*(uint64_t *)arg = bytes;
	return bytes <= MOST;
}

static void check_sample(const struct wrapped_note *note, const struct dataset *index,
			 uint64_t sample)
{
	char name[32];

	snprintf(name, sizeof(name), "[%llu]", (unsigned long long)sample);
	demand(strcmp(dataset_name_of(index, sample), name) == 0);
	demand(dataset_size_of(index, sample) == note->room);
}

static void check_index(const struct wrapped_note *note, int fd, uint64_t asked)
{
	struct dataset *index;
	struct stat st;

	demand(fstat(fd, &st) == 0 && (uint64_t)st.st_size == asked);
	demand(dataset_is_sealed(fd) && dataset_map(fd, &index) == 0);
	demand(wrapped_is_index(note, index));
	for (uint64_t i = 0; i < note->count; i++)
		check_sample(note, index, i);
	dataset_unmap(index);
}

static void try_note(const struct wrapped_note *note)
{
	uint64_t asked = 0;
	const struct scan_progress progress = {.takes = takes, .arg = &asked};
	int fd = -1, r;

	if (!wrapped_note_is_good(note))
		return;
	demand(note->count > 0 && note->count <= INDEX_MAX_SAMPLES && note->room > 0);
	r = wrapped_index(note, &progress, &fd);
	demand(asked > 24 * note->count && r == (asked <= MOST ? 0 : DATASET_E_ROOM));
	if (!r)
		check_index(note, fd, asked);
	if (fd >= 0)
		close(fd);
}

static void try_answers(const struct wrapped_note *note, const uint8_t *data, size_t size)
{
	const uint64_t memory = wrapped_memory(note, WRAPPED_MAX_BATCH);
	uint64_t at = 0, place, end = 0;
	struct wrapped_answer answer;

	for (; size >= sizeof(answer); data += sizeof(answer), size -= sizeof(answer)) {
		memcpy(&answer, data, sizeof(answer));
		if (!wrapped_place(&answer, note, memory, &at, &place))
			continue;
		demand(place >= end && place % WRAPPED_ALIGN == 0 && answer.bytes <= note->room);
		demand(place <= memory && answer.bytes <= memory - place);
		end = place + answer.bytes;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct wrapped_note note;

	if (size < sizeof(note))
		return 0;
	memcpy(&note, data, sizeof(note));
	try_note(&note);
	note.magic = WRAPPED_MAGIC;
	note.reserved = 0;
	try_note(&note);
	if (wrapped_note_is_good(&note))
		try_answers(&note, data + sizeof(note), size - sizeof(note));
	return 0;
}
