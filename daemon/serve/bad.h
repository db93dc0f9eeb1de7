/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What went wrong with which samples of a stream: the distinct bad ids (for budgets and the status),
 * what was found first of each (for lists of them), and the reason of each sample that was ended as an
 * error (for EXPLAIN).
 */

#include "base/base.h"
#include "shmring/layout.h"

#define BAD_REASONS 256 /* reasons kept; older ones are forgotten */

struct bad_reason {
	uint64_t instance, id;
	uint32_t position;
	char text[400];
};

#define BAD_CHUNK 1024            /* notes that are made room for at once */
#define BAD_SURE (64 * BAD_CHUNK) /* that are kept however little memory there is */

struct bad_note { /* of one bad sample, as it was met first */
	uint64_t id;
	int32_t code;
	uint8_t stage; /* enum layout_fail */
	char detail[51];
};
_Static_assert(sizeof(struct bad_note) == 64, "a million of them are 64 MB");

struct bad_entry {
	uint64_t id, place; /* plus one: 0: none; of its note, 0: it could not be kept */
};

struct bad {
	struct bad_entry *entry; /* of distinct ids, at most half of the room */
	uint64_t count, room;    /* room: a power of two, or 0 */
	struct bad_note **chunk; /* of BAD_CHUNK notes each, in the order in which they were met */
	uint64_t noted, lost;    /* bad samples with a note, without */
	struct bad_reason *reason; /* ring of BAD_REASONS, made at the first */
	uint64_t reasons;
	bool has_unread; /* some files could not be read, which may be mended by now */
};

void bad_fini(struct bad *bad);
/* Counts id, which is below UINT64_MAX; true when it was not known yet. */
bool bad_add(struct bad *bad, uint64_t id);
/* Of one that was just added: keeps what is known of it, in at most `room` bytes more. */
void bad_keep(struct bad *bad, uint64_t id, enum layout_fail stage, int code, const char *detail,
	      uint64_t room);
/* The note at a place below noted, which it keeps; of a sample, NULL: there is none. */
const struct bad_note *bad_note_at(const struct bad *bad, uint64_t place);
const struct bad_note *bad_note_of(const struct bad *bad, uint64_t id);
uint64_t bad_bytes(const struct bad *bad); /* that it has */
void bad_explain(struct bad *bad, uint64_t instance, uint32_t position, uint64_t id,
		 const char *text);
/* Why; NULL when not known (any more). */
const char *bad_reason_of(const struct bad *bad, uint64_t instance, uint32_t position);
/* What a note says: the stage, a word, and why, a line. */
const char *bad_stage_name(enum layout_fail stage);
void bad_why(char *ret, size_t size, enum layout_fail stage, int code, const char *detail);
/* What the samples' names are below: of a manifest, "FOLDER/{a,b}.csv?path=x", the folder; of all else the path itself. */
void bad_folder(char *ret, size_t size, const char *path, bool is_manifest);
/* The sentence for a person: what, which file, which stage, why. name: relative path, any bytes. */
void bad_text(char *ret, size_t size, const char *folder, const char *name, uint64_t id,
	      enum layout_fail stage, int code, const char *detail);
