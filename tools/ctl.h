/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOLS_CTL_H
#define TOOLS_CTL_H

/* access-ctl: asks a running accessd and shows its answer; never starts one. */

#include <stdio.h>
#include "base/base.h"
#include "base/json.h"

enum { CTL_E_NONE = 1 };

/* ctl_find.c */
/* The socket of the accessd that libaccess would use: named, else $ACCESS_SOCKET, the system's,
 * this user's private one; the first that somebody listens at. 0, or CTL_E_NONE with a diag that
 * says where was looked. */
int ctl_find(const char *named, char *ret, size_t size, struct diag *diag);

/* ctl_draw.c: parts of the status, for people */
void ctl_draw_node(const struct json_in *status, FILE *out);
void ctl_draw_jobs(const struct json_in *status, FILE *out);
void ctl_draw_streams(const struct json_in *status, FILE *out);
void ctl_draw_workers(const struct json_in *status, FILE *out);
void ctl_draw_tenants(const struct json_in *status, FILE *out); /* nothing when there are none */

/* ctl_jobs.c: jobs and streams of the status */
/* Is the job called so, by its number or its name? */
bool ctl_is_job(const struct json_in *job, const char *who);
/* The job's stream; NULL: it is not there. */
const struct json_in *ctl_stream_of(const struct json_in *status, const struct json_in *job);
/* Sets diag; CTL_E_NONE. */
int ctl_no_job(const struct json_in *status, const char *who, struct diag *diag);

/* ctl_explain.c */
/* Why samples of the jobs of that number or name are kept as they are. 0, or CTL_E_NONE: there is no such
 * job. */
int ctl_explain(const struct json_in *status, const char *who, FILE *out, struct diag *diag);

#endif
