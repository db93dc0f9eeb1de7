/* SPDX-License-Identifier: Apache-2.0 */

/*
 * access-ctl convert --check: every byte of a converted data set is what was written.
 *
 * Head, places and index have checksums of their own, each sample has one in the index, the zeros between samples are
 * zeros, and the dataset version is the one that follows from names and checksums. What is
 * damaged is told by name, so that a person can say whether it matters.
 */

#include "convert/convert.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "storage/index.h"
#include "storage/oads.h"

#define VERIFY_MOST_NAMES 20

struct verify {
	const char *path;
	int fd; /* owned */
	struct oads *oads;
	struct dataset *index;
	uint8_t *buffer; /* owned */
	uint64_t n_bad, bytes;
	struct convert_progress progress;
};

static int verify_fail(const struct verify *verify, const char *what)
{
	fprintf(stderr, "access-ctl convert: \"%s\": %s\n", BASE_QUOTED(verify->path, 512), what);
	return CONVERT_FAILED;
}

static int verify_open(struct verify *verify)
{
	_cleanup_close_ int fd = -1;
	struct diag diag;
	int r;

	verify->fd = open(verify->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (verify->fd < 0)
		return verify_fail(verify, strerror(errno));
	r = oads_open(verify->fd, verify->path, NULL, &verify->oads, &diag);
	if (r == OADS_E_NONE)
		return verify_fail(verify, "is no converted data set");
	if (r) {
		fprintf(stderr, "access-ctl convert: %s\n", diag.text);
		return CONVERT_FAILED;
	}
	r = oads_index(verify->oads, NULL, &fd);
	if (r < 0)
		return verify_fail(verify, strerror(-r));
	if (r || dataset_map(fd, &verify->index) || !oads_is_index(verify->oads, verify->index))
		return verify_fail(verify, "its index is damaged");
	verify->buffer = malloc(dataset_head(verify->index)->largest_bytes + OADS_ALIGN);
	return verify->buffer ? 0 : verify_fail(verify, "not enough memory for its largest sample");
}

static void tell_bad(struct verify *verify, uint64_t sample, const char *what)
{
	if (verify->n_bad++ >= VERIFY_MOST_NAMES)
		return;
	convert_progress_end(&verify->progress);
	fprintf(stderr, "access-ctl convert: sample %llu \"%s\": %s\n", (unsigned long long)sample,
		BASE_QUOTED(dataset_name_of(verify->index, sample), 512), what);
}

/* What stands between the end of a sample and the next one. */
static bool gap_is_zero(const struct verify *verify, uint64_t sample, uint64_t at)
{
	const uint32_t size = dataset_size_of(verify->index, sample);
	const uint64_t gap = base_align_up(size, OADS_ALIGN) - size;
	uint8_t bytes[OADS_ALIGN];

	if (pread(verify->fd, bytes, gap, (off_t)(at + size)) != (ssize_t)gap)
		return false;
	for (uint64_t i = 0; i < gap; i++)
		if (bytes[i])
			return false;
	return true;
}

static int verify_sample(struct verify *verify, uint64_t sample)
{
	uint64_t at;
	int r = oads_read(verify->oads, verify->index, sample, verify->buffer);

	if (r == OADS_E_CHANGED)
		return verify_fail(verify, "was written to while it was read");
	if (r < 0)
		tell_bad(verify, sample, strerror(-r));
	else if (r == OADS_E_INDEX)
		tell_bad(verify, sample, "its entry in the index is damaged");
	else if (r)
		tell_bad(verify, sample, "its checksum is wrong");
	else if (oads_place(verify->oads, verify->index, sample, &at) &&
		 !gap_is_zero(verify, sample, at))
		tell_bad(verify, sample, "there is something behind it that does not belong there");
	verify->bytes += dataset_size_of(verify->index, sample);
	return 0;
}

/* As index.c makes it. 0 or -ENOMEM. */
static int version_make(const struct dataset *index, struct hash_id *ret)
{
	struct hash *hash;

	if (hash_new(&hash))
		return -ENOMEM;
	hash_add_u64(hash, dataset_classes(index) ? INDEX_LABELS_FOLDERS : INDEX_LABELS_FLAT);
	hash_add_u64(hash, dataset_count(index));
	for (uint64_t i = 0; i < dataset_count(index); i++) {
		const char *name = dataset_name_of(index, i);

		hash_add(hash, name, strlen(name) + 1);
		hash_add_u64(hash, dataset_size_of(index, i));
		hash_add_u64(hash, (uint64_t)dataset_mtime_of(index, i));
	}
	hash_finish(hash, ret);
	hash_free(hash);
	return 0;
}

static int verify_all(struct verify *verify)
{
	const uint64_t n = dataset_count(verify->index);
	struct hash_id version;
	int r = 0;

	convert_progress_begin(&verify->progress, "checking", n);
	for (uint64_t i = 0; i < n && !r; i++) {
		convert_progress_tell(&verify->progress, i, verify->bytes);
		r = verify_sample(verify, i);
	}
	convert_progress_end(&verify->progress);
	if (r)
		return r;
	if (verify->n_bad) {
		fprintf(stderr, "access-ctl convert: %llu of %llu samples are damaged\n",
			(unsigned long long)verify->n_bad, (unsigned long long)n);
		return CONVERT_FAILED;
	}
	if (version_make(verify->index, &version))
		return verify_fail(verify, strerror(ENOMEM));
	if (memcmp(&version, dataset_version(verify->index), sizeof(version)) != 0)
		return verify_fail(verify, "its dataset version is not that of its samples");
	return 0;
}

int convert_verify(const struct convert_options *options)
{
	struct verify verify = {.path = options->source, .fd = -1};
	int r = verify_open(&verify);

	r = r ? r : verify_all(&verify);
	if (!r) {
		char hex[65];

		printf("%s: %llu samples, %s, dataset version %s: all is as it was written\n",
		       BASE_QUOTED(verify.path, 512),
		       (unsigned long long)dataset_count(verify.index),
		       BASE_BYTES(oads_head(verify.oads)->bytes),
		       hash_hex(dataset_version(verify.index), hex));
	}
	oads_close(verify.oads);
	dataset_unmap(verify.index);
	base_close(&verify.fd);
	free(verify.buffer);
	return !r && fflush(stdout) != 0 ? CONVERT_FAILED : r;
}
