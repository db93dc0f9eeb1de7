/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Every byte of a batch is read, as --verify promises: a page that is not there would be a signal here. Floats must be
 * finite: an exponent of all ones is an infinity or no number. Eight bytes at a time; a f32 pair or four of
 * f16 or bf16 are tested by one mask each.
 *
 * The digest is a sum over samples of a hash of what each is: so jobs that were given the same samples have the same one, in
 * whatever order and batches these came. A sample of ragged fields has no place that it alone says, and the last one of a batch
 * gets the rest.
 */

#include "tools/bench.h"

#include "base/hash.h"
#include "libaccess/libaccess.h"

/* Bits of the exponents in eight bytes of a type: if all of one exponent are set it is not
 * finite. */
static bool bench_verify_is_finite(enum oa_dtype dtype, uint64_t word)
{
	static const uint64_t f32_mask = UINT64_C(0x7f800000);
	uint64_t mask = dtype == OA_F16 ? UINT64_C(0x7c00) : UINT64_C(0x7f80);

	if (dtype == OA_F32)
		return (word & f32_mask) != f32_mask && (word >> 32 & f32_mask) != f32_mask;
	if (dtype != OA_F16 && dtype != OA_BF16)
		return true;
	for (unsigned i = 0; i < 4; i++)
		if ((word >> (16 * i) & mask) == mask)
			return false;
	return true;
}

static bool bench_verify_bytes(const struct oa_field *field)
{
	const unsigned char *at = field->data;
	uint64_t word, left;
	bool good = true;

	if (field->dtype == OA_U8 || field->dtype == OA_I64)
		return true;
	for (left = field->bytes; left >= sizeof(word); left -= sizeof(word), at += sizeof(word)) {
		memcpy(&word, at, sizeof(word));
		good &= bench_verify_is_finite(field->dtype, word);
	}
	word = 0;
	memcpy(&word, at, left);
	return good && bench_verify_is_finite(field->dtype, word);
}

static uint64_t bench_verify_digest(const struct oa_field *field, const struct oa_batch_info *info)
{
	const uint64_t each = field->bytes / info->count;
	const unsigned char *at = field->data;
	uint64_t digest = 0;

	for (uint32_t i = 0; i < info->count; i++, at += each) {
		const bool is_last = i + 1 == info->count;
		const uint64_t bytes = is_last ? field->bytes - i * each : each;
		const uint64_t all[] = {(uint64_t)info->ids[i],
					hash_checksum(field->name, strlen(field->name)),
					hash_checksum(at, bytes)};

		digest += hash_checksum(all, sizeof(all));
	}
	return digest;
}

static bool bench_verify_index(const struct oa_field *field, const struct oa_batch_info *info)
{
	if (strcmp(field->name, "index") != 0)
		return true;
	return field->dtype == OA_I64 && field->bytes == info->count * sizeof(int64_t) &&
	       memcmp(field->data, info->ids, field->bytes) == 0;
}

bool bench_verify(const struct oa_batch *batch, uint64_t *digest)
{
	struct oa_batch_info info = {.size = sizeof(info)};
	bool good = true;

	oa_batch_info(batch, &info);
	if (info.count == 0)
		return false;
	for (uint32_t i = 0; i < info.n_fields; i++) {
		struct oa_field field = {.size = sizeof(field)};

		if (oa_batch_field(batch, i, &field) || field.shape[0] != info.count)
			return false;
		good &= bench_verify_bytes(&field) && bench_verify_index(&field, &info);
		*digest += bench_verify_digest(&field, &info);
	}
	return good;
}
