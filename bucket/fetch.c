/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A transfer is a range of one object that some neighbouring asks want. It waits for its turn, runs, and where it
 * broke, runs again from the byte that is missing, a while later. So it is in one of these lists:
 *
 *	waiting --limit--> running --whole--> answered
 *	   ^                 |  |
 *	   +---- later <-----+  +--no--> parked --mended--> waiting
 *
 * An answer is believed if it is the range that was asked, of an object of that size and tag; then its bytes go to their places
 * as they come, and an ask is answered with its last byte. Each try is checked anew, so a transfer that was resumed has
 * bytes of one object only.
 */

#include "bucket/fetch.h"

#include <stdio.h>
#include <sys/queue.h>

#include "base/log.h"
#include "bucket/flow.h"

#define FETCH_MOST_TRIES 5
#define FETCH_BUSY_NS \
	UINT64_C(     \
	    30000000000) /* a server that is begun anew, or wants fewer questions, is waited for */
#define FETCH_PROGRESS (256 << 10) /* so many bytes make a try that broke none */
#define FETCH_OVERTAKEN 20
#define FETCH_TICK_NS UINT64_C(50000000)
#define FETCH_SLOW_NS UINT64_C(5000000000)
#define FETCH_SLOW_BYTES (UINT64_C(32000) * 5)

struct piece {
	uint64_t id, at;
	uint8_t *to;
	uint32_t bytes, has;
};

struct attempt {
	uint64_t began_ns, slow_ns; /* when it had slow_from, */
	uint64_t began_from, slow_from;
	uint64_t overtaken_at; /* answers, when so many of those that began later have come */
};

TAILQ_HEAD(transfer_list, transfer);
struct transfer {
	TAILQ_ENTRY(transfer) link;
	struct transfer_list *list; /* which it is in */
	struct fetch *fetch;
	void *guest;
	struct http_transfer *running;
	char *key;
	uint64_t size, from, to; /* from: of the first byte that is missing */
	int64_t mtime_ns;
	struct attempt attempt;
	uint64_t again_ns;
	uint64_t failing_ns; /* since when, if tries is not 0 */
	unsigned tries;
	bool has_head, was_mended, was_hastened;
	enum bucket_status wrong; /* why head() or bytes() wanted no more, */
	const char *why;
	unsigned n, next; /* pieces; those before `next` were answered */
	struct piece piece[];
};

struct fetch {
	const struct provider_ops *ops;
	void *provider;
	const struct fetch_sink *sink;
	struct http_many *many;
	struct flow flow;
	struct transfer_list waiting, running, later, parked;
	unsigned n_waiting, n_running;
	bool is_full, is_mending;
	uint64_t answered;
	uint64_t tick_ns;  /* UINT64_MAX: nothing waits for the clock */
	uint64_t quiet_ns; /* until then the server wants no question */
	struct fetch_counts counts;
};

static void move(struct transfer *transfer, struct transfer_list *list)
{
	struct fetch *fetch = transfer->fetch;

	if (transfer->list)
		TAILQ_REMOVE(transfer->list, transfer, link);
	fetch->n_running -= transfer->list == &fetch->running;
	fetch->n_waiting -= transfer->list == &fetch->waiting;
	transfer->list = list;
	if (list == &fetch->waiting &&
	    (transfer->tries || transfer->was_mended || transfer->was_hastened))
		TAILQ_INSERT_HEAD(list, transfer,
				  link); /* it is wanted sooner than what came later */
	else if (list)
		TAILQ_INSERT_TAIL(list, transfer, link);
	fetch->n_running += list == &fetch->running;
	fetch->n_waiting += list == &fetch->waiting;
	if (list == &fetch->running || list == &fetch->later)
		fetch->tick_ns = BASE_MIN(fetch->tick_ns, base_now_ns() + FETCH_TICK_NS);
}

static void drop(struct transfer *transfer)
{
	if (transfer->running)
		http_many_cut(transfer->fetch->many, transfer->running);
	move(transfer, NULL);
	free(transfer->key);
	free(transfer);
}

/* What is left of it is answered so. */
static void finish(struct transfer *transfer, enum bucket_status status, int code, const char *text)
{
	struct fetch *fetch = transfer->fetch;

	for (unsigned i = transfer->next; i < transfer->n; i++)
		if (transfer->piece[i].has < transfer->piece[i].bytes)
			fetch->sink->answer(transfer->guest, transfer->piece[i].id, status, code,
					    text);
	if (status != BUCKET_GOOD)
		log_line(LOG_LEVEL_WARN, "read-failed", "key=\"%s\" code=%d why=\"%s\"",
			 BASE_QUOTED(transfer->key, 512), code, text);
	fetch->counts.changed += status == BUCKET_CHANGED;
	fetch->counts.failed += status == BUCKET_FAILED || status == BUCKET_DENIED;
	drop(transfer);
}

/* is_busy: it is the server's trouble, not this object's. */
static void try_again(struct transfer *transfer, int code, const char *why, bool is_busy)
{
	struct fetch *fetch = transfer->fetch;
	const uint64_t now_ns = base_now_ns();

	if (transfer->from - transfer->attempt.began_from >= FETCH_PROGRESS)
		transfer->tries = 0;
	if (transfer->tries == 0)
		transfer->failing_ns = now_ns;
	if (++transfer->tries >= FETCH_MOST_TRIES &&
	    (!is_busy || now_ns - transfer->failing_ns >= FETCH_BUSY_NS)) {
		finish(transfer, BUCKET_FAILED, code, why);
		return;
	}
	fetch->counts.again++;
	transfer->again_ns = now_ns + http_backoff_ns(transfer->tries);
	move(transfer, &fetch->later);
}

/* ---- what comes ---- */

static bool wrong(struct transfer *transfer, enum bucket_status status, const char *why)
{
	transfer->wrong = status;
	transfer->why = why;
	return false;
}

static bool on_head(void *arg, const struct http_answer *answer)
{
	struct transfer *transfer = arg;
	struct fetch *fetch = transfer->fetch;
	const bool is_whole = transfer->from == 0 && transfer->to == transfer->size;

	transfer->has_head = true;
	fetch->answered++;
	transfer->attempt.slow_ns = base_now_ns();
	flow_good(&fetch->flow, transfer->attempt.slow_ns - transfer->attempt.began_ns,
		  fetch->is_full);
	fetch->is_full = fetch->n_waiting > 0;
	if (answer->total != UINT64_MAX && answer->total != transfer->size)
		return wrong(transfer, BUCKET_CHANGED, "it has another size now");
	if (!bucket_tag_is(fetch->ops, answer, transfer->mtime_ns))
		return wrong(transfer, BUCKET_CHANGED, "it was replaced");
	/* Some say 200 of a range; what range it is counts. */
	if (answer->from == UINT64_MAX ? answer->status == 206 || !is_whole
				       : answer->from != transfer->from)
		return wrong(transfer, BUCKET_FAILED, "the server gives no ranges");
	if (answer->landed && fetch->ops->landed)
		fetch->ops->landed(fetch->provider, transfer->key, answer->landed);
	return true;
}

/* Of n bytes that begin at `at`, what of them is the piece's. */
static void scatter(struct fetch *fetch, struct transfer *transfer, struct piece *piece,
		    const char *data, uint64_t at, uint64_t n)
{
	const uint64_t from = BASE_MAX(at, piece->at);
	const uint64_t to = BASE_MIN(at + n, piece->at + piece->bytes);

	if (from >= to || piece->has == piece->bytes)
		return;
	memcpy(piece->to + (from - piece->at), data + (from - at), to - from);
	piece->has = (uint32_t)(to - piece->at);
	fetch->counts.bytes += to - from;
	if (piece->has == piece->bytes)
		fetch->sink->answer(transfer->guest, piece->id, BUCKET_GOOD, 0, "");
}

static bool on_bytes(void *arg, const char *data, size_t n)
{
	struct transfer *transfer = arg;
	struct fetch *fetch = transfer->fetch;
	const uint64_t before = fetch->counts.bytes;

	if (n > transfer->to - transfer->from)
		return wrong(transfer, BUCKET_FAILED, "the server gives more than was asked");
	for (unsigned i = transfer->next; i < transfer->n; i++) {
		if (transfer->piece[i].at >= transfer->from + n)
			break;
		scatter(fetch, transfer, &transfer->piece[i], data, transfer->from, n);
	}
	while (transfer->next < transfer->n &&
	       transfer->piece[transfer->next].has == transfer->piece[transfer->next].bytes)
		transfer->next++;
	transfer->from += n;
	fetch->counts.dropped += n - BASE_MIN(n, fetch->counts.bytes - before);
	return true;
}

/* A status that is no object. */
static void on_no(struct transfer *transfer, struct http_answer *answer)
{
	struct fetch *fetch = transfer->fetch;
	char text[48];

	if (answer->status == HTTP_PROXY_WANTS)
		snprintf(text, sizeof(text), "the proxy wants a user and a password (407)");
	else
		snprintf(text, sizeof(text), "the server says %ld", answer->status);
	switch (answer->status) {
	case 404:
	case 410:
	case 412:
	case 416:
		finish(transfer, BUCKET_CHANGED, (int)answer->status,
		       answer->status == 404 || answer->status == 410 ? "it is there no more"
								      : "it was replaced");
		return;
	case 301:
	case 307:
	case 400:
	case 401:
	case 403:
		if (transfer->was_mended) {
			finish(transfer, BUCKET_DENIED, (int)answer->status, text);
			return;
		}
		move(transfer, &fetch->parked);
		if (fetch->is_mending)
			return;
		fetch->is_mending = true;
		fetch->sink->refused(fetch->sink->owner, answer, transfer->key);
		return;
	default:
		if (!http_passes(answer->status)) {
			finish(transfer, BUCKET_FAILED, (int)answer->status, text);
			return;
		}
		if (answer->status == 503 || answer->status == 429) {
			flow_bad(&fetch->flow, base_now_ns());
			fetch->quiet_ns =
			    BASE_MAX(fetch->quiet_ns, base_now_ns() + answer->wait_ns);
		}
		try_again(transfer, (int)answer->status, text, http_is_busy(answer->status));
	}
}

static void on_end(void *arg, struct http_answer *answer, const char *why)
{
	struct transfer *transfer = arg;

	transfer->running = NULL;
	if (transfer->wrong != BUCKET_GOOD) {
		finish(transfer, transfer->wrong, (int)answer->status, transfer->why);
	} else if (why) {
		flow_bad(&transfer->fetch->flow, base_now_ns());
		try_again(transfer, 0, why, true);
	} else if (answer->status != 200 && answer->status != 206) {
		on_no(transfer, answer);
	} else if (transfer->from < transfer->to) {
		try_again(transfer, (int)answer->status, "the server gives less than was asked",
			  false);
	} else {
		drop(transfer);
	}
}

/* ---- what is asked ---- */

static int begin(struct transfer *transfer)
{
	static const struct http_sink sink = {on_head, on_bytes, on_end};
	struct fetch *fetch = transfer->fetch;
	struct http_request request = {.method = "GET"};
	int r = fetch->ops->request(fetch->provider, "GET", transfer->key, &request);

	transfer->attempt.began_ns = transfer->attempt.slow_ns = base_now_ns();
	transfer->attempt.began_from = transfer->attempt.slow_from = transfer->from;
	transfer->attempt.overtaken_at = fetch->answered + 2 * fetch->n_running + FETCH_OVERTAKEN;
	transfer->has_head = false;
	if (!r)
		r = http_request_header(&request, "Range: bytes=%llu-%llu",
					(unsigned long long)transfer->from,
					(unsigned long long)transfer->to - 1);
	r = r ? r : fetch->ops->sign(fetch->provider, &request);
	r = r ? r : http_many_begin(fetch->many, &request, &sink, transfer, &transfer->running);
	http_request_free(&request);
	fetch->counts.requests++;
	return r;
}

static void begin_some(struct fetch *fetch)
{
	struct transfer *transfer;

	if (fetch->quiet_ns > base_now_ns())
		return;
	while (fetch->n_running < fetch->flow.limit && (transfer = TAILQ_FIRST(&fetch->waiting))) {
		int r;

		move(transfer, &fetch->running);
		r = begin(transfer);
		if (r)
			try_again(transfer, -r, strerror(-r), false);
	}
	if (fetch->n_waiting > 0)
		fetch->is_full = true;
}

static struct transfer *transfer_of(struct fetch *fetch, const struct question *question,
				    const struct question_span *span, const char *folder)
{
	const struct question_ask *first = &question->ask[span->first];
	struct transfer *transfer =
	    calloc(1, sizeof(*transfer) + span->n * sizeof(transfer->piece[0]));

	if (!transfer)
		return NULL;
	transfer->key = base_format("%s%.*s", folder, (int)first->ask.name_bytes, first->name);
	if (!transfer->key) {
		free(transfer);
		return NULL;
	}
	transfer->fetch = fetch;
	transfer->size = first->ask.size;
	transfer->mtime_ns = first->ask.mtime_ns;
	transfer->from = span->from;
	transfer->to = span->to;
	transfer->n = span->n;
	return transfer;
}

void fetch_add(struct fetch *fetch, void *guest, uint8_t *memory, const char *folder,
	       struct question *question)
{
	struct question_span spans[BUCKET_MOST_ASKS];
	const unsigned n = question_merge(question, spans);

	for (unsigned i = 0; i < n; i++) {
		const struct question_ask *ask = &question->ask[spans[i].first];
		struct transfer *transfer = transfer_of(fetch, question, &spans[i], folder);

		for (unsigned k = 0; k < spans[i].n && !transfer; k++)
			fetch->sink->answer(guest, ask[k].ask.id, BUCKET_FAILED, ENOMEM,
					    "there is no memory");
		if (!transfer)
			continue;
		transfer->guest = guest;
		for (unsigned k = 0; k < spans[i].n; k++)
			transfer->piece[k] = (struct piece){.id = ask[k].ask.id,
							    .at = ask[k].ask.at,
							    .to = memory + ask[k].ask.place,
							    .bytes = ask[k].ask.bytes};
		move(transfer, &fetch->waiting);
	}
	begin_some(fetch);
}

static void leave(struct transfer_list *list, const void *guest)
{
	struct transfer *transfer, *next;

	for (transfer = TAILQ_FIRST(list); transfer; transfer = next) {
		next = TAILQ_NEXT(transfer, link);
		if (transfer->guest == guest)
			drop(transfer);
	}
}

void fetch_leave(struct fetch *fetch, void *guest)
{
	leave(&fetch->waiting, guest);
	leave(&fetch->running, guest);
	leave(&fetch->later, guest);
	leave(&fetch->parked, guest);
}

/* A provider's words begin with the object, which who asked knows, and an answer has room for few. */
static const char *reason_of(const char *why)
{
	const char *reason = strstr(why, "HTTP ");

	return reason ? reason : why;
}

void fetch_mended(struct fetch *fetch, bool is_mended, const char *why)
{
	struct transfer *transfer;

	fetch->is_mending = false;
	while ((transfer = TAILQ_FIRST(&fetch->parked))) {
		transfer->was_mended = true;
		if (is_mended)
			move(transfer, &fetch->waiting);
		else
			finish(transfer, BUCKET_DENIED, 0, reason_of(why));
	}
	begin_some(fetch);
}

/* ---- the clock ---- */

static void stop(struct transfer *transfer)
{
	http_many_cut(transfer->fetch->many, transfer->running);
	transfer->running = NULL;
}

/* Is it this one that is late, and not the server, or this machine? Each is asked for once more. */
static bool is_late(const struct transfer *transfer, uint64_t now_ns, uint64_t haste_ns)
{
	return !transfer->was_hastened && now_ns - transfer->attempt.began_ns > haste_ns &&
	       transfer->fetch->quiet_ns <= now_ns &&
	       transfer->fetch->answered >= transfer->attempt.overtaken_at;
}

static void hasten(struct transfer *transfer)
{
	struct fetch *fetch = transfer->fetch;

	transfer->was_hastened = true;
	fetch->counts.hastened++;
	stop(transfer);
	move(transfer, &fetch->waiting);
}

static void check_slow(struct transfer *transfer, uint64_t now_ns, uint64_t haste_ns,
		       uint64_t patience_ns)
{
	struct fetch *fetch = transfer->fetch;
	const char *why = NULL;

	if (!transfer->has_head) {
		if (now_ns - transfer->attempt.began_ns > patience_ns)
			why = "no byte came in time";
		else if (is_late(transfer, now_ns, haste_ns) && flow_hasten(&fetch->flow))
			hasten(transfer);
	} else if (now_ns - transfer->attempt.slow_ns >= FETCH_SLOW_NS) {
		if (transfer->from - transfer->attempt.slow_from < FETCH_SLOW_BYTES)
			why = "fewer than 32 kB came in a second";
		transfer->attempt.slow_ns = now_ns;
		transfer->attempt.slow_from = transfer->from;
	}
	if (!why)
		return;
	stop(transfer);
	fetch->counts.slow++;
	try_again(transfer, ETIMEDOUT, why, true);
}

static void tick(struct fetch *fetch)
{
	const uint64_t now_ns = base_now_ns();
	const uint64_t patience_ns = flow_patience_ns(&fetch->flow, now_ns);
	const uint64_t haste_ns = flow_haste_ns(&fetch->flow);
	struct transfer *transfer, *next;

	for (transfer = TAILQ_FIRST(&fetch->later); transfer; transfer = next) {
		next = TAILQ_NEXT(transfer, link);
		if (transfer->again_ns <= now_ns)
			move(transfer, &fetch->waiting);
	}
	for (transfer = TAILQ_FIRST(&fetch->running); transfer; transfer = next) {
		next = TAILQ_NEXT(transfer, link);
		check_slow(transfer, now_ns, haste_ns, patience_ns);
	}
	fetch->tick_ns = TAILQ_EMPTY(&fetch->later) && TAILQ_EMPTY(&fetch->running)
			     ? UINT64_MAX
			     : now_ns + FETCH_TICK_NS;
}

void fetch_turn(struct fetch *fetch)
{
	http_many_turn(fetch->many);
	if (fetch->tick_ns <= base_now_ns())
		tick(fetch);
	begin_some(fetch);
}

uint64_t fetch_due_ns(const struct fetch *fetch)
{
	const uint64_t due_ns = BASE_MIN(fetch->tick_ns, http_many_due_ns(fetch->many));

	/* What else is waiting is begun when something ends. */
	return fetch->n_waiting && fetch->n_running < fetch->flow.limit
		   ? BASE_MIN(due_ns, fetch->quiet_ns)
		   : due_ns;
}

int fetch_fd(const struct fetch *fetch)
{
	return http_many_fd(fetch->many);
}

void fetch_count(const struct fetch *fetch, struct fetch_counts *ret)
{
	*ret = fetch->counts;
	ret->waiting = fetch->n_waiting;
	ret->running = fetch->n_running;
	ret->limit = fetch->flow.limit;
}

int fetch_new(const struct provider_ops *ops, void *provider, const struct fetch_sink *sink,
	      struct fetch **ret)
{
	struct fetch *fetch = calloc(1, sizeof(*fetch));

	if (!fetch || http_many_new(&fetch->many)) {
		free(fetch);
		return -ENOMEM;
	}
	fetch->ops = ops;
	fetch->provider = provider;
	fetch->sink = sink;
	fetch->tick_ns = UINT64_MAX;
	flow_init(&fetch->flow, base_now_ns());
	TAILQ_INIT(&fetch->waiting);
	TAILQ_INIT(&fetch->running);
	TAILQ_INIT(&fetch->later);
	TAILQ_INIT(&fetch->parked);
	*ret = fetch;
	return 0;
}

void fetch_free(struct fetch *fetch)
{
	struct transfer_list *const lists[] = {&fetch->waiting, &fetch->running, &fetch->later,
					       &fetch->parked};

	for (size_t i = 0; i < BASE_ARRAY_LEN(lists); i++)
		for (struct transfer *transfer; (transfer = TAILQ_FIRST(lists[i]));)
			drop(transfer);
	http_many_free(fetch->many);
	free(fetch);
}
