/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Huffman decoding, most of the work of a picture: all of the scan in front of the last row wanted
 * must be gone through.
 *
 * The next bits stand at the top of a 64-bit buffer. One word has, in its low six bits, how many of
 * them were consumed and, above, the index k of the next coefficient, so that adding a table's step
 * (bits + 64 * advance) moves both. A refill is a load of the next eight bytes, shifted behind the
 * bits that are left; the pointer goes on by the whole bytes that were consumed. There is no branch
 * in it, and all 64 bits are right after it, though it counts on no more than 56.
 *
 * What takes the time is a chain: shift, load of a step, shift, and so on. A refill is kept off it:
 * it comes between a lookup and its shift, while the step is on its way. So a lookup must have its
 * bits before the refill that goes with it. Every second lookup refills: 64 bits less those of two
 * lookups (or of one, and a DC difference of 20) leave more than enough for the next one, and for
 * a code of 16 with its value.
 *
 * A lookup stores eight coefficients at k, most of them zeros, and the last one of its group, taken
 * from the bits. An end of block advances by 128, so the loop's only test is k >= 64. Good ends are
 * k = 64, and 129 to 191. All else (an entry that is none, or a group that passes the end of the
 * block: its last symbols may be the next block's) is undone, and one symbol is decoded by itself.
 * What a group that was undone stored is zero or right up to coefficient 63, and above that nobody
 * looks.
 *
 * Blocks that nobody wants take the same way without the stores.
 *
 * The code stands here once and is compiled twice: for any machine, and for x86-64 ones with BMI2,
 * which shift by a register in one instruction.
 */

#include "pipeline/jpeg/baseline.h"
#include "pipeline/jpeg/baseline_inner.h"

#define ENTROPY_INLINE static inline __attribute__((always_inline))
#define ENTROPY_K 6 /* where k stands in a state's word; below it is what was consumed */
#define ENTROPY_COUNT ((1u << ENTROPY_K) - 1)
#define ENTROPY_BYTES 56 /* of the count of bits: those of whole bytes */

typedef int8_t entropy_bytes __attribute__((vector_size(16)));
typedef int16_t entropy_words __attribute__((vector_size(16)));
typedef int64_t entropy_longs __attribute__((vector_size(16)));
typedef int64_t entropy_clear __attribute__((vector_size(32)));

struct entropy_state { /* in registers */
	uint64_t buffer, word;
	const uint8_t *next;
};

/* At least 56 bits. */
ENTROPY_INLINE void entropy_refill(struct entropy_state *state)
{
	uint64_t bytes;

	memcpy(&bytes, state->next, sizeof(bytes));
	state->buffer |= __builtin_bswap64(bytes) >> (~state->word & ENTROPY_COUNT);
	state->next += (state->word & ENTROPY_COUNT) >> 3;
	state->word &= ~(uint64_t)ENTROPY_BYTES;
}

ENTROPY_INLINE struct entropy_state entropy_load(const struct baseline_bits *bits)
{
	struct entropy_state state = {bits->buffer, ENTROPY_COUNT - bits->count, bits->next};

	entropy_refill(&state);
	return state;
}

ENTROPY_INLINE void entropy_save(struct baseline_bits *bits, const struct entropy_state *state)
{
	bits->buffer = state->buffer;
	bits->count = ENTROPY_COUNT - (state->word & ENTROPY_COUNT);
	bits->next = state->next;
}

ENTROPY_INLINE void entropy_drop(struct entropy_state *state, uint32_t bits)
{
	state->buffer <<= bits;
	state->word += bits;
}

/* The number of 63 - down bits from bit start on. A first bit of 0 means a negative one. */
ENTROPY_INLINE int32_t entropy_value(uint64_t buffer, uint32_t start, uint32_t down)
{
	uint64_t bits = buffer << (start & 63);
	uint64_t flip = ~(uint64_t)((int64_t)bits >> 63);

	return (int32_t)((((bits ^ flip) >> 1 >> (down & 63)) ^ flip) - flip);
}

/* The next code's symbol by baseline_codes, its bits dropped; -1: there is no such code. */
ENTROPY_INLINE int entropy_symbol(struct entropy_state *state, const struct baseline_codes *codes)
{
	uint32_t code = (uint32_t)(state->buffer >> 48), length = 1;

	while (length <= 16 && code >= codes->limit[length])
		length++;
	if (length > 16)
		return -1;
	code = (code >> (16 - length)) + (uint32_t)codes->offset[length];
	entropy_drop(state, length);
	return codes->symbol[code & 255];
}

/* The next difference of DC; needs a lookup's bits. *ret is wrong where false is returned. */
ENTROPY_INLINE bool entropy_dc(struct entropy_state *state, const struct baseline_dc *dc,
			       int32_t *ret)
{
	uint32_t entry = dc->entry[state->buffer >> (64 - BASELINE_DC_BITS)];
	int size;

	entropy_refill(state);
	if (__builtin_expect(entry != 0, 1)) {
		*ret = entropy_value(state->buffer, entry >> 8, entry >> 16);
		entropy_drop(state, entry & 63);
		return true;
	}
	size = entropy_symbol(state, &dc->codes);
	if (size < 0)
		return false;
	*ret = entropy_value(state->buffer, 0, 63 - (uint32_t)size);
	entropy_drop(state, (uint32_t)size);
	return true;
}

/* One symbol by itself. Returns the new k, BASELINE_AC_END more at the end of the block, or 0. */
ENTROPY_INLINE uint32_t entropy_one(struct entropy_state *state, const struct baseline_ac *ac,
				    int16_t *block, uint32_t k, const bool is_wanted)
{
	int symbol = entropy_symbol(state, &ac->codes);
	uint32_t size = (uint32_t)symbol & 15;

	if (symbol == 0)
		return k + BASELINE_AC_END;
	k += ((uint32_t)symbol >> 4) + 1;
	if (symbol < 0 || k > 64 || size > 10 || (size == 0 && symbol != 0xf0))
		return 0;
	if (is_wanted)
		block[k - 1] = (int16_t)entropy_value(state->buffer, 0, 63 - size);
	entropy_drop(state, size);
	return k;
}

/* BASELINE_VALUES bytes to words, their signs kept. */
ENTROPY_INLINE void entropy_widen(const int8_t *value, int16_t *to)
{
	int64_t eight;
	entropy_longs low;
	entropy_words words;

	memcpy(&eight, value, sizeof(eight));
	low = (entropy_longs){eight, 0};
	words = (entropy_words)__builtin_shufflevector((entropy_bytes)low, (entropy_bytes)low, 0, 0,
						       1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7);
	words >>= 8;
	memcpy(to, &words, sizeof(words));
}

struct entropy_undo {
	uint64_t buffer, word;
};

ENTROPY_INLINE void entropy_group(struct entropy_state *state, const struct baseline_ac *ac,
				  int16_t *block, struct entropy_undo *ret_undo,
				  const bool is_wanted, const bool is_refilled)
{
	uint64_t index = state->buffer >> (64 - BASELINE_AC_BITS);
	uint64_t step = ac->step[index];

	if (is_refilled)
		entropy_refill(state);
	ret_undo->buffer = state->buffer;
	ret_undo->word = state->word;
	if (is_wanted) {
		int16_t *to = block + (state->word >> ENTROPY_K);
		uint32_t last = ac->last[index];

		entropy_widen(ac->value[index], to);
		to[last >> 12] = (int16_t)entropy_value(state->buffer, last, last >> 6);
	}
	state->buffer <<= step & 63;
	state->word += step;
}

/* The coefficients behind the first into block, which is all zeros. Returns where they end, 1 to
 * 64, or 0 for damage. Needs a lookup's bits. */
ENTROPY_INLINE uint32_t entropy_ac(struct entropy_state *state, const struct baseline_ac *ac,
				   int16_t *block, const bool is_wanted)
{
	const uint64_t full = 64 << ENTROPY_K;
	struct entropy_undo undo;
	uint32_t k;

	state->word = (state->word & ENTROPY_COUNT) | 1 << ENTROPY_K;
	for (;;) {
		do {
			entropy_group(state, ac, block, &undo, is_wanted, true);
			if (state->word >= full)
				break;
			entropy_group(state, ac, block, &undo, is_wanted, false);
		} while (state->word < full);
		k = (uint32_t)(state->word >> ENTROPY_K);
		if (__builtin_expect(k - 129 < 63, 1))
			return k - BASELINE_AC_END;
		if (k == 64)
			return k;
		state->buffer = undo.buffer;
		state->word = undo.word;
		entropy_refill(state);
		k = entropy_one(state, ac, block, (uint32_t)(state->word >> ENTROPY_K), is_wanted);
		if (k == 0 || k == 64 || k > BASELINE_AC_END)
			return k & 127;
		state->word = (state->word & ENTROPY_COUNT) | (uint64_t)k << ENTROPY_K;
		entropy_refill(state);
	}
}

/* Returns where the block's coefficients end, or 0 for damage. */
ENTROPY_INLINE uint32_t entropy_block(struct entropy_state *state,
				      const struct baseline_block_kind *kind, int32_t *dc,
				      int16_t *block, const bool is_wanted)
{
	int32_t difference;

	if (is_wanted) {
		for (unsigned i = 0; i < 4; i++)
			((entropy_clear *)(void *)block)[i] = (entropy_clear){0};
	}
	if (!entropy_dc(state, kind->dc, &difference))
		return 0;
	dc[kind->component] = (int32_t)((uint32_t)dc[kind->component] + (uint32_t)difference);
	if (is_wanted)
		block[0] = (int16_t)dc[kind->component];
	return entropy_ac(state, kind->ac, block, is_wanted);
}

ENTROPY_INLINE int entropy_mcu(struct baseline_scan *scan, unsigned wanted,
			       struct baseline_mcu *mcu)
{
	struct entropy_state state = entropy_load(&scan->bits);

	for (unsigned i = 0; i < scan->n_blocks; i++) {
		const struct baseline_block_kind *kind = &scan->block[i];
		uint32_t end;

		if (wanted >> i & 1) {
			end = entropy_block(&state, kind, scan->dc, mcu->coef[i], true);
			mcu->end[i] = (uint8_t)end;
		} else {
			end = entropy_block(&state, kind, scan->dc, NULL, false);
			mcu->coef[i][0] = (int16_t)scan->dc[kind->component];
			mcu->end[i] = 0;
		}
		if (end == 0)
			return BASELINE_E_DAMAGED;
	}
	entropy_save(&scan->bits, &state);
	return 0;
}

ENTROPY_INLINE int64_t entropy_skip(struct baseline_scan *scan, uint32_t count)
{
	struct entropy_state state = entropy_load(&scan->bits);
	const uint8_t *limit = scan->bits.limit;

	for (; count > 0 && state.next <= limit; count--) {
		for (unsigned i = 0; i < scan->n_blocks; i++) {
			if (entropy_block(&state, &scan->block[i], scan->dc, NULL, false) == 0)
				return -1;
		}
	}
	entropy_save(&scan->bits, &state);
	return count;
}

int baseline_entropy_mcu(struct baseline_scan *scan, unsigned wanted, struct baseline_mcu *mcu)
{
	return entropy_mcu(scan, wanted, mcu);
}

int64_t baseline_entropy_skip(struct baseline_scan *scan, uint32_t count)
{
	return entropy_skip(scan, count);
}

#ifdef __x86_64__

__attribute__((target("avx2,bmi2"))) int
baseline_entropy_mcu_bmi2(struct baseline_scan *scan, unsigned wanted, struct baseline_mcu *mcu)
{
	return entropy_mcu(scan, wanted, mcu);
}

__attribute__((target("avx2,bmi2"))) int64_t baseline_entropy_skip_bmi2(struct baseline_scan *scan,
									uint32_t count)
{
	return entropy_skip(scan, count);
}

#endif
