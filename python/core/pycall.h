/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Calls of a stream or a mix that wait or copy: with signals, closes by other threads, and time-outs as people
 * gave them. All with the interpreter's lock, which they give up meanwhile. */

#include <stdbool.h>
#include <stddef.h>
#include "libaccess/libaccess.h"
#include "python/core/py.h"

/* What the library opened, by kind. */
struct pycall_kind {
	const char *what;
	void (*end)(void *of);
	/* NULL, both: there are no calls of it that wait. */
	int (*next)(void *of, int timeout_ms, struct oa_batch **ret);
	const char *(*text)(void *of); /* of the last error */
};

/* Several threads may be in it when one closes it: it goes when the last of them has left, and those that wait do so
 * within a piece. */
struct pycall_object {
	PyObject base;
	const struct pycall_kind *kind;
	void *of;       /* owned; NULL: it is gone */
	unsigned calls; /* under way, some without the interpreter's lock */
	bool is_closed, is_writable;
};

/* Opens it and calls again when a signal's handler raised nothing; end is for what came too late. NULL with an
 * exception, of the outcome, too. */
typedef int (*pycall_open_fn)(void *ask, void **ret, struct oa_error *error);
void *pycall_open(pycall_open_fn open, void *ask, void (*end)(void *of));
/* Owns of from now on; NULL with an exception, and it has ended. is_writable: its batches are. */
PyObject *pycall_new(PyTypeObject *type, const struct pycall_kind *kind, void *of,
		     bool is_writable);
/* What it owns; NULL, with ValueError that names it: it was closed. */
void *pycall_enter(PyObject *object);
void pycall_leave(PyObject *object);

/* Of types: tp_dealloc, and the methods close() and next(timeout_ms=-1). */
void pycall_dealloc(PyObject *object);
PyObject *pycall_close(PyObject *object, PyObject *unused);
PyObject *pycall_next(PyObject *object, PyObject *args);

/* oa_state() or its like. */
typedef int (*pycall_state_fn)(void *of, void *data, size_t *size);

/* The token of what was entered, as bytes; or NULL with an exception. */
PyObject *pycall_state(PyObject *object, pycall_state_fn state_fn, void *of);
