/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A signal's handler runs at once: the library leaves its wait when one came, and further waits are
 * cut into pieces, as it may be another thread that the kernel has told.
 */

#include "python/core/pycall.h"

#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "python/core/pyoutcome.h"

#define PYCALL_PIECE_MS 100

bool pycall_enter(struct pycall_life *life, const char *what)
{
	if (life->is_closed) {
		PyErr_Format(PyExc_ValueError, "the %s was closed", what);
		return false;
	}
	life->calls++;
	return true;
}

bool pycall_leave(struct pycall_life *life)
{
	life->calls--;
	return life->is_closed && life->calls == 0;
}

bool pycall_close(struct pycall_life *life)
{
	life->is_closed = true;
	return life->calls == 0;
}

static int64_t pycall_now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int pycall_piece(pycall_next_fn next_fn, void *of, int64_t left_ms, struct oa_batch **ret)
{
	int ms = (int)(left_ms < PYCALL_PIECE_MS ? left_ms : PYCALL_PIECE_MS), r;

	Py_BEGIN_ALLOW_THREADS
		r = next_fn(of, ms < 0 ? 0 : ms, ret);
	Py_END_ALLOW_THREADS
	return r;
}

int pycall_next(pycall_next_fn next_fn, void *of, int timeout_ms, const struct pycall_life *life,
		struct oa_batch **ret)
{
	const int64_t end_ms = timeout_ms < 0 ? INT64_MAX : pycall_now_ms() + timeout_ms;
	int64_t left_ms = timeout_ms < 0 ? PYCALL_PIECE_MS : timeout_ms;

	for (;;) {
		int r = pycall_piece(next_fn, of, left_ms, ret);

		if (r != OA_E_TIMEOUT && r != OA_E_INTERRUPTED)
			return r;
		if (PyErr_CheckSignals() != 0)
			return INT_MIN;
		if (life->is_closed) {
			PyErr_SetString(PyExc_ValueError, "the stream was closed");
			return INT_MIN;
		}
		left_ms = end_ms - pycall_now_ms();
		if (left_ms <= 0)
			return OA_E_TIMEOUT;
	}
}

PyObject *pycall_raise(int code, const char *text, int timeout_ms)
{
	const char *why = strstr(text, ": ");
	char late[1024];

	if (code != OA_E_TIMEOUT || why == NULL)
		return pyoutcome_raise(code, text);
	snprintf(late, sizeof(late), "no batch within %.3g s%s", timeout_ms / 1e3, why);
	return pyoutcome_raise(code, late);
}

PyObject *pycall_state(pycall_state_fn state_fn, void *of, int *ret_code)
{
	PyObject *token = NULL;
	char *data = NULL;
	size_t size = 0;
	int r;

	do { /* the room that it needs may have changed meanwhile */
		free(data);
		data = size > 0 ? malloc(size) : NULL;
		*ret_code = 0;
		if (size > 0 && data == NULL)
			return PyErr_NoMemory();
		Py_BEGIN_ALLOW_THREADS
			r = state_fn(of, data, &size);
		Py_END_ALLOW_THREADS
	} while (r == -ENOBUFS);
	*ret_code = r;
	if (r == 0)
		token = PyBytes_FromStringAndSize(data, (Py_ssize_t)size);
	free(data);
	return token;
}
