/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Indexes of datasets that are not there: what opening costs at 10^7 and 10^9 samples.
 *
 *	listing make FOLDER SAMPLES OUT
 *		An index of so many samples, which are the pictures of FOLDER over and over: valid in
 *		every byte, and every sample can be read. OUT in accessd's folder of indexes, under the
 *		name that is printed, makes FOLDER a dataset of that size.
 *	listing sparse FOLDER SAMPLES OUT
 *		The same with holes for records and names: it takes a thousandth of the disk, and opens,
 *		but its samples are damaged.
 *	listing map FILE
 *		Maps it as accessd does and says how long that took and what memory it has.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "storage/dataset.h"
#include "storage/index.h"

#define LISTING_SPARSE_NAME 9 /* bytes a name has, that is not there */

static int fail(const char *what, int error)
{
	fprintf(stderr, "listing: %s: %s\n", what, strerror(error < 0 ? -error : error));
	return 1;
}

static struct dataset *scan(const char *folder)
{
	_cleanup_close_ int root = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	_cleanup_close_ int fd = -1;
	struct dataset *dataset = NULL;
	struct diag diag = {.text = ""};

	if (root < 0 || scan_build(root, folder, 2, NULL, &fd, &diag) || dataset_map(fd, &dataset))
		fprintf(stderr, "listing: %s: %s\n", folder,
			root < 0 ? strerror(errno) : diag.text);
	return dataset;
}

/* The numbers of an index that has the pictures of `of` n times over, but the names' length. */
static struct index_head head_of(const struct dataset *of, uint64_t n)
{
	struct index_head head = {
	    .n_samples = n,
	    .n_classes = dataset_classes(of),
	    .n_folders = dataset_folders(of),
	    .label_rule = dataset_classes(of) ? INDEX_LABELS_FOLDERS : INDEX_LABELS_FLAT,
	};

	for (uint32_t i = 0; i < head.n_classes; i++)
		head.classes_bytes += strlen(dataset_class_name(of, i)) + 1;
	for (uint64_t i = 0; i < head.n_folders; i++) {
		struct dataset_folder folder;

		dataset_folder_of(of, i, &folder);
		head.folders_bytes += strlen(folder.path) + 1;
	}
	return head;
}

static void add_rest(struct index_writer *writer, const struct dataset *of)
{
	for (uint32_t i = 0; i < dataset_classes(of); i++)
		index_add_class(writer, dataset_class_name(of, i));
	for (uint64_t i = 0; i < dataset_folders(of); i++) {
		struct dataset_folder folder;
		struct index_folder record;

		dataset_folder_of(of, i, &folder);
		record = (struct index_folder){folder.mtime_ns, folder.device, folder.inode};
		index_add_folder(writer, folder.path, &record);
	}
}

static int copy(int from, int to)
{
	struct stat st;
	off_t at = 0;

	if (fstat(from, &st) < 0)
		return -errno;
	while (at < st.st_size)
		if (sendfile(to, from, &at, (size_t)(st.st_size - at)) <= 0)
			return -errno;
	return 0;
}

static int make(const struct dataset *of, uint64_t n, int to)
{
	struct index_head head = head_of(of, n);
	struct index_writer writer;
	_cleanup_close_ int fd = -1;
	int r;

	for (uint64_t i = 0; i < n; i++)
		head.names_bytes += strlen(dataset_name_of(of, i % dataset_count(of))) + 1;
	r = index_new(&writer, &head);
	if (r)
		return r;
	for (uint64_t i = 0; i < n; i++) {
		uint64_t k = i % dataset_count(of);
		const struct index_record record = {dataset_mtime_of(of, k), dataset_size_of(of, k),
						    dataset_label_of(of, k)};

		index_add_sample(&writer, "", dataset_name_of(of, k), &record);
	}
	add_rest(&writer, of);
	r = index_seal(&writer, &fd);
	index_drop(&writer);
	return r ? r : copy(fd, to);
}

/* Blocks of zeros are alike: their sums need not be computed. */
static void sum_sparse(uint8_t *map, const struct index_places *place)
{
	struct index_head *head = (struct index_head *)(void *)map;
	static const uint8_t zeros[INDEX_BLOCK];
	uint64_t sum = hash_checksum(zeros, sizeof(zeros)), at;
	uint64_t *sums = (uint64_t *)(void *)(map + place->sums);

	for (uint64_t i = 0; i < index_blocks(place); i++) {
		uint64_t bytes = index_block(place, i, &at);
		bool is_hole = at > sizeof(*head) && at + bytes <= place->class_starts;

		sums[i] = is_hole ? sum : hash_checksum(map + at, bytes);
	}
	head->sums_checksum = hash_checksum(sums, 8 * index_blocks(place));
	head->head_checksum = 0;
	head->head_checksum = hash_checksum(head, sizeof(*head));
}

static int make_sparse(const struct dataset *of, uint64_t n, int to)
{
	struct index_head head = head_of(of, n);
	struct index_writer writer = {.fd = -1};

	head.names_bytes = n * LISTING_SPARSE_NAME;
	if (!index_place(&head, &writer.place))
		return -EFBIG;
	head.magic = INDEX_MAGIC;
	head.version = INDEX_VERSION;
	head.head_bytes = sizeof(head);
	head.bytes = writer.place.bytes;
	head.sum_bytes = n * (dataset_bytes(of) / dataset_count(of));
	head.largest_bytes = dataset_largest(of);
	hash_of(&n, sizeof(n), &head.dataset);
	if (ftruncate(to, (off_t)head.bytes) < 0)
		return -errno;
	writer.map = mmap(NULL, head.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, to, 0);
	if (writer.map == MAP_FAILED)
		return -errno;
	memcpy(writer.map, &head, sizeof(head));
	add_rest(&writer, of);
	sum_sparse(writer.map, &writer.place);
	munmap(writer.map, head.bytes);
	return 0;
}

static int run_make(const char *folder, const char *samples, const char *out, bool is_sparse)
{
	struct dataset *of = scan(folder);
	_cleanup_close_ int to = open(out, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	uint64_t n = strtoull(samples, NULL, 10);
	struct hash_id id;
	char hex[65];
	int r;

	if (!of || to < 0)
		return fail(out, errno);
	r = is_sparse ? make_sparse(of, n, to) : make(of, n, to);
	dataset_unmap(of);
	if (r)
		return fail("cannot make the index", r);
	hash_of(folder, strlen(folder), &id);
	printf("%s\n", hash_hex(&id, hex));
	return 0;
}

static double now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return 1e3 * (double)now.tv_sec + (double)now.tv_nsec / 1e6;
}

/* Pages of this process that are in memory, in MiB. */
static double resident_mib(void)
{
	unsigned long pages = 0;
	FILE *file = fopen("/proc/self/statm", "r");

	if (!file || fscanf(file, "%*u %lu", &pages) != 1)
		pages = 0;
	if (file)
		fclose(file);
	return (double)pages * (double)sysconf(_SC_PAGESIZE) / (1 << 20);
}

static int run_map(const char *path)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	double before_mib = resident_mib(), begin_ms = now_ms(), mapped_ms, used_ms, mapped_mib;
	struct dataset *dataset;
	uint64_t n, bytes = 0;
	int r = fd < 0 ? -errno : dataset_map(fd, &dataset);

	if (r)
		return fail(path, r < 0 ? r : EBADMSG);
	mapped_ms = now_ms();
	mapped_mib = resident_mib();
	n = dataset_count(dataset);
	for (uint64_t i = 0; i < 100000; i++)
		bytes += dataset_size_of(dataset, i * UINT64_C(2654435761) % n);
	used_ms = now_ms();
	printf("%llu samples: mapped in %.1f ms (%.1f MiB), 100,000 records at random in %.1f ms "
	       "(%.1f MiB, %llu bytes of files)\n",
	       (unsigned long long)n, mapped_ms - begin_ms, mapped_mib - before_mib,
	       used_ms - mapped_ms, resident_mib() - before_mib, (unsigned long long)bytes);
	dataset_unmap(dataset);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 5 && (strcmp(argv[1], "make") == 0 || strcmp(argv[1], "sparse") == 0))
		return run_make(argv[2], argv[3], argv[4], argv[1][0] == 's');
	if (argc == 3 && strcmp(argv[1], "map") == 0)
		return run_map(argv[2]);
	fprintf(stderr, "usage: listing make|sparse FOLDER SAMPLES OUT | listing map FILE\n");
	return 2;
}
