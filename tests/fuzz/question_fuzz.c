/* SPDX-License-Identifier: Apache-2.0 */

/* What comes over access-bucket's socket: what is let in lies in the memory and in the object, and is asked of the server once each. */

#include <stdlib.h>
#include <string.h>

#include "bucket/key.h"
#include "bucket/question.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MEMORY (UINT64_C(1) << 20)

static void claim(bool is_so)
{
	if (!is_so)
		abort();
}

static void check_ask(const struct question_ask *asked, const uint8_t *data, size_t size)
{
	const struct bucket_ask *ask = &asked->ask;

	claim(ask->bytes > 0 && ask->place + ask->bytes <= MEMORY);
	claim(ask->at + ask->bytes <= ask->size);
	claim((const uint8_t *)asked->name >= data &&
	      (const uint8_t *)asked->name + ask->name_bytes <= data + size);
	claim(!key_bad_name(asked->name, ask->name_bytes));
}

static void check_spans(struct question *question)
{
	struct question_span spans[BUCKET_MOST_ASKS];
	const unsigned n = question_merge(question, spans);
	unsigned next = 0;

	claim(n >= 1 && n <= question->n);
	for (unsigned i = 0; i < n; i++) {
		claim(spans[i].first == next && spans[i].n >= 1);
		claim(spans[i].n == 1 || spans[i].to - spans[i].from <= QUESTION_MOST_SPAN);
		for (unsigned k = 0; k < spans[i].n; k++) {
			const struct bucket_ask *ask = &question->ask[next++].ask;

			claim(ask->at >= spans[i].from && ask->at + ask->bytes <= spans[i].to);
		}
	}
	claim(next == question->n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct question question;

	if (question_read(data, size, MEMORY, &question))
		return 0;
	if (question.kind != BUCKET_READ)
		return 0;
	for (unsigned i = 0; i < question.n; i++)
		check_ask(&question.ask[i], data, size);
	check_spans(&question);
	return 0;
}
