/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a client's OPEN asks for, checked. The one place where an OPEN's bytes become numbers,
 * texts and a compiled pipeline; nothing after it looks at the message.
 */

#include "base/wire.h"
#include "daemon/net/message.h"
#include "pipeline/pipeline.h"
#include "plan/population.h"
#include "plan/ranks/spread.h"

#define REQUEST_NAME_MAX 256
#define REQUEST_MOST_REUSE 100
#define REQUEST_PATH_TEXT "the dataset's path must be absolute, or name:NAME"

struct request_token {
	uint8_t *data; /* NULL: none */
	size_t size;
};

struct request_part { /* the samples asked for */
	int fd;       /* owned; their bitmap, unchecked; -1: all */
	uint8_t version[MESSAGE_VERSION];
	uint64_t sum;                  /* checksum of the bitmap, by prepare.c; 0: all */
	struct population_split split; /* which it is said to be; 0, 0: none */
};

struct request {
	char *dataset, *job, *program;
	uint64_t minor;            /* of the client's protocol */
	struct pipeline *pipeline; /* compiled; NULL once a stream took it */
	struct hash_id asked;      /* of all of the pipeline that was asked for */
	struct pipeline_batch batch_mix;
	bool has_filtered; /* the part is without the classes that the pipeline leaves out */
	uint32_t batch, chunk, ranks, rank;
	struct slice slice; /* where ranks are on other nodes, too; else whole */
	uint32_t order;     /* enum plan_order; 0: none was asked for, and there is no token */
	uint64_t seed;      /* of a fixed plan */
	uint64_t epochs, budget;
	bool has_budget;
	char keep[MESSAGE_FORM_MAX + 1]; /* form to be kept of all samples, or "auto"; "": none */
	enum proto_policy policy;
	struct request_token token;
	struct request_part part;
	uint32_t reuse;
	bool is_exact; /* a chunk's samples must be those of its nonce */
	int log_fd;    /* owned; of a plan log that the job goes on with, or -1 */
};

/* Fills a request of request_init() (program may be set: a job without a name is called so); takes
 * descriptors from in. 0, or the code to refuse with (enum oa_error_code) and diag; in both cases the
 * caller ends it by request_fini(). */
void request_init(struct request *request);
int request_parse(struct request *request, const struct message_open *open, struct wire_in *in,
		  const uint8_t nonce[MESSAGE_NONCE], struct diag *diag);
void request_fini(struct request *request);
/* Bad samples that the job tolerates of so many: its own word, or the larger of 10 and 1 %. */
uint64_t request_budget(const struct request *request, uint64_t n_samples);
/* Compiles a DESCRIBE's pipeline. 0, OA_E_PIPELINE with diag. */
int request_compile(struct request *request, const char *text, struct diag *diag);
/* Is it an absolute path, or the name of a named data set? */
bool request_is_dataset(const char *text);
/* A copy of a name, cut to its most; NULL for NULL. */
char *request_name(const char *name);
