/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What is in a folder: which names are worth a look, and what they turn out to be.
 *
 * The kernel tells the kind of most entries with their names, so that plain files without a
 * sample's suffix and folders cost no system call of their own. Names of samples, symbolic links
 * (followed) and entries of unknown kind are collected in batches and looked at with fstatat.
 *
 * The samples of a batch are gathered in place: their names move to the front of its text, each
 * over its own type byte or over names that were looked at, and go to the folder in one piece.
 */

#include "storage/openness.h"
#include "storage/walk_parts.h"

#include <dirent.h>
#include <fcntl.h>
#include <strings.h>

/* ---- kinds ---- */

const struct walk_kind walk_kinds[WALK_KINDS] = {
    [WALK_PICTURES] = {"picture", WALK_PICTURE_SUFFIXES},
    [WALK_SOUNDS] = {"sound", WALK_SOUND_SUFFIXES},
    [WALK_VIDEOS] = {"video", WALK_VIDEO_SUFFIXES},
    [WALK_CLOUDS] = {"point cloud", WALK_CLOUD_SUFFIXES},
};

bool walk_counts(const struct walk_kind *kind, const char *name)
{
	const size_t length = strlen(name);

	for (const char *at = kind->suffixes; *at; at += strspn(at, " ")) {
		const size_t size = strcspn(at, " ");

		if (size <= length && !strncasecmp(at, name + length - size, size))
			return true;
		at += size;
	}
	return false;
}

unsigned walk_kind_of(const char *name)
{
	unsigned kind = 0;

	while (kind < WALK_KINDS && !walk_counts(&walk_kinds[kind], name))
		kind++;
	return kind;
}

struct found { /* samples of one batch */
	struct walk_file *file;
	size_t n_files;
	char *text;
	size_t text_bytes;
};

/* Appends what a batch found to its folder. The text of the batch is the scratch it came in. */
static void folder_add(struct walk *walk, struct walk_folder *folder, const struct found *found)
{
	bool good;

	pthread_mutex_lock(&walk->lock);
	walk->bytes -= walk_bytes_of(folder);
	good =
	    base_grow(&folder->file, &folder->room_files, folder->n_files + found->n_files,
		      sizeof(*folder->file)) &&
	    base_grow(&folder->text, &folder->room_text, folder->text_bytes + found->text_bytes, 1);
	if (good && found->n_files) {
		for (size_t i = 0; i < found->n_files; i++) {
			folder->file[folder->n_files] = found->file[i];
			folder->file[folder->n_files++].name += folder->text_bytes;
		}
		memcpy(folder->text + folder->text_bytes, found->text, found->text_bytes);
		folder->text_bytes += found->text_bytes;
		walk->n_files += found->n_files;
	}
	walk->bytes += walk_bytes_of(folder);
	pthread_mutex_unlock(&walk->lock);
	if (!good)
		walk_stop_memory(walk);
}

static void found_add(struct walk *walk, const struct walk_folder *folder, struct found *found,
		      const char *name, const struct stat *st)
{
	const size_t size = strlen(name) + 1;

	if ((uint64_t)st->st_size > UINT32_MAX) {
		walk_refuse(walk, folder->path, name,
			    "has 4 GiB or more; no sample may have: move it out of the dataset");
		return;
	}
	found->file[found->n_files++] = (struct walk_file){
	    .mtime_ns = walk_mtime_ns(st),
	    .size = (uint32_t)st->st_size,
	    .name = found->text_bytes,
	};
	/* never ahead of the names still to be read: each came with a type byte */
	memmove(found->text + found->text_bytes, name, size);
	found->text_bytes += size;
}

/* fstatat failed: is that the end of the scan? */
static void look_failed(struct walk *walk, const struct walk_folder *folder, const char *name,
			unsigned char type, int error)
{
	const bool counts = walk_counts(walk->kind, name);

	if (error == ENOENT && type == DT_LNK && counts)
		walk_refuse(walk, folder->path, name,
			    "is a symbolic link to nothing; mend or remove it");
	else if (error == ENOENT || (error == ELOOP && !counts))
		return; /* removed since its name was read, or nothing of ours */
	else
		walk_refuse_errno(walk, folder->path, name, error);
}

static void look_at(struct walk *walk, struct walk_folder *folder, struct found *found,
		    const char *name, unsigned char type)
{
	const int fd = dirfd(folder->stream);
	struct stat st;

	if (fstatat(fd, name, &st, walk->open_only ? AT_SYMLINK_NOFOLLOW : 0) < 0) {
		look_failed(walk, folder, name, type, errno);
		return;
	}
	if (walk->open_only &&
	    (S_ISLNK(st.st_mode) || (S_ISREG(st.st_mode) && walk_counts(walk->kind, name) &&
				     !openness_of_file(fd, name, &st)))) {
		walk_refuse_closed(walk);
		return;
	}
	if (S_ISDIR(st.st_mode))
		walk_folder_push(walk, folder, name);
	else if (S_ISREG(st.st_mode) && walk_counts(walk->kind, name))
		found_add(walk, folder, found, name, &st);
	else if (!S_ISREG(st.st_mode) && walk_counts(walk->kind, name))
		walk_leave_out(walk, folder->path, name);
}

void walk_look_batch(struct walk *walk, struct walk_batch *batch)
{
	struct walk_file file[WALK_BATCH_BYTES / WALK_LEAST_NAME];
	struct found found = {.file = file, .text = batch->text};
	size_t at = 0;

	while (at < batch->used) {
		const unsigned char type = (unsigned char)batch->text[at];
		const char *name = batch->text + at + 1;
		const size_t size = strlen(name) + 2;

		look_at(walk, batch->folder, &found, name, type);
		at += size;
	}
	folder_add(walk, batch->folder, &found);
	batch->used = 0;
}

static void batch_flush(struct walk *walk, struct walk_batch **batch)
{
	if ((*batch)->used && !walk_offer(walk, batch))
		walk_look_batch(walk, *batch);
}

static void batch_add(struct walk *walk, struct walk_batch **batch, const char *name,
		      unsigned char type)
{
	const size_t size = strlen(name) + 2;

	if ((*batch)->used + size > WALK_BATCH_BYTES)
		batch_flush(walk, batch);
	(*batch)->text[(*batch)->used] = (char)type;
	memcpy((*batch)->text + (*batch)->used + 1, name, size - 1);
	(*batch)->used += size;
}

/* ---- listing ---- */

static void list_entry(struct walk *walk, struct walk_batch **batch, const struct dirent *entry)
{
	const char *name = entry->d_name;

	if (!strcmp(name, ".") || !strcmp(name, ".."))
		return;
	switch (entry->d_type) {
	case DT_DIR:
		walk_folder_push(walk, (*batch)->folder, name);
		break;
	case DT_REG:
		if (walk_counts(walk->kind, name))
			batch_add(walk, batch, name, DT_REG);
		break;
	case DT_LNK:
	case DT_UNKNOWN:
		batch_add(walk, batch, name, entry->d_type);
		break;
	default: /* FIFOs, sockets, devices: no samples, never opened */
		if (walk_counts(walk->kind, name))
			walk_leave_out(walk, (*batch)->folder->path, name);
		break;
	}
}

void walk_look_folder(struct walk *walk, struct walk_batch **batch, struct walk_folder *folder)
{
	if (!walk_folder_open(walk, folder))
		return;
	(*batch)->folder = folder;
	(*batch)->used = 0;
	while (!walk_stopped(walk)) {
		const struct dirent *entry;

		errno = 0;
		entry = readdir(folder->stream);
		if (!entry) {
			if (errno)
				walk_refuse_errno(walk, folder->path, NULL, errno);
			break;
		}
		list_entry(walk, batch, entry);
	}
	batch_flush(walk, batch);
	walk_folder_settle(folder);
	walk_folder_put(walk, folder);
}
