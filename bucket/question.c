/* SPDX-License-Identifier: Apache-2.0 */

#include "bucket/question.h"

#include "bucket/key.h"

static bool is_good_ask(const struct question_ask *asked, uint64_t memory)
{
	const struct bucket_ask *ask = &asked->ask;

	return ask->bytes > 0 && ask->place <= memory && ask->bytes <= memory - ask->place &&
	       ask->at <= ask->size && ask->bytes <= ask->size - ask->at &&
	       ask->size <= INT64_MAX && ask->mtime_ns >= 0 && ask->reserved[0] == 0 &&
	       ask->reserved[1] == 0 && !key_bad_name(asked->name, ask->name_bytes);
}

static int read_asks(const uint8_t *at, size_t bytes, uint64_t memory, struct question *question)
{
	const char *name = (const char *)at + question->n * sizeof(struct bucket_ask);

	if (bytes < question->n * sizeof(struct bucket_ask))
		return -EBADMSG;
	bytes -= question->n * sizeof(struct bucket_ask);
	for (unsigned i = 0; i < question->n; i++) {
		struct question_ask *asked = &question->ask[i];

		memcpy(&asked->ask, at + i * sizeof(asked->ask), sizeof(asked->ask));
		asked->name = name;
		if (asked->ask.name_bytes > bytes || !is_good_ask(asked, memory))
			return -EBADMSG;
		name += asked->ask.name_bytes;
		bytes -= asked->ask.name_bytes;
	}
	return bytes ? -EBADMSG : 0;
}

int question_read(const void *message, size_t bytes, uint64_t memory, struct question *ret)
{
	struct bucket_head head;

	if (bytes < sizeof(head))
		return -EBADMSG;
	memcpy(&head, message, sizeof(head));
	if (head.magic != BUCKET_MAGIC || head.reserved != 0)
		return -EBADMSG;
	ret->kind = (enum bucket_kind)head.kind;
	ret->memory = head.memory;
	ret->n = head.count;
	switch (head.kind) {
	case BUCKET_WATCH:
	case BUCKET_YIELD:
		return bytes == sizeof(head) && head.count == 0 && head.memory == 0 ? 0 : -EBADMSG;
	case BUCKET_HELLO:
		return bytes == sizeof(head) && head.count == 0 && head.memory > 0 &&
			       head.memory <= BUCKET_MOST_MEMORY
			   ? 0
			   : -EBADMSG;
	case BUCKET_READ:
		if (head.memory != 0 || head.count == 0 || head.count > BUCKET_MOST_ASKS)
			return -EBADMSG;
		return read_asks((const uint8_t *)message + sizeof(head), bytes - sizeof(head),
				 memory, ret);
	default:
		return -EBADMSG;
	}
}

/* ---- merging ---- */

static int compare_objects(const struct question_ask *a, const struct question_ask *b)
{
	int r = BASE_ORDER(a->ask.name_bytes, b->ask.name_bytes);

	r = r ? r : memcmp(a->name, b->name, a->ask.name_bytes);
	r = r ? r : BASE_ORDER(a->ask.size, b->ask.size);
	return r ? r : BASE_ORDER(a->ask.mtime_ns, b->ask.mtime_ns);
}

static int compare(const void *a, const void *b)
{
	const struct question_ask *one = a, *other = b;
	const int r = compare_objects(one, other);

	return r ? r : BASE_ORDER(one->ask.at, other->ask.at);
}

static uint64_t end_of(const struct bucket_ask *ask)
{
	return ask->at + ask->bytes;
}

static bool is_near(const struct question *question, const struct question_span *span, unsigned i)
{
	const struct bucket_ask *ask = &question->ask[i].ask;

	return compare_objects(&question->ask[i], &question->ask[span->first]) == 0 &&
	       (ask->at <= span->to || ask->at - span->to <= QUESTION_MOST_GAP) &&
	       BASE_MAX(end_of(ask), span->to) - span->from <= QUESTION_MOST_SPAN;
}

unsigned question_merge(struct question *question, struct question_span ret[BUCKET_MOST_ASKS])
{
	unsigned n = 0;

	qsort(question->ask, question->n, sizeof(*question->ask), compare);
	for (unsigned i = 0; i < question->n; i++) {
		const struct bucket_ask *ask = &question->ask[i].ask;

		if (n > 0 && is_near(question, &ret[n - 1], i)) {
			ret[n - 1].n++;
			ret[n - 1].to = BASE_MAX(ret[n - 1].to, end_of(ask));
		} else {
			ret[n++] = (struct question_span){i, 1, ask->at, end_of(ask)};
		}
	}
	return n;
}
