/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Lists a tree of folders with several threads: the first half of a scan (scan.c makes the index of
 * what it finds). Inside storage/ only.
 */

#include <sys/stat.h>
#include "storage/dataset.h"

/* What counts as a sample, told by the names of files. Where there is some of one kind, those behind it do not count. */
#define WALK_PICTURE_SUFFIXES                                                                    \
	".jpg .jpeg .png .ppm .bmp .pgm .tif .tiff .webp .avif .jp2 .j2k .jpx .jxl .heic .heif " \
	".dcm .dicom "                                                                           \
	".nii "                                                                                  \
	".nii.gz"
#define WALK_SOUND_SUFFIXES ".wav .flac .ogg .opus .mp3 .m4a"
#define WALK_VIDEO_SUFFIXES ".mp4 .m4v .mov .webm .mkv .avi .ogv .m2ts .mts"
#define WALK_CLOUD_SUFFIXES ".ply .pcd .xyz .pts .npy .bin .off .obj .las"

struct walk_kind {
	const char *noun, *suffixes; /* with a blank between two */
};
enum { WALK_PICTURES, WALK_SOUNDS, WALK_VIDEOS, WALK_CLOUDS, WALK_KINDS };
extern const struct walk_kind walk_kinds[WALK_KINDS];

/* Is it the name of a file of that kind (in any case)? */
bool walk_counts(const struct walk_kind *kind, const char *name);
/* Which of walk_kinds a file of that name is; WALK_KINDS: none. */
unsigned walk_kind_of(const char *name);

struct walk_file {
	int64_t mtime_ns;
	uint32_t size;
	uint64_t name; /* start in the folder's text */
};

struct walk_folder {
	const struct walk_folder *parent; /* NULL: the root */
	struct walk_folder *next;         /* of all folders, newest first */
	char *path;                       /* owned; relative, "" for the root */
	int64_t mtime_ns;                 /* INT64_MIN: was changing meanwhile */
	int64_t ctime_ns;                 /* of its last change, which nobody can set back */
	uint64_t device, inode;

	/* Owned; the samples, sorted by name (bytes) when the walk is over */
	struct walk_file *file;
	size_t n_files, room_files;
	char *text; /* owned; their names, a NUL after each */
	size_t text_bytes, room_text;

	bool gone; /* removed since its name was read: no part of the tree */

	/* while it is being listed */
	struct walk_folder *next_todo;
	void *stream;     /* DIR, owned; NULL before and after */
	unsigned holders; /* the lister and the batches of names not yet looked at */
};

struct walk_left { /* files with pictures' names that are no regular ones */
	uint64_t count;
	char names[400]; /* of the first few, quoted, with commas between them */
};

/*
 * Walks everything under root for files of that kind. 0 and all folders in *ret (a list over next, to be freed with
 * walk_free()), or what scan_build() returns. progress->tell is called from this thread.
 */
int walk_tree(int root_fd, const char *root_name, const struct walk_kind *kind, unsigned threads,
	      const struct scan_progress *progress, struct walk_folder **ret,
	      struct walk_left *ret_left, struct diag *diag);
void walk_free(struct walk_folder *folders);
/* Memory of the list of its pictures. */
static inline uint64_t walk_bytes_of(const struct walk_folder *folder)
{
	return folder->room_files * sizeof(*folder->file) + folder->room_text;
}

static inline int64_t walk_mtime_ns(const struct stat *st)
{
	return base_time_ns(&st->st_mtim);
}
static inline int64_t walk_ctime_ns(const struct stat *st)
{
	return base_time_ns(&st->st_ctim);
}

/* Is it a file of that size, written to at that time? */
static inline bool walk_is_same(const struct stat *st, uint64_t bytes, int64_t mtime_ns)
{
	return S_ISREG(st->st_mode) && (uint64_t)st->st_size == bytes &&
	       walk_mtime_ns(st) == mtime_ns;
}
