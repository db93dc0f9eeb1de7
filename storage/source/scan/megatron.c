/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The head of an .idx file of Megatron-LM's indexed data sets, whose tokens are in a .bin of the same name:
 *
 *	"MMIDIDX\0\0" | u64 version 1 | u8 type | u64 sequences | u64 documents
 *	i32 sizes [sequences] | i64 starts [sequences] | i64 documents [documents] | (i8 modes [sequences])
 */

#include "storage/source/scan/megatron.h"

#include "base/little.h"

#define MEGATRON_MAGIC "MMIDIDX\0" /* and the NUL behind it */

int megatron_parse(const uint8_t *head, uint64_t bytes, struct megatron *ret, struct diag *diag)
{
	static const enum number number[] = {
	    [1] = NUMBER_U8,  [2] = NUMBER_I8,  [3] = NUMBER_I16,
	    [4] = NUMBER_I32, [5] = NUMBER_I64, [8] = NUMBER_U16,
	};
	struct megatron megatron = {.sizes_at = MEGATRON_HEAD};
	uint64_t listed;

	if (bytes < MEGATRON_HEAD || memcmp(head, MEGATRON_MAGIC, 9) != 0)
		return NPY_E_NONE;
	if (little_64(head + 9) != 1 || head[17] >= BASE_ARRAY_LEN(number) || !number[head[17]])
		return diag_fail(
		    diag, NPY_E_BAD,
		    "its .idx is of another version, or its tokens are no whole numbers; "
		    "make both files anew with preprocess_data.py of Megatron-LM");
	megatron.number = number[head[17]];
	megatron.sequences = little_64(head + 18);
	megatron.documents = little_64(head + 26);
	megatron.starts_at = MEGATRON_HEAD + 4 * megatron.sequences;
	if (megatron.sequences <= bytes && megatron.documents <= bytes) {
		listed = MEGATRON_HEAD + 12 * megatron.sequences + 8 * megatron.documents;
		if (listed == bytes || listed + megatron.sequences == bytes) {
			*ret = megatron;
			return 0;
		}
	}
	return diag_fail(
	    diag, NPY_E_BAD,
	    "its .idx says %llu sequences and %llu documents, and has %llu bytes, which is "
	    "not what they "
	    "take; it is cut off or damaged: make both files anew",
	    (unsigned long long)megatron.sequences, (unsigned long long)megatron.documents,
	    (unsigned long long)bytes);
}
