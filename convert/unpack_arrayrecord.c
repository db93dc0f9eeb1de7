/* SPDX-License-Identifier: Apache-2.0 */

/*
 * ArrayRecord files (storage/source/scan/riegeli.h) whose records are compressed with zstd, or of which several are in a chunk: the same
 * records, in their order, as they are, each in a chunk of its own. A file that is so already is left alone.
 *
 * The index and the last block are the last two chunks with records; so each is held until two more have come. Heads of blocks
 * are zeros but for the first: only scan_arrayrecord.c reads the new file, and it passes over them.
 */

#include "convert/convert.h"

#include <stdlib.h>

#include "base/base.h"
#include "base/varint.h"
#include "storage/source/scan/riegeli.h"

#define MOST_SIZES (UINT64_C(16) << 20) /* bytes that the sizes of a chunk's records may take */
#define MOST_RECORD (UINT64_C(128) << 20)
#define VARINT_MOST 10
#define HELD 2

enum { ARRAY_E_END = 1000 }; /* beside UNPACK_E_...: the file ends here */

struct buffer {
	uint8_t *bytes; /* owned */
	size_t room;
};

struct unpack_array {
	struct unpack_pipe *pipe;
	struct unpack_frame frame;
	uint64_t from; /* place of what is read next */
	struct {
		uint64_t at; /* place of its data */
		struct riegeli_chunk chunk;
	} held[HELD];
	unsigned n_held;
	bool is_begun;       /* something was written */
	uint64_t to;         /* place of what is written next */
	size_t filled;       /* bytes of pipe->out */
	struct highway hash; /* of a chunk's data that was read */
	uint64_t left;       /* bytes of them to come */
	struct buffer sizes, record;
};

static bool reserve(struct buffer *buffer, uint64_t bytes)
{
	uint8_t *more;

	if (bytes <= buffer->room)
		return true;
	more = realloc(buffer->bytes, bytes);
	if (!more)
		return false;
	buffer->bytes = more;
	buffer->room = bytes;
	return true;
}

/* ---- what is read ---- */

/* What lies at the place, up to the end of the block, or of what is in memory. 0, UNPACK_E_READ, ARRAY_E_END. */
static int look(struct unpack_array *array, const uint8_t **ret, size_t *ret_bytes)
{
	struct unpack_pipe *pipe = array->pipe;
	const uint64_t at = riegeli_at(array->from);

	if (at < pipe->at - pipe->in_bytes || at >= pipe->at) {
		pipe->at = at;
		pipe->in_bytes = 0;
		if (!pipe->read(pipe))
			return UNPACK_E_READ;
		if (pipe->in_bytes == 0)
			return ARRAY_E_END;
	}
	*ret = pipe->in + (at - (pipe->at - pipe->in_bytes));
	*ret_bytes = (size_t)BASE_MIN(pipe->at - at, RIEGELI_BLOCK - at % RIEGELI_BLOCK);
	return 0;
}

static int take(struct unpack_array *array, uint8_t *to, uint64_t bytes)
{
	const uint8_t *there;
	size_t some;
	int r = 0;

	for (uint64_t done = 0; done < bytes && !r; done += some) {
		r = look(array, &there, &some);
		if (r)
			return done > 0 && r == ARRAY_E_END ? UNPACK_E_CUT : r;
		some = (size_t)BASE_MIN((uint64_t)some, bytes - done);
		memcpy(to + done, there, some);
		array->from += some;
	}
	return r;
}

/* Of a chunk's data. */
static int take_data(struct unpack_array *array, uint8_t *to, uint64_t bytes)
{
	int r;

	if (bytes > array->left)
		return UNPACK_E_DAMAGED;
	r = take(array, to, bytes);
	if (r)
		return r == ARRAY_E_END ? UNPACK_E_CUT : r;
	highway_add(&array->hash, to, bytes);
	array->left -= bytes;
	return 0;
}

static int take_varint(struct unpack_array *array, uint64_t *ret)
{
	uint8_t bytes[VARINT_MOST];

	for (size_t n = 0; n < sizeof(bytes); n++) {
		const int r = take_data(array, bytes + n, 1);

		if (r)
			return r;
		if (bytes[n] < 128)
			return varint_read(bytes, n + 1, ret) ? 0 : UNPACK_E_DAMAGED;
	}
	return UNPACK_E_DAMAGED;
}

/* Of the frame: what of the data there is goes into it. */
static int step(struct unpack_array *array, struct unpack_piece *piece)
{
	const uint8_t *there = NULL;
	size_t some = 0;
	int r = array->left > 0 ? look(array, &there, &some) : 0;

	if (r)
		return r == ARRAY_E_END ? UNPACK_E_CUT : r;
	piece->from = there;
	piece->size = (size_t)BASE_MIN((uint64_t)some, array->left);
	r = unpack_frame_step(&array->frame, piece);
	if (r)
		return r;
	if (piece->taken > 0)
		highway_add(&array->hash, there, piece->taken);
	array->from += piece->taken;
	array->left -= piece->taken;
	return piece->taken + piece->made > 0 ? 0 : UNPACK_E_DAMAGED;
}

/* So many bytes that are in the frame, the first or those that follow. */
static int take_unpacked(struct unpack_array *array, uint8_t *to, uint64_t bytes)
{
	struct unpack_piece piece = {.to = to, .room = bytes};
	int r = 0;

	while (piece.room > 0 && !r) {
		r = step(array, &piece);
		piece.to += piece.made;
		piece.room -= piece.made;
	}
	return r;
}

/* Nothing more is in the frame, which ends with the data. */
static int end_frame(struct unpack_array *array)
{
	uint8_t none;
	struct unpack_piece piece = {.to = &none};
	int r = 0;

	while (array->left > 0 && !r)
		r = step(array, &piece);
	return r;
}

/* ---- what is written ---- */

static int flush(struct unpack_array *array)
{
	const size_t bytes = array->filled;

	array->filled = 0;
	return array->pipe->write(array->pipe, bytes) ? 0 : UNPACK_E_WRITE;
}

static int put_bytes(struct unpack_array *array, const uint8_t *bytes, size_t size)
{
	struct unpack_pipe *pipe = array->pipe;
	int r = 0;

	while (size > 0 && !r) {
		const size_t some = BASE_MIN(size, sizeof(pipe->out) - array->filled);

		if (bytes)
			memcpy(pipe->out + array->filled, bytes, some);
		else
			memset(pipe->out + array->filled, 0, some);
		bytes = bytes ? bytes + some : NULL;
		size -= some;
		array->filled += some;
		if (array->filled == sizeof(pipe->out))
			r = flush(array);
	}
	return r;
}

/* bytes NULL: zeros. */
static int put(struct unpack_array *array, const uint8_t *bytes, uint64_t size)
{
	int r = 0;

	while (size > 0 && !r) {
		const uint64_t within = array->to % RIEGELI_ROOM;
		const size_t some = (size_t)BASE_MIN(size, RIEGELI_ROOM - within);

		if (within == 0)
			r = put_bytes(array, NULL, RIEGELI_BLOCK_HEAD);
		r = r ? r : put_bytes(array, bytes, some);
		bytes = bytes ? bytes + some : NULL;
		size -= some;
		array->to += some;
	}
	return r;
}

/* A chunk of records that are as they are: sizes, then the bytes. */
static int put_chunk(struct unpack_array *array, uint64_t records, const uint8_t *sizes,
		     size_t of_sizes, const uint8_t *bytes, uint64_t size)
{
	uint8_t head[RIEGELI_HEAD], before[2] = {0, (uint8_t)of_sizes};
	struct highway hash;
	int r;

	highway_begin(&hash);
	highway_add(&hash, before, sizeof(before));
	highway_add(&hash, sizes, of_sizes);
	highway_add(&hash, bytes, size);
	little_put_64(head + 8, sizeof(before) + of_sizes + size);
	little_put_64(head + 16, highway_end(&hash));
	little_put_64(head + 24, records << 8 | 'r');
	little_put_64(head + 32, size);
	little_put_64(head, highway(head + 8, RIEGELI_HEAD - 8));
	r = put(array, head, sizeof(head));
	r = r ? r : put(array, before, sizeof(before));
	r = r ? r : put(array, sizes, of_sizes);
	return r ? r : put(array, bytes, size);
}

static size_t varint_put(uint8_t *to, uint64_t value)
{
	size_t n = 0;

	for (; value >= 128; value >>= 7)
		to[n++] = (uint8_t)(value | 128);
	to[n++] = (uint8_t)value;
	return n;
}

static int put_record(struct unpack_array *array, uint64_t size)
{
	uint8_t sizes[VARINT_MOST];
	int r = 0;

	if (!array->is_begun) {
		r = put_bytes(array, riegeli_first, sizeof(riegeli_first));
		array->to = RIEGELI_HEAD;
		array->is_begun = true;
	}
	return r ? r
		 : put_chunk(array, 1, sizes, varint_put(sizes, size), array->record.bytes, size);
}

/* The index is left out, which the last block says to be here. */
static int put_end(struct unpack_array *array)
{
	uint8_t message[2 * (VARINT_MOST + 1)], all[3 * sizeof(message)], sizes[3];
	size_t n = 0;
	int r;

	message[n++] = 1 << 3 | PROTO_VARINT;
	n += varint_put(message + n, riegeli_at(array->to));
	message[n++] = 2 << 3 | PROTO_VARINT;
	n += varint_put(message + n, RIEGELI_MAGIC);
	for (unsigned i = 0; i < 3; i++) {
		memcpy(all + i * n, message, n);
		sizes[i] = (uint8_t)n;
	}
	r = put(array, NULL, RIEGELI_ROOM - array->to % RIEGELI_ROOM);
	r = r ? r : put_chunk(array, 3, sizes, sizeof(sizes), all, 3 * n);
	r = r ? r : put(array, NULL, RIEGELI_ROOM - array->to % RIEGELI_ROOM);
	return r ? r : flush(array);
}

/* ---- records ---- */

/* The sizes of the chunk's records, in array->sizes. */
static int take_sizes(struct unpack_array *array, bool is_packed, size_t *ret)
{
	uint64_t packed, bytes, rest;
	int r = take_varint(array, &packed);

	if (r || packed > MOST_SIZES || packed > array->left)
		return r ? r : UNPACK_E_DAMAGED;
	if (!is_packed) {
		*ret = (size_t)packed;
		return reserve(&array->sizes, packed) ? take_data(array, array->sizes.bytes, packed)
						      : UNPACK_E_MEMORY;
	}
	rest = array->left - packed;
	array->left = packed; /* the frame is to end there */
	r = take_varint(array, &bytes);
	if (!r && (bytes == 0 || bytes > MOST_SIZES))
		r = UNPACK_E_DAMAGED;
	if (!r && !reserve(&array->sizes, bytes))
		r = UNPACK_E_MEMORY;
	unpack_frame_begin(&array->frame);
	r = r ? r : take_unpacked(array, array->sizes.bytes, bytes);
	r = r ? r : end_frame(array);
	array->left = rest;
	*ret = r ? 0 : (size_t)bytes;
	return r;
}

static int unpack_records(struct unpack_array *array, const struct riegeli_chunk *chunk)
{
	uint64_t written, size, sum = 0;
	size_t sizes = 0, at = 0, n;
	uint8_t packing = 0;
	int r = take_data(array, &packing, 1);

	if (!r && packing == 0 && chunk->records == 1 && !array->is_begun)
		return UNPACK_E_PLAIN;
	if (!r && packing != 0 && packing != 'z')
		r = UNPACK_E_KIND;
	r = r ? r : take_sizes(array, packing == 'z', &sizes);
	if (!r && packing == 'z') {
		unpack_frame_begin(&array->frame);
		r = take_varint(array, &written);
		if (!r && written != chunk->written)
			r = UNPACK_E_DAMAGED;
	}
	for (uint64_t i = 0; i < chunk->records && !r; i++) {
		if (at == sizes)
			return UNPACK_E_DAMAGED;
		n = varint_read(array->sizes.bytes + at, sizes - at, &size);
		at += n;
		if (n == 0 || size > chunk->written - sum)
			return UNPACK_E_DAMAGED;
		if (size > MOST_RECORD || !reserve(&array->record, size))
			return UNPACK_E_LARGE;
		sum += size;
		r = packing == 'z' ? take_unpacked(array, array->record.bytes, size)
				   : take_data(array, array->record.bytes, size);
		r = r ? r : put_record(array, size);
	}
	if (!r && packing == 'z')
		r = end_frame(array);
	if (!r &&
	    (sum != chunk->written || array->left > 0 || highway_end(&array->hash) != chunk->hash))
		r = UNPACK_E_DAMAGED;
	return r;
}

static int unpack_chunk(struct unpack_array *array, uint64_t at, const struct riegeli_chunk *chunk)
{
	const uint64_t from = array->from;
	int r;

	if (chunk->type == 't')
		return UNPACK_E_KIND;
	array->from = at;
	array->left = chunk->bytes;
	highway_begin(&array->hash);
	r = unpack_records(array, chunk);
	array->from = from;
	return r;
}

/* Is what is held the index and what says so? */
static int judge_end(struct unpack_array *array)
{
	const struct riegeli_chunk *last = &array->held[1].chunk;
	uint8_t data[256];
	uint64_t footer;
	int r;

	if (array->n_held < HELD || last->bytes == 0 || last->bytes > sizeof(data))
		return UNPACK_E_CUT;
	array->from = array->held[1].at;
	r = take(array, data, last->bytes);
	if (r)
		return r == ARRAY_E_END ? UNPACK_E_CUT : r;
	if (!riegeli_footer(data, last->bytes, &footer) ||
	    riegeli_place(footer) + RIEGELI_HEAD != array->held[0].at)
		return UNPACK_E_CUT;
	return array->is_begun ? put_end(array) : UNPACK_E_PLAIN;
}

static int unpack_all(struct unpack_array *array)
{
	uint8_t head[RIEGELI_HEAD];
	struct riegeli_chunk chunk;
	int r;

	for (;;) {
		r = take(array, head, sizeof(head));
		if (r)
			return r == ARRAY_E_END ? judge_end(array) : r;
		if (!riegeli_head(head, &chunk) || chunk.bytes > UINT64_MAX / 4)
			return UNPACK_E_DAMAGED;
		if ((chunk.type == 'r' || chunk.type == 't') && chunk.records > 0) {
			if (array->n_held == HELD)
				r = unpack_chunk(array, array->held[0].at, &array->held[0].chunk);
			if (r)
				return r;
			array->n_held = BASE_MIN(array->n_held + 1, (unsigned)HELD);
			array->held[0] = array->held[1];
			array->held[1].at = array->from;
			array->held[1].chunk = chunk;
		}
		array->from += chunk.bytes;
	}
}

int unpack_arrayrecord(struct unpack_pipe *pipe)
{
	struct unpack_array array = {.pipe = pipe};
	int r = UNPACK_E_MEMORY;

	unpack_frame_new(&array.frame);
	if (array.frame.context)
		r = unpack_all(&array);
	unpack_frame_free(&array.frame);
	free(array.sizes.bytes);
	free(array.record.bytes);
	return r;
}
