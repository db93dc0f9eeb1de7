/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Lists are computed here and not by accessd, so that a list costs nobody but its job anything. Each
 * is a function of what the caller gave and the epoch's number: after a loss of the session it is
 * made again, and is the same. It is built when its epoch is the next but one, in oa_next(), at the
 * change of epochs: some 0.1 s for a million places, in which the epoch that begins is already being
 * prepared.
 *
 * The memory is shared with accessd, so that a list is in memory once; we keep ours mapped, since a
 * recording has to know the key of each place.
 */

#include "libaccess/listed.h"

#include "libaccess/error.h"
#include "shmring/proto.h"
#include "shmring/region.h"

static struct listing_spec listed_spec(const struct course *course)
{
	const struct sampler *sampler = &course->sampler;
	struct listing_spec spec = {
	    .n = course->permutation.n,
	    .seed = course->seed,
	    .is_seeded = course->order == PLAN_SEEDED,
	    .ids = sampler->ids,
	    .n_ids = sampler->n_ids,
	    .weights = sampler->weights,
	    .samples = sampler->samples,
	    .with_replacement = sampler->flags & OA_REPLACEMENT,
	    .blocks = sampler->blocks,
	    .n_blocks = sampler->n_blocks,
	    .window = sampler->window,
	};

	memcpy(spec.version, course->dataset, sizeof(spec.version));
	return spec;
}

static int listed_check_replay(const struct course *course, struct diag *diag)
{
	const struct recording_head *head = &course->replay.head;

	if (head->n != course->permutation.n ||
	    memcmp(head->dataset, course->dataset, sizeof(head->dataset)) != 0)
		return diag_fail(diag, OA_E_DATASET,
				 "oa_open(): options.replay: %s was recorded of another version of "
				 "the dataset (files, sizes, times or labels changed since)",
				 course->replay.path);
	if (memcmp(head->pipeline, course->pipeline, sizeof(head->pipeline)) != 0)
		return diag_fail(diag, OA_E_PIPELINE,
				 "oa_open(): options.replay: %s was recorded with another pipeline",
				 course->replay.path);
	return 0;
}

int listed_check(const struct course *course, struct diag *diag)
{
	const struct sampler *sampler = &course->sampler;

	if (course->replay.path)
		return listed_check_replay(course, diag);
	if (sampler->weights && !sampler->ids && sampler->n_weights != course->permutation.n)
		return error_open(diag,
				  "options.sampler.n_weights is %llu, the dataset has %llu "
				  "samples: one weight for each",
				  (unsigned long long)sampler->n_weights,
				  (unsigned long long)course->permutation.n);
	for (uint64_t i = 0; i < sampler->n_ids; i++)
		if ((uint64_t)sampler->ids[i] >= course->permutation.n)
			return error_open(
			    diag, "options.sampler.ids[%llu] is %lld, the dataset has %llu samples",
			    (unsigned long long)i, (long long)sampler->ids[i],
			    (unsigned long long)course->permutation.n);
	if (sampler->blocks &&
	    (uint64_t)sampler->blocks[sampler->n_blocks - 1] >= course->permutation.n)
		return error_open(diag,
				  "options.sampler.blocks: the last one begins with %lld, the "
				  "dataset has %llu samples",
				  (long long)sampler->blocks[sampler->n_blocks - 1],
				  (unsigned long long)course->permutation.n);
	return 0;
}

uint64_t listed_places(const struct course *course, uint64_t epoch)
{
	struct listing_spec spec;

	if (!course->is_listed)
		return course->n_samples;
	if (course->replay.path)
		return replay_places(&course->replay, epoch);
	spec = listed_spec(course);
	return listing_places(&spec);
}

/* ---- one list ---- */

static void listed_drop(struct listed_map *kept)
{
	region_unmap(kept->map, kept->bytes);
	*kept = (struct listed_map){0};
}

static int listed_build(const struct course *course, uint64_t epoch, struct listing_draft *ret)
{
	struct listing_spec spec = listed_spec(course);

	if (course->replay.path)
		return replay_build(&course->replay, epoch, ret);
	return listing_build(&spec, epoch, ret);
}

/* Its memory, sealed. 0 or negative errno. */
static int listed_make(const struct course *course, uint64_t epoch, struct listed_map *ret,
		       int *ret_fd)
{
	_cleanup_(listing_fini) struct listing_draft draft = {0};
	struct listed_map made = {.epoch = epoch};
	_cleanup_close_ int fd = -1;
	struct diag diag;
	int r = listed_build(course, epoch, &draft);

	if (r)
		return r;
	made.bytes = listing_bytes(&draft);
	r = region_new("oneaccess-list", REGION_UNSEALED, made.bytes, &made.map, &fd);
	if (r)
		return r;
	listing_write(&draft, made.map);
	r = region_freeze(fd, made.bytes, &made.map);
	if (!r && listing_attach(made.map, made.bytes, &made.listing, &diag))
		r = -EPROTO;
	if (r) {
		listed_drop(&made);
		return r;
	}
	*ret = made;
	*ret_fd = base_take_fd(&fd);
	return 0;
}

static int listed_send(int sock, uint64_t epoch, int fd)
{
	return wire_tell(sock, PROTO_PLAN, WIRE_U64(PROTO_KEY_EPOCH, epoch), WIRE_FD(fd));
}

/* ---- in time ---- */

/* false: not now. */
static bool listed_feed_one(struct listed *listed, const struct course *course, int sock,
			    struct trouble *trouble)
{
	struct listed_map *kept = &listed->kept[listed->next % 2];
	_cleanup_close_ int fd = -1;
	struct diag diag;
	int r;

	listed_drop(kept);
	r = listed_make(course, listed->next, kept, &fd);
	if (r) {
		r = error_of_errno(&diag, r, "the list of an epoch");
		trouble_fail(trouble, r, diag.text);
		return false;
	}
	r = listed_send(sock, listed->next, fd);
	if (r == 0)
		listed->next++;
	else if (r < 0 && r != -EAGAIN)
		trouble_fail(trouble, r, "sending the list of an epoch to accessd");
	return r == 0;
}

void listed_feed(struct listed *listed, const struct course *course, uint64_t epoch, int sock,
		 struct trouble *trouble)
{
	while (listed->next <= epoch + 1 && (!course->epochs || listed->next < course->epochs) &&
	       listed_feed_one(listed, course, sock, trouble))
		;
}

struct listing_key listed_key(const struct listed *listed, uint64_t epoch, uint64_t place)
{
	const struct listing *listing = &listed->kept[epoch % 2].listing;

	return listing->keys[listing_key_number(listing->entries[place])];
}

void listed_fini(struct listed *listed)
{
	listed_drop(&listed->kept[0]);
	listed_drop(&listed->kept[1]);
}
