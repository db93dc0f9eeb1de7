/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Preparing an open. What a client brings takes time by its size, which the client chooses, so it is done in
 * steps that are short whatever he chooses, a budget of them a turn:
 *
 *   TOKEN    compared with the dataset, then parsed
 *   PART     the bitmap of the samples asked for: copied and counted
 *   COUNT    the samples of what the token leaves
 *   SETTLE   compared with those of the stream's other jobs, which may come as long as this one has not joined
 *   FIND     is there a plan log to go on with? Only where there is no group yet that the rank belongs to
 *   COPY     one that an accessd before us kept in a file
 *   LOG      read and checked; what does not fit is left aside, and the next place is looked at; where there is
 *            none, the memory of a new one is reserved
 *   READY
 *
 * All who prepare take turns, one budget each, so that many who bring much take no more of the loop than
 * one does. Those who bring nothing do when they have waited for a stream: each opens its job in a turn of its own. A log is read by one connection of a user and stream at a time: after a restart all ranks of a job
 * bring theirs, and the first one's is enough for all.
 *
 * Nothing here changes what others see: the job opens in one turn, by job_open(), with what was prepared. What
 * that depends on for good is the request and the stream's permutation. A group may be founded meanwhile, by another
 * rank, and end: so that is asked again when all is ready, and a log that was not needed is looked for then.
 * Whoever leaves the stream, or is refused, forgets what was prepared.
 */

#include "daemon/net/prepare.h"

#include "base/bits.h"
#include "daemon/budget.h"
#include "daemon/net/conn.h"
#include "daemon/net/members.h"
#include "daemon/net/porter.h"
#include "daemon/node.h"
#include "daemon/serve/group.h"
#include "daemon/serve/group_brought.h"
#include "daemon/serve/stream.h"
#include "daemon/serve/variant.h"
#include "libaccess/libaccess.h"
#include "plan/population.h"
#include "plan/token.h"

enum stage {
	STAGE_TOKEN,
	STAGE_PART,
	STAGE_COUNT,
	STAGE_SETTLE,
	STAGE_FIND,
	STAGE_COPY,
	STAGE_LOG,
	STAGE_READY
};

/* Where a log may be, best first: kept it is as long as any that a rank has. Where there is none, a new one is made. */
enum place_of_log { LOG_KEPT_NAMED, LOG_BROUGHT, LOG_KEPT, LOG_NEW };

struct prepare_queue { /* of a node */
	TAILQ_HEAD(prepare_waiting, prepare) waiting;
	struct loop_watch *timer;
};

struct prepare {
	TAILQ_ENTRY(prepare) link;
	bool is_waiting; /* for its turn */
	struct conn *conn;
	enum stage stage;
	struct token token;
	uint64_t origin;
	struct members members;
	uint64_t counted, need_samples; /* words of the token's need, and samples in them */
	bool is_looking, has_looked;    /* for a log */
	enum place_of_log place;
	int file_fd, kept_fd; /* of a kept log: its file, the sealed copy; -1: there is none */
	bool has_parted;      /* that is another version of the token's plan, and lacks its place */
	uint8_t kept_id[PLAN_LOG_ID];
	struct brought log;
	bool has_log;
};

/* ---- the queue ---- */

static void wait_for_turn(struct prepare *prepare)
{
	struct prepare_queue *queue = prepare->conn->node->clients.preparing;

	if (!prepare->is_waiting)
		TAILQ_INSERT_TAIL(&queue->waiting, prepare, link);
	prepare->is_waiting = true;
	loop_timer_set(queue->timer, 0);
}

static void stop_waiting(struct prepare *prepare)
{
	if (prepare->is_waiting)
		TAILQ_REMOVE(&prepare->conn->node->clients.preparing->waiting, prepare, link);
	prepare->is_waiting = false;
}

static struct prepare *prepare_new(struct conn *conn)
{
	struct prepare *prepare = calloc(1, sizeof(*prepare));

	if (!prepare)
		return NULL;
	prepare->conn = conn;
	prepare->file_fd = prepare->kept_fd = -1;
	return conn->prepare = prepare;
}

static void forget_log(struct prepare *prepare)
{
	if (prepare->has_log)
		brought_fini(&prepare->log);
	prepare->has_log = false;
}

/* Others of the user that wait for the stream, too. */
static bool is_beside(const struct conn *conn, const struct conn *other)
{
	return other != conn && other->stream == conn->stream && other->uid == conn->uid &&
	       other->prepare;
}

static bool is_somebody_reading(const struct conn *conn)
{
	BASE_EACH(other, &conn->node->clients.list, link)
		if (is_beside(conn, other) &&
		    (other->prepare->has_log || other->prepare->is_looking))
			return true;
	return false;
}

static void wake_others(const struct conn *conn)
{
	BASE_EACH(other, &conn->node->clients.list, link)
		if (is_beside(conn, other) && other->prepare->stage == STAGE_FIND)
			wait_for_turn(other->prepare);
}

void prepare_free(struct conn *conn)
{
	struct prepare *prepare = conn->prepare;

	if (!prepare)
		return;
	stop_waiting(prepare);
	if (prepare->has_looked)
		wake_others(conn);
	forget_log(prepare);
	members_fini(&prepare->members);
	token_fini(&prepare->token);
	base_close(&prepare->file_fd);
	porter_close(&conn->node->porters, PORTER_OWN, &prepare->kept_fd);
	free(prepare);
	conn->prepare = NULL;
}

/* ---- token and part ---- */

static int read_token(struct prepare *prepare, struct diag *diag)
{
	const struct request *request = &prepare->conn->request;
	const struct slot_geometry *geometry = &prepare->conn->stream->geometry;
	struct token head;
	int r;

	prepare->stage = STAGE_PART;
	if (request->token.data) {
		r = token_look(request->token.data, request->token.size, &head, diag);
		if (!r)
			r = token_fits(&head, geometry->n_samples, geometry->block,
				       geometry->dataset, diag);
		r = r ? r
		      : token_parse(request->token.data, request->token.size, &prepare->token,
				    diag);
		if (r)
			return r == -ENOMEM ? OA_E_MEMORY : OA_E_TOKEN;
		prepare->origin = group_origin(request);
	}
	return members_begin(&prepare->members, request, prepare->conn->stream->carousel,
			     geometry->dataset, diag);
}

static int read_part(struct prepare *prepare, struct diag *diag)
{
	struct conn *conn = prepare->conn;

	if (!members_step(&prepare->members))
		return 0;
	conn->request.part.sum = prepare->members.sum;
	prepare->stage = STAGE_COUNT;
	return members_check(&prepare->members, &conn->request, conn->stream->carousel,
			     conn->stream->geometry.dataset, diag);
}

static void count_need(struct prepare *prepare)
{
	const struct permutation *permutation =
	    carousel_permutation(prepare->conn->stream->carousel);
	const struct token *token = &prepare->token;
	const bool has_need = token->need && !plan_is_fixed(token->order); /* else it is empty */
	const uint64_t words = has_need ? bits_words(permutation->blocks) : 0;
	const uint64_t end = BASE_MIN(prepare->counted + POPULATION_STEP, words);

	prepare->need_samples += population_samples_in(permutation, prepare->members.bits,
						       token->need, prepare->counted, end);
	prepare->counted = end;
	if (end == words)
		prepare->stage = STAGE_SETTLE;
}

static int settle_part(struct prepare *prepare)
{
	const struct conn *conn = prepare->conn;
	bool is_failed = false;

	if (members_settle(&prepare->members, &conn->request, conn->stream->carousel, &is_failed))
		prepare->stage = STAGE_READY;
	return is_failed ? OA_E_MEMORY : 0;
}

/* ---- the log ---- */

static bool has_group(const struct request *request)
{
	return request->ranks > 1 && !plan_is_fixed(request->order);
}

static bool needs_log(const struct prepare *prepare)
{
	return has_group(&prepare->conn->request) && !prepare->has_looked &&
	       !group_is_there(prepare->conn, &prepare->token, prepare->origin);
}

static void find_kept(struct prepare *prepare)
{
	const struct token *token = &prepare->token;
	const struct conn *conn = prepare->conn;
	const struct keep_job of = {&conn->variant->key, conn->uid, &conn->request};

	prepare->has_looked = prepare->is_looking = true;
	prepare->place = LOG_KEPT_NAMED;
	prepare->stage = STAGE_LOG;
	prepare->file_fd = keep_find(&conn->stream->node->kept, &of,
				     token->has_log ? token->log : NULL, prepare->origin);
	prepare->kept_fd = prepare->file_fd < 0 ? -1 : base_memfd("oneaccess-kept", 0);
	if (prepare->kept_fd >= 0)
		prepare->stage = STAGE_COPY;
}

static void copy_kept(struct prepare *prepare)
{
	bool is_whole = false;

	if (!keep_copy(prepare->file_fd, prepare->kept_fd, &is_whole)) {
		porter_close(&prepare->conn->node->porters, PORTER_OWN, &prepare->kept_fd);
		prepare->stage = STAGE_LOG;
	} else if (is_whole) {
		prepare->stage = STAGE_LOG;
	}
}

static int begin_log(struct prepare *prepare)
{
	struct conn *conn = prepare->conn;
	const struct token *token = &prepare->token;
	const struct entry_rest begin = {.need = token->need,
					 .samples = prepare->need_samples,
					 .tail = token->tail,
					 .n_tail = token->n_tail};
	struct entry_set set = {.permutation = carousel_permutation(conn->stream->carousel),
				.bits = prepare->members.bits};
	int fd = prepare->place == LOG_BROUGHT ? conn->request.log_fd : prepare->kept_fd;
	bool is_named = prepare->place != LOG_KEPT;
	struct brought_from from;
	int r;

	if (prepare->place == LOG_NEW) {
		prepare->has_log = true;
		return brought_begin_new(&prepare->log, conn, token, prepare->origin)
			   ? BROUGHT_E_BAD
			   : BROUGHT_E_MORE;
	}
	if (fd < 0 || (is_named && !token->has_log))
		return BROUGHT_E_BAD;
	prepare->has_log = true;
	if (set.bits)
		set.blocks = carousel_population_blocks(prepare->members.population, &set.samples);
	from = (struct brought_from){.token = token,
				     .rest = &begin,
				     .is_newest = prepare->place != LOG_BROUGHT,
				     .is_named = is_named,
				     .origin = prepare->origin};
	if (prepare->place == LOG_BROUGHT && prepare->has_parted)
		from.beside = prepare->kept_id;
	r = brought_begin(&prepare->log, conn, fd, &from, &set);
	return r ? r : BROUGHT_E_MORE;
}

/* The kept one is remembered: what the rank brings, if it does, must go on with it. */
static void note_parted(struct prepare *prepare)
{
	prepare->has_parted = true;
	memcpy(prepare->kept_id, prepare->log.from.id, sizeof(prepare->kept_id));
}

/* Without memory for a new one there is none: group_enter() says so. 0, or the code to refuse with, and diag. */
static int read_log(struct prepare *prepare, struct diag *diag)
{
	int r = prepare->has_log ? brought_step(&prepare->log) : begin_log(prepare);

	if (r == BROUGHT_E_MORE)
		return 0;
	if (r == BROUGHT_E_PARTED && prepare->place == LOG_BROUGHT)
		return group_refuse_parted(prepare->conn, diag);
	if (r == BROUGHT_E_PARTED)
		note_parted(prepare);
	if (r)
		forget_log(prepare);
	if (r && prepare->place != LOG_NEW) {
		prepare->place++;
		return 0;
	}
	prepare->stage = STAGE_READY;
	prepare->is_looking = false;
	return 0;
}

/* ---- turns ---- */

/* 0, or the code to refuse with, and diag. */
static int step(struct prepare *prepare, struct diag *diag)
{
	switch (prepare->stage) {
	case STAGE_TOKEN:
		return read_token(prepare, diag);
	case STAGE_PART:
		return read_part(prepare, diag);
	case STAGE_COUNT:
		count_need(prepare);
		return 0;
	case STAGE_SETTLE:
		return settle_part(prepare);
	case STAGE_FIND:
		find_kept(prepare);
		return 0;
	case STAGE_COPY:
		copy_kept(prepare);
		return 0;
	case STAGE_LOG:
		return read_log(prepare, diag);
	case STAGE_READY:
		return 0;
	}
	return OA_E_INVALID;
}

static bool is_ready(struct prepare *prepare)
{
	if (prepare->stage == STAGE_READY || prepare->stage == STAGE_FIND) {
		prepare->stage = STAGE_READY;
		if (needs_log(prepare)) /* another rank may have founded the group meanwhile */
			prepare->stage = STAGE_FIND;
		else if (!members_are_settled(&prepare->members, prepare->conn->stream->carousel))
			prepare->stage = STAGE_SETTLE;
	}
	return prepare->stage == STAGE_READY;
}

enum { WORK_DONE, WORK_REFUSED, WORK_LEFT, WORK_WAITS };

/* As much as there is in a turn. */
static int work(struct prepare *prepare)
{
	const struct budget budget = budget_begin();
	struct diag diag = {"out of memory for what the job brings"};
	int code;

	while (!is_ready(prepare)) {
		if (prepare->stage == STAGE_FIND && is_somebody_reading(prepare->conn))
			return WORK_WAITS;
		code = step(prepare, &diag);
		if (code) {
			conn_refuse(prepare->conn, (uint64_t)code, "%s", diag.text);
			return WORK_REFUSED;
		}
		if (budget_is_spent(&budget))
			return WORK_LEFT;
	}
	return WORK_DONE;
}

static void take_turn(struct prepare *prepare)
{
	struct conn *conn = prepare->conn;

	switch (work(prepare)) {
	case WORK_DONE:
		conn_stream_ready(conn);
		break;
	case WORK_REFUSED:
		prepare_free(conn);
		break;
	case WORK_LEFT:
		if (prepare->has_log)
			brought_save(&prepare->log);
		wait_for_turn(prepare);
		break;
	case WORK_WAITS: /* wake_others() */
		break;
	}
}

/* A stream that does not run just now calls conn_stream_ready() when it does. */
static void on_turn(void *arg)
{
	struct node *node = arg;
	struct prepare *prepare = TAILQ_FIRST(&node->clients.preparing->waiting);
	struct conn *conn;

	if (!prepare)
		return;
	conn = prepare->conn;
	stop_waiting(prepare);
	if (conn->state != CONN_WAITS_STREAM)
		prepare_free(conn);
	else if (conn->stream->state == STREAM_RUNS && conn->variant->state == VARIANT_RUNS)
		take_turn(prepare);
	if (!TAILQ_EMPTY(&node->clients.preparing->waiting))
		loop_timer_set(node->clients.preparing->timer, 0);
}

int prepare_init(struct node *node)
{
	struct prepare_queue *queue = calloc(1, sizeof(*queue));

	if (!queue)
		return -ENOMEM;
	node->clients.preparing = queue;
	TAILQ_INIT(&queue->waiting);
	return loop_timer_new(node->loop, on_turn, node, &queue->timer);
}

void prepare_fini(struct node *node)
{
	if (node->clients.preparing)
		loop_unwatch(&node->clients.preparing->timer);
	free(base_take_ptr(node->clients.preparing));
}

void prepare_soon(struct conn *conn)
{
	if (conn->prepare || prepare_new(conn))
		wait_for_turn(conn->prepare);
	else
		conn_refuse(conn, OA_E_MEMORY, "out of memory for what the job brings");
}

bool prepare_is_ready(struct conn *conn)
{
	const struct request *request = &conn->request;

	if (!request->token.data && request->part.fd < 0 && !has_group(request))
		return true;
	if (conn->prepare && is_ready(conn->prepare))
		return true;
	prepare_soon(conn);
	return false;
}

/* ---- joining ---- */

static void use_token(const struct prepare *prepare, const struct slot_geometry *geometry,
		      struct carousel_join *join)
{
	const struct token *token = &prepare->token;

	join->epoch = token->epoch;
	if (plan_is_fixed(token->order)) {
		join->place = token->delivered;
		return;
	}
	join->need = token->need;
	join->need_samples = prepare->need_samples;
	join->is_counted = true;
	join->tail = token->tail;
	join->n_tail = token->n_tail;
	if (token->seed == geometry->seed) {
		join->nonces = token->nonces;
		join->n_nonces = token->n_nonces;
	}
}

int prepare_join(struct conn *conn, struct carousel_join *join, struct group **ret_group,
		 uint64_t *code, struct diag *diag)
{
	struct prepare *prepare = conn->prepare;

	if (!prepare)
		return 0;
	members_join(&prepare->members, &conn->request, join);
	if (conn->request.token.data)
		use_token(prepare, &conn->stream->geometry, join);
	if (!has_group(&conn->request))
		return 0;
	return group_enter(conn, &prepare->token, prepare->origin,
			   prepare->has_log ? &prepare->log : NULL, join, ret_group, code, diag);
}
