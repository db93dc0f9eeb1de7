/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A manifest from anywhere. The first byte of an input says which: 'c' CSV, 't' with tabs, 'j' JSON lines, 'p' pairs, 'n' a CSV whose
 * columns options name. Whatever the bytes are: a scan ends, its records are rows in their order, with a path and at most
 * one label (scan_run.c); a CSV row read twice is the same, and its fields lie in it, one behind the other.
 */

#include "storage/source/scan/csv.h"
#include "storage/source/scan/scan_manifest.h"
#include "tests/storage/scan_run.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void demand(bool truth)
{
	if (!truth)
		abort();
}

static struct scan_run run;

/* A row is what it is whether the bytes behind it are there or not. */
static void try_rows(const uint8_t *data, size_t size)
{
	static struct csv_row row, alone;

	for (size_t at = 0; at < size; at += row.bytes) {
		size_t end = 0;

		if (csv_row(data + at, size - at, true, ',', &row))
			return;
		demand(row.bytes > 0 && row.bytes <= size - at);
		for (unsigned i = 0; i < row.n; i++) {
			demand(row.field[i].at >= end &&
			       row.field[i].at + (size_t)row.field[i].bytes <= row.bytes);
			end = row.field[i].at + row.field[i].bytes;
		}
		demand(csv_row(data + at, row.bytes, true, ',', &alone) == 0);
		demand(alone.n == row.n && alone.bytes == row.bytes &&
		       memcmp(alone.field, row.field, row.n * sizeof(*row.field)) == 0);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 1 || size > 1 << 20)
		return 0;
	run.name = data[0] == 'j'   ? "x.jsonl"
		   : data[0] == 'p' ? "x.json"
		   : data[0] == 't' ? "x.tsv"
				    : "x.csv";
	scan_run(&scan_manifest, data + 1, size - 1, data[0] == 'n' ? "path=photo,label=kind" : "",
		 &run);
	try_rows(data + 1, size - 1);
	return 0;
}
