/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What a recorded plan holds. CSV has a line a sample; JSON has a batch a line, so that a plan of
 * millions of samples can be read line by line; seeds and nonces are in hexadecimal, since JSON's numbers
 * do not hold 64 bits everywhere. The third format is the plan's own: one file of the parts of all
 * ranks, which can be replayed.
 */

#include "tools/ctl.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/hash.h"
#include "tools/plan_file.h"

#define CTL_PLAN_BLOCK 65536

static const char *const ctl_plan_orders[] = {"?",      "carousel",   "any",
					      "seeded", "sequential", "replay"};

/* ---- show ---- */

static char *ctl_plan_hex(const uint8_t bytes[32], char ret[65])
{
	struct hash_id id;

	memcpy(id.bytes, bytes, sizeof(id.bytes));
	return hash_hex(&id, ret);
}

static void ctl_plan_show_epoch(const struct plan_file *plan, size_t *at, FILE *out)
{
	uint64_t epoch = plan->batches[*at].batch.epoch, samples = 0, batches = 0;
	bool is_whole = false;

	for (; *at < plan->n && plan->batches[*at].batch.epoch == epoch; ++*at, batches++) {
		samples += plan->batches[*at].batch.count;
		is_whole = plan->batches[*at].batch.flags & RECORDING_LAST;
	}
	fprintf(out, "epoch %-8" PRIu64 " %12" PRIu64 " samples %10" PRIu64 " batches  %s\n", epoch,
		samples, batches, is_whole ? "to its end" : "goes on after the recording");
}

static void ctl_plan_show(const struct plan_file *plan, FILE *out)
{
	char dataset[65], pipeline[65];
	size_t at = 0;

	fprintf(out, "order    %s", ctl_plan_orders[plan->head.order]);
	if (plan->head.seed)
		fprintf(out, ", seed %" PRIu64, plan->head.seed);
	fprintf(out, "\ndataset  %" PRIu64 " samples, version %s\n", plan->head.n,
		ctl_plan_hex(plan->head.dataset, dataset));
	fprintf(out, "pipeline %s\n", ctl_plan_hex(plan->head.pipeline, pipeline));
	if (plan->n)
		fprintf(out, "ranks    %u, batch %u\n", plan->batches[0].batch.ranks,
			plan->head.batch);
	while (at < plan->n)
		ctl_plan_show_epoch(plan, &at, out);
	fprintf(out, "%s\n",
		plan->is_cut ? "cut off: what was delivered last is missing" : "complete");
}

/* ---- export ---- */

static void ctl_plan_csv_batch(const struct recording_batch *batch, FILE *out)
{
	uint32_t at = 0;

	for (uint32_t run = 0; run < batch->n_runs; run++) {
		struct listing_key key;
		uint32_t end = at + recording_run(batch, run, &key);

		for (; at < end; at++)
			fprintf(out,
				"%" PRIu64 ",%" PRIu64 ",%u,%u,%" PRId64 ",%016" PRIx64
				",%016" PRIx64 "\n",
				batch->epoch, batch->step, batch->rank, at, recording_id(batch, at),
				key.seed, key.nonce);
	}
}

static void ctl_plan_csv(const struct plan_file *plan, FILE *out)
{
	fputs("epoch,step,rank,position,id,seed,nonce\n", out);
	for (size_t i = 0; i < plan->n; i++)
		ctl_plan_csv_batch(&plan->batches[i].batch, out);
}

static void ctl_plan_json_batch(const struct recording_batch *batch, FILE *out)
{
	fprintf(out,
		"{\"epoch\":%" PRIu64 ",\"step\":%" PRIu64 ",\"rank\":%u,\"last\":%s,\"ids\":[",
		batch->epoch, batch->step, batch->rank,
		batch->flags & RECORDING_LAST ? "true" : "false");
	for (uint32_t i = 0; i < batch->count; i++)
		fprintf(out, "%s%" PRId64, i ? "," : "", recording_id(batch, i));
	fputs("],\"keys\":[", out);
	for (uint32_t run = 0; run < batch->n_runs; run++) {
		struct listing_key key;
		uint32_t samples = recording_run(batch, run, &key);

		fprintf(out,
			"%s{\"samples\":%u,\"seed\":\"%016" PRIx64 "\",\"nonce\":\"%016" PRIx64
			"\"}",
			run ? "," : "", samples, key.seed, key.nonce);
	}
	fputs("]}", out);
}

static void ctl_plan_json(const struct plan_file *plan, FILE *out)
{
	char dataset[65], pipeline[65];

	fprintf(out,
		"{\"order\":\"%s\",\"samples\":%" PRIu64
		",\"dataset\":\"%s\",\"pipeline\":\"%s\",\"complete\":%s,\"batches\":[\n",
		ctl_plan_orders[plan->head.order], plan->head.n,
		ctl_plan_hex(plan->head.dataset, dataset),
		ctl_plan_hex(plan->head.pipeline, pipeline), plan->is_cut ? "false" : "true");
	for (size_t i = 0; i < plan->n; i++) {
		ctl_plan_json_batch(&plan->batches[i].batch, out);
		fputs(i + 1 < plan->n ? ",\n" : "\n", out);
	}
	fputs("]}\n", out);
}

/* ---- the plan's own format ---- */

struct ctl_plan_writer {
	FILE *out;
	uint8_t *block;
	size_t used, room;
	uint64_t number;
};

static void ctl_plan_end_block(struct ctl_plan_writer *writer)
{
	if (writer->used == RECORDING_BLOCK_HEAD)
		return;
	recording_seal_block(writer->block, writer->number++,
			     (uint32_t)(writer->used - RECORDING_BLOCK_HEAD));
	fwrite(writer->block, 1, writer->used, writer->out);
	writer->used = RECORDING_BLOCK_HEAD;
}

static int ctl_plan_need(struct ctl_plan_writer *writer, uint64_t samples)
{
	if (samples > RECORDING_MAX_BLOCK / 64)
		return -E2BIG;
	return base_grow(&writer->block, &writer->room,
			 writer->used + recording_batch_bytes((uint32_t)samples), 1)
		   ? 0
		   : -ENOMEM;
}

static void ctl_plan_unpack(const struct recording_batch *batch, int64_t *ids,
			    struct listing_key *keys)
{
	uint32_t at = 0;

	for (uint32_t run = 0; run < batch->n_runs; run++) {
		struct listing_key key;

		for (uint32_t end = at + recording_run(batch, run, &key); at < end; at++) {
			keys[at] = key;
			ids[at] = recording_id(batch, at);
		}
	}
}

/* The batches of all ranks in a step, as one of a job without ranks. 0, -ENOMEM, -E2BIG. */
static int ctl_plan_write_step(struct ctl_plan_writer *writer, uint64_t n,
			       const struct plan_file_batch *step)
{
	_cleanup_free_ struct listing_key *keys = NULL;
	_cleanup_free_ int64_t *ids = NULL;
	struct recording_batch one = step[step->batch.ranks - 1].batch;
	uint64_t samples = 0;
	int r;

	for (uint32_t rank = 0; rank < one.ranks; rank++)
		samples += step[rank].batch.count;
	r = ctl_plan_need(writer, samples);
	if (r)
		return r;
	ids = malloc((samples + 1) * sizeof(*ids));
	keys = malloc((samples + 1) * sizeof(*keys));
	if (!ids || !keys)
		return -ENOMEM;
	one.count = 0;
	for (uint32_t rank = 0; rank < one.ranks; rank++) {
		ctl_plan_unpack(&step[rank].batch, ids + one.count, keys + one.count);
		one.count += step[rank].batch.count;
	}
	one.rank = 0;
	one.ranks = 1;
	writer->used += recording_write_batch(&one, n, ids, keys, writer->block + writer->used);
	if (writer->used >= CTL_PLAN_BLOCK)
		ctl_plan_end_block(writer);
	return 0;
}

static int ctl_plan_plan(const struct plan_file *plan, FILE *out)
{
	struct ctl_plan_writer writer = {.out = out, .used = RECORDING_BLOCK_HEAD};
	uint8_t head[RECORDING_HEAD];
	int r = 0;

	recording_write_head(&plan->head, head);
	fwrite(head, 1, sizeof(head), out);
	for (size_t i = 0; i < plan->n && !r; i += plan->batches[i].batch.ranks)
		r = ctl_plan_write_step(&writer, plan->head.n, &plan->batches[i]);
	if (writer.block)
		ctl_plan_end_block(&writer);
	free(writer.block);
	return r;
}

/* ---- the command ---- */

static int ctl_plan_write(const struct ctl_plan *config, const struct plan_file *plan, FILE *out)
{
	int r = 0;

	if (config->format == CTL_PLAN_CSV)
		ctl_plan_csv(plan, out);
	else if (config->format == CTL_PLAN_JSON)
		ctl_plan_json(plan, out);
	else
		r = ctl_plan_plan(plan, out);
	if (!r && (fflush(out) || ferror(out)))
		r = errno ? -errno : -EIO;
	return r;
}

static int ctl_plan_export(const struct ctl_plan *config, const struct plan_file *plan,
			   struct diag *diag)
{
	FILE *out = config->output ? fopen(config->output, "wb") : stdout;
	int r = out ? ctl_plan_write(config, plan, out) : -errno;

	if (out && config->output && fclose(out) && !r)
		r = -errno;
	if (r)
		diag_set(diag, "%s: %s", config->output ? config->output : "standard output",
			 strerror(-r));
	return r ? 1 : 0;
}

int ctl_plan_run(const struct ctl_plan *config, char **words, unsigned n, struct diag *diag)
{
	_cleanup_(plan_file_fini) struct plan_file plan = {.n = 0};
	bool is_show = n == 2 && strcmp(words[0], "show") == 0;

	if (!is_show && (n < 2 || strcmp(words[0], "export") != 0))
		return diag_fail(
		    diag, 2, "plan needs \"show FILE\" or \"export FILE...\"; --help says more");
	for (unsigned i = 1; i < n; i++)
		if (plan_file_add(&plan, words[i], diag))
			return 1;
	if (is_show) {
		ctl_plan_show(&plan, stdout);
		return fflush(stdout) ? 1 : 0;
	}
	return plan_file_join(&plan, diag) ? 1 : ctl_plan_export(config, &plan, diag);
}
