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
#include "python/core/pybatch.h"
#include "python/core/pyguard.h"
#include "python/core/pyoutcome.h"
#include "python/core/pytype.h"

#define PYCALL_PIECE_MS 100

/* ---- life ---- */

void *pycall_open(pycall_open_fn open, void *ask, void (*end)(void *of))
{
	struct oa_error error = {.size = sizeof(error)};
	void *opened;
	int r;

	do {
		Py_BEGIN_ALLOW_THREADS
			r = open(ask, &opened, &error);
		Py_END_ALLOW_THREADS
		if (PyErr_CheckSignals() != 0) {
			if (r == 0)
				end(opened);
			return NULL;
		}
	} while (r == OA_E_INTERRUPTED);
	return r == 0 ? opened : pyoutcome_raise(r, error.text);
}

PyObject *pycall_new(PyTypeObject *type, const struct pycall_kind *kind, void *of, bool is_writable)
{
	struct pycall_object *self = PyObject_New(struct pycall_object, type);

	if (self == NULL) {
		kind->end(of);
		return NULL;
	}
	if (kind->next != NULL)
		pyguard_begin();
	self->kind = kind;
	self->of = of;
	self->calls = 0;
	self->is_closed = false;
	self->is_writable = is_writable;
	return (PyObject *)self;
}

void *pycall_enter(PyObject *object)
{
	struct pycall_object *self = (struct pycall_object *)object;

	if (self->is_closed) {
		PyErr_Format(PyExc_ValueError, "the %s was closed", self->kind->what);
		return NULL;
	}
	self->calls++;
	return self->of;
}

static void pycall_end_unused(struct pycall_object *self)
{
	void *of = self->of;

	if (!self->is_closed || self->calls > 0)
		return;
	self->of = NULL;
	Py_BEGIN_ALLOW_THREADS
		self->kind->end(of);
	Py_END_ALLOW_THREADS
}

void pycall_leave(PyObject *object)
{
	struct pycall_object *self = (struct pycall_object *)object;

	self->calls--;
	pycall_end_unused(self);
}

PyObject *pycall_close(PyObject *object, PyObject *unused)
{
	struct pycall_object *self = (struct pycall_object *)object;

	(void)unused;
	self->is_closed = true;
	pycall_end_unused(self);
	Py_RETURN_NONE;
}

void pycall_dealloc(PyObject *object)
{
	struct pycall_object *self = (struct pycall_object *)object;

	self->kind->end(self->of);
	pytype_free(object);
}

/* ---- batches ---- */

static int64_t pycall_now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int pycall_piece(const struct pycall_object *self, int64_t left_ms, struct oa_batch **ret)
{
	int ms = (int)(left_ms < PYCALL_PIECE_MS ? left_ms : PYCALL_PIECE_MS), r;

	Py_BEGIN_ALLOW_THREADS
		r = self->kind->next(self->of, ms < 0 ? 0 : ms, ret);
	Py_END_ALLOW_THREADS
	return r;
}

/* The outcome within the time, < 0: without end; INT_MIN with an exception, of a signal's handler or as it was closed
 * meanwhile. */
static int pycall_wait(const struct pycall_object *self, int timeout_ms, struct oa_batch **ret)
{
	const int64_t end_ms = timeout_ms < 0 ? INT64_MAX : pycall_now_ms() + timeout_ms;
	int64_t left_ms = timeout_ms < 0 ? PYCALL_PIECE_MS : timeout_ms;

	for (;;) {
		int r = pycall_piece(self, left_ms, ret);

		if (r != OA_E_TIMEOUT && r != OA_E_INTERRUPTED)
			return r;
		if (PyErr_CheckSignals() != 0)
			return INT_MIN;
		if (self->is_closed) {
			PyErr_SetString(PyExc_ValueError, "the stream was closed");
			return INT_MIN;
		}
		left_ms = end_ms - pycall_now_ms();
		if (left_ms <= 0)
			return OA_E_TIMEOUT;
	}
}

/* The library says how long its last piece was; people gave the time for all of them. */
static PyObject *pycall_raise(int code, const char *text, int timeout_ms)
{
	const char *why = strstr(text, ": ");
	char late[1024];

	if (code != OA_E_TIMEOUT || why == NULL)
		return pyoutcome_raise(code, text);
	snprintf(late, sizeof(late), "no batch within %.3g s%s", timeout_ms / 1e3, why);
	return pyoutcome_raise(code, late);
}

PyObject *pycall_next(PyObject *object, PyObject *args)
{
	const struct pycall_object *self = (struct pycall_object *)object;
	PyObject *made = NULL;
	struct oa_batch *batch;
	int timeout_ms = -1, r;

	if (!PyArg_ParseTuple(args, "|i:next", &timeout_ms) || pycall_enter(object) == NULL)
		return NULL;
	r = pycall_wait(self, timeout_ms, &batch);
	if (r == 0)
		made = pybatch_new(batch, self->is_writable);
	else if (r == OA_E_END)
		made = Py_NewRef(Py_None);
	else if (r != INT_MIN)
		pycall_raise(r, self->kind->text(self->of), timeout_ms);
	pycall_leave(object);
	return made;
}

/* ---- where it stands ---- */

PyObject *pycall_state(PyObject *object, pycall_state_fn state_fn, void *of)
{
	const struct pycall_object *self = (struct pycall_object *)object;
	PyObject *token = NULL;
	char *data = NULL;
	size_t size = 0;
	int r;

	do { /* the room that it needs may have changed meanwhile */
		free(data);
		data = size > 0 ? malloc(size) : NULL;
		if (size > 0 && data == NULL)
			return PyErr_NoMemory();
		Py_BEGIN_ALLOW_THREADS
			r = state_fn(of, data, &size);
		Py_END_ALLOW_THREADS
	} while (r == -ENOBUFS);
	if (r == 0)
		token = PyBytes_FromStringAndSize(data, (Py_ssize_t)size);
	else
		pyoutcome_raise(r, self->kind->text(self->of));
	free(data);
	return token;
}
