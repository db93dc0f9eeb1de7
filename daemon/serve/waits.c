/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A window ends with the first note after its time. An interval longer than a window, in which nobody noted
 * anything, becomes the last window by its newest part: what was longer ago is not "lately".
 */
#include "daemon/serve/waits.h"

void waits_init(struct waits *waits, uint64_t now_ns)
{
	*waits = (struct waits){.stage = LAYOUT_STAGE_NONE, .began_ns = now_ns, .noted_ns = now_ns};
}

static void waits_turn_over(struct waits *waits, uint64_t now_ns)
{
	memcpy(waits->last_ns, waits->now_ns, sizeof(waits->last_ns));
	memset(waits->now_ns, 0, sizeof(waits->now_ns));
	waits->last_window_ns = now_ns - waits->began_ns;
	waits->began_ns = now_ns;
}

static void waits_account(struct waits *waits, uint64_t now_ns)
{
	waits->all_ns[waits->stage] += now_ns - waits->noted_ns;
	waits->late_ns += waits->is_late ? now_ns - waits->noted_ns : 0;
	if (now_ns - waits->noted_ns >= WAITS_WINDOW_NS) {
		memset(waits->now_ns, 0, sizeof(waits->now_ns));
		waits->began_ns = waits->noted_ns = now_ns - WAITS_WINDOW_NS;
	}
	waits->now_ns[waits->stage] += now_ns - waits->noted_ns;
	waits->noted_ns = now_ns;
	if (now_ns - waits->began_ns >= WAITS_WINDOW_NS)
		waits_turn_over(waits, now_ns);
}

void waits_note(struct waits *waits, enum layout_stage stage, bool is_late, uint64_t now_ns)
{
	now_ns = BASE_MAX(now_ns, waits->noted_ns);
	waits_account(waits, now_ns);
	if (waits->stage == LAYOUT_STAGE_NONE)
		waits->since_ns = now_ns;
	waits->stage = stage;
	waits->is_late = is_late && stage != LAYOUT_STAGE_NONE;
}

void waits_look(const struct waits *waits, uint64_t now_ns, struct waits_view *ret)
{
	struct waits all = *waits;

	waits_note(&all, all.stage, all.is_late, now_ns);
	*ret = (struct waits_view){.window_ns = all.last_window_ns + all.noted_ns - all.began_ns};
	if (all.stage != LAYOUT_STAGE_NONE)
		ret->waiting_ns = all.noted_ns - all.since_ns;
	for (unsigned i = LAYOUT_STAGE_SCAN; i < WAITS_STAGES; i++) {
		ret->by_stage[i] = all.now_ns[i] + all.last_ns[i];
		ret->all_ns[i] = all.all_ns[i];
	}
	ret->late_ns = all.late_ns;
}
