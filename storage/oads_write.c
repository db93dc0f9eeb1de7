/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Writing a converted data set: samples in their order as they come, then the index, the starts and, last
 * of all, the head, so that a file that was not finished is none. Between parts there are zeros.
 *
 * The same samples give the same file, byte for byte: there is no time, no name of a machine and no order
 * of arrival in it. Of each sample 16 bytes are kept until the end, where the index is made with the
 * names of the one that the samples came from.
 */

#include "storage/oads.h"

#include <sys/mman.h>

#include "storage/index.h"

struct oads_stored {
	uint64_t sum;
	uint32_t size;
};

/* And zeros behind it up to the next multiple; true to the byte also where the file was longer. */
static int append(struct oads_writer *writer, const void *bytes, uint64_t size)
{
	static const uint8_t zeros[OADS_ALIGN];
	const uint64_t end = base_align_up(size, OADS_ALIGN);
	int r = base_write_at(writer->fd, bytes, size, writer->at);

	r = r ? r : base_write_at(writer->fd, zeros, end - size, writer->at + size);
	if (!r)
		writer->at += end;
	return r;
}

int oads_writer_init(struct oads_writer *writer, int fd, uint64_t n)
{
	static const uint8_t zeros[OADS_FIRST];
	int r;

	*writer = (struct oads_writer){.fd = fd, .room = n};
	writer->stored = calloc(n, sizeof(*writer->stored));
	if (!writer->stored)
		return -ENOMEM;
	r = append(writer, zeros, sizeof(zeros));
	if (r)
		oads_writer_fini(writer);
	return r;
}

void oads_writer_fini(struct oads_writer *writer)
{
	free(writer->stored);
	writer->stored = NULL;
}

int oads_add(struct oads_writer *writer, const void *bytes, uint32_t size, uint64_t sum,
	     uint64_t source_bytes, bool is_formed)
{
	int r = writer->n < writer->room ? append(writer, bytes, size) : -ERANGE;

	if (r)
		return r;
	writer->stored[writer->n++] = (struct oads_stored){.sum = sum, .size = size};
	writer->source_bytes += source_bytes;
	writer->n_formed += is_formed;
	return 0;
}

/* ---- the end ---- */

#define NAME_MOST 8192 /* bytes of a sample's name, with its NUL */

/* A path below: that of a manifest's file may lead anywhere. */
static const char *name_below(const struct dataset *source, uint64_t sample, char ret[NAME_MOST])
{
	char *to = ret;

	for (const char *from = dataset_name_of(source, sample); *from;) {
		const size_t length = strcspn(from, "/");
		const bool is_up = length == 2 && strncmp(from, "..", 2) == 0;

		if (length && !is_up && !(length == 1 && *from == '.') &&
		    length + 2 < (size_t)(ret + NAME_MOST - to)) {
			if (to > ret)
				*to++ = '/';
			to = mempcpy(to, from, length);
		}
		from += length + (from[length] == '/');
	}
	if (to == ret)
		*to++ = '_';
	*to = '\0';
	return ret;
}

static struct index_head index_numbers(const struct dataset *source)
{
	struct index_head head = {
	    .n_samples = dataset_count(source),
	    .n_classes = dataset_classes(source),
	    .n_folders = 1,
	    .folders_bytes = 1,
	    .label_rule = dataset_classes(source) ? INDEX_LABELS_FOLDERS : INDEX_LABELS_FLAT,
	};
	char name[NAME_MOST];

	for (uint64_t i = 0; i < head.n_samples; i++)
		head.names_bytes += strlen(name_below(source, i, name)) + 1;
	for (uint32_t i = 0; i < head.n_classes; i++)
		head.classes_bytes += strlen(dataset_class_name(source, i)) + 1;
	return head;
}

static void index_fill(struct index_writer *index, const struct oads_writer *writer,
		       const struct dataset *source)
{
	const struct index_folder folder = {.mtime_ns = INDEX_UNSETTLED};
	char name[NAME_MOST];

	for (uint64_t i = 0; i < writer->n; i++) {
		const struct index_record record = {
		    .mtime_ns = (int64_t)writer->stored[i].sum,
		    .size = writer->stored[i].size,
		    .label = dataset_label_of(source, i),
		};

		index_add_sample(index, "", name_below(source, i, name), &record);
	}
	for (uint32_t i = 0; i < dataset_classes(source); i++)
		index_add_class(index, dataset_class_name(source, i));
	index_add_folder(index, "", &folder);
}

static int index_make(const struct oads_writer *writer, const struct dataset *source, int *ret_fd)
{
	const struct index_head head = index_numbers(source);
	struct index_writer index;
	int r = index_new(&index, &head);

	if (r)
		return r;
	index_fill(&index, writer, source);
	r = index_seal(&index, ret_fd);
	index_drop(&index);
	return r;
}

/* The index into the file; its numbers into the head. */
static int index_put(struct oads_writer *writer, const struct dataset *source,
		     struct oads_head *head)
{
	_cleanup_close_ int fd = -1;
	struct index_head numbers;
	void *map;
	int r = index_make(writer, source, &fd);

	r = r ? r : base_read_at(fd, &numbers, sizeof(numbers), 0);
	if (r)
		return r;
	head->index_at = writer->at;
	head->index_bytes = numbers.bytes;
	head->dataset = numbers.dataset;
	map = mmap(NULL, numbers.bytes, PROT_READ, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		return -errno;
	r = append(writer, map, numbers.bytes);
	munmap(map, numbers.bytes);
	return r;
}

static int starts_put(struct oads_writer *writer, struct oads_head *head)
{
	const uint64_t groups = (writer->n + OADS_GROUP - 1) / OADS_GROUP, at = writer->at;
	_cleanup_free_ uint64_t *start = calloc(groups + 1, sizeof(*start));
	uint64_t next = OADS_FIRST;

	if (!start)
		return -ENOMEM;
	for (uint64_t i = 0; i < writer->n; i++) {
		if (i % OADS_GROUP == 0)
			start[i / OADS_GROUP] = next;
		next += base_align_up(writer->stored[i].size, OADS_ALIGN);
	}
	start[groups] = next;
	head->starts_checksum = hash_checksum(start, 8 * (groups + 1));
	head->bytes = at + 8 * (groups + 1);
	return base_write_at(writer->fd, start, 8 * (groups + 1), at);
}

int oads_finish(struct oads_writer *writer, const struct dataset *source, uint32_t form)
{
	struct oads_head head = {
	    .magic = OADS_MAGIC,
	    .version = OADS_VERSION,
	    .head_bytes = sizeof(head),
	    .n_samples = writer->n,
	    .form = form,
	    .forms = OADS_FORMS,
	    .n_formed = writer->n_formed,
	    .source_bytes = writer->source_bytes,
	};
	int r = writer->n == dataset_count(source) ? index_put(writer, source, &head) : -ERANGE;

	r = r ? r : starts_put(writer, &head);
	if (r)
		return r;
	head.head_checksum = hash_checksum(&head, sizeof(head));
	return base_write_at(writer->fd, &head, sizeof(head), 0);
}
