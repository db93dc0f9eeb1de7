/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DAEMON_REQUEST_H
#define DAEMON_REQUEST_H

/*
 * What a client's OPEN asks for, checked. The one place where an OPEN's bytes become numbers,
 * texts and a compiled pipeline; nothing after it looks at the message.
 */

#include "base/base.h"
#include "base/wire.h"
#include "pipeline/pipeline.h"
#include "sched/population.h"
#include "shmring/proto.h"

#define REQUEST_NAME_MAX 256
#define REQUEST_NONCE 16
#define REQUEST_FORM_MAX 24
#define REQUEST_MOST_REUSE 100
#define REQUEST_PATH_TEXT "the dataset's path must be absolute and at most %d bytes long"

struct request {
	char *dataset, *job, *program;
	uint64_t minor;            /* of the client's protocol */
	struct pipeline *pipeline; /* compiled; NULL once a stream took it */
	struct hash_id asked;      /* of all of the pipeline that was asked for */
	struct pipeline_batch mingle;
	bool has_sifted; /* the part is without the classes that the pipeline leaves out */
	uint32_t batch, hand, ranks, rank;
	uint32_t order; /* enum plan_order; 0: none was asked for, and there is no token */
	uint64_t seed;  /* of a fixed plan */
	uint64_t epochs, budget;
	bool has_budget;
	char keep[REQUEST_FORM_MAX]; /* form to be kept of all samples, or "auto"; "": none */
	enum proto_policy policy;
	uint8_t *token;
	size_t token_size;
	int part_fd; /* owned; bitmap of the samples asked for, unchecked; -1: all */
	uint8_t part_version[32];
	uint64_t part_sum;             /* checksum of the bitmap, by group.c; 0: all */
	struct population_split split; /* which the part is said to be; 0, 0: none */
	uint32_t reuse;
	bool is_exact; /* a hand's samples must be those of its lap */
	int log_fd;    /* owned; of a plan log that the job goes on with, or -1 */
};

/* Fills a request of request_init() (program may be set: a job without a name is called so). 0, or the code
 * to refuse with (enum oa_error_code) and diag; in both cases the caller ends it by request_fini().
 */
void request_init(struct request *request);
int request_parse(struct request *request, struct wire_in *in, const uint8_t nonce[REQUEST_NONCE],
		  struct diag *diag);
void request_fini(struct request *request);
/* Compiles in's pipeline. 0, OA_E_PIPELINE, OA_E_VERSION with diag. */
int request_compile(struct request *request, const struct wire_in *in, struct diag *diag);
/* A copy of in's text under key, at most `most` bytes long; NULL otherwise. */
char *request_text(const struct wire_in *in, uint16_t key, size_t most);

#endif
