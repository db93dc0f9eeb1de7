/* SPDX-License-Identifier: Apache-2.0 */

/* Faults that are planted in accessd and its carousel, where one file calls another. Those of libaccess are in client.c. */

#include <stdlib.h>
#include <string.h>

#include "daemon/cache/cache.h"
#include "daemon/net/conn.h"
#include "daemon/net/porter.h"
#include "daemon/serve/arena.h"
#include "daemon/serve/fill_parts.h"
#include "daemon/serve/group.h"
#include "daemon/serve/group_keep.h"
#include "daemon/serve/hung.h"
#include "daemon/serve/variant.h"
#include "sched/carousel_state.h"
#include "shmring/grant.h"
#include "shmring/slot_table.h"
#include "tests/daemon/bottle/bottle.h"

#define WRAP(type, name, ...)            \
	type __real_##name(__VA_ARGS__); \
	type __wrap_##name(__VA_ARGS__); \
	type __wrap_##name(__VA_ARGS__)

static bool is(enum mutant mutant)
{
	return bottle_now() && bottle_now()->mutant == mutant;
}

WRAP(void, doorbell_ring_readers, struct layout_doorbell *doorbell)
{
	if (!is(MUTANT_RING_LOST))
		__real_doorbell_ring_readers(doorbell);
}

WRAP(bool, queue_task_take_over, struct queue *queue, uint32_t row, uint32_t index, uint32_t owner,
     enum layout_task_state from, enum layout_task_state to, enum layout_fail stage, int code)
{
	return !is(MUTANT_TASK_LOST) &&
	       __real_queue_task_take_over(queue, row, index, owner, from, to, stage, code);
}

WRAP(void, slot_table_watermark, struct slot_table *table, uint32_t slot, uint32_t watermark)
{
	__real_slot_table_watermark(table, slot, watermark + is(MUTANT_SHOWN_EARLY));
}

WRAP(bool, arena_reserve, struct arena *arena, uint64_t bytes, uint64_t *ret_offset,
     uint32_t *ret_extent)
{
	const bool has_room = __real_arena_reserve(arena, bytes, ret_offset, ret_extent);

	if (has_room && is(MUTANT_ARENA_EARLY))
		*ret_offset = 0;
	return has_room;
}

WRAP(void, variant_account, struct variant *variant, int64_t bytes)
{
	if (bytes > 0 || !is(MUTANT_BYTES_LEAK))
		__real_variant_account(variant, bytes);
}

WRAP(bool, hung_find, struct domain *domain, uint64_t now_ns)
{
	return !is(MUTANT_HANG_UNSEEN) && __real_hung_find(domain, now_ns);
}

WRAP(void, porter_close, struct porters *porters, uid_t uid, int *fd)
{
	if (is(MUTANT_FD_LEAK))
		*fd = -1;
	else
		__real_porter_close(porters, uid, fd);
}

WRAP(bool, grant_wants_wake, struct grant_server *server)
{
	return __real_grant_wants_wake(server) &&
	       !(is(MUTANT_WAKE_LOST) && server->woken % 50 == 0);
}

WRAP(bool, fill_tries_file, struct stream *stream, struct fill *fill, uint32_t i,
     enum layout_fail stage)
{
	return !is(MUTANT_FORM_FINAL) && __real_fill_tries_file(stream, fill, i, stage);
}

WRAP(uint64_t, cache_plan, struct stream *stream, const struct fill_task *task, uint32_t file_bytes,
     struct queue_keep *ret)
{
	const uint64_t bytes = __real_cache_plan(stream, task, file_bytes, ret);

	return is(MUTANT_ROOM_FORGOTTEN) ? file_bytes : bytes;
}

WRAP(void, group_leave_all, struct stream *stream)
{
	if (!is(MUTANT_PLAN_LATE))
		__real_group_leave_all(stream);
}

WRAP(void, keep_leave, struct keep *keep, uint64_t *begun, uint32_t ranks)
{
	if (is(MUTANT_PLAN_REMOVED)) {
		keep_end(keep, true);
		free(begun);
	} else if (is(MUTANT_RUN_UNENDED)) {
		free(begun);
		__real_keep_leave(keep, NULL, ranks);
	} else {
		__real_keep_leave(keep, begun, ranks);
	}
}

WRAP(int, keep_find, struct kept_logs *logs, const struct keep_job *of, const uint8_t *log,
     uint64_t origin)
{
	return __real_keep_find(logs, of, is(MUTANT_PLAN_UNNAMED) ? NULL : log, origin);
}

WRAP(bool, plan_log_has, const struct plan_log *plan_log, const uint8_t id[PLAN_LOG_ID],
     uint64_t epoch, uint64_t place)
{
	if (is(MUTANT_PLAN_PARTED))
		return memcmp(plan_log->id, id, PLAN_LOG_PLAN) == 0;
	return __real_plan_log_has(plan_log, id, epoch, place);
}

WRAP(void, conn_send_text, struct conn *conn, uint16_t type, uint64_t code, const char *text)
{
	if (type != PROTO_LOST || !is(MUTANT_LOSS_UNSAID))
		__real_conn_send_text(conn, type, code, text);
}

WRAP(bool, carousel_variant_is_fresh, const struct carousel *carousel, uint32_t job, uint32_t slot)
{
	return is(MUTANT_INSTANCE_TWICE) || __real_carousel_variant_is_fresh(carousel, job, slot);
}

WRAP(bool, carousel_need_has, const struct carousel *carousel, const struct carousel_member *member,
     const struct carousel_chunk *chunk)
{
	return is(MUTANT_NEED_UNASKED) || __real_carousel_need_has(carousel, member, chunk);
}

WRAP(uint32_t, carousel_fixed_first, const struct carousel *carousel,
     const struct carousel_member *member, const struct carousel_chunk *chunk)
{
	return is(MUTANT_PLACE_LOST) ? 0 : __real_carousel_fixed_first(carousel, member, chunk);
}

WRAP(void, carousel_reclaimed, struct carousel *carousel, uint32_t job, uint32_t slot,
     uint64_t now_ns)
{
	if (is(MUTANT_GRANT_FORGOTTEN)) {
		carousel_taken(carousel, job, slot, now_ns);
		carousel_done(carousel, job, slot, now_ns);
	} else {
		__real_carousel_reclaimed(carousel, job, slot, now_ns);
	}
}
