/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Outcomes with their text, on the way from where they are found to the caller's struct
 * oa_error. */

#include "base/base.h"
#include "libaccess/libaccess.h"

#define ERROR_FORKED_TEXT                                                                        \
	"this handle was opened in another process, before a fork: open it in the process that " \
	"uses "                                                                                  \
	"it (with PyTorch's DataLoader: num_workers=0)"

/* What cannot be, of what the caller wrote; returns OA_E_INVALID. */
#define error_open(diag, ...) diag_fail(diag, OA_E_INVALID, "oa_open(): " __VA_ARGS__)
#define error_mix(diag, ...) diag_fail(diag, OA_E_INVALID, "oa_mix_open(): " __VA_ARGS__)
/* For a negative errno: limits of this process become OA_E_LIMIT with the limit's name and value;
 * the rest is returned as it is with "what: strerror" as text. */
BASE_COLD int error_of_errno(struct diag *diag, int negative_errno, const char *what);
/* RLIMIT_NOFILE is too low for `what`. */
int error_of_files(struct diag *diag, const char *what);
/* Copies what the caller's version of a struct has of ours, which has `bytes`; the rest of ours is zero. What the
 * caller's has beyond ours must be zero: OA_E_VERSION. what: "function(): member". */
int error_read(void *ret, size_t bytes, const void *from, size_t from_bytes, const char *what,
	       struct diag *diag);
/* Hands code and text to a caller, within the size it says it has. NULL is fine. Returns code. */
int error_export(struct oa_error *error, int code, const char *text);
