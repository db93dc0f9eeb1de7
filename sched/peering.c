/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What a peer's value costs has three parts: the processor, which the readers measure for what they do and the carrier for
 * what it does, by its bytes; the work from it, which is the form's; and the wire. A task that waits
 * for a peer holds no thread, so it is not how long it waits that counts, but how many come in a second: with n of them
 * under way and each waiting t, one comes each t / n (J. D. C. Little, 1961). Where few are asked for that is less than
 * the wire could do at most, and then it does not matter.
 *
 * Whoever stops asking learns nothing any more; so one sample of PEERING_AGAIN is asked for all the same.
 */

#include "sched/peering.h"

#include "base/base.h"

#define PEERING_AGAIN 32 /* samples */
/* Of a processor a MiB: TCP and AES-128-GCM of the receiver, measured once */
#define PEERING_CARRY_US 420.
#define PEERING_CARRY_LEAST (UINT64_C(4) << 20) /* bytes: less tells nothing */
#define PEERING_CARRY_WEIGHT 0.25               /* of what was measured last */
#define PEERING_MIB 1048576.
/* Making must take less than that of fetching, as values that were made go to others */
#define PEERING_MARGIN 0.9
#define PEERING_ABOVE 2.   /* the mean: forms are of various sizes */
#define PEERING_LIKELY 1.5 /* times the file, as long as no means are known */
#define PEERING_LEAST 4096 /* bytes over that */

void peering_init(struct peering *peering)
{
	point_mean_init(&peering->wire);
	point_mean_init(&peering->cpu);
	point_mean_init(&peering->bytes);
}

void peering_came(struct peering *peering, double elapsed_us, double cpu_us, double bytes,
		  uint64_t out)
{
	point_mean_add(&peering->wire, elapsed_us / (double)BASE_MAX(out, UINT64_C(1)));
	point_mean_add(&peering->cpu, cpu_us);
	point_mean_add(&peering->bytes, bytes);
}

static bool is_measured(const struct peering *peering, const struct point_cost *file,
			const struct point_cost *form)
{
	return peering->wire.n >= POINT_TRIALS_LEAST && file->samples >= POINT_TRIALS_LEAST &&
	       form->samples >= POINT_TRIALS_LEAST && form->made >= POINT_TRIALS_LEAST;
}

void peering_carried(struct peering_carry *carry, uint64_t cpu_ns, uint64_t bytes)
{
	double us_per_mib;

	if (cpu_ns >= carry->cpu_ns && bytes >= carry->bytes) {
		if (bytes - carry->bytes < PEERING_CARRY_LEAST)
			return;
		us_per_mib = (double)(cpu_ns - carry->cpu_ns) / 1e3 * PEERING_MIB /
			     (double)(bytes - carry->bytes);
		if (!(carry->us_per_mib > 0))
			carry->us_per_mib = us_per_mib;
		carry->us_per_mib += PEERING_CARRY_WEIGHT * (us_per_mib - carry->us_per_mib);
	}
	carry->cpu_ns = cpu_ns;
	carry->bytes = bytes;
}

double peering_carry_us(const struct peering_carry *carry)
{
	return carry->us_per_mib > 0 ? carry->us_per_mib : PEERING_CARRY_US;
}

void peering_choose(const struct peering *peering, const struct peering_carry *carry,
		    const struct point_cost *file, const struct point_cost *form, double cores,
		    double reader_threads, struct peering_choice *ret)
{
	const double carry_us = peering_carry_us(carry) * peering->bytes.mean / PEERING_MIB;
	const double make_cpu = file->read_cpu_us + form->make_us + form->work_us;
	const double fetch_cpu = peering->cpu.mean + carry_us + form->work_us;

	*ret = (struct peering_choice){
	    .make_us = -1, .fetch_us = -1, .carry_us = -1, .is_worth = true};
	if (!is_measured(peering, file, form) || !(cores > 0) || !(reader_threads > 0))
		return;
	ret->carry_us = carry_us;
	ret->make_us = BASE_MAX(make_cpu / cores, file->read_us / reader_threads);
	ret->fetch_us = BASE_MAX(fetch_cpu / cores, peering->wire.mean);
	ret->is_worth = !(ret->make_us < PEERING_MARGIN * ret->fetch_us);
}

bool peering_asks(const struct peering_choice *choice, uint64_t turn)
{
	return choice->is_worth || turn % PEERING_AGAIN == 0;
}

uint64_t peering_room(double mean_value, double mean_file, uint64_t file_bytes)
{
	double bytes = (double)file_bytes;

	if (mean_value > 0 && mean_file > 0)
		bytes = BASE_MAX(mean_value, bytes * (mean_value / mean_file));
	else
		bytes *= PEERING_LIKELY;
	bytes = PEERING_ABOVE * bytes + PEERING_LEAST;
	return bytes < 1e15 ? (uint64_t)bytes : 0;
}
