/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Fill in the middle (Bavarian et al., "Efficient training of language models to fill in the middle", 2022), as bigcode's
 * Megatron-LM does it: a share of the documents is cut at two places into prefix, middle and suffix, which come as
 *
 *   PSM   <prefix> prefix <suffix> suffix <middle> middle
 *   SPM   <prefix> <suffix> suffix <middle> prefix middle
 *
 * with three more tokens. Of a window, where documents end with a token, what follows moves on, and what is too much at its
 * end is cut off. In a packed sample each part of a document keeps its place: its suffix loses what the sentinels take, and a
 * part whose suffix has no more than that stays as it is. The end of a document stays at its end.
 *
 * The cuts are between tokens. (bigcode's are between characters, which needs the tokenizer; its fim.py for
 * fine-tuning cuts between tokens, too.)
 */

#include "plan/objective/objective.h"

#define SENTINELS 3

static bool middle_shape(const struct objective *objective, const struct objective_from *from,
			 struct objective_shape *ret)
{
	(void)objective;
	*ret = from->is_packed ? (struct objective_shape){OBJECTIVE_ROWS, from->length}
			       : (struct objective_shape){from->length + UINT64_C(1), 0};
	return true;
}

/* What is written, as far as there is room. */
struct sink {
	int64_t *to;
	uint64_t room;
};

static void put(struct sink *sink, const int64_t *tokens, uint64_t n)
{
	n = BASE_MIN(n, sink->room);
	memcpy(sink->to, tokens, n * sizeof(*tokens));
	sink->to += n;
	sink->room -= n;
}

/* One document, or a part of one, without its end. keeps: it is to have as many tokens as before. true: it was cut. */
static bool put_document(const struct objective_middle *middle, struct philox_seq *seq,
			 const int64_t *tokens, uint64_t n, bool keeps, struct sink *sink)
{
	uint64_t first, last, suffix;

	if (n == 0 || !objective_chance(seq, middle->rate)) {
		put(sink, tokens, n);
		return false;
	}
	first = philox_below(seq, n + 1);
	last = philox_below(seq, n + 1);
	if (first > last) {
		suffix = first;
		first = last;
		last = suffix;
	}
	suffix = n - last;
	if (keeps && suffix <= SENTINELS) {
		put(sink, tokens, n);
		return false;
	}
	suffix -= keeps ? SENTINELS : 0;
	put(sink, &middle->prefix, 1);
	if (objective_chance(seq, middle->swapped)) {
		put(sink, &middle->suffix, 1);
		put(sink, tokens + last, suffix);
		put(sink, &middle->middle, 1);
		put(sink, tokens, last);
		return true;
	}
	put(sink, tokens, first);
	put(sink, &middle->suffix, 1);
	put(sink, tokens + last, suffix);
	put(sink, &middle->middle, 1);
	put(sink, tokens + first, last - first);
	return true;
}

static void middle_window(const struct objective_middle *middle, struct philox_seq *seq,
			  const int64_t *sample, uint64_t n, int64_t *ret)
{
	struct sink sink = {ret, n};

	for (uint64_t at = 0, end; at < n && sink.room > 0; at = end) {
		end = at;
		while (end < n && (middle->end < 0 || sample[end] != middle->end))
			end++;
		put_document(middle, seq, sample + at, end - at, false, &sink);
		if (end < n)
			put(&sink, &middle->end, 1), end++;
	}
}

/* The next tokens of a part that was cut. */
static void label(const int64_t *tokens, uint32_t n, int64_t *labels)
{
	for (uint32_t i = 0; i + 1 < n; i++)
		labels[i] = tokens[i + 1];
	labels[n - 1] = OBJECTIVE_IGNORED;
}

static void middle_packed(const struct objective_middle *middle, struct philox_seq *seq,
			  const int64_t *sample, uint32_t length, int64_t *ret)
{
	int64_t *labels = ret + length, *places = labels + length;

	memcpy(ret, sample, OBJECTIVE_ROWS * (uint64_t)length * sizeof(*ret));
	for (uint32_t at = 0, end; at < length && places[length + at] >= 0; at = end) {
		struct sink sink = {ret + at, 0};
		uint32_t n;

		for (end = at + 1; end < length && !objective_begins(places, length, end);)
			end++;
		n = end - at;
		n -= middle->end >= 0 && ret[end - 1] == middle->end;
		sink.room = n;
		if (put_document(middle, seq, sample + at, n, true, &sink))
			label(ret + at, end - at, labels + at);
	}
}

static void middle_make(const struct objective *objective, const struct objective_from *from,
			struct philox_seq *seq, const int64_t *sample, int64_t *ret)
{
	if (from->is_packed)
		middle_packed(&objective->middle, seq, sample, from->length, ret);
	else
		middle_window(&objective->middle, seq, sample, from->length + UINT64_C(1), ret);
}

const struct objective_ops objective_middle_ops = {middle_shape, middle_make};
