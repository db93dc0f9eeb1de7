/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Drives a scan: brings what it wants, and holds it to its own rules.
 *
 * More is read at a time than is wanted, for behind a header the next one is often near: a page where payloads are
 * passed over, and up to SCAN_WINDOW where they are not.
 */

#include "storage/source/scan/scan_shard.h"

#include "base/base.h"

#include <stdarg.h>
#include <stdio.h>

#define SCAN_PAGE 4096
#define SCAN_WINDOW 65536

int scan_bad(struct scan_sink *sink, uint64_t at, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(sink->why, sizeof(sink->why), fmt, args);
	va_end(args);
	sink->bad_at = at;
	return SCAN_E_BAD;
}

struct window {         /* bytes of the shard that are in memory */
	uint8_t *bytes; /* owned */
	uint64_t at;
	uint32_t size;
	uint32_t most; /* that is read ahead */
};

static bool window_has(const struct window *window, const struct scan_want *want)
{
	const uint64_t end = window->at + window->size;

	return want->at >= window->at && want->at < end && want->bytes <= end - want->at;
}

/* 0 or negative errno. */
static int window_fill(struct window *window, const struct scan_want *want,
		       const struct scan_shard *shard, const struct scan_reader *reader)
{
	const uint64_t there = shard->bytes - want->at, end = window->at + window->size;
	const bool is_near = want->at >= window->at && want->at <= end + window->most;
	int r;

	window->most = is_near ? BASE_MIN(2 * window->most, (uint32_t)SCAN_WINDOW) : SCAN_PAGE;
	window->at = want->at;
	window->size = (uint32_t)BASE_MIN(there, (uint64_t)BASE_MAX(want->bytes, window->most));
	r = reader->read(reader->arg, window->at, window->bytes, window->size);
	if (r)
		window->size = 0;
	return r;
}

static bool want_is_good(const struct scan_want *want, const struct scan_shard *shard)
{
	return want->bytes > 0 && want->bytes <= SCAN_MOST_WANT && want->at < shard->bytes &&
	       want->bytes <= shard->bytes - want->at;
}

static int run(const struct source_scan *scan, void *state, const struct scan_shard *shard,
	       const struct scan_reader *reader, struct window *window, struct scan_sink *sink)
{
	struct scan_want want;
	int r = scan->begin(state, shard, sink, &want);

	while (!r) {
		const uint64_t at = want.at;

		if (!want_is_good(&want, shard))
			return scan_bad(sink, BASE_MIN(want.at, shard->bytes),
					"what follows lies beyond its end");
		if (!window_has(window, &want))
			r = window_fill(window, &want, shard, reader);
		if (!r)
			r = scan->feed(state, at, window->bytes + (at - window->at), want.bytes,
				       sink, &want);
	}
	return r;
}

int scan_shard_run(const struct source_scan *scan, const struct scan_shard *shard,
		   const struct scan_reader *reader, struct scan_sink *sink)
{
	const uint64_t most = BASE_MIN(shard->bytes, (uint64_t)SCAN_MOST_WANT);
	struct window window = {.bytes = malloc(BASE_MAX(most, UINT64_C(1))),
				.most = SCAN_PAGE / 2};
	void *state = malloc(scan->state_bytes);
	int r = -ENOMEM;

	if (window.bytes && state)
		r = run(scan, state, shard, reader, &window, sink);
	free(state);
	free(window.bytes);
	return r == SCAN_E_END ? 0 : r;
}
