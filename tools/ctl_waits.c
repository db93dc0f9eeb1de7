/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A job's word is what it waited for most of the time lately, since what it waits for this very moment is a throw of
 * dice; but a wait that has lasted for a second is told at once. An accessd that does not measure it (older
 * than this program) tells the moment alone.
 */

#include "tools/ctl_waits.h"

#include "tools/ctl.h"
#include "tools/ctl_value.h"
#include "tools/option.h"

static const struct ctl_word ctl_words[] = {
#define WAIT(stage, word, means, helps) {stage, word, means, helps},
#include "tools/ctl_waits_tbl.h"
#undef WAIT
};

const struct ctl_word *ctl_word_of(const char *stage)
{
	for (size_t i = 0; i < BASE_ARRAY_LEN(ctl_words); i++)
		if (strcmp(ctl_words[i].stage, stage) == 0)
			return &ctl_words[i];
	return NULL;
}

/* Seconds of the stage lately. */
static double ctl_waits_s(const struct json_in *waits, const struct ctl_word *word)
{
	double s = ctl_real(waits, word->stage);

	return s > 0 ? s : 0;
}

static void ctl_waits_sum(const struct json_in *waits, struct ctl_waits *ret)
{
	double sum = 0, most = 0;

	for (size_t i = 0; i < BASE_ARRAY_LEN(ctl_words); i++) {
		double s = ctl_waits_s(waits, &ctl_words[i]);

		sum += s;
		if (s <= most)
			continue;
		most = s;
		ret->word = &ctl_words[i];
		ret->stage = ctl_words[i].stage;
	}
	ret->share = BASE_MIN(sum / ret->window_s, 1.0);
}

/* Which moment counts. */
static bool ctl_waits_now(const struct json_in *job, const struct ctl_waits *waits)
{
	if (!ctl_is(job, "waiting"))
		return false;
	return waits->share < 0 || ctl_real(job, "waiting_seconds") >= 1.0;
}

static enum ctl_pace ctl_pace_of(const struct json_in *job, const struct ctl_waits *waits)
{
	const struct json_in *lives = json_in_member(job, "lives");

	if (!json_in_bool(json_in_member(job, "active"), true))
		return CTL_PACE_ENDED;
	if (lives && !json_in_bool(lives, true))
		return CTL_PACE_STOPPED;
	if (waits->is_now || waits->share >= CTL_WAITS_LEAST)
		return CTL_PACE_WAITS;
	if (waits->share < 0 && !json_in_member(job, "waiting"))
		return CTL_PACE_UNKNOWN;
	return CTL_PACE_TRAINS;
}

void ctl_waits_of(const struct json_in *job, struct ctl_waits *ret)
{
	const struct json_in *waits = json_in_member(job, "waits");
	struct ctl_waits all = {
	    .share = -1,
	    .window_s = ctl_known(waits, "window_seconds"),
	};

	if (all.window_s > 0)
		ctl_waits_sum(waits, &all);
	all.is_now = ctl_waits_now(job, &all);
	if (all.is_now) {
		all.stage = ctl_string(job, "stage");
		all.word = ctl_word_of(all.stage);
	}
	all.pace = ctl_pace_of(job, &all);
	*ret = all;
}

void ctl_waits_shares(const struct json_in *job, char *ret, size_t size)
{
	const struct json_in *waits = json_in_member(job, "waits");
	double window_s = ctl_real(waits, "window_seconds");
	bool is_told[BASE_ARRAY_LEN(ctl_words)] = {false};
	size_t used = 0;

	ret[0] = '\0';
	while (window_s > 0 && used < size) {
		size_t best = BASE_ARRAY_LEN(ctl_words);

		for (size_t i = 0; i < BASE_ARRAY_LEN(ctl_words); i++)
			if (!is_told[i] && ctl_waits_s(waits, &ctl_words[i]) >= 0.005 * window_s &&
			    (best == BASE_ARRAY_LEN(ctl_words) ||
			     ctl_waits_s(waits, &ctl_words[i]) >
				 ctl_waits_s(waits, &ctl_words[best])))
				best = i;
		if (best == BASE_ARRAY_LEN(ctl_words))
			return;
		is_told[best] = true;
		used += (size_t)snprintf(
		    ret + used, size - used, "%s%s %.0f %%", used > 0 ? ", " : "",
		    ctl_words[best].word,
		    BASE_MIN(100 * ctl_waits_s(waits, &ctl_words[best]) / window_s, 100.0));
	}
}

/* ---- in words ---- */

/* The jobs that hold slots of the job's stream, itself among them. */
static void ctl_waits_holders(const struct json_in *status, const struct json_in *job, char *ret,
			      size_t size)
{
	const struct json_in *jobs = json_in_member(status, "jobs");
	uint64_t stream = ctl_u64(job, "stream");
	size_t used = 0;

	for (size_t i = 0; i < json_in_count(jobs) && used < size; i++) {
		const struct json_in *other = json_in_item(jobs, i);
		unsigned long long pins = ctl_u64(other, "pins");

		if (pins == 0 || json_in_u64(json_in_member(other, "stream"), stream + 1) != stream)
			continue;
		used += (size_t)snprintf(ret + used, size - used, "%s%s %llu",
					 used > 0 ? ", " : ": held by ",
					 other == job ? "itself" : ctl_string(other, "name"), pins);
	}
	if (used == 0)
		snprintf(ret, size, ": held by no job");
}

/* Which share of the samples of its stream comes kept; negative: none is, or it is not known. */
static double ctl_waits_kept(const struct json_in *stream)
{
	const struct json_in *cache = json_in_member(stream, "cache");
	const struct json_in *points = json_in_member(cache, "points");
	const char *point = ctl_text(cache, "point");

	JSON_IN_EACH(one, points) {
		if (strcmp(point, "file") != 0 && strcmp(ctl_text(one, "name"), point) == 0)
			return ctl_known(one, "cached");
	}
	return -1;
}

void ctl_waits_late(const struct json_in *job, char *ret, size_t size)
{
	const struct json_in *late = json_in_member(job, "late");

	ret[0] = '\0';
	if (late)
		snprintf(ret, size, "sample %llu for %.0f s (%s)", ctl_u64(late, "sample"),
			 ctl_real(job, "waiting_seconds"),
			 BASE_QUOTED(ctl_string(late, "name"), 96));
}

static void ctl_waits_more(const struct json_in *status, const struct json_in *job,
			   const struct ctl_waits *waits, char *ret, size_t size)
{
	char late[152];
	double kept;

	ret[0] = '\0';
	if (strcmp(waits->word->stage, "slot") == 0)
		ctl_waits_holders(status, job, ret, size);
	ctl_waits_late(job, late, sizeof(late));
	if (late[0])
		snprintf(ret, size, ": %s", late);
	if (late[0] || strcmp(waits->word->stage, "read") != 0)
		return;
	kept = ctl_waits_kept(ctl_stream_of(status, job));
	if (kept >= 0)
		snprintf(ret, size, ": %.0f %% are kept", 100 * BASE_MIN(kept, 1.0));
}

void ctl_waits_text(const struct json_in *status, const struct json_in *job,
		    const struct ctl_waits *waits, char *ret, size_t size)
{
	char more[160] = "";

	switch (waits->pace) {
	case CTL_PACE_TRAINS:
		snprintf(ret, size, "nothing: trains");
		return;
	case CTL_PACE_STOPPED:
		snprintf(ret, size, "stopped? for %.0f s", ctl_real(job, "idle_seconds"));
		return;
	case CTL_PACE_ENDED:
		snprintf(ret, size, "its end");
		return;
	case CTL_PACE_UNKNOWN:
		snprintf(ret, size, "not known");
		return;
	case CTL_PACE_WAITS:
		break;
	}
	if (waits->word)
		ctl_waits_more(status, job, waits, more, sizeof(more));
	snprintf(ret, size, "%s%s",
		 waits->word    ? waits->word->word
		 : waits->stage ? waits->stage
				: "not known",
		 more);
}

static void ctl_waits_line(const char *word, const char *means, FILE *out)
{
	fprintf(out, "  %-11s", word);
	option_wrap(out, 13, 80 - 13, "%s", means);
}

const char *ctl_waits_helps(const struct json_in *status, const struct json_in *job,
			    const struct ctl_word *word)
{
	if (strcmp(word->stage, "read") != 0 ||
	    ctl_waits_kept(ctl_stream_of(status, job)) < CTL_WAITS_ALL)
		return word->helps;
	return "all is kept, a larger cache_size changes nothing: a faster disk for cache_dir, "
	       "memory that holds it (memory), or more readers (accessd.conf(5))";
}

void ctl_waits_help(FILE *out)
{
	for (size_t i = 0; i < BASE_ARRAY_LEN(ctl_words); i++)
		ctl_waits_line(ctl_words[i].word, ctl_words[i].means, out);
	ctl_waits_line("nothing", "the job hardly waits: its own steps, or its GPU, set the pace",
		       out);
	ctl_waits_line("its end", "the job failed or is closing, and gets no more samples", out);
	ctl_waits_line(
	    "stopped?",
	    "samples are ready, but the job takes none: it is stopped, or in a long step", out);
}
