/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PYTHON_CORE_PYCALL_H
#define PYTHON_CORE_PYCALL_H

/* Calls of a stream or a mix that wait or copy: with signals, closes by other threads, and time-outs as people
 * gave them. All with the interpreter's lock, which they give up meanwhile. */

#include <stdbool.h>
#include <stddef.h>
#include "libaccess/libaccess.h"
#include "python/core/py.h"

/* What several threads may be in when one closes it: it goes when the last of them has left, and those that wait do so
 * within a piece. */
struct pycall_life {
	unsigned calls; /* under way, some without the interpreter's lock */
	bool is_closed;
};

/* false, with ValueError that names it: it was closed. */
bool pycall_enter(struct pycall_life *life, const char *what);
/* Both say whether it is to go now, by the caller. */
bool pycall_leave(struct pycall_life *life);
bool pycall_close(struct pycall_life *life);

/* oa_next() or oa_mix_next() of `of`. */
typedef int (*pycall_next_fn)(void *of, int timeout_ms, struct oa_batch **ret);
/* oa_state() or its like. */
typedef int (*pycall_state_fn)(void *of, void *data, size_t *size);

/* What next_fn says within the time, < 0: without end; INT_MIN with an exception, of a signal's handler or as it was
 * closed meanwhile. */
int pycall_next(pycall_next_fn next_fn, void *of, int timeout_ms, const struct pycall_life *life,
		struct oa_batch **ret);
/* Raises what a code other than INT_MIN says, with the library's text. The library says how long its last piece
 * was; people gave the time for all of them. Returns NULL. */
PyObject *pycall_raise(int code, const char *text, int timeout_ms);
/* The token as bytes; or NULL with *ret_code: 0 where an exception is set. */
PyObject *pycall_state(pycall_state_fn state_fn, void *of, int *ret_code);

#endif
