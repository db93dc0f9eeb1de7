/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* http_ask() without a network: questions must come as the script says, and get its answers. bucket_option() is real
 * enough. */

#include "bucket/http.h"

struct fake_step {
	const char *method, *url; /* as they must be */
	const char *has;          /* what the body or a header must contain; NULL: anything */
	long status;              /* 0: nobody answers */
	const char *body;
	const char *region;
};
/* Borrowed until fake_end(), which wants all to have been asked. */
void fake_begin(const struct fake_step *steps, size_t n);
void fake_end(void);
#define FAKE_BEGIN(...)                                       \
	const struct fake_step fake_steps_[] = {__VA_ARGS__}; \
	fake_begin(fake_steps_, BASE_ARRAY_LEN(fake_steps_))
