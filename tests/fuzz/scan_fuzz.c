/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Shards from anywhere, by the scans of their kinds. The first byte of an input says which: 't' a TFRecord file as it is; 'e'
 * an example, in a good frame, so that mutations get past the checksums; 'm' an MDS shard; 'i' an index.json; 'l' one of LitData's, 'c' a chunk of it; 'j' an index of wids; 'n' a .npy;
 * 'p' documents to be packed; 'x' an .idx; 'd', 'w' DALI's for TFRecord and tar; 'r' a RecordIO file; 'b' a Bagz file; 'a' chunks of an ArrayRecord file, 'A' the data of its last one, both in good frames; 'z' a zip archive; 'f' a file of FFCV's. What a scan gives lies within the shard (scan_run.c), and what a head says within the file.
 */

#include "base/base.h"
#include "base/little.h"
#include "storage/source/scan/dali.h"
#include "storage/source/scan/litdata.h"
#include "storage/source/scan/mds.h"
#include "base/npy.h"
#include "storage/source/scan/megatron.h"
#include "storage/source/scan/packing.h"
#include "storage/source/scan/scan_shard.h"
#include "storage/source/scan/scan_zip.h"
#include "storage/source/scan/wids.h"
#include "tests/storage/scan_run.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void demand(bool truth)
{
	if (!truth)
		abort();
}

static struct scan_run run;

static void try_example(const uint8_t *data, size_t size)
{
	struct shard_bytes file;

	shard_bytes_init(&file, size + 16);
	shard_put_tfrecord(&file, data, size);
	scan_run(&scan_tfrecord, file.data, file.size, "", &run);
	scan_run(&scan_tfrecord, file.data, file.size, "members=all", &run);
	shard_bytes_fini(&file);
}

static void try_index(const uint8_t *data, size_t size)
{
	struct index_json index;
	struct diag diag;

	if (mds_index_parse((const char *)data, size, &index, &diag) != 0)
		return;
	for (size_t i = 0; i < index.n; i++)
		demand(index.shard[i].name[0] && index.shard[i].samples > 0 &&
		       index.shard[i].bytes > 4 * index.shard[i].samples);
	index_json_fini(&index);
}

static void try_litdata(const uint8_t *data, size_t size)
{
	static const struct litdata_names usual, named = {"image", "label"};
	struct index_json index;
	struct litdata leaves;
	struct diag diag;

	if (litdata_parse((const char *)data, size, &named, &index, &leaves, &diag) == 0)
		index_json_fini(&index);
	if (litdata_parse((const char *)data, size, &usual, &index, &leaves, &diag) != 0)
		return;
	demand(leaves.leaves <= LITDATA_MOST_LEAVES && leaves.picture < leaves.leaves &&
	       (!leaves.has_label || leaves.label < leaves.leaves));
	for (size_t i = 0; i < index.n; i++)
		demand(index.shard[i].name[0] && index.shard[i].samples > 0 &&
		       index.shard[i].bytes > 4 * index.shard[i].samples);
	index_json_fini(&index);
}

static void try_chunk(const uint8_t *data, size_t size)
{
	scan_run(&scan_litdata, data, size, "layout=1;0;1", &run);
	scan_run(&scan_litdata, data, size, "layout=4;0;1", &run);
	scan_run(&scan_litdata, data, size, "layout=64;63;0", &run);
}

static void try_wids(const uint8_t *data, size_t size)
{
	struct wids wids;

	if (wids_parse((const char *)data, size, &wids) != 0)
		return;
	for (size_t i = 0; i < wids.n; i++)
		demand(wids.shard[i].name[0] && wids.shard[i].samples < UINT64_MAX);
	wids_fini(&wids);
}

static void try_npy(const uint8_t *data, size_t size)
{
	struct diag diag;
	struct npy npy;

	if (npy_parse(data, size, size, &npy, &diag) == 0)
		demand(npy.data_at + npy.shape[0] * npy.row_values * number_bytes(npy.number) ==
		       size);
}

static void try_megatron(const uint8_t *data, size_t size)
{
	struct megatron megatron;
	struct diag diag;

	if (size >= MEGATRON_HEAD && megatron_parse(data, size, &megatron, &diag) == 0)
		demand(number_bytes(megatron.number) > 0 &&
		       megatron.starts_at + 8 * megatron.sequences <= size);
}

/* The length, then sizes of documents: each token is in one sequence, and no sequence is too long. A document has a few whole
 * lengths: a million sequences would be one way through the code a million times. */
static void try_packing(const uint8_t *data, size_t size)
{
	static struct packing packing;
	static struct packing_part part[PACKING_GROUP];
	uint32_t sizes[PACKING_GROUP], length, most;
	unsigned n = 0;
	uint64_t tokens = 0, packed = 0;

	if (size < 6)
		return;
	length = 1 + (data[0] | (uint32_t)data[1] << 8);
	most = BASE_MIN(4 * length, UINT32_C(100000));
	for (size_t at = 2; at + 4 <= size && n < PACKING_GROUP; at += 4)
		tokens += sizes[n++] = little_32(data + at) % most;
	demand(packing_make(sizes, n, length, &packing) == 0);
	for (uint64_t i = 0; i < packing.sequences; i++) {
		const unsigned parts = packing_parts(&packing, i, part);
		uint64_t used = 0;

		for (unsigned k = 0; k < parts; k++) {
			demand(part[k].document < n && part[k].at <= sizes[part[k].document] &&
			       part[k].tokens <= sizes[part[k].document] - part[k].at);
			used += part[k].tokens;
		}
		demand(used > 0 && used <= length);
		packed += used;
	}
	demand(packed == tokens);
}

static struct dali_found found_at(const void *arg, size_t i)
{
	(void)arg;
	return (struct dali_found){100 * i + 12, 84};
}

/* Two samples of 100 bytes: what fits is of two lines or three. */
static void try_dali(bool is_tar, const uint8_t *data, size_t size)
{
	const struct dali_shard shard = {200, 2, found_at, NULL};
	const char *text = (const char *)data, *why;
	size_t lines = 0;
	uint64_t line = 0;

	for (size_t i = 0; i < size; i++)
		lines += data[i] == '\n' || i + 1 == size;
	why = is_tar ? dali_check_files(text, size, &shard, &line)
		     : dali_check_records(text, size, &shard, &line);
	demand(why ? line <= lines + 1 : lines >= 2);
}

static void try_recordio(const uint8_t *data, size_t size)
{
	_cleanup_free_ uint8_t *copy = malloc(size + 1);

	demand(copy);
	memcpy(copy, data, size);
	scan_recordio.join(copy, size, 0);
	scan_run(&scan_recordio, data, size, "", &run);
	scan_run(&scan_recordio, data, size, "label=9", &run);
	scan_run(&scan_recordio, data, size, "label=none", &run);
}

static void try_arrayrecord(const uint8_t *data, size_t size)
{
	struct shard_bytes stream, file;

	shard_chunks_of(&stream, data, size);
	shard_bytes_init(&file, 2 * stream.size + (4 << 16));
	shard_put_array_file(&file, &stream);
	scan_run(&scan_arrayrecord, file.data, file.size, "", &run);
	for (unsigned i = 0; i < run.n && i < SCAN_RUN_MOST; i++)
		scan_arrayrecord.join(file.data + run.record[i].at, run.record[i].bytes,
				      run.record[i].at);
	file.size = 0;
	shard_put_array_file(&file, &stream);
	scan_run(&scan_arrayrecord, file.data, file.size, "members=all", &run);
	shard_bytes_fini(&file);
	shard_bytes_fini(&stream);
}

static void try_arrayrecord_end(const uint8_t *data, size_t size)
{
	struct shard_bytes file;

	shard_bytes_init(&file, 2 << 16);
	shard_put_fill(&file, 0, (1 << 16) + 24);
	shard_put_chunk(&file, 'r', 3, 0, data, BASE_MIN(size, (size_t)1000));
	shard_put_fill(&file, 0, (2 << 16) - file.size);
	scan_run(&scan_arrayrecord, file.data, file.size, "", &run);
	shard_bytes_fini(&file);
}

static void try_zip(const uint8_t *data, size_t size)
{
	run.any_order = true;
	scan_run(&scan_zip, data, size, "", &run);
	scan_run(&scan_zip, data, size, "folder=a", &run);
	run.any_order = false;
}

/* The head of pixels is made in a copy, within the sample's bytes. */
static void try_beton(const uint8_t *data, size_t size)
{
	static const char *const options[] = {"", "label=none", "image=photo,label=weight"};

	run.any_order = true;
	scan_beton.is_shard(data, size);
	for (unsigned i = 0; i < BASE_ARRAY_LEN(options); i++) {
		scan_run(&scan_beton, data, size, options[i], &run);
		for (unsigned k = 0; k < run.n && k < SCAN_RUN_MOST; k++) {
			const struct scan_record *record = &run.record[k];
			_cleanup_free_ uint8_t *copy = malloc(record->bytes);

			demand(copy);
			memcpy(copy, data + record->at, record->bytes);
			scan_beton.join(copy, record->bytes,
					record->at | (uint64_t)record->width << SCAN_PLACE_BITS);
		}
	}
	run.any_order = false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 1 || size > 1 << 20)
		return 0;
	switch (data[0]) {
	case 't':
		scan_run(&scan_tfrecord, data + 1, size - 1, "", &run);
		break;
	case 'e':
		try_example(data + 1, size - 1);
		break;
	case 'm':
		scan_run(&scan_mds, data + 1, size - 1, "", &run);
		scan_run(&scan_mds, data + 1, size - 1, "columns=a:str;image:jpeg;label:int", &run);
		break;
	case 'i':
		try_index(data + 1, size - 1);
		break;
	case 'l':
		try_litdata(data + 1, size - 1);
		break;
	case 'c':
		try_chunk(data + 1, size - 1);
		break;
	case 'j':
		try_wids(data + 1, size - 1);
		break;
	case 'n':
		try_npy(data + 1, size - 1);
		break;
	case 'p':
		try_packing(data + 1, size - 1);
		break;
	case 'd':
	case 'w':
		try_dali(data[0] == 'w', data + 1, size - 1);
		break;
	case 'r':
		try_recordio(data + 1, size - 1);
		break;
	case 'b':
		scan_run(&scan_bagz, data + 1, size - 1, "", &run);
		scan_run(&scan_bagz, data + 1, size - 1, "members=all", &run);
		break;
	case 'a':
		try_arrayrecord(data + 1, size - 1);
		break;
	case 'A':
		try_arrayrecord_end(data + 1, size - 1);
		break;
	case 'z':
		try_zip(data + 1, size - 1);
		break;
	case 'f':
		try_beton(data + 1, size - 1);
		break;
	case 'x':
		try_megatron(data + 1, size - 1);
		break;
	}
	return 0;
}
