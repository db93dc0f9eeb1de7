/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A converted data set: all its samples in one file, which access-convert writes and access-reader
 * serves as it serves a folder (access-dataset(5)).
 *
 *   head | samples | index | starts
 *
 * The index is one of access-index(5), of stored bytes: size is that of the sample as it is here, and
 * where a folder's index has a time of change it has the XXH3-64 of these bytes. So the dataset version
 * is a function of what is stored. Each sample begins at a multiple of OADS_ALIGN; where the first one
 * of each OADS_GROUP begins is in the starts, the others follow from the sizes. Whoever made the file
 * may have made it to harm: nothing is believed before it was checked.
 */

#include "storage/dataset.h"

#define OADS_MAGIC UINT64_C(0x314154414421414f) /* "OA!DATA1" */
#define OADS_VERSION 1
#define OADS_FORMS 1 /* version of the stored forms in it (pipeline/forms/form.h) */
#define OADS_ALIGN UINT64_C(64)
#define OADS_GROUP UINT64_C(64)
#define OADS_FIRST UINT64_C(4096) /* where the first sample begins; zeros from the head to there */

struct oads_head { /* 128 bytes */
	uint64_t magic;
	uint32_t version, head_bytes;
	uint64_t bytes;           /* of the whole file */
	uint64_t head_checksum;   /* XXH3-64 of the head, this member 0 */
	uint64_t starts_checksum; /* XXH3-64 of the starts */
	uint64_t n_samples;
	uint64_t index_at, index_bytes;
	uint32_t form;          /* what was asked for: 0 files, 1 indexed, 2 packed */
	uint32_t forms;         /* OADS_FORMS */
	struct hash_id dataset; /* the dataset version, which the index has, too */
	uint64_t n_formed;      /* samples that have that form; the others are files */
	uint64_t source_bytes;  /* sum of the files' sizes */
	uint64_t reserved;      /* 0 */
};
_Static_assert(sizeof(struct oads_head) == 128, "the head is frozen");
_Static_assert(offsetof(struct oads_head, dataset) == 72, "the head is frozen");

enum {
	OADS_E_NONE = 1,    /* no converted data set */
	OADS_E_BAD = 2,     /* one that is damaged, or of a newer version; diag says which */
	OADS_E_CHANGED = 3, /* written to since it was opened, or cut */
	OADS_E_DAMAGED = 4, /* a sample's bytes are not what was written */
	OADS_E_INDEX = 5,   /* a sample's entry in the index is not what was written */
};

/* ---- oads.c ---- */

struct oads; /* an open one; immutable, any thread may ask */

struct oads_reader { /* how bytes come, if not from the descriptor */
	/* As base_read_at(). */
	int (*read)(void *arg, void *to, uint64_t bytes, uint64_t at);
	void *arg; /* borrowed as long as it is open */
};
/* Reads the head and what places the samples from fd (borrowed as long as it is open). reader: NULL, or copied. progress may be NULL.
 * 0, OADS_E_NONE, OADS_E_BAD, DATASET_E_ROOM, negative errno; diag is set with OADS_E_BAD and those. */
int oads_open_from(int fd, const struct oads_reader *reader, const char *name,
		   const struct scan_progress *progress, struct oads **ret, struct diag *diag);
int oads_open(int fd, const char *name, const struct scan_progress *progress, struct oads **ret,
	      struct diag *diag);
void oads_close(struct oads *oads);
const struct oads_head *oads_head(const struct oads *oads);
/* Its index in a sealed memfd (caller owns *ret_fd), not yet checked: that is dataset_map()'s business.
 * progress may be NULL. 0, DATASET_E_CANCELLED, DATASET_E_ROOM, OADS_E_..., negative errno. */
int oads_index(const struct oads *oads, const struct scan_progress *progress, int *ret_fd);
/* Is this the index of these samples? */
bool oads_is_index(const struct oads *oads, const struct dataset *index);
/* Where a sample of that index begins; false: the numbers do not go together. */
bool oads_place(const struct oads *oads, const struct dataset *index, uint64_t sample,
		uint64_t *ret_at);
/* A sample's bytes, as many as the index says. 0, OADS_E_CHANGED, OADS_E_DAMAGED, OADS_E_INDEX, negative
 * errno. */
int oads_read(const struct oads *oads, const struct dataset *index, uint64_t sample,
	      uint8_t *buffer);
/* The same of bytes that came in another way. */
int oads_check_bytes(const struct dataset *index, uint64_t sample, const uint8_t *buffer);
int64_t oads_mtime_ns(const struct oads *oads); /* the file's, when it was opened */
/* Is it the file that was opened, unchanged? 0, OADS_E_CHANGED, negative errno. */
int oads_check(const struct oads *oads);

/* ---- oads_write.c ---- */

struct oads_writer {
	int fd;      /* borrowed: a new file */
	uint64_t at; /* end of what was written */
	uint64_t n, n_formed, source_bytes;
	struct oads_stored *stored; /* owned */
	uint64_t room;
};
/* For n samples. 0 or -ENOMEM. */
int oads_writer_init(struct oads_writer *writer, int fd, uint64_t n);
void oads_writer_fini(struct oads_writer *writer);
/* The next sample, made of a file of source_bytes. 0 or negative errno. */
int oads_add(struct oads_writer *writer, const void *bytes, uint32_t size, uint64_t sum,
	     uint64_t source_bytes, bool is_formed);
/* The index, with the names, labels and classes of source, whose samples were added all; the head. 0 or
 * negative errno. */
int oads_finish(struct oads_writer *writer, const struct dataset *source, uint32_t form);
