/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Huffman codes as tables for the entropy decoder.
 *
 * The next BASELINE_AC_BITS bits choose an entry, which is about all whole AC symbols that those bits
 * begin with: how many bits they have and how far they advance (one number, so that the decoder's
 * chain is shift, load, shift), their coefficients, and where the bits of the last one's value are,
 * since those may go on behind the bits looked at. An end of block may follow them in the entry.
 *
 * A group ends where the next code is cut off; where a value other than the last would not be in the
 * table (an offset of BASELINE_VALUES or more, a value of more than 7 bits); where the last offset
 * would need more than four bits; and above BASELINE_AC_MOST bits. A code that is longer than the
 * bits looked at, or whose symbol baseline JPEG does not have, gets an entry that leaves the
 * decoder's loop: such are decoded one at a time by baseline_codes.
 *
 * Pictures of one source have the same few codes, so tables are kept by the bytes of their code, the
 * least recently used one given up. There are more places than one picture can ask for: what it got
 * stays for as long as it is decoded. Building a table takes some 15 us, which is what pictures with
 * codes of their own ("optimised") pay.
 */

#include "pipeline/jpeg/baseline_inner.h"

#define TABLES_SLOTS 8
_Static_assert(TABLES_SLOTS > BASELINE_COMPONENTS, "a picture's tables stay");

#define TABLES_MOST_SIZE 10 /* of an AC coefficient in 8 bit JPEG */
#define TABLES_DC_SIZE 11
#define TABLES_KEY (16 + 256)

struct tables_key {
	uint64_t used; /* 0: empty */
	uint8_t bytes[TABLES_KEY];
};

struct baseline_tables {
	uint64_t clock;
	struct tables_key dc_key[TABLES_SLOTS], ac_key[TABLES_SLOTS];
	struct baseline_dc dc[TABLES_SLOTS];
	struct baseline_ac ac[TABLES_SLOTS];
};

/* A symbol by the first bits: its length << 8 | the symbol; 0: the code is longer. */
struct tables_short {
	uint16_t entry[1 << BASELINE_AC_BITS];
};

int baseline_tables_new(struct baseline_tables **ret)
{
	struct baseline_tables *tables =
	    aligned_alloc(BASE_CACHE_LINE, base_align_up(sizeof(*tables), BASE_CACHE_LINE));

	if (!tables)
		return -ENOMEM;
	memset(tables, 0, sizeof(*tables));
	*ret = tables;
	return 0;
}

void baseline_tables_free(struct baseline_tables *tables)
{
	free(tables);
}

/* ---- codes ---- */

/* Returns false for a code that libjpeg refuses: too many of a length, or one of all ones. */
static bool tables_codes(const uint8_t *bytes, struct baseline_codes *ret)
{
	uint32_t code = 0, index = 0;

	memset(ret, 0, sizeof(*ret));
	for (unsigned length = 1; length <= 16; length++) {
		uint32_t n = bytes[length - 1];

		ret->offset[length] = (int32_t)index - (int32_t)code;
		code += n;
		index += n;
		if (n > 0 && code >= 1u << length)
			return false;
		ret->limit[length] = code << (16 - length);
		code <<= 1;
	}
	memcpy(ret->symbol, bytes + 16, index);
	return index > 0;
}

static void tables_shorten(const uint8_t *bytes, unsigned bits, struct tables_short *ret)
{
	uint32_t at = 0;
	const uint8_t *symbol = bytes + 16;

	for (unsigned length = 1; length <= bits; length++) {
		for (unsigned n = bytes[length - 1]; n > 0; n--, symbol++) {
			uint32_t end = at + (1u << (bits - length));

			for (; at < end; at++)
				ret->entry[at] = (uint16_t)(length << 8 | *symbol);
		}
	}
	for (; at < 1u << bits; at++)
		ret->entry[at] = 0;
}

/* ---- DC ---- */

static bool tables_make_dc(const uint8_t *bytes, struct baseline_dc *ret)
{
	struct tables_short first;

	if (!tables_codes(bytes, &ret->codes))
		return false;
	for (unsigned i = 0; i < 256; i++) {
		if (ret->codes.symbol[i] > TABLES_DC_SIZE)
			return false;
	}
	tables_shorten(bytes, BASELINE_DC_BITS, &first);
	for (unsigned i = 0; i < BASE_ARRAY_LEN(ret->entry); i++) {
		uint32_t length = first.entry[i] >> 8, size = first.entry[i] & 255;

		ret->entry[i] = length ? (length + size) | length << 8 | (63 - size) << 16 : 0;
	}
	return true;
}

/* ---- AC ---- */

struct tables_group {                    /* symbols that an entry begins with */
	uint32_t bits, advance;          /* in all */
	uint32_t start, size, offset, n; /* of the last coefficient; how many there are */
	int8_t value[BASELINE_VALUES];
};

struct tables_code {
	uint32_t code, length, run, size;
};

struct tables_builder {
	struct baseline_ac *to;
	unsigned n;
	struct tables_code code[256]; /* those short enough, by length */
};

/* The entries that begin with the bits of prefix. */
static void tables_fill(struct baseline_ac *to, const struct tables_group *group, uint32_t prefix,
			uint32_t bits)
{
	uint32_t first = prefix << (BASELINE_AC_BITS - bits);
	uint32_t end = first + (1u << (BASELINE_AC_BITS - bits));
	uint32_t last = group->start | (63 - group->size) << 6 | group->offset << 12;
	uint32_t advance = group->bits == 0 ? BASELINE_AC_NONE : group->advance;
	uint32_t step = group->bits + 64 * advance;

	for (uint32_t i = first; i < end; i++) {
		to->step[i] = (uint16_t)step;
		to->last[i] = (uint16_t)last;
		memcpy(to->value[i], group->value, sizeof(group->value));
	}
}

/* Adds a coefficient to a group; false: it does not fit. */
static bool tables_add(struct tables_group *group, const struct tables_code *code)
{
	uint32_t offset = group->advance + code->run, start = group->bits + code->length;

	if (group->n > 0 && (group->offset >= BASELINE_VALUES || group->size > 7))
		return false;
	if (offset > 15 || start + code->size > BASELINE_AC_MOST)
		return false;
	group->start = start;
	group->size = code->size;
	group->offset = offset;
	group->advance = offset + 1;
	group->bits = start + code->size;
	group->n++;
	return true;
}

static void tables_grow(const struct tables_builder *builder, const struct tables_group *group,
			uint32_t prefix);

/* What follows a group that the coefficient of code was added to, by the bits of its value. */
static void tables_branch(const struct tables_builder *builder, const struct tables_group *group,
			  uint32_t prefix)
{
	struct tables_group next = *group;
	uint32_t size = group->size, values = 1u << size;

	if (group->bits > BASELINE_AC_BITS) {
		tables_fill(builder->to, group, prefix, group->start);
		return;
	}
	for (uint32_t bits = 0; bits < values; bits++) {
		int32_t value =
		    bits >= values / 2 ? (int32_t)bits : (int32_t)bits + 1 - (int32_t)values;

		if (size > 0 && size <= 7 && group->offset < BASELINE_VALUES)
			next.value[group->offset] = (int8_t)value;
		tables_grow(builder, &next, prefix << size | bits);
	}
}

/* All entries that begin with a group, whose bits are prefix. */
static void tables_grow(const struct tables_builder *builder, const struct tables_group *group,
			uint32_t prefix)
{
	uint32_t left = BASELINE_AC_BITS - group->bits, above = 0;

	for (unsigned i = 0; i < builder->n && builder->code[i].length <= left; i++) {
		const struct tables_code *code = &builder->code[i];
		struct tables_group next = *group;
		uint32_t begun = prefix << code->length | code->code,
			 bits = group->bits + code->length;

		above = (code->code + 1) << (left - code->length);
		if (code->size == 0 && code->run == 0) {
			next.bits = bits;
			next.advance += BASELINE_AC_END;
			tables_fill(builder->to, &next, begun, bits);
		} else if (code->size <= TABLES_MOST_SIZE && (code->size > 0 || code->run == 15) &&
			   tables_add(&next, code)) {
			tables_branch(builder, &next, begun);
		} else {
			tables_fill(builder->to, group, begun, bits);
		}
	}
	for (; above < 1u << left; above++) /* longer codes, and none */
		tables_fill(builder->to, group, prefix << left | above, BASELINE_AC_BITS);
}

static bool tables_make_ac(const uint8_t *bytes, struct baseline_ac *ret)
{
	struct tables_group empty = {.advance = 0};
	struct tables_builder builder = {.to = ret};
	const uint8_t *symbol = bytes + 16;
	uint32_t code = 0;

	if (!tables_codes(bytes, &ret->codes))
		return false;
	for (uint32_t length = 1; length <= BASELINE_AC_BITS; length++, code <<= 1) {
		for (unsigned n = bytes[length - 1]; n > 0; n--, symbol++)
			builder.code[builder.n++] =
			    (struct tables_code){code++, length, *symbol >> 4, *symbol & 15};
	}
	tables_grow(&builder, &empty, 0);
	return true;
}

/* ---- the cache ---- */

static size_t tables_size(const uint8_t *code)
{
	size_t size = 16;

	for (unsigned i = 0; i < 16; i++)
		size += code[i];
	return size;
}

/* The place of a code: its own (*ret_found), or the one to give up, emptied. The lengths decide how
 * many symbols count. */
static unsigned tables_find(struct baseline_tables *tables, struct tables_key *keys,
			    const uint8_t *code, bool *ret_found)
{
	size_t size = tables_size(code);
	unsigned oldest = 0;

	*ret_found = false;
	for (unsigned i = 0; i < TABLES_SLOTS; i++) {
		if (keys[i].used && memcmp(keys[i].bytes, code, size) == 0) {
			*ret_found = true;
			keys[i].used = ++tables->clock;
			return i;
		}
		if (keys[i].used < keys[oldest].used)
			oldest = i;
	}
	keys[oldest].used = 0;
	memcpy(keys[oldest].bytes, code, size);
	return oldest;
}

const struct baseline_dc *baseline_tables_dc(struct baseline_tables *tables, const uint8_t *code)
{
	bool found;
	unsigned i = tables_find(tables, tables->dc_key, code, &found);

	if (!found) {
		if (!tables_make_dc(code, &tables->dc[i]))
			return NULL;
		tables->dc_key[i].used = ++tables->clock;
	}
	return &tables->dc[i];
}

const struct baseline_ac *baseline_tables_ac(struct baseline_tables *tables, const uint8_t *code)
{
	bool found;
	unsigned i = tables_find(tables, tables->ac_key, code, &found);

	if (!found) {
		if (!tables_make_ac(code, &tables->ac[i]))
			return NULL;
		tables->ac_key[i].used = ++tables->clock;
	}
	return &tables->ac[i];
}
