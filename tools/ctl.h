/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* access-ctl: asks a running accessd and shows its answer; never starts one. */

#include <stdio.h>
#include "base/json.h"

enum { CTL_E_NONE = 1 };

/* ctl_find.c */
/* The socket of the accessd that libaccess would use: named, else $ACCESS_SOCKET, the system's,
 * this user's private one; the first that somebody listens at. 0, or CTL_E_NONE with a diag that
 * says where was looked. */
int ctl_find(const char *named, char *ret, size_t size, struct diag *diag);

/* ctl_state.c: jobs and what they wait for */
void ctl_draw_state(const struct json_in *status,
		    FILE *out); /* a sentence: the state of the node */
void ctl_draw_waits(const struct json_in *status,
		    FILE *out); /* a line for each job, and what helps */
void ctl_draw_jobs(const struct json_in *status, FILE *out); /* and how far they are */
/* For explain: how much of its time the job waits, for what, and what helps. */
void ctl_explain_waits(const struct json_in *status, const struct json_in *job, FILE *out);

/* ctl_draw.c: parts of the status, for people */
void ctl_draw_node(const struct json_in *status, FILE *out);
void ctl_draw_stream_list(const struct json_in *status, FILE *out); /* a line for each */
void ctl_draw_streams(const struct json_in *status, FILE *out);     /* all of them */
void ctl_draw_workers(const struct json_in *status, FILE *out);
void ctl_draw_tenants(const struct json_in *status, FILE *out);

/* ctl_datasets.c: named data sets */
void ctl_draw_datasets(const struct json_in *status, FILE *out);
int ctl_datasets_json(const struct json_in *status, const char *operand, FILE *out,
		      struct diag *diag);

/* ctl_peers.c: the other nodes */
void ctl_draw_peers(const struct json_in *status, FILE *out);

/* ctl_jobs.c: jobs and streams of the status */
/* Is the job called so, by its number or its name? */
bool ctl_is_job(const struct json_in *job, const char *who);
/* The job's stream; NULL: it is not there. */
const struct json_in *ctl_stream_of(const struct json_in *status, const struct json_in *job);
/* Sets diag; CTL_E_NONE. */
int ctl_no_job(const struct json_in *status, const char *who, struct diag *diag);

/* ctl_explain.c */
/* Of the jobs of that number, name or data set: what limits each, what would help, and why its samples are kept as they
 * are. 0, or CTL_E_NONE: there is no such job. */
int ctl_explain(const struct json_in *status, const char *who, FILE *out, struct diag *diag);
/* The first two of them as JSON, an array; a line. */
int ctl_explain_json(const struct json_in *status, const char *who, FILE *out, struct diag *diag);

/* access-ctl convert: finds access-convert and becomes it. Asks no accessd. */

struct ctl_convert {
	unsigned form;        /* of --form: auto, packed, indexed, file; others are refused */
	uint64_t jobs;        /* 0: as many as there are processors */
	uint64_t shard_bytes; /* 0: one tar for all */
	bool force, check;
};

/* words: SOURCE TARGET, or TARGET with check. Returns only when it cannot: an exit status, diag says why. */
int ctl_convert_run(const struct ctl_convert *config, char **words, unsigned n, struct diag *diag);

/* access-ctl plan: recorded plans, for people and for other programs. Asks no accessd. */

enum { CTL_PLAN_CSV, CTL_PLAN_JSON, CTL_PLAN_PLAN };

struct ctl_plan {
	unsigned format;
	const char *output; /* NULL: standard output */
};

/* words: "show FILE" or "export FILE...". Returns the exit status; diag says what went wrong. */
int ctl_plan_run(const struct ctl_plan *config, char **words, unsigned n, struct diag *diag);
