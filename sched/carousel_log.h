/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Groups and their ranks, as the carousel's other files see them. What a log is inside is in
 * carousel_log_state.h.
 */

#include "sched/carousel_state.h"

/* carousel_log.c */
/* The number of a log's group. */
uint32_t carousel_log_group(const struct carousel_log *log);
int carousel_log_enter(struct carousel *carousel, const struct carousel_join *join, uint32_t job);
void carousel_log_leave(struct carousel *carousel, uint32_t job); /* a rank, or a group */
/* May the resident chunk, which the group needs, be its next one? */
bool carousel_log_wants(const struct carousel *carousel, uint32_t group, uint32_t slot);
/* The slot's chunk becomes the group's next one. */
void carousel_log_append(struct carousel *carousel, uint32_t group, uint32_t slot,
			 struct carousel_action *ret);
/* The slot holds nothing any more. */
void carousel_log_forget(struct carousel *carousel, uint32_t slot);

/* carousel_rank.c */
/* Does the slot hold the rank's next entry? */
bool carousel_rank_has(const struct carousel_member *rank, uint32_t slot);
/* Is there an entry for the rank that was not granted? */
bool carousel_rank_is_ahead(const struct carousel_member *rank);
/* Will the rank come to what the slot holds soon? (false for others) */
bool carousel_rank_awaits(const struct carousel *carousel, const struct carousel_member *member,
			  uint32_t slot);
/* Must the slot not be given up, as a living rank takes it next? Where somebody starves who waits, only
 * what a waiting rank takes next is protected. */
bool carousel_rank_protects(const struct carousel *carousel, uint32_t slot, bool somebody_waits,
			    uint64_t now_ns);
/* A group lives while one of its ranks does. */
bool carousel_rank_any_lives(const struct carousel *carousel, uint32_t group, uint64_t now_ns);
/* The rank at the log's end with the least that is coming to it and that wants more; NOBODY. */
uint32_t carousel_rank_neediest(const struct carousel *carousel, uint32_t group, uint64_t now_ns);
/* The pace of the group's fastest rank; 0: not known. */
double carousel_rank_pace(const struct carousel *carousel, uint32_t group);

/* carousel_plan.c */
/* Fills the slot's chunk with the rank's next entry, variants included. */
void carousel_plan_produce(struct carousel *carousel, uint32_t rank, uint32_t slot,
			   uint64_t now_ns);
/* Deals a chunk without a slot, where a group's ranks must know more of the plan than is made.
 * order: living jobs that are dealt to, n_hungry of them hungry. */
bool carousel_plan_ahead(struct carousel *carousel, uint32_t *order, uint32_t n, uint32_t n_hungry,
			 uint64_t now_ns, struct carousel_action *ret);
