/* SPDX-License-Identifier: Apache-2.0 */
#ifndef EXPORTER_PAGE_H
#define EXPORTER_PAGE_H

/* The status of accessd as a page for a browser: one text, without a script or anything from elsewhere. */

#include <stdio.h>
#include "base/json.h"

/* status NULL: accessd does not answer; why says so. */
void page_write(const struct json_in *status, const char *why, FILE *out);

#endif
