/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client computes which samples it wants; here it is only copied and counted, n / 8 bytes once an
 * open. It is read, not mapped, from a memory that must be a memfd and sealed: a descriptor of
 * anything else could make accessd wait, and what changes afterwards could make it wrong.
 *
 * Whether a part is a random split is the one thing that must not be believed: hands for others are
 * composed from the needs of such jobs, too (sched/carousel_population.c). So some grains, drawn here, are
 * compared with what the split says. What differs in one grain of a hundred is found by 256 of them nine
 * times in ten; what differs in fewer cannot be seen in the orders of others.
 */
#include "daemon/members.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/bits.h"
#include "daemon/request.h"
#include "daemon/stream.h"
#include "libaccess/libaccess.h"
#include "sched/carousel.h"
#include "sched/population.h"
#include "storage/dataset.h"

#define PROBES 256

static int bad(struct diag *diag, const char *what)
{
	diag_set(diag, "the part of the dataset that the job asks for: %s; update libaccess", what);
	return OA_E_INVALID;
}

static bool is_split(const struct request *request, const struct deal *deal,
		     const uint8_t version[32], const uint64_t *bits)
{
	uint64_t chosen[PROBES];

	if (base_random(chosen, sizeof(chosen)))
		return false;
	for (unsigned i = 0; i < PROBES; i++) {
		uint64_t grain = chosen[i] % deal->grains;
		uint32_t wanted = population_has_grain(deal, version, &request->split, grain)
				      ? deal_grain_size(deal, grain)
				      : 0;

		if (population_of_grain(deal, bits, grain) != wanted)
			return false;
	}
	return true;
}

static int read_bits(const struct request *request, const struct deal *deal, uint64_t **ret,
		     struct diag *diag)
{
	size_t bytes = bits_words(deal->n) * sizeof(uint64_t);
	_cleanup_free_ uint64_t *bits = NULL;
	struct stat status;

	if (!dataset_is_sealed(request->part_fd) || fstat(request->part_fd, &status) < 0 ||
	    (uint64_t)status.st_size != bytes)
		return bad(diag, "its bitmap is no sealed memory of the right size");
	bits = malloc(bytes);
	if (!bits || base_read_all(request->part_fd, bits, bytes)) {
		diag_set(diag, "out of memory for the part of the dataset that the job asks for");
		return OA_E_MEMORY;
	}
	if (deal->n % 64 && bits[bits_words(deal->n) - 1] >> (deal->n % 64))
		return bad(diag, "its bitmap has bits past the end");
	if (!bits_count(bits, deal->n))
		return bad(diag, "nobody is in it");
	*ret = base_take_ptr(bits);
	return 0;
}

int members_read(const struct request *request, const struct stream *stream,
		 struct carousel_join *join, uint64_t **ret_bits, struct diag *diag)
{
	const struct board_geometry *geometry = &stream->geometry;
	const struct deal *deal = carousel_deal(stream->carousel);
	int r;

	if (request->part_fd < 0)
		return 0;
	if (memcmp(request->part_version, geometry->dataset, sizeof(request->part_version)) != 0) {
		diag_set(diag,
			 "the dataset changed between the look at it and the open: open again");
		return OA_E_DATASET;
	}
	r = read_bits(request, deal, ret_bits, diag);
	if (r)
		return r;
	if (population_is_split(&request->split) &&
	    !is_split(request, deal, geometry->dataset, *ret_bits))
		return bad(diag, "it is not the split that it is said to be");
	join->population = *ret_bits;
	join->is_random = population_is_split(&request->split);
	join->is_narrow = request->ranks > 1;
	return 0;
}
