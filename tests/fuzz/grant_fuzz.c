/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A hostile outbox: the input is a list of steps, 10 bytes each (what, where, eight bytes of a
 * word). After each step the ledger is checked; each grant ends at most once, and accessd gets
 * every grant back that the rank did not take.
 */

#include <stdlib.h>
#include <string.h>

#include "shmring/grant.h"
#include "tests/invariants/invariants.h"

#define RING LAYOUT_GRANT_RING

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct layout_inbox inbox;
static struct layout_outbox outbox;
static struct grant_server server;

static void poll_all(void)
{
	enum grant_fate fate, before[RING];
	struct grant grant;

	for (int i = 0; i < RING; i++)
		before[i] = server.fate[i];
	while (grant_poll(&server, &grant, &fate, NULL) == 0) {
		enum grant_fate *was = &before[grant.number % RING];

		if (*was != (fate == GRANT_DONE ? GRANT_TAKEN : GRANT_UNTAKEN))
			abort();
		*was = fate;
	}
}

static void take_step(uint8_t what, uint8_t where, uint64_t word)
{
	uint64_t near = where < 240 ? server.posted + 3 - where % (RING + 6) : server.settled + 1;
	uint64_t number;
	struct grant grant = {.instance = word, .slot = where};

	switch (what % 8) {
	case 0:
		grant_post(&server, &grant, &number);
		break;
	case 1:
		if (grant_revoke(&server, near) == 0 && grant_revoke(&server, near) != 0)
			abort();
		break;
	case 2:
		poll_all();
		break;
	case 3:
		atomic_store(&outbox.c_take[where % LAYOUT_MAX_PINS], word);
		break;
	case 4:
		atomic_store(&outbox.c_take[where % LAYOUT_MAX_PINS], near << 8 | what >> 3);
		break;
	case 5:
		atomic_store(&outbox.c_result[where % RING], word);
		break;
	case 6:
		atomic_store(&outbox.c_result[near % RING], near << 8 | what >> 3);
		break;
	default:
		atomic_store(&outbox.c_next, what >> 3 ? near : word);
		atomic_store(&outbox.c_armed, word);
		grant_wants_wake(&server);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	memset(&inbox, 0, sizeof(inbox));
	memset(&outbox, 0, sizeof(outbox));
	grant_server_init(&server, &inbox, &outbox);
	for (; size >= 10; data += 10, size -= 10) {
		uint64_t word;

		memcpy(&word, data + 2, sizeof(word));
		take_step(data[0], data[1], word);
		if (grant_check(&server))
			abort();
	}
	poll_all();
	return 0;
}
