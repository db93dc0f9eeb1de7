/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What all stored forms have in common: the head, and who makes which.
 *
 *	 0  the magic
 *	 8  checksum of what follows up to the file's first KiB, or in all else of its first KiB (u64)
 *	16  the kind's version (u16), kind (u16), bytes of the index, the coefficients or the cut's head (u32)
 *	24  bytes of the file, of what stands before its scan, or of pixels (u64)
 *	32  the former, then the latter
 *
 * The numbers are little-endian, and the sizes add up to the form's. The file stands at the end, so that
 * who has the small part stored and the file elsewhere can put the one before the other without moving
 * a byte. What an index says is believed, so the checksum holds for it, and ties it to the file that has
 * that size and begins so; where it does not hold, the file is decoded without. The rest of the file,
 * packed coefficients and pixels, are as well protected as a file is by itself: who stores forms has a checksum for each
 * value.
 */

#include "base/hash.h"
#include "base/little.h"
#include "pipeline/forms/form.h"
#include "pipeline/jpeg/baseline.h"
#include "pipeline/spec/op.h"

#define FORM_MAGIC "\x8aOAform\n"
#define FORM_INDEX_SHARE 30 /* of the file, an index has at most a 30th */
#define FORM_FRONT 1024 /* bytes of the file that the checksum is of, too, or of what is packed */

enum {
	FORM_AT_SUM = 8,
	FORM_AT_VERSION = 16,
	FORM_AT_KIND = 18,
	FORM_AT_INDEX = 20,
	FORM_AT_FILE = 24,
};

static const uint8_t form_version[] = {[FORM_INDEXED] = 1, [FORM_PACKED] = 2, [FORM_PIXELS] = 1};

struct form_maker {
	struct baseline *baseline; /* owned */
};

static uint64_t form_sum(const uint8_t *form, enum form_kind kind, uint64_t index, uint64_t file)
{
	uint64_t size = kind == FORM_INDEXED ? index + BASE_MIN(file, FORM_FRONT)
					     : BASE_MIN(index + file, FORM_FRONT);

	return hash_checksum(form + FORM_AT_VERSION, FORM_HEAD - FORM_AT_VERSION + size);
}

bool form_probe(const uint8_t *data, size_t size)
{
	return size >= 8 && memcmp(data, FORM_MAGIC, 8) == 0;
}

int form_read(const uint8_t *data, size_t size, struct form *ret)
{
	uint64_t index, file, kind;
	bool is_whole;

	if (size < FORM_HEAD || !form_probe(data, size))
		return FORM_E_OTHER;
	kind = little_get(data + FORM_AT_KIND, 2);
	index = little_get(data + FORM_AT_INDEX, 4);
	file = little_get(data + FORM_AT_FILE, 8);
	if (kind < FORM_INDEXED || kind > FORM_PIXELS || index > size - FORM_HEAD ||
	    file != size - FORM_HEAD - index)
		return FORM_E_OTHER;
	is_whole =
	    form_sum(data, (enum form_kind)kind, index, file) == little_get(data + FORM_AT_SUM, 8);
	if (little_get(data + FORM_AT_VERSION, 2) != form_version[kind])
		return is_whole ? FORM_E_VERSION : FORM_E_OTHER;
	if (!is_whole && kind != FORM_INDEXED)
		return FORM_E_OTHER;
	*ret = (struct form){
	    .kind = (enum form_kind)kind,
	    .index = is_whole ? data + FORM_HEAD : NULL,
	    .file = data + FORM_HEAD + index,
	    .index_size = (size_t)index,
	    .file_size = (size_t)file,
	};
	return 0;
}

size_t form_kept(const uint8_t *form, size_t size)
{
	struct form parts;

	if (form_read(form, size, &parts) != 0)
		return 0;
	return parts.kind == FORM_INDEXED ? size - parts.file_size : size;
}

uint64_t form_bound(enum form_kind kind, uint64_t file_size)
{
	return FORM_HEAD + file_size +
	       (kind == FORM_INDEXED ? file_size / FORM_INDEX_SHARE : file_size / 5 * 6);
}

void form_seal(uint8_t *form, enum form_kind kind, size_t index_size, size_t file_size)
{
	memcpy(form, FORM_MAGIC, 8);
	little_put(form + FORM_AT_VERSION, form_version[kind], 2);
	little_put(form + FORM_AT_KIND, kind, 2);
	little_put(form + FORM_AT_INDEX, index_size, 4);
	little_put(form + FORM_AT_FILE, file_size, 8);
	little_put(form + FORM_AT_SUM, form_sum(form, kind, index_size, file_size), 8);
}

int form_maker_new(struct form_maker **ret)
{
	struct form_maker *maker = calloc(1, sizeof(*maker));
	int r;

	if (!maker)
		return -ENOMEM;
	r = baseline_new(&maker->baseline);
	if (r != 0) {
		free(maker);
		return r;
	}
	*ret = maker;
	return 0;
}

void form_maker_free(struct form_maker *maker)
{
	if (!maker)
		return;
	baseline_free(maker->baseline);
	free(maker);
}

static int form_join(enum form_kind kind, const uint8_t *index, size_t index_size,
		     const uint8_t *file, size_t file_size, size_t whole_size, uint8_t **ret,
		     size_t *ret_size)
{
	size_t size = FORM_HEAD + index_size;
	uint8_t *form;

	if (index_size > UINT32_MAX || file_size > SIZE_MAX - size)
		return FORM_E_UNFIT;
	size += file_size;
	if (size > form_bound(kind, whole_size))
		return FORM_E_UNFIT;
	form = malloc(size);
	if (!form)
		return -ENOMEM;
	memcpy(form + FORM_HEAD, index, index_size);
	memcpy(form + FORM_HEAD + index_size, file, file_size);
	form_seal(form, kind, index_size, file_size);
	*ret = form;
	*ret_size = size;
	return 0;
}

int form_make(struct form_maker *maker, enum form_kind kind, const uint8_t *file, size_t size,
	      uint8_t **ret, size_t *ret_size)
{
	_cleanup_free_ uint8_t *index = NULL;
	uint32_t height, width;
	size_t index_size;
	int r;

	if (kind != FORM_INDEXED && kind != FORM_PACKED)
		return FORM_E_UNFIT;
	r = baseline_open(maker->baseline, file, size, &height, &width);
	if (r == 0 && (uint64_t)height * width > OP_MAX_PIXELS)
		return FORM_E_UNFIT; /* nobody decodes it */
	if (r == 0 && kind == FORM_INDEXED)
		r = baseline_index_make(maker->baseline, 0, &index, &index_size);
	else if (r == 0)
		r = baseline_pack(maker->baseline, &index, &index_size);
	if (r != 0)
		return r < 0 ? r : FORM_E_UNFIT;
	return form_join(kind, index, index_size, file,
			 kind == FORM_PACKED ? baseline_front(maker->baseline) : size, size, ret,
			 ret_size);
}
