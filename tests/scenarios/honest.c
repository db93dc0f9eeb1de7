/* SPDX-License-Identifier: Apache-2.0 */

#include "tests/scenarios/honest.h"

#include <sys/mman.h>

#include "tests/scenarios/folk.h"

static int train_on(void *arg)
{
	const struct honest *honest = arg;
	struct town_errand *errand = honest->errand;

	do {
		town_train(errand);
		if (!errand->saw_all || errand->wrong)
			return 1;
	} while (!*honest->is_over);
	return 0;
}

void honest_start(struct honest *honest, const struct town_user *user, const char *dataset,
		  unsigned n, unsigned epochs, enum oa_order order, unsigned step_ms)
{
	honest->user = user;
	honest->errand = town_errand_new(dataset, n, epochs);
	honest->errand->order = order;
	honest->errand->step_ms = step_ms;
	honest->is_over =
	    mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne(honest->is_over, MAP_FAILED);
	honest->pid = town_send(user, train_on, honest);
}

void honest_end(struct honest *honest)
{
	const struct town_errand *errand = honest->errand;
	int status;

	*honest->is_over = true;
	status = town_wait(honest->pid);
	ck_assert_msg(status == 0, "user %u: %d, %u wrong, %s %s", (unsigned)honest->user->uid,
		      status, errand->wrong, oa_error_name(errand->code), errand->text);
	ck_assert_uint_gt(errand->batches, 0);
	ck_assert_int_le(folk_tenant(honest->user, "reader_restarts"), 0);
	ck_assert_int_le(folk_tenant(honest->user, "parent_restarts"), 0);
	ck_assert_int_le(folk_tenant(honest->user, "worker_restarts"), 0);
	munmap(honest->is_over, 4096);
	town_errand_free(honest->errand);
}
