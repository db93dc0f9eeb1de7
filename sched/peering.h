/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Is a value sooner fetched from another node than made here? Arithmetic: what both took says the caller. What is
 * fetched is no point of its own (sched/point.h): the form is the same, and so is the work from it.
 */

#include "sched/point.h"

struct peering { /* what values took that came from peers */
	/* Elapsed, a value, as many as were asked for being under way at once */
	struct point_mean wire;
	struct point_mean cpu; /* of this node */
	struct point_mean bytes;
};

void peering_init(struct peering *peering);
/* One came after elapsed_us, of `out` values that were asked for by then; cpu_us: of the reader; negative: unknown. */
void peering_came(struct peering *peering, double elapsed_us, double cpu_us, double bytes,
		  uint64_t out);

/* What the carrier takes of a processor for what it carries. */
struct peering_carry {
	uint64_t cpu_ns, bytes; /* when it was looked at last */
	double us_per_mib;      /* a moving mean; 0: not measured */
};
/* The carrier has used so much and carried so many bytes, both ways and all peers together. Less than before: it, or
 * a connection, began anew. */
void peering_carried(struct peering_carry *carry, uint64_t cpu_ns, uint64_t bytes);
/* As measured; until then of TCP and AES-128-GCM. */
double peering_carry_us(const struct peering_carry *carry);

struct peering_choice {
	double make_us, fetch_us; /* elapsed, a sample; < 0: not measured */
	double carry_us; /* of the latter: of a processor, the carrier's; < 0: not measured */
	bool is_worth;   /* to fetch it; also as long as that is not measured */
};
/* file and form as measured: what reading the file and making the form of it takes, and the work from it. */
void peering_choose(const struct peering *peering, const struct peering_carry *carry,
		    const struct point_cost *file, const struct point_cost *form, double cores,
		    double reader_threads, struct peering_choice *ret);
/* Is the sample of that turn to be asked for? What is not worth it now is tried now and then. */
bool peering_asks(const struct peering_choice *choice, uint64_t turn);
/* So much of the arena for a value whose size is not known: of this share of a file of file_bytes, by the means of
 * both; 0 means: not known. */
uint64_t peering_room(double mean_value, double mean_file, uint64_t file_bytes);
