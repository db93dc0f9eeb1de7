/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What no single key of the status says: jobs of their ranks, whom a job shares with, what was saved for it, where its
 * time goes.
 *
 * What was saved: a stream makes a sample once, whoever of its jobs is given it. Of what its jobs were given in the last
 * TOP_LATELY steps the part that was not made is saved; chunks are made ahead and in bursts, so one step says little. Who
 * does not see all jobs of a stream (other users') cannot know it.
 */

#include "tools/top/top_model.h"

#include <stdio.h>

#include "base/hash.h"
#include "tools/ctl.h"
#include "tools/ctl_peer.h"
#include "tools/ctl_value.h"
#include "tools/ctl_waits.h"

static const char *const stages[] = {
#define WAIT(stage, word, means, helps) stage,
#include "tools/ctl_waits_tbl.h"
#undef WAIT
};

_Static_assert(BASE_ARRAY_LEN(stages) == TOP_PART_ITSELF, "a part for each stage");

/* In 47 bits: a user has one of each, and one of each named data set that is read as him. */
static uint64_t key_of_user(const struct json_in *object)
{
	uint64_t sum = 0;

	for (const char *at = ctl_named(object); *at; at++)
		sum = (sum * 31 + (unsigned char)*at) & 0x3fff;
	return sum << 33 | (ctl_u64(object, "uid") & UINT32_MAX) << 1 | ctl_is(object, "public");
}

/* NULL: a user's. */
static const char *shared_by(const struct json_in *object)
{
	if (*ctl_named(object))
		return ctl_named(object);
	return ctl_is(object, "public") ? "everybody" : NULL;
}

static void put_number(struct top_row *row, unsigned column, double number)
{
	top_at(row, column)->number = number;
}

/* ---- ranks ---- */

static const char *word_of_pace(const struct ctl_waits *waits)
{
	switch (waits->pace) {
	case CTL_PACE_WAITS:
		return waits->word ? waits->word->word : waits->stage;
	case CTL_PACE_TRAINS:
		return "itself";
	case CTL_PACE_STOPPED:
		return "stopped";
	case CTL_PACE_ENDED:
		return "its end";
	case CTL_PACE_UNKNOWN:
		break;
	}
	return NULL;
}

/* Shares of its time since the last step; an accessd that does not say them leaves them unknown. */
static void note_parts(struct top_model *model, struct top_row *row)
{
	const struct json_in *waited = json_in_member(row->object, "waited");
	bool stopped = !json_in_bool(json_in_member(row->object, "lives"), true);
	float *part = row->past->part[row->past->steps % TOP_PAST];
	double rest = 1;

	if (!model->is_step)
		return;
	for (unsigned i = 0; i < TOP_PART_ITSELF; i++) {
		double sum = json_in_double(json_in_member(waited, stages[i]), NAN);
		double share = top_past_rate(model, row->past, TOP_SUM_PART + i, sum);

		if (!isnan(share) && !isnan(rest))
			share = fmin(share, rest);
		part[i] = (float)share;
		rest -= share;
	}
	part[TOP_PART_ITSELF] = (float)(stopped && !isnan(rest) ? 0 : rest);
	part[TOP_PART_STOPPED] = (float)(stopped ? rest : isnan(rest) ? NAN : 0);
}

static int add_rank(struct top_model *model, const struct json_in *job)
{
	struct top_row *row = top_add(model, TOP_RANKS, ctl_u64(job, "id"), job);
	struct ctl_waits waits;

	if (!row)
		return -ENOMEM;
	ctl_waits_of(job, &waits);
	put_number(row, TOP_RANKS_WAIT, waits.share < 0 ? NAN : waits.share);
	top_at(row, TOP_RANKS_FOR)->text = word_of_pace(&waits);
	note_parts(model, row);
	top_past_push(model, row->past, top_value(row, TOP_RANKS_RATE)->number, NAN);
	return 0;
}

static int add_ranks(struct top_model *model)
{
	const struct json_in *jobs = json_in_member(model->status, "jobs");
	size_t n = json_in_count(jobs);
	_cleanup_free_ const struct json_in **sorted = ctl_sorted(jobs, "id", "pid");

	if (n > 0 && !sorted)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		if (add_rank(model, sorted[i]))
			return -ENOMEM;
	return 0;
}

/* ---- streams ---- */

static double share_of(double part, double whole)
{
	return whole > 0 ? part / whole : NAN;
}

/* Hits of hits and misses since the last step. */
static double hits_of(struct top_model *model, struct top_past *past, const struct json_in *cache)
{
	double hits = top_past_rate(model, past, TOP_SUM_HITS, ctl_real(cache, "hits"));
	double misses = top_past_rate(model, past, TOP_SUM_MISSES, ctl_real(cache, "misses"));

	return share_of(hits, hits + misses);
}

/* What its jobs are given; ret_seen: how many of them there are to be seen. */
static double given_to(const struct top_model *model, uint64_t stream, unsigned *ret_seen)
{
	const struct top_rows *ranks = &model->rows[TOP_RANKS];
	double given = 0;

	*ret_seen = 0;
	for (size_t i = 0; i < ranks->n; i++) {
		double one = top_value(&ranks->row[i], TOP_RANKS_GIVEN)->number;

		if (ctl_u64(ranks->row[i].object, "stream") != stream)
			continue;
		++*ret_seen;
		given += isnan(one) ? 0 : one;
	}
	return model->steps > 1 ? given : NAN;
}

static void derive_stream(struct top_model *model, struct top_row *row)
{
	double given, made, main, other;
	const char *waits = ctl_string(row->object, "waiting_on");
	const struct ctl_word *word = ctl_word_of(waits);
	unsigned seen;

	given = given_to(model, row->key, &seen);
	made = top_value(row, TOP_STREAMS_MADE)->number;
	put_number(row, TOP_STREAMS_RATE, given);
	put_number(row, TOP_STREAMS_HIT,
		   hits_of(model, row->past, json_in_member(row->object, "cache")));
	top_at(row, TOP_STREAMS_WAITS)->text = word ? word->word : NULL;
	top_past_push(model, row->past, given, made);
	if (seen < ctl_u64(row->object, "jobs"))
		return;
	top_past_sums(row->past, TOP_LATELY, &main, &other);
	put_number(row, TOP_STREAMS_SAVED, main > 0 ? fmax(1 - other / main, 0) : NAN);
}

static int add_streams(struct top_model *model)
{
	const struct json_in *streams = json_in_member(model->status, "streams");

	JSON_IN_EACH(stream, streams) {
		struct top_row *row = top_add(model, TOP_STREAMS, ctl_u64(stream, "id"), stream);

		if (!row)
			return -ENOMEM;
		derive_stream(model, row);
	}
	return 0;
}

/* ---- jobs ---- */

static bool is_rank_of(const struct json_in *rank, const struct json_in *job)
{
	return ctl_u64(rank, "ranks") > 1 && ctl_u64(rank, "stream") == ctl_u64(job, "stream") &&
	       ctl_u64(rank, "ranks") == ctl_u64(job, "ranks") &&
	       ctl_u64(rank, "uid") == ctl_u64(job, "uid") &&
	       strcmp(ctl_string(rank, "name"), ctl_string(job, "name")) == 0;
}

static struct top_row *job_of_rank(struct top_model *model, const struct json_in *rank)
{
	struct top_rows *jobs = &model->rows[TOP_JOBS];

	for (size_t i = 0; i < jobs->n; i++)
		if (is_rank_of(rank, jobs->row[i].object))
			return &jobs->row[i];
	return top_add(model, TOP_JOBS, ctl_u64(rank, "id"), rank);
}

/* sum += number, where what is not known yet counts for nothing. */
static void add_number(struct top_row *row, unsigned column, double number)
{
	struct top_value *value = top_at(row, column);

	if (!isnan(number))
		value->number = isnan(value->number) ? number : value->number + number;
}

/* Seconds that what is coming to it lasts. */
static double ahead_of(const struct top_row *rank)
{
	double rate = top_value(rank, TOP_RANKS_RATE)->number;
	double untaken = top_value(rank, TOP_RANKS_UNTAKEN)->number;

	return rate > 0 ? untaken / rate : NAN;
}

static void add_parts(struct top_model *model, struct top_row *job, const struct top_row *rank,
		      double n)
{
	float *to = job->past->part[job->past->steps % TOP_PAST];

	for (unsigned i = 0; model->is_step && i < TOP_PARTS; i++) {
		double part = top_past_part(rank->past, 0, i);

		to[i] = (float)(n > 0 ? ((double)to[i] * n + part) / (n + 1) : part);
	}
}

static void add_rank_to(struct top_model *model, struct top_row *job, const struct top_row *rank)
{
	double n = top_value(job, TOP_JOBS_RANKS)->number;
	double wait = top_value(rank, TOP_RANKS_WAIT)->number;
	double most = top_value(job, TOP_JOBS_WAIT)->number;

	n = isnan(n) ? 0 : n;
	add_parts(model, job, rank, n);
	put_number(job, TOP_JOBS_RANKS, n + 1);
	add_number(job, TOP_JOBS_RATE, top_value(rank, TOP_RANKS_RATE)->number);
	add_number(job, TOP_JOBS_HOLDS, top_value(rank, TOP_RANKS_HOLDS)->number);
	add_number(job, TOP_JOBS_SAMPLES, top_value(rank, TOP_RANKS_SAMPLES)->number);
	put_number(job, TOP_JOBS_AHEAD,
		   fmin(top_value(job, TOP_JOBS_AHEAD)->number, ahead_of(rank)));
	if (n > 0 && !(wait > most))
		return;
	put_number(job, TOP_JOBS_WAIT, wait);
	top_at(job, TOP_JOBS_FOR)->text = top_value(rank, TOP_RANKS_FOR)->text;
}

/* The names of the others, as far as there is room. */
static void name_others(const struct top_model *model, struct top_row *job)
{
	const struct top_rows *jobs = &model->rows[TOP_JOBS];
	uint64_t stream = ctl_u64(job->object, "stream");
	size_t used = 0;

	for (size_t i = 0; i < jobs->n && used < sizeof(job->more); i++) {
		const struct json_in *other = jobs->row[i].object;

		if (jobs->row[i].key == job->key || ctl_u64(other, "stream") != stream)
			continue;
		used += (size_t)snprintf(job->more + used, sizeof(job->more) - used, "%s%s",
					 used > 0 ? ", " : "", ctl_string(other, "name"));
	}
}

static void put_epoch(struct top_row *row)
{
	const struct json_in *epoch = json_in_member(row->object, "epoch");
	uint64_t epochs = ctl_u64(row->object, "epochs");

	if (!epoch)
		return;
	if (epochs > 0)
		snprintf(row->words, sizeof(row->words), "%llu/%llu",
			 (unsigned long long)json_in_u64(epoch, 0), (unsigned long long)epochs);
	else
		snprintf(row->words, sizeof(row->words), "%llu",
			 (unsigned long long)json_in_u64(epoch, 0));
	top_at(row, TOP_JOBS_EPOCH)->text = row->words;
}

static void finish_job(struct top_model *model, struct top_row *job)
{
	const struct top_row *stream = top_find(model, TOP_STREAMS, ctl_u64(job->object, "stream"));
	double rate = top_value(job, TOP_JOBS_RATE)->number;

	top_past_push(model, job->past, rate, NAN);
	put_number(job, TOP_JOBS_READ, top_past_part(job->past, 0, TOP_PART_READ));
	put_number(job, TOP_JOBS_DECODE, top_past_part(job->past, 0, TOP_PART_DECODE));
	put_number(job, TOP_JOBS_SLOT, top_past_part(job->past, 0, TOP_PART_SLOT));
	put_number(job, TOP_JOBS_ITSELF, top_past_part(job->past, 0, TOP_PART_ITSELF));
	put_epoch(job);
	name_others(model, job);
	if (!stream)
		return;
	put_number(job, TOP_JOBS_WITH,
		   fmax(top_value(stream, TOP_STREAMS_JOBS)->number -
			    top_value(job, TOP_JOBS_RANKS)->number,
			0));
	put_number(job, TOP_JOBS_SAVED, top_value(stream, TOP_STREAMS_SAVED)->number);
	put_number(job, TOP_JOBS_FREE, top_value(job, TOP_JOBS_SAVED)->number * rate);
}

static int add_jobs(struct top_model *model)
{
	const struct top_rows *ranks = &model->rows[TOP_RANKS];

	for (size_t i = 0; i < ranks->n; i++) {
		struct top_row *job = job_of_rank(model, ranks->row[i].object);

		if (!job)
			return -ENOMEM;
		add_rank_to(model, job, &ranks->row[i]);
	}
	for (size_t i = 0; i < model->rows[TOP_JOBS].n; i++)
		finish_job(model, &model->rows[TOP_JOBS].row[i]);
	return 0;
}

/* ---- workers, caches, tenants ---- */

/* What users have of something: a row for each object. course: the column whose course is kept. */
static int add_of_users(struct top_model *model, enum top_view view, const char *list,
			unsigned user, unsigned course)
{
	const struct json_in *objects = json_in_member(model->status, list);

	JSON_IN_EACH(object, objects) {
		uint64_t key = key_of_user(object);
		struct top_row *row;

		if (view == TOP_WORKERS)
			key = key << 16 | ctl_u64(object, "index");
		row = top_add(model, view, key, object);
		if (!row)
			return -ENOMEM;
		if (shared_by(object))
			top_at(row, user)->text = shared_by(object);
		if (view == TOP_CACHES)
			put_number(row, TOP_CACHES_HIT, hits_of(model, row->past, object));
		top_past_push(model, row->past, top_value(row, course)->number, NAN);
	}
	return 0;
}

/* ---- peers ---- */

static double rate_of(const struct top_model *model, struct top_row *row, unsigned column,
		      uint64_t sum)
{
	return top_past_rate(model, row->past, column - TOP_PEERS_FIRST, (double)sum);
}

/* Before it has said its name it is known by its address. */
static uint64_t key_of_peer(const struct json_in *member)
{
	const char *name = ctl_text(member, "node");

	if (!*name)
		name = ctl_string(member, "address");
	return hash_checksum(name, strlen(name));
}

static int add_peers(struct top_model *model)
{
	const struct json_in *cluster = json_in_member(model->status, "cluster");
	const struct json_in *members = json_in_member(cluster, "members");

	JSON_IN_EACH(member, members) {
		const struct ctl_peer peer = ctl_peer_of(cluster, member);
		struct top_row *row = top_add(model, TOP_PEERS, key_of_peer(member), member);

		if (!row)
			return -ENOMEM;
		top_at(row, TOP_PEERS_STATE)->text = ctl_peer_state(row->object, &peer);
		top_at(row, TOP_PEERS_VIA)->text = peer.transport;
		put_number(row, TOP_PEERS_ASKED, rate_of(model, row, TOP_PEERS_ASKED, peer.gets));
		put_number(row, TOP_PEERS_GOT, rate_of(model, row, TOP_PEERS_GOT, peer.gots));
		put_number(row, TOP_PEERS_GAVE, rate_of(model, row, TOP_PEERS_GAVE, peer.had));
		put_number(row, TOP_PEERS_IN, rate_of(model, row, TOP_PEERS_IN, peer.received));
		put_number(row, TOP_PEERS_OUT, rate_of(model, row, TOP_PEERS_OUT, peer.sent));
		put_number(row, TOP_PEERS_LATE, (double)peer.late);
		put_number(row, TOP_PEERS_ANSWER, (double)peer.answer_us);
		top_past_push(model, row->past, top_value(row, TOP_PEERS_GOT)->number, NAN);
	}
	return 0;
}

/* ---- the node ---- */

static void put_node(struct top_model *model, enum top_node node, double number)
{
	put_number(&model->rows[TOP_NODE].row[node], TOP_NODE_VALUE, number);
}

/* Of everybody's jobs, for who sees them all. */
static void derive_saved(struct top_model *model, const struct top_past *past)
{
	double rate = top_node_value(model, TOP_OF_RATE), made = top_node_value(model, TOP_OF_MADE);
	double main, other, saved;

	top_past_sums(past, TOP_LATELY, &main, &other);
	if (!json_in_bool(json_in_member(model->status, "sees_all"), true) || !(main > 0))
		return;
	saved = fmax(1 - other / main, 0);
	put_node(model, TOP_OF_SAVED, saved);
	if (made > 0)
		put_node(model, TOP_OF_SPARED,
			 saved * rate * top_node_value(model, TOP_OF_WORKERS) / made);
}

static void derive_node(struct top_model *model)
{
	const struct top_rows *streams = &model->rows[TOP_STREAMS];
	struct top_row *rows = model->rows[TOP_NODE].row;
	double rate = model->steps > 1 ? 0 : NAN, hits = 0, tried = 0;

	for (size_t i = 0; i < streams->n; i++) {
		const double *rates = streams->row[i].past->rate;

		rate += top_value(&streams->row[i], TOP_STREAMS_RATE)->number;
		hits += isnan(rates[TOP_SUM_HITS]) ? 0 : rates[TOP_SUM_HITS];
		tried += isnan(rates[TOP_SUM_MISSES]) ? 0 : rates[TOP_SUM_MISSES];
	}
	put_node(model, TOP_OF_RATE, rate);
	put_node(model, TOP_OF_HIT, share_of(hits, hits + tried));
	for (unsigned i = 0; i < TOP_NODES; i++)
		top_past_push(model, rows[i].past, top_node_value(model, i),
			      i == TOP_OF_RATE ? top_node_value(model, TOP_OF_MADE) : NAN);
	derive_saved(model, rows[TOP_OF_RATE].past);
}

static int add_node(struct top_model *model)
{
	const struct json_in *node = json_in_member(model->status, "node");

	for (unsigned i = 0; i < TOP_NODES; i++) {
		struct top_row *row = top_add(model, TOP_NODE, i, node);
		struct top_value *value;

		if (!row)
			return -ENOMEM;
		value = top_at(row, TOP_NODE_VALUE);
		value->kind = top_nodes[i].kind;
		if (top_nodes[i].key)
			top_read(model, row->past, TOP_NODE_VALUE - TOP_NODE_FIRST, node,
				 top_nodes[i].key, value);
		top_at(row, TOP_NODE_NAME)->text = top_nodes[i].word;
		top_at(row, TOP_NODE_MEANS)->text = top_nodes[i].help;
	}
	derive_node(model);
	return 0;
}

int top_derive(struct top_model *model)
{
	if (add_ranks(model) || add_streams(model) || add_jobs(model) ||
	    add_of_users(model, TOP_WORKERS, "workers", TOP_WORKERS_USER, TOP_WORKERS_BUSY) ||
	    add_of_users(model, TOP_CACHES, "caches", TOP_CACHES_USER, TOP_CACHES_HIT_RATE) ||
	    add_of_users(model, TOP_TENANTS, "tenants", TOP_TENANTS_USER, TOP_TENANTS_CPU) ||
	    add_peers(model) || add_node(model))
		return -ENOMEM;
	return 0;
}
