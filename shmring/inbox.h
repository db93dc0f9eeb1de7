/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What accessd and a rank show each other beside grants: words for time-outs, status and wakes. */

#include "base/base.h"
#include "shmring/layout.h"

/* inbox.c, accessd's side */
void inbox_set_end(struct layout_inbox *inbox, uint64_t epochs); /* once, before it is shown */
/* kicks: LAYOUT_KICK_... */
void inbox_show(struct layout_inbox *inbox, uint32_t stage, uint32_t kicks, uint64_t now_ns);
void inbox_show_late(struct layout_inbox *inbox, uint64_t late_ns);
struct inbox_figures { /* as the rank says: for people, never for decisions */
	uint64_t samples, batches, wait_ns, copied, epochs;
};
void inbox_read_figures(const struct layout_outbox *outbox, struct inbox_figures *ret);
uint64_t inbox_slept_ns(const struct layout_outbox *outbox); /* for people, too */

/* inbox.c, the rank's side */
uint32_t inbox_stage(const struct layout_inbox *inbox);
uint64_t inbox_heartbeat_ns(const struct layout_inbox *inbox);
uint64_t
inbox_late_ns(const struct layout_inbox *inbox); /* 0 of an accessd that does not measure it */
void inbox_tell_figures(struct layout_outbox *outbox, const struct inbox_figures *figures);
void inbox_tell_sleep(struct layout_outbox *outbox, uint64_t now_ns);

/* What worker `index` says it is doing. false: nothing. */
struct inbox_work {
	uint32_t queue, row, task;
	uint64_t started_ns, done, busy_ns, pixels;
};
bool inbox_work_of(const struct layout_doorbell *doorbell, uint32_t index, struct inbox_work *ret);
