/* SPDX-License-Identifier: Apache-2.0 */

/*
 * From a tree of folders to an index, and back to the tree to see whether it is still the same.
 *
 * walk.c finds the pictures of each folder, sorted by name. Sorting the folders by (top-level
 * folder, path) then gives the order in which ImageFolder numbers its samples, so that a list of
 * sample numbers made with the one is valid in the other.
 *
 * Layout rule: if any folder under the root holds a picture, the top-level folders are the classes
 * and files in the root itself are ignored, as ImageFolder does; every class must then hold a
 * picture (ImageFolder raises FileNotFoundError, we refuse and name the folder). Otherwise the
 * pictures in the root are a flat dataset. Where there is no picture at all, sounds are the samples, videos where there
 * is no sound either, and then point clouds, by the same rule.
 * Nothing found at all is an outcome of its own.
 *
 * Verification stats the folders alone: an entry that came, went or was renamed changes its
 * folder's mtime, a folder that was replaced has another inode. But cp -a, tar and rsync set mtimes back to those of
 * their source, and an inode's number is soon used again. So a folder that changed at all (st_ctim, which nobody sets)
 * after all folders were listed is listed anew, whatever else it has. A file rewritten in place is found
 * when it is read (size and mtime of the file against the index).
 */

#include "storage/dataset.h"
#include "storage/index.h"
#include "storage/walk.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

struct listing { /* what was found, in the order of the index */
	const struct walk_kind *kind;
	struct walk_folder **folder;
	size_t n_folders;
	bool flat;
	struct index_head head; /* its numbers */
	uint64_t bytes;         /* of the list */
};

static bool folder_is_class(const struct walk_folder *folder)
{
	return folder->parent && !folder->parent->parent;
}

/* Does the folder's pictures count under this rule? Those in the root only without classes. */
static bool folder_counts(const struct listing *listing, const struct walk_folder *folder)
{
	return listing->flat || folder->parent;
}

/* ---- order ---- */

/* By top-level folder first: "a/x" comes before "a b", though ' ' < '/'. */
static int folder_compare(const void *a, const void *b)
{
	const char *one = (*(struct walk_folder *const *)a)->path;
	const char *two = (*(struct walk_folder *const *)b)->path;
	const size_t one_class = strcspn(one, "/"), two_class = strcspn(two, "/");
	const int by_class = memcmp(one, two, BASE_MIN(one_class, two_class));

	if (by_class)
		return by_class;
	if (one_class != two_class)
		return one_class < two_class ? -1 : 1;
	return strcmp(one, two);
}

static int listing_sort(struct listing *listing, struct walk_folder *folders)
{
	size_t n = 0;

	for (const struct walk_folder *f = folders; f; f = f->next)
		n += !f->gone;
	listing->folder = reallocarray(NULL, n, sizeof(*listing->folder));
	if (!listing->folder)
		return -ENOMEM;
	for (struct walk_folder *f = folders; f; f = f->next)
		if (!f->gone)
			listing->folder[listing->n_folders++] = f;
	qsort(listing->folder, n, sizeof(*listing->folder), folder_compare);
	return 0;
}

/* ---- layout rule ---- */

static int refuse_empty(const char *root_name, const struct walk_left *left, struct diag *diag)
{
	char also[480] = "";

	if (left->count)
		snprintf(also, sizeof(also), "; FIFOs, sockets and devices do not: %s",
			 left->names);
	return diag_fail(
	    diag, DATASET_E_EMPTY,
	    "no picture found in dataset \"%s\" and its folders; files count whose names end "
	    "in " WALK_PICTURE_SUFFIXES ", or of sounds in " WALK_SOUND_SUFFIXES
	    ", or of videos in " WALK_VIDEO_SUFFIXES ", or of point clouds in " WALK_CLOUD_SUFFIXES
	    " (any case); a list takes files of other names, MPEG's .ts too, and "
	    "oneaccess-sources(7) has other kinds of data%s",
	    BASE_QUOTED(root_name, 256), also);
}

static int refuse_class(const struct walk_kind *kind, const char *root_name,
			const struct walk_folder *class_, struct diag *diag)
{
	return diag_fail(
	    diag, DATASET_E_REFUSED,
	    "found no %s for the class folder \"%s\" in dataset \"%s\": every folder at "
	    "the top is a class; put %ss (%s) there or remove the folder",
	    kind->noun, BASE_QUOTED(class_->path, 256), BASE_QUOTED(root_name, 256), kind->noun,
	    kind->suffixes);
}

/* Folders are sorted: a class folder is followed by all that is under it. */
static int listing_check_classes(const struct listing *listing, const char *root_name,
				 struct diag *diag)
{
	const struct walk_folder *class_ = NULL;
	size_t pictures = 1;

	for (size_t i = 0; i <= listing->n_folders; i++) {
		const struct walk_folder *f = i < listing->n_folders ? listing->folder[i] : NULL;

		if (!f || folder_is_class(f)) {
			if (!pictures)
				return refuse_class(listing->kind, root_name, class_, diag);
			class_ = f;
			pictures = 0;
		}
		pictures += f ? f->n_files : 0;
		if (f && !f->parent)
			pictures = 1; /* the root, before the first class */
	}
	return 0;
}

static int listing_decide(struct listing *listing, const char *root_name,
			  const struct walk_left *left, struct diag *diag)
{
	size_t in_root = 0, below = 0;

	for (size_t i = 0; i < listing->n_folders; i++)
		*(listing->folder[i]->parent ? &below : &in_root) += listing->folder[i]->n_files;
	if (!in_root && !below)
		return refuse_empty(root_name, left, diag);
	listing->flat = !below;
	listing->head.label_rule = listing->flat ? INDEX_LABELS_FLAT : INDEX_LABELS_FOLDERS;
	return listing->flat ? 0 : listing_check_classes(listing, root_name, diag);
}

static void listing_measure(struct listing *listing)
{
	struct index_head *head = &listing->head;

	head->n_folders = listing->n_folders;
	for (size_t i = 0; i < listing->n_folders; i++) {
		const struct walk_folder *f = listing->folder[i];
		const size_t path = strlen(f->path);

		listing->bytes += walk_bytes_of(f);
		head->youngest_ns = BASE_MAX(head->youngest_ns, f->ctime_ns);
		head->folders_bytes += path + 1;
		if (!listing->flat && folder_is_class(f)) {
			head->n_classes++;
			head->classes_bytes += path + 1;
		}
		if (!folder_counts(listing, f))
			continue;
		head->n_samples += f->n_files;
		head->names_bytes += f->text_bytes + f->n_files * (path ? path + 1 : 0);
	}
}

/* ---- index ---- */

static void write_samples(struct index_writer *writer, const struct walk_folder *folder,
			  uint32_t label)
{
	for (size_t i = 0; i < folder->n_files; i++) {
		const struct walk_file *file = &folder->file[i];
		const struct index_record record = {
		    .mtime_ns = file->mtime_ns,
		    .size = file->size,
		    .label = label,
		};

		index_add_sample(writer, folder->path, folder->text + file->name, &record);
	}
}

static void write_all(struct index_writer *writer, const struct listing *listing)
{
	uint32_t classes = 0;

	for (size_t i = 0; i < listing->n_folders; i++) {
		const struct walk_folder *f = listing->folder[i];
		const struct index_folder folder = {
		    .mtime_ns = f->mtime_ns,
		    .device = f->device,
		    .inode = f->inode,
		};

		index_add_folder(writer, f->path, &folder);
		if (!listing->flat && folder_is_class(f)) {
			index_add_class(writer, f->path);
			classes++;
		}
		if (folder_counts(listing, f))
			write_samples(writer, f, classes ? classes - 1 : 0);
	}
}

/* The list and the index, for a moment. */
static bool listing_has_room(const struct listing *listing, const struct scan_progress *progress)
{
	return scan_takes(progress, listing->bytes + index_bytes(&listing->head));
}

static int listing_write(struct listing *listing, const char *root_name,
			 const struct scan_progress *progress, int *ret_fd, struct diag *diag)
{
	struct index_writer writer;
	int r;

	listing_measure(listing);
	if (!listing_has_room(listing, progress))
		return DATASET_E_ROOM;
	r = index_new(&writer, &listing->head);
	if (r)
		return diag_fail(diag, r,
				 "cannot make the index of dataset \"%s\" (%llu samples): %s",
				 BASE_QUOTED(root_name, 256),
				 (unsigned long long)listing->head.n_samples, strerror(-r));
	write_all(&writer, listing);
	r = index_seal(&writer, ret_fd);
	index_drop(&writer);
	return r;
}

/* Of the files of one kind. */
static int build_of(const struct walk_kind *kind, int root_fd, const char *root_name,
		    unsigned threads, const struct scan_progress *progress, int *ret_fd,
		    struct diag *diag)
{
	struct walk_folder *folders;
	struct listing listing = {.kind = kind};
	struct walk_left left;
	int r;

	r = walk_tree(root_fd, root_name, kind, threads, progress, &folders, &left, diag);
	if (r)
		return r;
	r = listing_sort(&listing, folders);
	r = r ? r : listing_decide(&listing, root_name, &left, diag);
	r = r ? r : listing_write(&listing, root_name, progress, ret_fd, diag);
	if (!r && left.count && progress && progress->left_out)
		progress->left_out(progress->arg, left.count, left.names);
	free(listing.folder);
	walk_free(folders);
	return r;
}

/* Each kind is looked for where there is none of those before it. Where there is none at all, the first one says so. */
int scan_build(int root_fd, const char *root_name, unsigned threads,
	       const struct scan_progress *progress, int *ret_fd, struct diag *diag)
{
	struct diag empty = {.text = ""};
	unsigned i = 0;
	int r;

	do
		r = build_of(&walk_kinds[i], root_fd, root_name, threads, progress, ret_fd,
			     i ? diag : &empty);
	while (r == DATASET_E_EMPTY && ++i < WALK_KINDS);
	if (r && (i == 0 || i == WALK_KINDS))
		*diag = empty;
	return r;
}

/* ---- verification ---- */

static bool folder_is_same(const struct dataset_folder *folder, int64_t youngest_ns,
			   const struct stat *st)
{
	return S_ISDIR(st->st_mode) && folder->mtime_ns != INDEX_UNSETTLED &&
	       folder->mtime_ns == walk_mtime_ns(st) && walk_ctime_ns(st) <= youngest_ns &&
	       folder->device == st->st_dev && folder->inode == st->st_ino;
}

int scan_verify(int root_fd, const char *root_name, const struct dataset *dataset,
		struct diag *diag)
{
	const uint64_t n = dataset_head(dataset)->n_folders;
	const int64_t youngest_ns = dataset_head(dataset)->youngest_ns;

	for (uint64_t i = 0; i < n; i++) {
		struct dataset_folder folder;
		struct stat st;

		dataset_folder_of(dataset, i, &folder);
		if (fstatat(root_fd, *folder.path ? folder.path : ".", &st, 0) == 0 &&
		    folder_is_same(&folder, youngest_ns, &st))
			continue;
		return diag_fail(diag, DATASET_E_CHANGED,
				 "folder \"%s\" of dataset \"%s\" has changed since it was listed",
				 *folder.path ? BASE_QUOTED(folder.path, 384) : ".",
				 BASE_QUOTED(root_name, 256));
	}
	return 0;
}
