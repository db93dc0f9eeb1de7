/* SPDX-License-Identifier: Apache-2.0 */

/* A stored index that is honest comes back; one that lies about anything is refused. */

#include "storage/dataset.h"
#include "storage/index.h"
#include "tests/suite.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

static bool is_far; /* files lie on NFS, it seems */

/* In the place of the C library's. */
int fstatfs(int fd, struct statfs *fs)
{
	const int r = (int)syscall(SYS_fstatfs, fd, fs);

	if (is_far)
		fs->f_type = 0x6969;
	return r;
}

/* Two classes, three samples, three folders. */
static int write_small(void)
{
	static const char *const names[][2] = {{"a", "1.jpg"}, {"a", "2.jpg"}, {"b/c", "3.jpg"}};
	static const char *const folders[] = {"", "a", "b", "b/c"};
	const struct index_head head = {
	    .n_samples = 3,
	    .names_bytes = 8 + 8 + 10,
	    .n_classes = 2,
	    .classes_bytes = 4,
	    .n_folders = 4,
	    .folders_bytes = 1 + 2 + 2 + 4,
	    .label_rule = INDEX_LABELS_FOLDERS,
	};
	struct index_writer writer;
	int fd = -1;

	ck_assert_int_eq(index_new(&writer, &head), 0);
	for (uint32_t i = 0; i < 3; i++) {
		const struct index_record record = {
		    .mtime_ns = 1000 + i, .size = 10 * i, .label = i / 2};

		index_add_sample(&writer, names[i][0], names[i][1], &record);
	}
	index_add_class(&writer, "a");
	index_add_class(&writer, "b");
	for (uint32_t i = 0; i < 4; i++) {
		const struct index_folder folder = {.mtime_ns = i, .device = 1, .inode = 50 + i};

		index_add_folder(&writer, folders[i], &folder);
	}
	ck_assert_int_eq(index_seal(&writer, &fd), 0);
	index_drop(&writer);
	return fd;
}

START_TEST(what_was_written_comes_back)
{
	static const char *const names[] = {"a/1.jpg", "a/2.jpg", "b/c/3.jpg"};
	const int fd = write_small();
	struct dataset *dataset;
	struct dataset_folder folder;

	ck_assert(dataset_is_sealed(fd));
	ck_assert_int_eq(dataset_map(fd, &dataset), 0);
	close(fd);
	ck_assert_uint_eq(dataset_count(dataset), 3);
	ck_assert_uint_eq(dataset_head(dataset)->sum_bytes, 30);
	for (uint32_t i = 0; i < 3; i++) {
		ck_assert_str_eq(dataset_name_of(dataset, i), names[i]);
		ck_assert_uint_eq(dataset_size_of(dataset, i), 10 * i);
		ck_assert_int_eq(dataset_mtime_of(dataset, i), 1000 + i);
		ck_assert_uint_eq(dataset_label_of(dataset, i), i / 2);
	}
	ck_assert_uint_eq(dataset_classes(dataset), 2);
	ck_assert_str_eq(dataset_class_name(dataset, 1), "b");
	ck_assert_uint_eq(dataset_head(dataset)->n_folders, 4);
	dataset_folder_of(dataset, 3, &folder);
	ck_assert_str_eq(folder.path, "b/c");
	ck_assert_uint_eq(folder.inode, 53);
	dataset_unmap(dataset);
}
END_TEST

/* On a network file system a file may be taken away from under its mapping; shortening it has the
 * same effect here: SIGBUS. */
START_TEST(far_index_is_not_mapped)
{
	const int from = write_small();
	char name[] = "far-index-XXXXXX", bytes[4096];
	const int fd = mkstemp(name);
	struct dataset *dataset;
	ssize_t size;

	ck_assert_int_ge(fd, 0);
	unlink(name);
	size = pread(from, bytes, sizeof(bytes), 0);
	ck_assert_int_gt(size, 0);
	ck_assert_int_eq(write(fd, bytes, (size_t)size), size);
	is_far = true;
	ck_assert_int_eq(dataset_map(fd, &dataset), 0);
	ck_assert_int_eq(ftruncate(fd, 0), 0);
	ck_assert_str_eq(dataset_name_of(dataset, 2), "b/c/3.jpg");
	ck_assert_uint_eq(dataset_size_of(dataset, 2), 20);
	dataset_unmap(dataset);
	close(fd);
	close(from);
}
END_TEST

START_TEST(sealed_index_cannot_be_changed)
{
	const int fd = write_small();

	ck_assert_int_lt(write(fd, "x", 1), 0);
	ck_assert_int_ne(ftruncate(fd, 10), 0);
	ck_assert_ptr_eq(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), MAP_FAILED);
	close(fd);
}
END_TEST

/* ---- lies ---- */

struct image { /* a copy of the index, to be changed */
	uint8_t *data;
	size_t size;
	struct index_head *head;
	struct index_places place;
};

static void image_new(struct image *image)
{
	const int fd = write_small();
	struct stat st;

	ck_assert_int_eq(fstat(fd, &st), 0);
	image->size = (size_t)st.st_size;
	image->data = malloc(image->size + 64);
	ck_assert_int_eq(pread(fd, image->data, image->size, 0), st.st_size);
	close(fd);
	image->head = (struct index_head *)(void *)image->data;
	ck_assert(index_place(image->head, &image->place));
}

/* dataset_map() of the bytes as a plain file; checksums are made right again if forge is set. */
static int image_map(struct image *image, bool forge)
{
	struct dataset *dataset;
	const int fd = memfd_create("forged", MFD_CLOEXEC);
	int r;

	if (forge) {
		struct index_places place;

		if (index_place(image->head, &place) && place.bytes <= image->size)
			index_sum(image->data, &place);
		image->head->head_checksum = 0;
		image->head->head_checksum = hash_checksum(image->head, sizeof(*image->head));
	}
	ck_assert_int_eq(write(fd, image->data, image->size), (ssize_t)image->size);
	r = dataset_map(fd, &dataset);
	close(fd);
	if (!r)
		dataset_unmap(dataset);
	return r;
}

static uint64_t *words(struct image *image, uint64_t place)
{
	return (uint64_t *)(void *)(image->data + place);
}

static void lie_nothing(struct image *image)
{
	(void)image;
}
static void lie_magic(struct image *image)
{
	image->head->magic++;
}
static void lie_version(struct image *image)
{
	image->head->version++;
}
static void lie_head_bytes(struct image *image)
{
	image->head->head_bytes -= 8;
}
static void lie_bytes(struct image *image)
{
	image->head->bytes += 8;
}
static void lie_samples(struct image *image)
{
	image->head->n_samples++;
}
static void lie_many_samples(struct image *image)
{
	image->head->n_samples = UINT64_MAX / 8;
}
static void lie_no_samples(struct image *image)
{
	image->head->n_samples = 0;
}
static void lie_sum(struct image *image)
{
	image->head->sum_bytes++;
}
static void lie_largest(struct image *image)
{
	image->head->largest_bytes--;
}
static void lie_rule(struct image *image)
{
	image->head->label_rule = 7;
}
static void lie_flat(struct image *image)
{
	image->head->label_rule = INDEX_LABELS_FLAT;
}
static void lie_label(struct image *image)
{
	((struct index_record *)(void *)(image->data + image->place.records))[1].label = 2;
}
static void lie_first_start(struct image *image)
{
	words(image, image->place.name_starts)[0] = 1;
}
static void lie_descending(struct image *image)
{
	words(image, image->place.name_starts)[1] = UINT64_MAX;
}
static void lie_empty_name(struct image *image)
{
	words(image, image->place.name_starts)[1] = 0;
}
static void lie_end(struct image *image)
{
	words(image, image->place.name_starts)[3]--;
}
static void lie_nul_missing(struct image *image)
{
	image->data[image->place.names + 7] = 'x';
}
static void lie_nul_inside(struct image *image)
{
	image->data[image->place.names + 3] = 0;
}
static void put_name(struct image *image, const char *seven)
{
	memcpy(image->data + image->place.names, seven, 7);
}
static void lie_absolute(struct image *image)
{
	put_name(image, "/a1.jpg");
}
static void lie_up(struct image *image)
{
	put_name(image, "../.jpg");
}
static void lie_up_inside(struct image *image)
{
	put_name(image, "a/../.j");
}
static void lie_up_last(struct image *image)
{
	put_name(image, "a.jp/..");
}
static void lie_dot(struct image *image)
{
	put_name(image, "a/./1.j");
}
static void lie_twice_slash(struct image *image)
{
	put_name(image, "a//1.jp");
}
static void lie_slash_last(struct image *image)
{
	put_name(image, "a/1.jp/");
}
static void lie_class_short(struct image *image)
{
	image->data[image->place.classes] = '\0';
}
static void lie_folder_up(struct image *image)
{
	memcpy(image->data + image->place.folder_paths + 5, "/..", 3);
}
static void lie_longer(struct image *image)
{
	memset(image->data + image->size, 0, 8);
	image->size += 8;
}
static void lie_shorter(struct image *image)
{
	image->size -= 8;
}
static void lie_head_alone(struct image *image)
{
	image->size = sizeof(*image->head) - 1;
}

static const struct lie {
	const char *name;
	void (*tell)(struct image *image);
} lies[] = {
    {"nothing", lie_nothing},
    {"magic", lie_magic},
    {"version", lie_version},
    {"head_bytes", lie_head_bytes},
    {"bytes", lie_bytes},
    {"samples", lie_samples},
    {"many samples", lie_many_samples},
    {"no samples", lie_no_samples},
    {"sum", lie_sum},
    {"largest", lie_largest},
    {"rule", lie_rule},
    {"flat with classes", lie_flat},
    {"label", lie_label},
    {"first start", lie_first_start},
    {"descending", lie_descending},
    {"empty name", lie_empty_name},
    {"end", lie_end},
    {"NUL missing", lie_nul_missing},
    {"NUL inside", lie_nul_inside},
    {"absolute", lie_absolute},
    {"up", lie_up},
    {"up inside", lie_up_inside},
    {"up last", lie_up_last},
    {"dot", lie_dot},
    {"//", lie_twice_slash},
    {"/ last", lie_slash_last},
    {"class short", lie_class_short},
    {"folder up", lie_folder_up},
    {"longer", lie_longer},
    {"shorter", lie_shorter},
    {"head alone", lie_head_alone},
};

START_TEST(lies_are_refused)
{
	struct image image;

	image_new(&image);
	lies[_i].tell(&image);
	ck_assert_msg(image_map(&image, lies[_i].tell != lie_head_alone) ==
			  (lies[_i].tell == lie_nothing ? 0 : DATASET_E_BAD),
		      "%s", lies[_i].name);
	free(image.data);
}
END_TEST

START_TEST(every_flipped_bit_is_found)
{
	struct image image;

	image_new(&image);
	for (size_t bit = 0; bit < 8 * image.size; bit++) {
		image.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
		ck_assert_int_eq(image_map(&image, false), DATASET_E_BAD);
		image.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
	ck_assert_int_eq(image_map(&image, false), 0);
	free(image.data);
}
END_TEST

/* ---- large ones, which are checked where they are used ---- */

#define MANY 200000u /* samples: 9 MB */
#define A_PLACE 100000u

static int write_many(void)
{
	const struct index_head head = {
	    .n_samples = MANY,
	    .names_bytes = MANY * sizeof("c/0000000.jpg"),
	    .n_classes = 1,
	    .classes_bytes = 2,
	    .n_folders = 2,
	    .folders_bytes = 3,
	    .label_rule = INDEX_LABELS_FOLDERS,
	};
	const struct index_folder folder = {.mtime_ns = 1, .device = 2, .inode = 3};
	struct index_writer writer;
	int fd = -1;

	ck_assert_int_eq(index_new(&writer, &head), 0);
	for (uint32_t i = 0; i < MANY; i++) {
		const struct index_record record = {.mtime_ns = i, .size = 1 + i};
		char name[16];

		snprintf(name, sizeof(name), "%07u.jpg", i);
		index_add_sample(&writer, "c", name, &record);
	}
	index_add_class(&writer, "c");
	index_add_folder(&writer, "", &folder);
	index_add_folder(&writer, "c", &folder);
	ck_assert_int_eq(index_seal(&writer, &fd), 0);
	index_drop(&writer);
	return fd;
}

/* The index, changed at a place by fn. */
static struct dataset *map_many(void (*fn)(uint8_t *data, const struct index_places *place),
				bool forge)
{
	const int from = write_many(), to = memfd_create("many", MFD_CLOEXEC);
	struct dataset *dataset;
	struct index_places place;
	struct stat st;
	uint8_t *data;

	ck_assert_int_eq(fstat(from, &st), 0);
	data = malloc((size_t)st.st_size);
	ck_assert_int_eq(pread(from, data, (size_t)st.st_size, 0), st.st_size);
	ck_assert(index_place((struct index_head *)(void *)data, &place));
	fn(data, &place);
	if (forge)
		index_sum(data, &place);
	ck_assert_int_eq(write(to, data, (size_t)st.st_size), st.st_size);
	ck_assert_int_eq(dataset_map(to, &dataset), 0);
	close(from);
	close(to);
	free(data);
	return dataset;
}

static void harm_record(uint8_t *data, const struct index_places *place)
{
	data[place->records + 16 * A_PLACE + 8] ^= 1;
}
static void harm_label(uint8_t *data, const struct index_places *place)
{
	data[place->records + 16 * A_PLACE + 12] = 1;
}
static void harm_start(uint8_t *data, const struct index_places *place)
{
	data[place->name_starts + 8 * A_PLACE + 6] = 1;
}
static void harm_order(uint8_t *data, const struct index_places *place)
{
	memcpy(data + place->name_starts + 8 * A_PLACE + 8, data + place->name_starts, 8);
}
static void harm_name(uint8_t *data, const struct index_places *place)
{
	memcpy(data + place->names + 14 * A_PLACE, "../0", 4);
}
static void harm_end(uint8_t *data, const struct index_places *place)
{
	data[place->names + 14 * A_PLACE + 13] = 'x';
}

static const struct harm {
	void (*fn)(uint8_t *data, const struct index_places *place);
	bool forge, of_record, of_name;
} harms[] = {
    {harm_record, false, true, false}, {harm_label, true, true, false},
    {harm_start, false, false, true},  {harm_start, true, false, true},
    {harm_order, true, false, true},   {harm_name, false, false, true},
    {harm_name, true, false, true},    {harm_end, true, false, true},
};

/* What is damaged reads as nothing, and all else as it is. */
START_TEST(harm_is_found_where_it_is_used)
{
	const struct harm *harm = &harms[_i];
	struct dataset *dataset = map_many(harm->fn, harm->forge);
	char name[32];

	ck_assert_uint_eq(dataset_size_of(dataset, 0), 1);
	ck_assert_str_eq(dataset_name_of(dataset, 0), "c/0000000.jpg");
	ck_assert(dataset_has(dataset, 0));
	ck_assert(!dataset_has(dataset, A_PLACE));
	ck_assert_uint_eq(dataset_size_of(dataset, A_PLACE), harm->of_record ? 0 : 1 + A_PLACE);
	ck_assert_int_eq(dataset_mtime_of(dataset, A_PLACE), harm->of_record ? 0 : A_PLACE);
	ck_assert_uint_eq(dataset_label_of(dataset, A_PLACE), 0);
	snprintf(name, sizeof(name), "c/%07u.jpg", A_PLACE);
	ck_assert_str_eq(dataset_name_of(dataset, A_PLACE), harm->of_name ? "" : name);
	ck_assert_uint_eq(dataset_size_of(dataset, MANY - 1), MANY);
	ck_assert_uint_eq(dataset_head(dataset)->largest_bytes, MANY);
	ck_assert_str_eq(dataset_class_name(dataset, 0), "c");
	dataset_unmap(dataset);
}
END_TEST

START_TEST(what_is_no_file_is_refused)
{
	struct dataset *dataset;
	int ends[2];

	ck_assert_int_eq(pipe(ends), 0);
	ck_assert_int_eq(dataset_map(ends[0], &dataset), DATASET_E_BAD);
	ck_assert(!dataset_is_sealed(ends[0]));
	ck_assert_int_eq(dataset_map(-1, &dataset), -EBADF);
	close(ends[0]);
	close(ends[1]);
}
END_TEST

START_TEST(plain_memfd_is_not_sealed)
{
	const int fd = memfd_create("plain", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	ck_assert(!dataset_is_sealed(fd));
	ck_assert_int_eq(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW), 0);
	ck_assert(!dataset_is_sealed(fd));
	ck_assert_int_eq(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
	ck_assert(dataset_is_sealed(fd));
	close(fd);
}
END_TEST

/* Sealed, and all the same a touch may end who maps it. */
START_TEST(huge_pages_are_not_sealed)
{
	const int fd = memfd_create("huge", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_HUGETLB);

	if (fd < 0) {
		puts("skipped: a kernel without huge pages");
		return;
	}
	ck_assert_int_eq(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK), 0);
	ck_assert(!dataset_is_sealed(fd));
	close(fd);
}
END_TEST

START_TEST(absurd_numbers_make_no_index)
{
	struct index_writer writer;

	ck_assert_int_eq(index_new(&writer, &(struct index_head){.n_samples = UINT64_MAX}), -EFBIG);
	ck_assert_int_eq(index_new(&writer, &(struct index_head){.names_bytes = UINT64_MAX}),
			 -EFBIG);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, what_was_written_comes_back);
	tcase_add_test(tcase, far_index_is_not_mapped);
	tcase_add_test(tcase, sealed_index_cannot_be_changed);
	tcase_add_loop_test(tcase, lies_are_refused, 0, BASE_ARRAY_LEN(lies));
	tcase_add_test(tcase, every_flipped_bit_is_found);
	tcase_add_loop_test(tcase, harm_is_found_where_it_is_used, 0, BASE_ARRAY_LEN(harms));
	tcase_add_test(tcase, what_is_no_file_is_refused);
	tcase_add_test(tcase, plain_memfd_is_not_sealed);
	tcase_add_test(tcase, huge_pages_are_not_sealed);
	tcase_add_test(tcase, absurd_numbers_make_no_index);
}

int main(void)
{
	return suite_run("dataset", add);
}
