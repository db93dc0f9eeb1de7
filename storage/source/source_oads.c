/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A converted data set: one file, with its index in it (storage/oads.c).
 */

#include "storage/oads.h"
#include "storage/source/source_bytes.h"
#include "storage/source/source_kind.h"

static int refuse(const struct reader_dataset *dataset, const char *what, int code,
		  struct diag *diag)
{
	return diag_fail(
	    diag, code,
	    "the converted data set \"%s\" cannot be used: %s; access-ctl convert --check says "
	    "more, access-ctl convert makes it anew from the folder",
	    BASE_QUOTED(dataset->shown, 512), what);
}

struct converted {               /* dataset->source of one */
	struct oads *oads;       /* owned */
	struct source_from from; /* of the opener, where it is an object */
};

static const struct oads *oads_of(const struct reader_dataset *dataset)
{
	return ((const struct converted *)dataset->source)->oads;
}

static int read_object(void *from, void *to, uint64_t bytes, uint64_t at)
{
	return source_read(from, to, bytes, at);
}

static int open_oads(const struct reader_dataset *dataset, const struct scan_progress *progress,
		     struct converted *converted, struct diag *diag)
{
	const struct oads_reader reader = {.read = read_object, .arg = &converted->from};
	int r;

	converted->from = (struct source_from){.dataset = dataset, .fd = dataset->root_fd};
	r = oads_open_from(dataset->root_fd, dataset->bucket ? &reader : NULL, dataset->shown,
			   progress, &converted->oads, diag);
	return r < 0 && *converted->from.why ? source_read_failed(&converted->from, r, diag) : r;
}

static int converted_probe(struct reader_dataset *dataset, const struct scan_progress *progress,
			   struct diag *diag)
{
	struct converted *converted;
	int r;

	if (dataset->is_folder)
		return SOURCE_E_NONE;
	converted = calloc(1, sizeof(*converted));
	if (!converted)
		return -ENOMEM;
	r = open_oads(dataset, progress, converted, diag);
	if (r)
		free(converted);
	else
		dataset->source = converted;
	if (r == OADS_E_NONE)
		return SOURCE_E_NONE;
	return r > 0 && r != DATASET_E_ROOM ? DATASET_E_REFUSED : r;
}

/* The index that is in the file, unless the stored one is the same. */
static int converted_place(struct reader_dataset *dataset, const struct scan_progress *progress,
			   int *ret_fd, struct diag *diag)
{
	const struct oads *oads = oads_of(dataset);
	int r;

	if (source_map_stored(dataset)) {
		if (oads_is_index(oads, dataset->index))
			return 0;
		source_unmap(dataset);
	}
	r = oads_index(oads, progress, ret_fd);
	if (r == DATASET_E_ROOM)
		return r;
	if (r < 0 || r == DATASET_E_CANCELLED)
		return refuse(dataset, r < 0 ? strerror(-r) : "cancelled", r, diag);
	if (r || source_map_new(dataset, ret_fd, diag) || !oads_is_index(oads, dataset->index))
		return refuse(dataset, "its index is damaged", DATASET_E_REFUSED, diag);
	return 0;
}

static int converted_index(struct reader_dataset *dataset, unsigned threads,
			   const struct scan_progress *progress, int *ret_fd, struct diag *diag)
{
	_cleanup_close_ int fd = -1;
	const int r = converted_place(dataset, progress, &fd, diag);

	(void)threads;
	if (r)
		return r;
	if (oads_check(oads_of(dataset)))
		return refuse(dataset, "it is being written to", DATASET_E_REFUSED, diag);
	*ret_fd = base_take_fd(&fd);
	return 0;
}

static void judge(int r, struct reader_outcome *ret)
{
	if (r < 0)
		reader_outcome_set(ret, LAYOUT_FAIL_READ, -r, strerror(-r));
	else if (r == OADS_E_DAMAGED)
		reader_outcome_set(ret, LAYOUT_FAIL_READ, EBADMSG,
				   "its checksum is wrong: damaged on the disk");
	else if (r == OADS_E_INDEX)
		reader_outcome_set(ret, LAYOUT_FAIL_CHANGED, LAYOUT_CHANGED_ALL,
				   READ_INDEX_DAMAGED);
	else if (r)
		reader_outcome_set(ret, LAYOUT_FAIL_CHANGED, LAYOUT_CHANGED_ALL,
				   "the file was written to since it was opened");
	else
		ret->stage = LAYOUT_FAIL_NONE;
}

static int converted_place_of(const struct reader_dataset *dataset, uint64_t sample,
			      uint8_t *buffer, struct source_range *ret)
{
	const struct oads *oads = oads_of(dataset);
	uint64_t at;

	if (!*dataset_name_of(dataset->index, sample) ||
	    !oads_place(oads, dataset->index, sample, &at))
		return DATASET_E_BAD;
	*ret = (struct source_range){.size = oads_head(oads)->bytes,
				     .mtime_ns = oads_mtime_ns(oads),
				     .at = at,
				     .bytes = dataset_size_of(dataset->index, sample),
				     .to = buffer};
	return 0;
}

static void converted_settle(const struct reader_dataset *dataset, uint64_t sample, uint8_t *buffer,
			     struct reader_outcome *ret)
{
	judge(oads_check_bytes(dataset->index, sample, buffer), ret);
}

static void converted_read(const struct reader_dataset *dataset, int root_fd, uint64_t sample,
			   uint8_t *buffer, struct reader_outcome *ret)
{
	const struct oads *oads = oads_of(dataset);
	const int r = buffer ? oads_read(oads, dataset->index, sample, buffer) : oads_check(oads);

	(void)root_fd;
	judge(r, ret);
}

static void converted_close(struct reader_dataset *dataset)
{
	struct converted *converted = dataset->source;

	if (converted)
		oads_close(converted->oads);
	free(converted);
}

const struct source_ops source_oads = {
    .name = "converted",
    .unconverted = "is a converted data set: convert what it was made from",
    .probe = converted_probe,
    .index = converted_index,
    .read = converted_read,
    .place = converted_place_of,
    .settle = converted_settle,
    .close = converted_close,
};
