/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * libaccess as it is, as a module beside accessd in one process: some functions of both have the same names. Clock, chance and
 * sleep are the bottle's.
 */

#include <stdbool.h>
#include <stddef.h>

#include "libaccess/libaccess.h"
#include "tests/daemon/bottle/mutant.h"

struct client_host {
	uint64_t (*now_ns)(void);
	void (*random)(void *ret, size_t size);
	/* Until the descriptor is readable, or it is then. 0, or OA_E_INTERRUPTED */
	int (*wait)(int fd, uint64_t until_ns);
	/* Between two steps of what it does with accessd: another process may run. */
	void (*pause)(void);
	enum mutant (*mutant)(void);
};

struct client_calls {                                  /* what a job has of libaccess.h */
	void (*begin)(const struct client_host *host); /* which lives as long */
	int (*connect)(const char *socket, struct oa_client **ret, struct oa_error *error);
	void (*disconnect)(struct oa_client *client);
	int (*open)(struct oa_client *client, const struct oa_options *options,
		    struct oa_stream **ret, struct oa_error *error);
	void (*close)(struct oa_stream *stream);
	int (*next)(struct oa_stream *stream, int timeout_ms, struct oa_batch **ret);
	void (*release)(struct oa_batch *batch);
	void (*info)(const struct oa_batch *batch, struct oa_batch_info *ret);
	int (*field)(const struct oa_batch *batch, uint32_t index, struct oa_field *ret);
	int (*state)(struct oa_stream *stream, void *data, size_t *size);
	void (*stats)(struct oa_stream *stream, struct oa_stats *ret);
	const char *(*error_text)(const struct oa_stream *stream);
	/* Does a finished chunk wait for it, and nothing else hold it up? */
	bool (*is_owed)(const struct oa_stream *stream);
	/* As the kernel would hang up in the place of who was killed. */
	void (*hang_up)(struct oa_stream *stream);
};

#define CLIENT_CALLS "client_calls" /* the symbol of a struct client_calls */
