/* SPDX-License-Identifier: Apache-2.0 */

/* The module: libaccess, and what stands in the place of the kernel's clock, chance and sleep. */

#include "tests/daemon/bottle/client.h"

#include <sys/socket.h>

#include "libaccess/connect/dial.h"
#include "libaccess/connect/prefault.h"
#include "libaccess/stream.h"

extern const struct client_calls client_calls;
uint64_t __wrap_base_now_ns(void);
int __wrap_base_random(void *ret, size_t size);
int __wrap_dial_wait(const struct dial_wait *wait, int fd, uint64_t until_ns);
void __wrap_dial_wait_begin(struct dial_wait *wait);
struct prefault *__wrap_prefault_new(const struct slot_table *table, const uint8_t *slots);

static const struct client_host *host;

static void begin(const struct client_host *its)
{
	host = its;
}

uint64_t __wrap_base_now_ns(void)
{
	return host->now_ns();
}

int __wrap_base_random(void *ret, size_t size)
{
	host->random(ret, size);
	return 0;
}

/* No signal comes to a job in here. */
void __wrap_dial_wait_begin(struct dial_wait *wait)
{
	(void)wait;
}

int __wrap_dial_wait(const struct dial_wait *wait, int fd, uint64_t until_ns)
{
	(void)wait;
	return host->wait(fd, until_ns);
}

/* Its thread would look at the kernel's clock; to have none is allowed. */
struct prefault *__wrap_prefault_new(const struct slot_table *table, const uint8_t *slots)
{
	(void)table;
	(void)slots;
	return NULL;
}

int __real_progress_rewind(struct progress *progress, const struct progress_hand *hand);
int __wrap_progress_rewind(struct progress *progress, const struct progress_hand *hand);
void __real_grant_release(struct grant_rank *rank, uint64_t number);
void __wrap_grant_release(struct grant_rank *rank, uint64_t number);

int __wrap_progress_rewind(struct progress *progress, const struct progress_hand *hand)
{
	return host->mutant() == MUTANT_REWIND_LOST ? 0 : __real_progress_rewind(progress, hand);
}

void __wrap_grant_release(struct grant_rank *rank, uint64_t number)
{
	if (host->mutant() != MUTANT_RELEASE_LOST || number % 3)
		__real_grant_release(rank, number);
}

/* ---- where others may run between ---- */

bool __real_grant_peek(const struct grant_rank *rank, struct grant *ret);
bool __wrap_grant_peek(const struct grant_rank *rank, struct grant *ret);
int __real_grant_take(struct grant_rank *rank, struct grant *ret);
int __wrap_grant_take(struct grant_rank *rank, struct grant *ret);
int __real_grant_take_one(struct grant_rank *rank, uint64_t number, struct grant *ret);
int __wrap_grant_take_one(struct grant_rank *rank, uint64_t number, struct grant *ret);
void __real_grant_arm(struct grant_rank *rank);
void __wrap_grant_arm(struct grant_rank *rank);
bool __real_grant_wants_kick(const struct grant_rank *rank);
bool __wrap_grant_wants_kick(const struct grant_rank *rank);
bool __real_grant_wants_sleep(const struct grant_rank *rank);
bool __wrap_grant_wants_sleep(const struct grant_rank *rank);

bool __wrap_grant_peek(const struct grant_rank *rank, struct grant *ret)
{
	const bool is_posted = __real_grant_peek(rank, ret);

	host->pause();
	return is_posted;
}

int __wrap_grant_take(struct grant_rank *rank, struct grant *ret)
{
	const int r = __real_grant_take(rank, ret);

	host->pause();
	return r;
}

int __wrap_grant_take_one(struct grant_rank *rank, uint64_t number, struct grant *ret)
{
	const int r = __real_grant_take_one(rank, number, ret);

	host->pause();
	return r;
}

void __wrap_grant_arm(struct grant_rank *rank)
{
	host->pause();
	__real_grant_arm(rank);
	host->pause();
}

bool __wrap_grant_wants_kick(const struct grant_rank *rank)
{
	bool wants;

	host->pause();
	wants = __real_grant_wants_kick(rank);
	host->pause();
	return wants;
}

bool __wrap_grant_wants_sleep(const struct grant_rank *rank)
{
	bool wants;

	host->pause();
	wants = __real_grant_wants_sleep(rank);
	host->pause();
	return wants;
}

static bool is_owed(const struct oa_stream *stream)
{
	const struct held *held = stream->chunks.now;
	struct grant grant;

	if (!stream->session || stream->trouble.failed || stream->met.explain_ns ||
	    stream->course.is_ranked || (held && held->session != stream->session))
		return false;
	if (held)
		return slot_table_read_watermark(&stream->session->table, held->slot_number) >=
		       held->end;
	return !stream->chunks.aside && __real_grant_peek(&stream->session->rank, &grant) &&
	       slot_table_read_watermark(&stream->session->table, grant.slot) >=
		   grant.first + grant.count;
}

static void hang_up(struct oa_stream *stream)
{
	if (stream->session)
		shutdown(stream->session->sock, SHUT_RDWR);
	if (stream->redial.dial.sock >= 0)
		shutdown(stream->redial.dial.sock, SHUT_RDWR);
}

__attribute__((visibility("default"))) const struct client_calls client_calls = {
    .begin = begin,
    .connect = oa_connect,
    .disconnect = oa_disconnect,
    .open = oa_open,
    .close = oa_close,
    .next = oa_next,
    .release = oa_release,
    .info = oa_batch_info,
    .field = oa_batch_field,
    .state = oa_state,
    .stats = oa_stream_stats,
    .error_text = oa_error_text,
    .is_owed = is_owed,
    .hang_up = hang_up,
};
