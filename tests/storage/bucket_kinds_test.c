/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Each kind of data set, by a real access-reader: once of files, and once as objects that an access-bucket of this program's
 * serves. Both are one version, and have the same bytes.
 */

#include "base/little.h"
#include "base/zip.h"
#include "storage/index.h"
#include "storage/oads.h"
#include "tests/storage/bucket_fake.h"
#include "tests/storage/reader_process.h"
#include "tests/storage/scan_run.h"
#include "tests/suite.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static struct tree tree;
static struct fake fake;
static struct process process;

static void setup(void)
{
	tree_new(&tree);
	fake_tree(&tree);
	fake_start(&fake, &tree);
	process_start(&process, NULL, true);
}

static void teardown(void)
{
	process_stop(&process);
	fake_stop(&fake);
	tree_remove(&tree);
}

/* ---- data sets ---- */

static void write_file(const char *name, const void *bytes, size_t size)
{
	char path[300];
	int fd;

	snprintf(path, sizeof(path), "real/%s", name);
	fd = openat(tree.fd, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(base_write_at(fd, bytes, size, 0), 0);
	close(fd);
}

static void write_shard(const char *name, struct shard_bytes *shard)
{
	write_file(name, shard->data, shard->size);
	shard_bytes_fini(shard);
}

/* Whatever bytes, that are called KEY. */
static void put_noise(struct shard_bytes *shard, const char *key, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		const uint8_t byte = tree_byte(key, i);

		shard_put(shard, &byte, 1);
	}
}

static void make_folder(void)
{
	char name[64];

	for (unsigned i = 0; i < 300; i++) {
		snprintf(name, sizeof(name), "real/class%u/%04u.jpg", i % 3, i);
		tree_file(&tree, name, i * 97 % 9000); /* the first is empty */
	}
	tree_file(&tree, "real/class0/large.png", (9 << 20) + 17);
}

static void put_member(struct shard_bytes *shard, const char *path, size_t size)
{
	char block[512] = "";
	unsigned sum = 0;

	snprintf(block, 100, "%s", path);
	snprintf(block + 124, 12, "%011o", (unsigned)size & 0777777777);
	block[156] = '0';
	memset(block + 148, ' ', 8);
	for (size_t i = 0; i < sizeof(block); i++)
		sum += (uint8_t)block[i];
	snprintf(block + 148, 8, "%06o", sum);
	shard_put(shard, block, sizeof(block));
	put_noise(shard, path, size);
	shard_put_fill(shard, 0, (size_t)base_align_up(size, 512) - size);
}

static void make_tar_at(const char *folder, unsigned shards)
{
	char name[64];

	for (unsigned i = 0; i < shards; i++) {
		struct shard_bytes shard;

		shard_bytes_init(&shard, 16 << 20);
		for (unsigned k = 0; k < 40; k++) {
			snprintf(name, sizeof(name), "%02u%02u.jpg", i, k);
			put_member(&shard, name, 100000 + (k * 77777) % 200000);
			snprintf(name, sizeof(name), "%02u%02u.json", i, k);
			put_member(&shard, name, 10);
		}
		shard_put_fill(&shard, 0, 1024);
		snprintf(name, sizeof(name), "%s%03u.tar", folder, i);
		write_shard(name, &shard);
	}
}

static void make_tar(void)
{
	make_tar_at("", 3);
	/* indexes of others, one of which lies */
	write_file("000.idx", "v1.2 1\njpg 512 100000 0000.jpg\n", 31);
	write_file("x.json", "{\"shardlist\": [{\"url\": \"000.tar\", \"nsamples\": 40}]}", 52);
}

static void make_tar_below(void)
{
	ck_assert_int_eq(mkdirat(tree.fd, "real/train", 0700), 0);
	make_tar_at("train/", 2);
}

static void put_zip_entry(struct shard_bytes *to, bool is_header, unsigned method, uint32_t size,
			  const char *name)
{
	uint8_t entry[ZIP_ENTRY] = {'P', 'K', is_header ? 3 : 1, is_header ? 4 : 2};
	uint8_t *both = entry + (is_header ? 4 : 6);

	both[0] = 20;
	both[4] = (uint8_t)method;
	little_put_32(both + 14, size);
	little_put_32(both + 18, size);
	little_put(both + 22, strlen(name), 2);
	shard_put(to, entry, is_header ? ZIP_HEADER : ZIP_ENTRY);
	shard_put(to, name, strlen(name));
}

/* What is called deflated is noise, too: nobody unpacks it here. */
static void make_zip_of(unsigned method)
{
	uint8_t end[ZIP_END] = {'P', 'K', 5, 6};
	struct shard_bytes shard, directory;
	char name[64];

	shard_bytes_init(&shard, 8 << 20);
	shard_bytes_init(&directory, 1 << 16);
	for (unsigned i = 0; i < 120; i++) {
		const uint32_t size = i * 997 % 90000, at = (uint32_t)shard.size; /* one is empty */

		snprintf(name, sizeof(name), "c%u/%03u.jpg", i % 3, i);
		put_zip_entry(&shard, true, method, size, name);
		put_noise(&shard, name, size);
		put_zip_entry(&directory, false, method, size, name);
		little_put_32(directory.data + directory.size - strlen(name) - 4, at);
	}
	little_put(end + 8, 120, 2);
	little_put(end + 10, 120, 2);
	little_put_32(end + 12, (uint32_t)directory.size);
	little_put_32(end + 16, (uint32_t)shard.size);
	shard_put(&shard, directory.data, directory.size);
	shard_put(&shard, end, sizeof(end));
	shard_bytes_fini(&directory);
	write_shard("a.zip", &shard);
}

static void make_zip(void)
{
	make_zip_of(ZIP_STORED);
}

static void make_zip_deflated(void)
{
	make_zip_of(ZIP_DEFLATED);
}

static void make_tfrecord(void)
{
	for (unsigned i = 0; i < 2; i++) {
		struct shard_bytes shard;
		char name[64];

		shard_bytes_init(&shard, 1 << 20);
		for (unsigned k = 0; k < 50; k++) {
			const size_t size = 20 + k * 301;
			const int64_t label = k % 7;
			struct shard_bytes features, example, picture;

			shard_bytes_init(&picture, 1 << 16);
			shard_bytes_init(&features, 1 << 16);
			shard_bytes_init(&example, 1 << 16);
			shard_put(&picture, "\xff\xd8\xff\xe0", 4);
			snprintf(name, sizeof(name), "%u.%u", i, k);
			put_noise(&picture, name, size);
			shard_put_bytes(&features, "image/encoded", picture.data, picture.size);
			shard_put_ints(&features, "image/class/label", &label, 1, 1);
			shard_put_example(&example, &features);
			shard_put_tfrecord(&shard, example.data, example.size);
			shard_bytes_fini(&picture);
			shard_bytes_fini(&features);
			shard_bytes_fini(&example);
		}
		snprintf(name, sizeof(name), "train-%05u-of-00002", i);
		write_shard(name, &shard);
	}
}

static const char mds_columns[] =
    "{\"column_encodings\": [\"str\", \"jpeg\", \"int\"], \"column_names\": [\"a\", \"image\", "
    "\"label\"], \"column_sizes\": [null, null, 8], \"compression\": null, \"format\": \"mds\", "
    "\"hashes\": [], \"size_limit\": 67108864, \"version\": 2}";

static void make_mds(void)
{
	const unsigned n = 1500;
	uint32_t at = 4 + 4 * (n + 1) + (uint32_t)sizeof(mds_columns) - 1;
	struct shard_bytes shard;
	char index[1024], key[16];

	shard_bytes_init(&shard, 16 << 20);
	shard_put_32(&shard, n);
	for (unsigned i = 0; i <= n; i++) {
		shard_put_32(&shard, at);
		at += 8 + i + 20 + i + 8;
	}
	shard_put(&shard, mds_columns, sizeof(mds_columns) - 1);
	for (unsigned i = 0; i < n; i++) {
		snprintf(key, sizeof(key), "%u", i);
		shard_put_32(&shard, i);
		shard_put_32(&shard, 20 + i);
		shard_put_fill(&shard, 't', i);
		shard_put(&shard, "\xff\xd8\xff\xe0", 4);
		put_noise(&shard, key, 16 + i);
		shard_put_64(&shard, i % 10);
	}
	snprintf(
	    index, sizeof(index),
	    "{\"shards\": [{\"column_encodings\": [\"str\", \"jpeg\", \"int\"], "
	    "\"column_names\": [\"a\", \"image\", \"label\"], \"column_sizes\": [null, null, 8], "
	    "\"compression\": null, \"format\": \"mds\", \"hashes\": [], \"raw_data\": "
	    "{\"basename\": \"shard.00000.mds\", \"bytes\": %zu, \"hashes\": {}}, \"samples\": "
	    "%u, \"size_limit\": 67108864, \"version\": 2, \"zip_data\": null}], \"version\": 2}",
	    shard.size, n);
	write_shard("shard.00000.mds", &shard);
	write_file("index.json", index, strlen(index));
}

/* As litdata writes samples of {"image": bytes, "meta": {"label": int, "score": float}, "a": numpy.zeros(1, "u1")}. */
static const char litdata_chunk[] =
    "\2\0\0\0\x10\0\0\0\x38\0\0\0\x62\0\0\0\7\0\0\0\x08\0\0\0\x08\0\0\0\1\0\0\0\xff\xd8\xff\xe0"
    "EEE\x0f\0\0\0\0\0\0\0\0\0\0\0\0\0\xe0?\0\t\0\0\0\x08\0\0\0\x08\0\0\0\1\0\0\0\xff\xd8\xff\xe0"
    "EEEEE\x11\0\0\0\0\0\0\0\0\0\0\0\0\0\xe0?";
static const char litdata_index[] =
    "{\"chunks\": [{\"chunk_bytes\": 98, \"chunk_size\": 2, \"dim\": null, \"filename\": "
    "\"chunk-0-0.bin\"}], \"config\": {\"chunk_bytes\": null, \"chunk_size\": 5, \"compression\": "
    "null, \"compression_batch_size\": null, \"compression_level\": null, \"data_format\": "
    "[\"bytes\", \"int\", \"float\", \"no_header_numpy:4\"], \"data_spec\": \"[1, {\\\"type\\\": "
    "\\\"builtins.dict\\\", \\\"context\\\": \\\"[\\\\\\\"image\\\\\\\", \\\\\\\"meta\\\\\\\", "
    "\\\\\\\"a\\\\\\\"]\\\", \\\"children_spec\\\": [{\\\"type\\\": null, \\\"context\\\": null, "
    "\\\"children_spec\\\": []}, {\\\"type\\\": \\\"builtins.dict\\\", \\\"context\\\": "
    "\\\"[\\\\\\\"label\\\\\\\", \\\\\\\"score\\\\\\\"]\\\", \\\"children_spec\\\": "
    "[{\\\"type\\\": "
    "null, \\\"context\\\": null, \\\"children_spec\\\": []}, {\\\"type\\\": null, "
    "\\\"context\\\": "
    "null, \\\"children_spec\\\": []}]}, {\\\"type\\\": null, \\\"context\\\": null, "
    "\\\"children_spec\\\": []}]}]\", \"encryption\": null, \"ipc_compression\": null, "
    "\"item_loader\": \"PyTreeLoader\", \"types\": {\"a\": \"json\", \"image\": \"bytes\"}}, "
    "\"updated_at\": \"1795737279.3\"}";

static void make_litdata(void)
{
	write_file("chunk-0-0.bin", litdata_chunk, sizeof(litdata_chunk));
	write_file("index.json", litdata_index, sizeof(litdata_index) - 1);
}

static void put_recordio(struct shard_bytes *shard, unsigned cut, const void *data, uint32_t size)
{
	shard_put_32(shard, 0xced7230a);
	shard_put_32(shard, cut << 29 | size);
	shard_put(shard, data, size);
	shard_put_fill(shard, 0, (4 - shard->size % 4) % 4);
}

/* One of them is cut where the magic number is in it. */
static void make_recordio(void)
{
	struct shard_bytes shard, record;
	char key[16];

	shard_bytes_init(&shard, 1 << 20);
	for (unsigned i = 0; i < 60; i++) {
		shard_bytes_init(&record, 1 << 16);
		shard_put_32(&record, 0);
		shard_put_32(&record, 0x40000000); /* 2.0 */
		shard_put_64(&record, i);
		shard_put_64(&record, 0);
		snprintf(key, sizeof(key), "%u", i);
		put_noise(&record, key, 1 + i * 100);
		if (i == 30) {
			put_recordio(&shard, 1, record.data, 1000);
			put_recordio(&shard, 3, record.data + 1000, (uint32_t)record.size - 1000);
		} else {
			put_recordio(&shard, 0, record.data, (uint32_t)record.size);
		}
		shard_bytes_fini(&record);
	}
	write_shard("a.rec", &shard);
}

static void make_bagz(void)
{
	struct shard_bytes shard;
	uint64_t limit[1300];
	char key[16];

	shard_bytes_init(&shard, 8 << 20);
	for (unsigned i = 0; i < BASE_ARRAY_LEN(limit); i++) {
		snprintf(key, sizeof(key), "%u", i);
		shard_put(&shard, "\xff\xd8\xff\xe0", 4);
		put_noise(&shard, key, 8 + i % 900);
		limit[i] = shard.size;
	}
	for (unsigned i = 0; i < BASE_ARRAY_LEN(limit); i++)
		shard_put_64(&shard, limit[i]);
	write_shard("a.bag", &shard);
}

static void make_arrayrecord(void)
{
	struct shard_bytes stream, record, shard;
	char key[16];

	shard_bytes_init(&stream, 8 << 20);
	shard_bytes_init(&record, 1 << 17);
	shard_bytes_init(&shard, 9 << 20);
	for (unsigned i = 0; i < 300; i++) {
		snprintf(key, sizeof(key), "%u", i);
		record.size = 0;
		shard_put(&record, "\xff\xd8\xff\xe0", 4);
		put_noise(&record, key, i % 50 ? 8 + i * 37 : 100000);
		shard_put_array_record(&stream, record.data, record.size);
	}
	shard_put_array_file(&shard, &stream);
	write_shard("a.array_record", &shard);
	shard_bytes_fini(&record);
	shard_bytes_fini(&stream);
}

/* Of FFCV's: pixels, and every third a JPEG. */
static void make_beton(void)
{
	enum { SAMPLES = 200, DATA_AT = 24 + 1041 + SAMPLES * 13 };
	struct shard_bytes shard, pages;
	uint8_t field[1041] = "\2image", row[13];
	uint64_t place[SAMPLES][2];
	char key[16];

	shard_bytes_init(&shard, 4 << 20);
	shard_bytes_init(&pages, 3 << 20);
	shard_put_32(&shard, 2 | 1 << 16);
	shard_put_32(&shard, 1 << 21);
	shard_put_64(&shard, SAMPLES);
	shard_put_64(&shard, 0);
	shard_put(&shard, field, sizeof(field));
	for (unsigned i = 0; i < SAMPLES; i++) {
		place[i][0] = DATA_AT + pages.size;
		place[i][1] = (uint64_t)3 * (1 + i) * (1 + i % 50);
		little_put(row, i % 3 > 0, 1);
		little_put(row + 1, 1 + i, 2);
		little_put(row + 3, 1 + i % 50, 2);
		little_put(row + 5, place[i][0], 8);
		shard_put(&shard, row, sizeof(row));
		snprintf(key, sizeof(key), "%u", i);
		put_noise(&pages, key, place[i][1]);
	}
	shard_put(&shard, pages.data, pages.size);
	little_put_64(shard.data + 16, shard.size);
	for (unsigned i = 0; i < SAMPLES; i++) {
		shard_put_64(&shard, i);
		shard_put_64(&shard, place[i][0]);
		shard_put_64(&shard, place[i][1]);
	}
	write_shard("a.beton", &shard);
	shard_bytes_fini(&pages);
}

static void make_manifest(void)
{
	struct shard_bytes text;
	char line[64];

	shard_bytes_init(&text, 1 << 16);
	shard_put(&text, "path,label\n", 11);
	for (unsigned i = 0; i < 100; i++) {
		snprintf(line, sizeof(line), "real/pictures/%u.jpg", i);
		tree_file(&tree, line, 10 + i * 31);
		snprintf(line, sizeof(line), "./pictures/%u.jpg,%u\n", i, i % 4);
		shard_put(&text, line, strlen(line));
	}
	write_shard("all.csv", &text);
}

static void make_npy(void)
{
	static const char text[] =
	    "{'descr': '<u2', 'fortran_order': False, 'shape': (200, 3, 5), }";
	struct shard_bytes file;
	uint8_t head[118];

	shard_bytes_init(&file, 1 << 16);
	memset(head, ' ', sizeof(head));
	memcpy(head, text, strlen(text));
	head[117] = '\n';
	shard_put(&file, "\x93NUMPY\1\0\x76\0", 10);
	shard_put(&file, head, sizeof(head));
	put_noise(&file, "npy", 200 * 15 * 2);
	write_shard("a.npy", &file);
}

#define DOCUMENTS 5000
static uint32_t tokens_of(unsigned document)
{
	return 1 + document * 7 % 200;
}

static void make_tokens(void)
{
	struct shard_bytes bin, idx;
	uint64_t at = 0;

	shard_bytes_init(&bin, 4 << 20);
	shard_bytes_init(&idx, 1 << 20);
	shard_put(&idx, "MMIDIDX\0", 9);
	shard_put_64(&idx, 1);
	shard_put_fill(&idx, 8, 1);
	shard_put_64(&idx, DOCUMENTS);
	shard_put_64(&idx, DOCUMENTS + 1);
	for (unsigned i = 0; i < DOCUMENTS; i++)
		shard_put_32(&idx, tokens_of(i));
	for (unsigned i = 0; i < DOCUMENTS; at += 2 * tokens_of(i++))
		shard_put_64(&idx, at);
	for (unsigned i = 0; i <= DOCUMENTS; i++)
		shard_put_64(&idx, i);
	put_noise(&bin, "bin", at);
	write_shard("a.bin", &bin);
	write_shard("a.idx", &idx);
}

/* And which of them count: all but a few. */
static void make_counted(void)
{
	struct shard_bytes loss;
	uint64_t tokens = 0;

	make_tokens();
	for (unsigned i = 0; i < DOCUMENTS; i++)
		tokens += tokens_of(i);
	shard_bytes_init(&loss, 4 << 20);
	put_noise(&loss, "loss", tokens);
	write_shard("a.loss", &loss);
}

static void make_records(void)
{
	struct shard_bytes file;

	shard_bytes_init(&file, 1 << 16);
	put_noise(&file, "records", 64 * 500);
	write_shard("a.bin", &file);
}

/* What was converted is a folder beside the data set. */
static void make_converted(void)
{
	struct tree folder;
	struct dataset *dataset;
	struct oads_writer writer;
	uint8_t *bytes = malloc(1 << 16);
	char name[64];
	int fd;

	tree_new(&folder);
	for (unsigned i = 0; i < 150; i++) {
		snprintf(name, sizeof(name), "c%u/%03u.jpg", i % 3, i);
		tree_file(&folder, name, i * 131);
	}
	dataset = tree_scan(&folder, 2);
	fd = openat(tree.fd, "real/all.oads", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(oads_writer_init(&writer, fd, dataset_count(dataset)), 0);
	for (uint64_t i = 0; i < dataset_count(dataset); i++) {
		const uint32_t size = dataset_size_of(dataset, i);

		for (uint32_t k = 0; k < size; k++)
			bytes[k] = tree_byte(dataset_name_of(dataset, i), k);
		ck_assert_int_eq(
		    oads_add(&writer, bytes, size, hash_checksum(bytes, size), size, false), 0);
	}
	ck_assert_int_eq(oads_finish(&writer, dataset, 0), 0);
	oads_writer_fini(&writer);
	close(fd);
	free(bytes);
	dataset_unmap(dataset);
	tree_remove(&folder);
}

/* ---- both ---- */

static struct dataset *open_at(uint64_t id, const char *folder, const char *below)
{
	struct dataset *index;
	char path[4300];
	int fd;

	snprintf(path, sizeof(path), "%s/%s%s", tree.path, folder, below);
	process_ask_open(&process, id, path, -1);
	fd = process_opened(&process, id);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(dataset_map(fd, &index), 0);
	close(fd);
	return index;
}

static void read_all(struct work *work, struct dataset *index, uint64_t id)
{
	work_new(work, &tree, index, (uint32_t)id);
	work_attach(&process, work, id);
	work_queue(&process, work);
	/* each one that fails is told, too, and somebody has to listen */
	while (work_in_state(work, LAYOUT_TASK_READY) + work_in_state(work, LAYOUT_TASK_FAILED) <
	       work->count)
		ck_assert(process_is_silent(&process));
}

static void check_ready(const struct work *work)
{
	for (uint32_t i = 0; i < work->count; i++) {
		enum layout_fail stage;
		uint32_t owner, us;
		char text[48];
		int code;

		queue_task_outcome(&work->queue, work->row, i, &stage, &code, text, &us);
		ck_assert_msg(queue_task_state(&work->queue, work->row, i, &owner) ==
				  LAYOUT_TASK_READY,
			      "%s: stage %d code %d %s", dataset_name_of(work->dataset, i), stage,
			      code, text);
	}
}

static void close_both(struct work *one, struct work *other)
{
	work_detach(&process, one);
	work_detach(&process, other);
	work_free(one);
	work_free(other);
}

static void compare_both(const char *below)
{
	struct dataset *real = open_at(1, "real", below), *object = open_at(2, BUCKET_DATA, below);
	struct work files, objects;

	ck_assert_uint_eq(dataset_count(real), dataset_count(object));
	ck_assert_mem_eq(dataset_version(real), dataset_version(object), sizeof(struct hash_id));
	read_all(&files, real, 1);
	read_all(&objects, object, 2);
	check_ready(&files);
	check_ready(&objects);
	for (uint32_t i = 0; i < files.count; i++) {
		const uint32_t bytes = dataset_size_of(real, i);

		ck_assert_uint_eq(files.offset[i], objects.offset[i]);
		ck_assert_msg(memcmp(files.arena + files.offset[i],
				     objects.arena + objects.offset[i], bytes) == 0,
			      "sample %u", i);
	}
	close_both(&files, &objects);
}

static const struct {
	const char *name;
	void (*make)(void);
	const char *below;
} kinds[] = {
    {"folder", make_folder, ""},
    {"tar", make_tar, ""},
    {"tar, all files of each", make_tar, "?members=all"},
    {"tar, one", make_tar, "/001.tar"},
    {"tar, a list", make_tar, "/{000..001}.tar"},
    {"tar, below", make_tar_below, "/train"},
    {"tar, a list below", make_tar_below, "/train/{000,001}.tar"},
    {"tfrecord", make_tfrecord, ""},
    {"tfrecord, one", make_tfrecord, "/train-00000-of-00002"},
    {"mds", make_mds, ""},
    {"litdata", make_litdata, ""},
    {"recordio", make_recordio, "/a.rec"},
    {"bagz", make_bagz, "/a.bag"},
    {"arrayrecord", make_arrayrecord, "/a.array_record"},
    {"beton", make_beton, "/a.beton"},
    {"zip", make_zip, "/a.zip"},
    {"zip, deflated", make_zip_deflated, "/a.zip"},
    {"manifest", make_manifest, "/all.csv"},
    {"npy", make_npy, "/a.npy"},
    {"records", make_records, "/a.bin?record=64"},
    {"tokens", make_tokens, "/a.bin?seq_len=128"},
    {"tokens, packed", make_tokens, "/a.bin?seq_len=512,pack=1"},
    {"tokens that count", make_counted, "/a.bin?seq_len=128,loss=1"},
    {"tokens that count, packed", make_counted, "/a.bin?seq_len=512,pack=1,loss=1"},
    {"converted", make_converted, "/all.oads"},
};

START_TEST(objects_are_as_files)
{
	kinds[_i].make();
	fake_list(&tree);
	compare_both(kinds[_i].below);
}
END_TEST

/* Late answers, lost connections. */
START_TEST(however_they_come)
{
	static const enum fake_act acts[] = {FAKE_BACKWARDS, FAKE_HALF_CLOSE};

	make_folder();
	fake_list(&tree);
	fake_says(&fake, acts[_i], "");
	compare_both("");
	ck_assert_uint_gt(fake_counts(&fake).most, 8);
}
END_TEST

/* ---- what indexes take ---- */

START_TEST(a_tar_is_read_once_in_large_ranges)
{
	struct fake counts;
	struct stat st;
	uint64_t all = 0;

	make_tar_at("", 1);
	fake_list(&tree);
	ck_assert_int_eq(fstatat(tree.fd, "real/000.tar", &st, 0), 0);
	all = (uint64_t)st.st_size;
	dataset_unmap(open_at(1, BUCKET_DATA, ""));
	counts = fake_counts(&fake);
	ck_assert_uint_le(counts.bytes, all);
	ck_assert_uint_eq(counts.shortest, 64 << 10);
	ck_assert_uint_ge(counts.longest, 2 << 20);
	ck_assert_uint_le(counts.asks, 8);
}
END_TEST

/* Of a Bagz file only the limits, at its end, and the first bytes of each record. */
START_TEST(others_where_they_are_looked_at)
{
	struct shard_bytes shard;
	uint64_t limit[8];

	shard_bytes_init(&shard, 40 << 20);
	for (unsigned i = 0; i < BASE_ARRAY_LEN(limit); i++) {
		shard_put(&shard, "\xff\xd8\xff\xe0", 4);
		shard_put_fill(&shard, 'p', 4 << 20);
		limit[i] = shard.size;
	}
	for (unsigned i = 0; i < BASE_ARRAY_LEN(limit); i++)
		shard_put_64(&shard, limit[i]);
	write_shard("a.bag", &shard);
	fake_list(&tree);
	dataset_unmap(open_at(1, BUCKET_DATA, "/a.bag"));
	ck_assert_uint_le(fake_counts(&fake).bytes, 2 << 20);
}
END_TEST

/* ---- what is not good ---- */

static const struct {
	const char *name;
	void (*make)(void);
	const char *below, *file;
	enum fake_act act;
	enum layout_fail stage;
	int code;
	const char *text;
} bads[] = {
    {"an object", make_folder, "", "class1/0001.jpg", FAKE_CHANGED, LAYOUT_FAIL_CHANGED, 0,
     "since it was listed"},
    {"a large one", make_folder, "", "class0/large.png", FAKE_DENIED, LAYOUT_FAIL_READ, EACCES,
     FAKE_TEXT},
    {"one", make_folder, "", "class1/0001.jpg", FAKE_FAILED, LAYOUT_FAIL_READ, EREMOTEIO,
     "HTTP 503"},
    {"a shard", make_tar, "", "001.tar", FAKE_CHANGED, LAYOUT_FAIL_CHANGED, LAYOUT_CHANGED_ALL,
     "since it was listed"},
    {"documents", make_tokens, "/a.bin?seq_len=512,pack=1", "a.bin", FAKE_CHANGED,
     LAYOUT_FAIL_CHANGED, LAYOUT_CHANGED_ALL, "since it was opened"},
};

START_TEST(bad_ones_are_told)
{
	struct work work;
	struct dataset *index;
	unsigned failed = 0;

	bads[_i].make();
	fake_list(&tree);
	index = open_at(1, BUCKET_DATA, bads[_i].below);
	fake_says(&fake, bads[_i].act, bads[_i].file);
	read_all(&work, index, 1);
	for (uint32_t i = 0; i < work.count; i++) {
		enum layout_fail stage;
		char text[48];
		uint32_t us;
		int code;

		queue_task_outcome(&work.queue, work.row, i, &stage, &code, text, &us);
		if (stage == LAYOUT_FAIL_NONE)
			continue;
		failed++;
		ck_assert_int_eq(stage, bads[_i].stage);
		ck_assert_int_eq(code, bads[_i].code);
		ck_assert_msg(strstr(text, bads[_i].text), "%s", text);
	}
	ck_assert_uint_gt(failed, 0);
	ck_assert(bads[_i].make != make_folder || failed == 1);
	work_detach(&process, &work);
	work_free(&work);
}
END_TEST

/* What cannot be opened says why, and which data set it is. */
static const struct {
	const char *below, *file, *text;
	void (*make)(void);
} refused[] = {
    {"/001.tar", "001.tar", FAKE_TEXT, make_tar},
    {"/{000..002}.tar", "001.tar", FAKE_TEXT, make_tar},
    {"", "index.json", FAKE_TEXT, make_mds},
    {"/a.bin?seq_len=512,pack=1", "a.idx", FAKE_TEXT, make_tokens},
    {"/a.npy", "a.npy", FAKE_TEXT, make_npy},
};

START_TEST(openings_say_why)
{
	char path[4300], text[768];

	refused[_i].make();
	fake_list(&tree);
	fake_says(&fake, FAKE_DENIED, refused[_i].file);
	snprintf(path, sizeof(path), "%s/" BUCKET_DATA "%s", tree.path, refused[_i].below);
	process_ask_open(&process, 1, path, -1);
	ck_assert_int_ne(process_refused(&process, 1, text), 0);
	ck_assert_msg(strstr(text, refused[_i].text) && strstr(text, FAKE_URL), "%s", text);
}
END_TEST

/* A list of files that lie elsewhere is none. */
START_TEST(manifests_lead_nowhere_else)
{
	static const char *const paths[] = {"../real/a.jpg", "x/../../real/a.jpg", "/etc/passwd"};
	char path[4300], text[768];

	tree_file(&tree, "real/a.jpg", 10);
	for (size_t i = 0; i < BASE_ARRAY_LEN(paths); i++) {
		snprintf(text, sizeof(text), "path,label\n%s,1\n", paths[i]);
		write_file("a.csv", text, strlen(text));
		fake_list(&tree);
		snprintf(path, sizeof(path), "%s/" BUCKET_DATA "/a.csv", tree.path);
		process_ask_open(&process, 1 + i, path, -1);
		ck_assert_int_eq(process_refused(&process, 1 + i, text), DATASET_E_REFUSED);
		ck_assert_msg(strstr(text, ":2: ") && strstr(text, "is not there"), "%s", text);
	}
}
END_TEST

START_TEST(a_queue_leaves_where_nobody_is)
{
	struct work work;

	make_folder();
	fake_list(&tree);
	work_new(&work, &tree, open_at(1, BUCKET_DATA, ""), 1);
	fake_says(&fake, FAKE_CLOSE_ALWAYS, "");
	fake_stop(&fake);
	work_attach(&process, &work, 1);
	work_queue(&process, &work);
	ck_assert(process_is_silent(&process));
	work_detach(&process, &work);
	work_free(&work);
	fake_start(&fake, &tree);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_loop_test(tcase, objects_are_as_files, 0, BASE_ARRAY_LEN(kinds));
	tcase_add_loop_test(tcase, however_they_come, 0, 2);
	tcase_add_test(tcase, a_tar_is_read_once_in_large_ranges);
	tcase_add_test(tcase, others_where_they_are_looked_at);
	tcase_add_loop_test(tcase, bad_ones_are_told, 0, BASE_ARRAY_LEN(bads));
	tcase_add_loop_test(tcase, openings_say_why, 0, BASE_ARRAY_LEN(refused));
	tcase_add_test(tcase, manifests_lead_nowhere_else);
	tcase_add_test(tcase, a_queue_leaves_where_nobody_is);
}

int main(void)
{
	return suite_run("bucket_kinds", add);
}
