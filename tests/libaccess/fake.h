/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A small accessd for the tests of libaccess: one thread, one stream a connection, samples whose
 * bytes are a function of id and nonce. It composes chunks at random from what the token says is
 * needed.
 */

#include <check.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include "base/base.h"
#include "base/wire.h"
#include "libaccess/libaccess.h"
#include "shmring/slot_table.h"
#include "shmring/grant.h"
#include "shmring/proto.h"
#include "tests/patience.h"

/* How it misbehaves at the handshake. */
enum fake_mode {
	FAKE_GOOD = 0,
	FAKE_SILENT,         /* accepts, never answers */
	FAKE_MAJOR,          /* another protocol */
	FAKE_MINOR,          /* a newer minor: keys and messages nobody knows */
	FAKE_OLDER,          /* of the minor version before data sets had names */
	FAKE_REFUSE,         /* REFUSED, OA_E_MEMORY */
	FAKE_GARBAGE,        /* bytes that are no message */
	FAKE_GARBAGE_OPENED, /* the same in place of OPENED */
	FAKE_WRONG_TYPE,     /* WELCOME again in place of OPENED */
	FAKE_FEW_FDS,        /* OPENED with two descriptors */
	FAKE_WRONG_FDS,      /* OPENED with descriptors of /dev/null */
	FAKE_MIXED_FDS,      /* OPENED with slot table and slots exchanged */
	FAKE_BAD_TABLE,      /* a slot table whose numbers contradict each other */
	FAKE_HANG_UP,        /* at HELLO */
	FAKE_HANG_UP_OPEN,   /* at OPEN */
};

struct fake_config {
	uint64_t n;
	uint32_t chunk, slots;
	uint8_t (*status)(uint64_t id); /* NULL: all OK */
	bool drips;                     /* finishes one sample at a time */
	bool shortens;                  /* some chunks are short */
	unsigned revoke;                /* revokes one grant in so many, 0: none */
	uint64_t most_chunks;           /* per connection; then it only listens */
	uint64_t stop_at;               /* finishes only so many samples of each chunk; 0: all */
	/* One chunk in so many, the first included, waits for its middle sample until its job waits though all else
	 * is finished, or for as long as late_stays. 0: none */
	unsigned late;
	bool late_stays;
	enum fake_mode mode;
	bool is_mute; /* never explains */
	/* Answers BAD; arg: of its own. NULL: nobody does. */
	void (*bad)(int sock, const struct wire_in *in, unsigned arg);
	unsigned bad_arg;
	const void *batch_mix; /* of OPENED, borrowed; NULL: none */
	size_t batch_mix_bytes;
	const char *buckets; /* of WELCOME, borrowed; NULL: none */
	uint32_t lie; /* 1: wrong instance, 2: wrong slot, 3: count too large, 4: next epoch early,
			 5: PENDING below the watermark, 6: the same chunk twice */
	uint32_t stage;
	bool is_stopped; /* heartbeat of long ago */
};

struct fake_conn {
	int sock;
	bool has_stream;
	struct slot_table table;
	int table_fd, slots_fd, inbox_fd, outbox_fd;
	uint8_t *slots;
	struct layout_inbox *inbox;
	const struct layout_outbox *outbox;
	struct grant_server grants;
	uint32_t watermark[64], target[64]; /* per slot */
	bool is_late[64];                   /* the target is not all of it */
	unsigned idle;                      /* times that its job waited, and nothing moved */
	uint64_t grant_of[64];              /* number of the grant that uses it, 0: free */
	uint64_t pending;                   /* revoked, end unknown */
	uint64_t instance, chunks, epoch, epochs;
	uint64_t *need;
	int64_t *tail;
	uint32_t n_tail;
};

struct fake {
	struct fake_config config;
	char folder[64], socket[96];
	int listen_fd;
	uint8_t dataset[32];
	uint64_t seed, nonce, random;
	pthread_t thread;
	pthread_mutex_t lock; /* everything below and the connections */
	bool is_stopping, is_gone;
	struct fake_conn conn[16];
	char asked[512]; /* the data set of the last OPEN */
	_Atomic uint64_t opens, kicks, nonsense;
};

/* Starts it in a new folder; NULL config.n is a mistake. */
void fake_start(struct fake *fake, const struct fake_config *config);
/* At a given socket's path, for a program of its own. */
void fake_start_at(struct fake *fake, const struct fake_config *config, const char *socket);
void fake_stop(struct fake *fake);  /* hangs up, removes the folder */
void fake_kill(struct fake *fake);  /* hangs up and leaves the socket there, as kill -9 does */
void fake_again(struct fake *fake); /* a new one at the same place, with another seed */
/* While it does not run: changes of config, messages. */
void fake_lock(struct fake *fake);
void fake_unlock(struct fake *fake);
void fake_say(struct fake *fake, uint16_t type, uint64_t code, const char *text); /* to all */
void fake_hang_up(struct fake *fake);
/* First byte that a sample of an instance has in field "image". */
uint8_t fake_pixel(uint64_t id, uint64_t nonce, unsigned k);
/* Waits until accessd's side knows that no grant is taken; false: not within a minute. */
bool fake_has_no_pins(struct fake *fake);
/* Waits until it has seen the end of every connection. */
void fake_wait_alone(struct fake *fake);
/* Waits until a thread of ours, which noted its number before a call that waits, is in that wait. */
void fake_wait_asleep(const _Atomic pid_t *thread);
/* oa_next() times out with this part in its text: in the end, for what the text speaks of may come a
 * moment later. Batches that come are given back. */
void fake_times_out(struct oa_stream *stream, int timeout_ms, const char *part);

/* ---- what most tests want ---- */
struct oa_client *fake_connect(struct fake *fake);
struct oa_options fake_options(uint32_t batch, uint64_t epochs);
struct oa_stream *fake_open(struct fake *fake, const struct oa_options *options);
/* Checks all of a batch's fields against the ids and a nonce that explains them. */
void fake_check_batch(const struct oa_batch *batch);
