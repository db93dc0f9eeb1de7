/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Warming is a job as any other, under the user's own rights and budgets, which takes batches and gives them
 * back: the option `keep` has accessd make what is not kept yet of the samples on their way. How much
 * that is, is in accessd's status, where the job finds itself by its name.
 *
 * A pass is an epoch. Forms can get lost on the way to the store, and those tried out are not kept, so there
 * is another pass as long as one brings something. What is kept comes from the store then, and is quick.
 */

#include "tools/ctl_warm.h"

#include <signal.h>
#include <unistd.h>

#include "shmring/proto.h"
#include "tools/ctl_warm_parts.h"

#define WARM_BATCH 16
#define WARM_WAIT_MS 1000
#define WARM_LOOK_NS UINT64_C(1000000000)
#define WARM_QUIET_US 100000
#define WARM_QUIET 30    /* looks without anything new; the store writes what it has each second */
#define WARM_STALE 4     /* passes that brought nothing, with room: a disk may be busy */
#define WARM_UNDECIDED 8 /* passes in which nothing was decided */
#define WARM_FULL 0.6    /* of its limit: values need pages in one piece, and some stay free */
#define WARM_STATUS_MAX (16u << 20)

static volatile sig_atomic_t warm_signal;

int warm_signalled(void)
{
	return warm_signal;
}

static void warm_on_signal(int number)
{
	warm_signal = number;
}

/* ---- the status ---- */

int warm_look(struct warming *warming, struct diag *diag)
{
	struct oa_error error = {.size = sizeof(error)};
	_cleanup_free_ char *text = NULL;
	_cleanup_json_ struct json_in *status = NULL;
	bool found;
	int r;

	r = oa_status(warming->client, &text, &error);
	if (r == OA_E_INTERRUPTED)
		return 0; /* what was seen last stands */
	if (r) {
		warming->look.is_there = false;
		return diag_fail(diag, CTL_E_NONE, "%s", error.text);
	}
	if (json_in_parse(text, strlen(text), WARM_STATUS_MAX, &status, diag))
		return CTL_E_NONE;
	found = ctl_warm_read(status, warming->name, &warming->look);
	if (!found)
		diag_set(diag,
			 "accessd's status does not say what is kept for this job: is it an older "
			 "one? Upgrade it");
	else if (!warming->look.is_on && warming->look.why[0])
		diag_set(diag, "nothing is kept: %s", warming->look.why);
	else
		return 0;
	return CTL_E_NONE;
}

/* ---- how far it is ---- */

static void warm_draw(struct warming *warming, uint64_t now_ns)
{
	const struct ctl_warm_look *look = &warming->look;
	double s = (double)(now_ns - warming->start_ns) / 1e9;
	double rate = s > 0 ? (double)warming->in_pass / s : 0;
	uint64_t whole = warming->samples ? warming->samples : warming->n_samples;
	uint64_t left = whole > warming->in_pass ? whole - warming->in_pass : 0;

	if (!warming->draws && now_ns - warming->line_ns < WARM_LINE_NS)
		return;
	warming->line_ns = now_ns;
	fprintf(stderr, "%s%llu of %llu samples, %.0f samples/s", warming->draws ? "\r" : "",
		(unsigned long long)warming->in_pass, (unsigned long long)whole, rate);
	if (rate > 0)
		fprintf(stderr, ", %.0f s left", (double)left / rate);
	if (strcmp(look->form, "file") != 0)
		fprintf(stderr, "; %s: %llu kept", look->form, (unsigned long long)look->kept);
	if (warming->passes.n > 0)
		fprintf(stderr, "; pass %u", warming->passes.n + 1);
	fputs(warming->draws ? "\033[K" : "\n", stderr);
}

/* ---- passes ---- */

/* Until what was made is in the store: as long as more and more is there. */
static int warm_settle(struct warming *warming, struct diag *diag)
{
	uint64_t kept = UINT64_MAX;

	for (unsigned quiet = 0; quiet < WARM_QUIET && !warm_signal; quiet++) {
		int r = warm_look(warming, diag);

		if (r)
			return r;
		if (warming->look.kept != kept)
			quiet = 0;
		kept = warming->look.kept;
		if (kept + warming->look.unfit + warming->broken >= warming->samples)
			return 0;
		usleep(WARM_QUIET_US);
	}
	return 0;
}

static void warm_note_first(struct warming *warming)
{
	struct oa_stats stats = {.size = sizeof(stats)};

	warming->passes.kept = warming->look.found;
	oa_stream_stats(warming->stream, &stats);
	warming->broken = stats.skipped;
	warming->samples = warming->in_pass + stats.skipped;
}

static bool warm_is_full(const struct ctl_warm_look *look)
{
	return (double)look->used > WARM_FULL * (double)look->limit;
}

/* While nothing is decided nothing is made to be kept: such a pass is not one that brought nothing. */
bool ctl_warm_needs_more(struct ctl_warm_passes *passes, const struct ctl_warm_look *look,
			 uint64_t samples, uint64_t broken)
{
	const bool is_new = look->kept > passes->kept;

	passes->n++;
	passes->stale = is_new || !look->is_measured ? 0 : passes->stale + 1;
	passes->kept = look->kept;
	if (!look->is_measured)
		return passes->n < WARM_UNDECIDED;
	return look->kept + look->unfit + broken < samples && strcmp(look->form, "file") != 0 &&
	       passes->stale < (warm_is_full(look) ? 1 : WARM_STALE);
}

/* *ret_more: another pass would bring something. */
static int warm_end_pass(struct warming *warming, bool *ret_more, struct diag *diag)
{
	int r;

	r = warm_look(warming, diag);
	if (warming->passes.n == 0)
		warm_note_first(warming);
	r = r ? r : warm_settle(warming, diag);
	*ret_more = ctl_warm_needs_more(&warming->passes, &warming->look, warming->samples,
					warming->broken);
	warming->in_pass = 0;
	warming->start_ns = base_now_ns();
	return r;
}

int warm_take(struct warming *warming, bool *ret_last, struct diag *diag)
{
	struct oa_batch_info info = {.size = sizeof(info)};
	struct oa_batch *batch;
	int r = oa_next(warming->stream, WARM_WAIT_MS, &batch);

	*ret_last = false;
	if (r == OA_E_TIMEOUT || r == OA_E_INTERRUPTED)
		return 0;
	if (r)
		return diag_fail(diag, CTL_E_NONE, "%s", oa_error_text(warming->stream));
	oa_batch_info(batch, &info);
	warming->in_pass += info.count;
	*ret_last = info.is_last;
	oa_release(batch);
	return 0;
}

static int warm_go(struct warming *warming, struct diag *diag)
{
	bool is_last, more = true;
	int r = 0;

	while (!r && more && !warm_signal && !(warming->lends && warming->look.is_measured)) {
		uint64_t now_ns = base_now_ns();

		if (now_ns - warming->look_ns >= WARM_LOOK_NS) {
			r = warm_look(warming, diag);
			warming->look_ns = now_ns;
			warm_draw(warming, now_ns);
		}
		r = r ? r : warm_take(warming, &is_last, diag);
		if (!r && is_last && !warm_signal)
			r = warm_end_pass(warming, &more, diag);
	}
	if (warming->draws)
		fputs("\r\033[K", stderr);
	return r;
}

/* ---- the summary ---- */

static void warm_tell_missing(const struct ctl_warm_look *look, uint64_t missing, struct diag *diag)
{
	bool is_full = warm_is_full(look);

	diag_set(diag, "%llu samples are not kept: %s (%s of %s are used)%s",
		 (unsigned long long)missing,
		 is_full ? "there is no room for them" : "the store did not take them",
		 BASE_BYTES(look->used), BASE_BYTES(look->limit),
		 is_full
		     ? "; a larger cache_size would help (accessd.conf(5)), or to drop what nobody "
		       "needs (access-ctl cache ls)"
		     : "; try again, or look at accessd's messages");
}

int ctl_warm_tell(const struct ctl_warm_look *look, uint64_t samples, uint64_t broken, FILE *out,
		  struct diag *diag)
{
	uint64_t rest = look->kept + look->unfit + broken;

	if (strcmp(look->form, "file") == 0) {
		fprintf(out, "Nothing is kept: %s\n",
			look->is_measured
			    ? "no form of these samples is worth it on this machine, as measured"
			    : "too little could be measured; name a --form");
		return 0;
	}
	fprintf(out, "%s: %llu of %llu samples are kept, %s; %llu were before\n", look->form,
		(unsigned long long)look->kept, (unsigned long long)samples,
		BASE_BYTES(look->bytes), (unsigned long long)look->found);
	if (look->unfit)
		fprintf(out, "%llu have no such form, or only one that is too large\n",
			(unsigned long long)look->unfit);
	if (broken)
		fprintf(out, "%llu cannot be read or decoded\n", (unsigned long long)broken);
	if (rest >= samples)
		return 0;
	warm_tell_missing(look, samples - rest, diag);
	return CTL_E_NONE;
}

static int warm_end(struct warming *warming, struct diag *diag)
{
	const struct ctl_warm_look *look = &warming->look;
	int r;

	if (!warm_signal)
		r = ctl_warm_tell(look, warming->samples, warming->broken, stdout, diag);
	else
		r = 128 + warm_signal;
	if (warm_signal) {
		r = warm_look(warming, diag) ? CTL_E_NONE : r;
		printf("interrupted; %s: %llu samples are kept and stay; %llu were before\n",
		       look->form, (unsigned long long)look->kept, (unsigned long long)look->found);
	}
	return fflush(stdout) == 0 ? r : CTL_E_NONE;
}

/* ---- the job ---- */

/* What a shell's background jobs are to ignore stays ignored. */
static void warm_catch(void)
{
	static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
	struct sigaction action = {.sa_handler = warm_on_signal}, before;

	for (size_t i = 0; i < BASE_ARRAY_LEN(numbers); i++)
		if (sigaction(numbers[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN)
			sigaction(numbers[i], &action, NULL);
}

static int warm_open(const struct ctl_warm *warm, const char *socket, struct warming *warming,
		     struct diag *diag)
{
	const bool is_named = proto_is_named(warm->dataset);
	struct oa_error error = {.size = sizeof(error)};
	const struct oa_options options = {
	    .size = sizeof(options),
	    .dataset = warm->dataset,
	    .pipeline = is_named || warm->pipeline ? warm->pipeline : "imagenet-train",
	    .batch = WARM_BATCH,
	    .job = warming->name,
	    .bad = OA_BAD_SKIP,
	    .bad_budget = INT64_MAX,
	    .order = OA_ORDER_SEQUENTIAL,
	    .keep = warm->form,
	};
	struct oa_stats stats = {.size = sizeof(stats)};
	int r = oa_connect(socket, &warming->client, &error);

	r = r ? r : oa_open(warming->client, &options, &warming->stream, &error);
	if (r && warm_signal)
		return 128 + warm_signal;
	if (r)
		return diag_fail(diag, CTL_E_NONE, "%s", error.text);
	oa_stream_stats(warming->stream, &stats);
	warming->n_samples = stats.n_samples;
	return 0;
}

int ctl_warm_run(const struct ctl_warm *warm, const char *socket, struct diag *diag)
{
	struct warming warming = {.look.form = "file",
				  .lends = warm->lends,
				  .draws = isatty(STDERR_FILENO),
				  .start_ns = base_now_ns()};
	int r;

	snprintf(warming.name, sizeof(warming.name), "cache %s (pid %d)",
		 warm->lends ? "lend" : "warm", (int)getpid());
	warming.line_ns = warming.start_ns;
	warm_catch();
	r = warm_open(warm, socket, &warming, diag);
	r = r ? r : warm_go(&warming, diag);
	if (!r)
		r = warm->lends ? ctl_lend(&warming, diag) : warm_end(&warming, diag);
	oa_close(warming.stream);
	oa_disconnect(warming.client);
	return r;
}
