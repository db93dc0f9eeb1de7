/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What a value takes of the disk. A large one has pages of its own behind its entry in the tree, a small one lies in
 * the tree. accessd, too, wants to know, without LMDB.
 */

#include "storage/store.h"

#include "storage/store_record.h"

#define BYTES_NODE 64 /* of a value's entry in the tree: key, head, its share of what is above */

/* Pages half full, as a tree of random insertions has them, are a half more than what is in them. */
static uint64_t bytes_in_leaf(uint64_t bytes)
{
	return bytes + bytes / 2;
}

uint64_t store_bytes_of(uint64_t size)
{
	const uint64_t page = base_page_size(), sealed = size + STORE_RECORD_SEAL;

	if (sealed + BYTES_NODE <= page / 2)
		return bytes_in_leaf(sealed + BYTES_NODE);
	return base_align_up(sealed + 16, page) + bytes_in_leaf(BYTES_NODE);
}
