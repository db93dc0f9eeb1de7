/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The parts of ranks are joined by what their tokens would say: batches of one step of all ranks have
 * the same epoch and the same "after", and steps follow each other by it, also where the number of
 * ranks or the batch size changed on the way. Where one rank's part ends earlier than others', the plan
 * ends with the last step that all have.
 */

#include "tools/plan_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static int plan_file_bad(struct diag *diag, const char *path, const char *why)
{
	return diag_fail(diag, PLAN_FILE_E_BAD, "%s: %s", path, why);
}

/* ---- reading ---- */

static int plan_file_keep(struct plan_file *plan, const struct recording_batch *batch)
{
	size_t runs = (size_t)(batch->ids - batch->runs);
	size_t bytes = runs + (size_t)batch->count * batch->id_bytes;
	struct plan_file_batch *kept;

	if (!base_grow(&plan->batches, &plan->room, plan->n + 1, sizeof(*kept)))
		return -ENOMEM;
	kept = &plan->batches[plan->n];
	kept->batch = *batch;
	kept->bytes = malloc(bytes + 1);
	if (!kept->bytes)
		return -ENOMEM;
	memcpy(kept->bytes, batch->runs, bytes);
	kept->batch.runs = kept->bytes;
	kept->batch.ids = kept->bytes + runs;
	plan->n++;
	return 0;
}

static int plan_file_check_head(struct plan_file *plan, const struct recording_head *head,
				const char *path, struct diag *diag)
{
	if (!plan->parts++) {
		plan->head = *head;
		return 0;
	}
	if (!recording_is_same(head, &plan->head))
		return plan_file_bad(diag, path,
				     "it is of another dataset version, pipeline, order or seed "
				     "than the file before");
	return 0;
}

static int plan_file_read_all(struct plan_file *plan, struct recording_reader *reader,
			      const char *path, struct diag *diag)
{
	struct recording_batch batch;
	struct diag why = {""};
	int r = recording_open(reader, &why);

	r = r ? r : plan_file_check_head(plan, &reader->head, path, diag);
	if (r)
		return why.text[0] ? plan_file_bad(diag, path, why.text) : r;
	while ((r = recording_next(reader, &batch, &why)) == 0) {
		r = plan_file_keep(plan, &batch);
		if (r)
			return r;
	}
	plan->is_cut |= r == RECORDING_E_CUT;
	if (r == RECORDING_E_END || r == RECORDING_E_CUT)
		return 0;
	return r < 0 ? r : plan_file_bad(diag, path, why.text);
}

int plan_file_add(struct plan_file *plan, const char *path, struct diag *diag)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	struct recording_reader reader = {.read = base_read_at, .file = fd};
	struct stat st;
	int r;

	if (fd < 0 || fstat(fd, &st) < 0)
		return plan_file_bad(diag, path, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return plan_file_bad(diag, path, "it is no regular file");
	reader.size = (uint64_t)st.st_size;
	r = plan_file_read_all(plan, &reader, path, diag);
	recording_fini(&reader);
	return r < 0 ? plan_file_bad(diag, path, strerror(-r)) : r;
}

/* ---- joining ---- */

static int plan_file_compare_steps(const struct recording_batch *x, const struct recording_batch *y)
{
	if (x->epoch != y->epoch)
		return x->epoch < y->epoch ? -1 : 1;
	if (x->after != y->after)
		return x->after < y->after ? -1 : 1;
	return 0;
}

static int plan_file_compare(const void *a, const void *b)
{
	const struct recording_batch *x = &((const struct plan_file_batch *)a)->batch;
	const struct recording_batch *y = &((const struct plan_file_batch *)b)->batch;
	int r = plan_file_compare_steps(x, y);

	return r ? r : (x->rank > y->rank) - (x->rank < y->rank);
}

/* How many batches from `first` on are one step, and whether all ranks have theirs. */
static size_t plan_file_step(const struct plan_file *plan, size_t first, bool *ret_is_whole)
{
	const struct recording_batch *begin = &plan->batches[first].batch;
	size_t n = 0;

	*ret_is_whole = true;
	for (; first + n < plan->n; n++) {
		const struct recording_batch *batch = &plan->batches[first + n].batch;

		if (plan_file_compare_steps(batch, begin))
			break;
		*ret_is_whole &= batch->rank == n && batch->ranks == begin->ranks;
	}
	*ret_is_whole &= n == begin->ranks;
	return n;
}

static int plan_file_missing(const struct plan_file *plan, size_t at, struct diag *diag)
{
	const struct recording_batch *batch = &plan->batches[at].batch;

	return diag_fail(
	    diag, PLAN_FILE_E_BAD,
	    "epoch %llu, step %llu: of %u ranks some are missing, or there twice: give the file "
	    "of each rank, once",
	    (unsigned long long)batch->epoch, (unsigned long long)batch->step, batch->ranks);
}

int plan_file_join(struct plan_file *plan, struct diag *diag)
{
	size_t whole = 0;
	bool is_whole = true;

	qsort(plan->batches, plan->n, sizeof(*plan->batches), plan_file_compare);
	while (whole < plan->n) {
		size_t step = plan_file_step(plan, whole, &is_whole);

		if (!is_whole)
			break;
		whole += step;
	}
	for (size_t at = whole; at < plan->n && !is_whole;) { /* after the end no step is whole */
		bool later;
		size_t step = plan_file_step(plan, at, &later);

		if (later || !whole)
			return plan_file_missing(plan, whole, diag);
		at += step;
	}
	plan->is_cut |= whole < plan->n;
	while (plan->n > whole)
		free(plan->batches[--plan->n].bytes);
	return 0;
}

void plan_file_fini(struct plan_file *plan)
{
	while (plan->n)
		free(plan->batches[--plan->n].bytes);
	free(plan->batches);
	*plan = (struct plan_file){0};
}
