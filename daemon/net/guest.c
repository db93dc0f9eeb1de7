/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Guests. A tenant is a user for whom processes run; a guest is one who is connected, and may be no more.
 *
 * What is counted is messages, not time: on a busy machine time says who else had the CPU. The units are
 * such that one user can have a third of the loop's time: 40 questions in 50 ms at 0.4 ms each, the most.
 */
#include "daemon/net/guest.h"

struct guest *guest_ref(struct guest_list *list, uid_t uid)
{
	struct guest *guest;

	LIST_FOREACH(guest, list, link)
		if (guest->uid == uid) {
			guest->conns++;
			return guest;
		}
	guest = calloc(1, sizeof(*guest));
	if (!guest)
		return NULL;
	guest->uid = uid;
	guest->conns = 1;
	LIST_INSERT_HEAD(list, guest, link);
	return guest;
}

void guest_unref(struct guest *guest)
{
	if (!guest || --guest->conns)
		return;
	LIST_REMOVE(guest, link);
	free(guest);
}

bool guest_may_speak(struct guest *guest, uint64_t now_ns)
{
	if (now_ns - guest->since_ns > GUEST_WINDOW_NS) {
		guest->since_ns = now_ns;
		guest->units = 0;
	}
	return guest->units < GUEST_MOST;
}

void guest_spoke(struct guest *guest, uint64_t units)
{
	guest->units += units;
}
