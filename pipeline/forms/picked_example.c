/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A tf.Example in memory: messages of protocol buffers, whose fields are walked in their order. Of two features of one name the last
 * one counts, and of a feature the last list. What the format is says storage/source/scan/example.h. Zeros may be behind it, as
 * ArrayRecord files that are not compressed leave them.
 */

#include "pipeline/forms/picked_inner.h"

#include "base/varint.h"
#include "pipeline/formats/decode.h"

struct message { /* what is left of it */
	const uint8_t *at, *end;
};

struct one { /* field of a message */
	uint64_t number;
	enum proto_kind kind;
	uint64_t value;       /* of PROTO_VARINT */
	struct message bytes; /* of the others */
};

enum { MESSAGE_E_END = 1, MESSAGE_E_BAD = 2 };

static bool message_varint(struct message *message, uint64_t *ret)
{
	const size_t n = varint_read(message->at, (size_t)(message->end - message->at), ret);

	message->at += n;
	return n > 0;
}

/* 0, MESSAGE_E_END, MESSAGE_E_BAD. */
static int message_next(struct message *message, struct one *ret)
{
	uint64_t head, bytes = 0;

	if (message->at == message->end)
		return MESSAGE_E_END;
	if (!message_varint(message, &head) || head >> 3 == 0)
		return MESSAGE_E_BAD;
	ret->number = head >> 3;
	ret->kind = (enum proto_kind)(head & 7);
	if (ret->kind == PROTO_VARINT)
		return message_varint(message, &ret->value) ? 0 : MESSAGE_E_BAD;
	if (ret->kind == PROTO_64 || ret->kind == PROTO_32)
		bytes = ret->kind == PROTO_64 ? 8 : 4;
	else if (ret->kind != PROTO_BYTES || !message_varint(message, &bytes))
		return MESSAGE_E_BAD;
	if (bytes > (uint64_t)(message->end - message->at))
		return MESSAGE_E_BAD;
	ret->bytes = (struct message){message->at, message->at + bytes};
	message->at += bytes;
	return 0;
}

static bool is_bytes(const struct one *one, uint64_t number)
{
	return one->number == number && one->kind == PROTO_BYTES;
}

/* ---- features ---- */

/* The bytes of a list of bytes. false: it is damaged. */
static bool feature_bytes(struct message list, struct found *found)
{
	struct one one;
	int r;

	while ((r = message_next(&list, &one)) == 0)
		if (is_bytes(&one, 1)) {
			found->bytes = one.bytes.at;
			found->size = (uint64_t)(one.bytes.end - one.bytes.at);
			found->values++;
		}
	return r == MESSAGE_E_END;
}

static bool feature_take(struct message feature, struct found *found)
{
	static const enum found_kind kinds[] = {FOUND_NOTHING, FOUND_RAW, FOUND_FLOATS, FOUND_INTS};
	struct message list = {NULL, NULL};
	struct one one;
	int r;

	found->kind = FOUND_RAW; /* of no value, where there is no list */
	while ((r = message_next(&feature, &one)) == 0)
		if (one.kind == PROTO_BYTES && one.number < BASE_ARRAY_LEN(kinds)) {
			found->kind = kinds[one.number];
			list = one.bytes;
		}
	if (r != MESSAGE_E_END)
		return false;
	if (found->kind == FOUND_RAW)
		return feature_bytes(list, found);
	found->bytes = list.at;
	found->size = (uint64_t)(list.end - list.at);
	return true;
}

/* An entry of the map: its name and its feature. */
static bool entry_take(const struct picked *members, struct message entry, struct found *found)
{
	struct message name = {NULL, NULL}, feature = {NULL, NULL};
	struct one one;
	int r;

	while ((r = message_next(&entry, &one)) == 0)
		if (is_bytes(&one, 1))
			name = one.bytes;
		else if (is_bytes(&one, 2))
			feature = one.bytes;
	if (r != MESSAGE_E_END)
		return false;
	for (unsigned m = 0; m < members->n; m++)
		if (picked_is_next(&members->member[m], (const char *)name.at,
				   (size_t)(name.end - name.at), false, &found[m]) &&
		    !feature_take(feature, &found[m]))
			return false;
	return true;
}

static bool features_take(const struct picked *members, struct message features,
			  struct found *found)
{
	struct one one;
	int r;

	while ((r = message_next(&features, &one)) == 0)
		if (is_bytes(&one, 1) && !entry_take(members, one.bytes, found))
			return false;
	return r == MESSAGE_E_END;
}

/* No field begins with a zero. */
static bool is_filled(const struct message *message)
{
	for (const uint8_t *at = message->at; at < message->end; at++)
		if (*at != 0)
			return false;
	return true;
}

int picked_example_find(const struct picked *members, const uint8_t *data, size_t size,
			struct found *found, struct pipeline_error *ret_error)
{
	struct message example = {data, data + size};
	struct one one;

	do {
		if (is_filled(&example))
			return 0;
	} while (message_next(&example, &one) == 0 &&
		 (!is_bytes(&one, 1) || features_take(members, one.bytes, found)));
	return decode_fail(ret_error, PIPELINE_FAIL_REFUSED, 0,
			   "no files and no tf.Example (?members=all)");
}

/* ---- lists of numbers ---- */

struct putting { /* values, one behind the other */
	const struct taking *taking;
	bool fits; /* values of that kind have a place in the field */
	uint64_t n, most;
};

static bool put_int(struct putting *putting, uint64_t value)
{
	const struct pipeline_field *field = putting->taking->member->field;
	uint8_t *to = picked_value_room(putting->taking);

	if (!putting->fits || putting->n == putting->most)
		return false;
	to += putting->n++ * packed_dtype_bytes(field->dtype);
	return json_field_put_whole(field->dtype, (int64_t)value, to);
}

static bool put_floats(struct putting *putting, struct message floats)
{
	const uint64_t n = (uint64_t)(floats.end - floats.at) / 4;

	if (n > putting->most - putting->n || (floats.end - floats.at) % 4)
		return false;
	if (n > 0 && !putting->fits)
		return false;
	if (n > 0)
		memcpy(picked_value_room(putting->taking) + 4 * putting->n, floats.at, 4 * n);
	putting->n += n;
	return true;
}

/* One value, or several that are packed. */
static bool put_one(struct putting *putting, const struct one *one)
{
	struct message packed = one->bytes;
	uint64_t value;

	if (one->number != 1)
		return true;
	if (putting->taking->found->kind == FOUND_FLOATS)
		return (one->kind == PROTO_BYTES || one->kind == PROTO_32) &&
		       put_floats(putting, packed);
	if (one->kind == PROTO_VARINT)
		return put_int(putting, one->value);
	if (one->kind != PROTO_BYTES)
		return false;
	while (packed.at < packed.end)
		if (!message_varint(&packed, &value) || !put_int(putting, value))
			return false;
	return true;
}

static bool fits(const struct taking *taking)
{
	const enum pipeline_dtype dtype = taking->member->field->dtype;

	if (taking->member->field->kind == PIPELINE_TEXT)
		return false;
	if (taking->found->kind == FOUND_FLOATS)
		return dtype == PIPELINE_F32;
	return dtype != PIPELINE_F32 && dtype != PIPELINE_F16 && dtype != PIPELINE_BF16 &&
	       dtype != PIPELINE_F64;
}

int picked_example_take(const struct taking *taking)
{
	const struct pipeline_field *field = taking->member->field;
	struct putting putting = {.taking = taking,
				  .fits = fits(taking),
				  .most = field->bytes / packed_dtype_bytes(field->dtype)};
	struct message list = {taking->found->bytes, taking->found->bytes + taking->found->size};
	struct one one;
	int r;

	while ((r = message_next(&list, &one)) == 0)
		if (put_one(&putting, &one))
			continue;
		else if (putting.fits)
			return picked_value_bad(taking, "more values than %llu, or beyond the type",
						(unsigned long long)putting.most);
		else
			return picked_value_bad(taking, "of another type; it is [%u]",
						taking->found->kind == FOUND_FLOATS ? PIPELINE_F32
										    : PIPELINE_I64);
	if (r != MESSAGE_E_END)
		return picked_value_bad(taking, "it is damaged");
	return picked_value_rows(taking, putting.n, picked_value_room(taking));
}
