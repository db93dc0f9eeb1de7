/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The status of accessd as metrics, by the table metric_tbl.h. Arithmetic and text alone. */

#include <stdio.h>
#include "base/json.h"

#define METRIC_MOST 2000      /* of one kind: jobs, streams ...; others are left out and counted */
#define METRIC_LABEL_MOST 200 /* bytes of a label's value */

enum metric_format {
	METRIC_PLAIN, /* Prometheus' text format 0.0.4 */
	METRIC_OPEN,  /* OpenMetrics 1.0.0 */
};
const char *metric_content_type(enum metric_format format);
/* What an Accept header (NULL: none) asks for. */
enum metric_format metric_format_of(const char *accept);

/* status NULL: there is none, as accessd does not answer. */
void metric_page(const struct json_in *status, enum metric_format format, FILE *out);
/* A line for each, with tabs: name as Prometheus has it, kind, unit, labels, meaning. */
void metric_list(FILE *out);

/* A value of the status, by a path of names with dots; NULL: it is not there. */
const struct json_in *metric_find(const struct json_in *object, const char *path);

/* The status of accessd as a page for a browser: one text, without a script or anything from elsewhere. */

/* status NULL: accessd does not answer; why says so. */
void page_write(const struct json_in *status, const char *why, FILE *out);
