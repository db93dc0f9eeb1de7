/* SPDX-License-Identifier: Apache-2.0 */

#include "libaccess/course.h"

void course_init(struct course *course, const struct dial_open *ask)
{
	*course = (struct course){.ask = ask};
	part_init(&course->part);
	replay_init(&course->replay);
}

void course_fini(struct course *course)
{
	sampler_fini(&course->sampler);
	part_fini(&course->part);
	replay_fini(&course->replay);
}

void course_set_order(struct course *course, uint32_t order)
{
	course->order = order;
	course->is_fixed = plan_is_fixed(order);
	course->is_listed =
	    course->is_fixed && (order == PLAN_LIST || sampler_is_used(&course->sampler));
	course->is_ranked = course->ask->ranks > 1;
	course->is_logged = course->is_ranked && !course->is_fixed;
	course->is_placed = course->is_ranked || course->is_fixed;
}

void course_resume(struct course *course, const struct token *token)
{
	course_set_order(course, token->order);
	if (course->is_fixed)
		course->seed = token->seed;
}

struct entry_set course_set(const struct course *course)
{
	return (struct entry_set){.permutation = &course->permutation, .bits = course->part.bits};
}

struct token course_token(const struct course *course)
{
	struct token token = {
	    .n = course->permutation.n,
	    .block = course->permutation.block,
	    .order = course->order,
	    .seed = course->seed,
	    .epochs = course->epochs,
	};

	memcpy(token.dataset, course->dataset, sizeof(token.dataset));
	memcpy(token.sampler, course->sampler.hash, sizeof(token.sampler));
	return token;
}
