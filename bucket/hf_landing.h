/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Where the Hub sent a reader of a file: a signed URL of its CDN, which is good for an hour. It is asked there again without the
 * Hub, which counts requests (some thousands in five minutes) and refuses more. Any thread.
 */

#include "base/base.h"

struct hf_landings;
int hf_landings_new(struct hf_landings **ret); /* 0, -ENOMEM */
void hf_landings_free(struct hf_landings *landings);
/* A file's, that is used for a few minutes. Where there is no memory, or no room, the Hub is asked again. */
void hf_landings_put(struct hf_landings *landings, const char *name, const char *url);
/* The caller wipes; NULL: there is none, or no memory. */
char *hf_landings_get(struct hf_landings *landings, const char *name);
/* Was there one of it, which nobody was told so far? Then all end: others were made when it was, and who waits to be asked again would
 * find theirs. */
bool hf_landings_drop(struct hf_landings *landings, const char *name);
