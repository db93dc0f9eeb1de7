/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A stream: what oa_open(), oa_next(), oa_state() and their like do, with exceptions for outcomes.
 * The interpreter's lock is given up in every call that may wait or copy (pycall.h).
 */

#include "python/core/pystream.h"

#include <limits.h>
#include <stdbool.h>
#include <string.h>
#include "python/core/pybatch.h"
#include "python/core/pycall.h"
#include "python/core/pyclient.h"
#include "python/core/pyguard.h"
#include "python/core/pyoutcome.h"
#include "python/core/pyrequest.h"
#include "python/core/pytype.h"

struct pystream {
	PyObject base;
	struct oa_stream *stream;
	struct pycall_life life;
	bool is_writable;
};

static PyTypeObject *pystream_type;

/* ---- opening ---- */

/* 0, or -1 with an exception. */
static int pystream_open(struct oa_client *client, const struct oa_options *options,
			 struct oa_stream **ret)
{
	struct oa_error error = {.size = sizeof(error)};
	int r;

	do {
		Py_BEGIN_ALLOW_THREADS
			r = oa_open(client, options, ret, &error);
		Py_END_ALLOW_THREADS
		if (PyErr_CheckSignals() != 0) {
			if (r == 0)
				oa_close(*ret);
			return -1;
		}
	} while (r == OA_E_INTERRUPTED);
	if (r == 0)
		return 0;
	pyoutcome_raise(r, error.text);
	return -1;
}

static struct oa_stream *pystream_make(PyObject *args, PyObject *kwargs, bool *ret_is_writable)
{
	struct oa_client *client = NULL;
	struct oa_stream *stream = NULL;
	struct pyrequest request;
	PyObject *object;

	if (!PyArg_ParseTuple(args, "O:Stream", &object))
		return NULL;
	if (pyrequest_init(&request, kwargs) == 0)
		client = pyclient_of(object);
	if (client != NULL && pystream_open(client, &request.options, &stream) != 0)
		stream = NULL;
	*ret_is_writable = request.options.flags & OA_COPY;
	pyrequest_fini(&request);
	return stream;
}

static PyObject *pystream_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	bool is_writable;
	struct oa_stream *stream = pystream_make(args, kwargs, &is_writable);
	struct pystream *self;

	if (stream == NULL)
		return NULL;
	self = PyObject_New(struct pystream, type);
	if (self == NULL) {
		oa_close(stream);
		return NULL;
	}
	pyguard_begin();
	self->stream = stream;
	self->life = (struct pycall_life){0};
	self->is_writable = is_writable;
	return (PyObject *)self;
}

/* ---- calls, and the end ---- */

/* NULL, with ValueError, when it was closed. */
static struct oa_stream *pystream_enter(PyObject *object)
{
	struct pystream *self = (struct pystream *)object;

	return pycall_enter(&self->life, "stream") ? self->stream : NULL;
}

static void pystream_end(struct pystream *self)
{
	struct oa_stream *stream = self->stream;

	self->stream = NULL;
	Py_BEGIN_ALLOW_THREADS
		oa_close(stream);
	Py_END_ALLOW_THREADS
}

static void pystream_leave(PyObject *object)
{
	struct pystream *self = (struct pystream *)object;

	if (pycall_leave(&self->life))
		pystream_end(self);
}

static PyObject *pystream_close(PyObject *object, PyObject *unused)
{
	struct pystream *self = (struct pystream *)object;

	(void)unused;
	if (pycall_close(&self->life))
		pystream_end(self);
	Py_RETURN_NONE;
}

static void pystream_dealloc(PyObject *object)
{

	oa_close(((struct pystream *)object)->stream);
	pytype_free(object);
}

/* ---- batches ---- */

static int pystream_call(void *stream, int timeout_ms, struct oa_batch **ret)
{
	return oa_next(stream, timeout_ms, ret);
}

static PyObject *pystream_next(PyObject *object, PyObject *args)
{
	struct pystream *self = (struct pystream *)object;
	PyObject *made = NULL;
	struct oa_batch *batch;
	int timeout_ms = -1, r;

	if (!PyArg_ParseTuple(args, "|i:next", &timeout_ms) || pystream_enter(object) == NULL)
		return NULL;
	r = pycall_next(pystream_call, self->stream, timeout_ms, &self->life, &batch);
	if (r == 0)
		made = pybatch_new(batch, self->is_writable);
	else if (r == OA_E_END)
		made = Py_NewRef(Py_None);
	else if (r != INT_MIN)
		pycall_raise(r, oa_error_text(self->stream), timeout_ms);
	pystream_leave(object);
	return made;
}

/* ---- where it stands ---- */

/* Whose token: epoch NULL: as it stands, else of that epoch's beginning. */
struct pystream_place {
	struct oa_stream *stream;
	const uint64_t *epoch;
};

static int pystream_token(void *of, void *data, size_t *size)
{
	const struct pystream_place *place = of;

	return place->epoch != NULL ? oa_state_epoch(place->stream, *place->epoch, data, size)
				    : oa_state(place->stream, data, size);
}

static PyObject *pystream_save(struct oa_stream *stream, const uint64_t *epoch)
{
	struct pystream_place place = {stream, epoch};
	int code;
	PyObject *token = pycall_state(pystream_token, &place, &code);

	if (code != 0)
		pyoutcome_raise(code, oa_error_text(stream));
	return token;
}

static PyObject *pystream_state(PyObject *object, PyObject *args)
{
	struct oa_stream *stream;
	unsigned long long number = 0;
	uint64_t epoch;
	PyObject *token;

	if (!PyArg_ParseTuple(args, "|K:state", &number))
		return NULL;
	stream = pystream_enter(object);
	if (stream == NULL)
		return NULL;
	epoch = number;
	token = pystream_save(stream, PyTuple_Size(args) > 0 ? &epoch : NULL);
	pystream_leave(object);
	return token;
}

static PyObject *pystream_stats(PyObject *object, PyObject *unused)
{
	struct oa_stream *stream = pystream_enter(object);
	struct oa_stats stats = {.size = sizeof(stats)};

	(void)unused;
	if (stream == NULL)
		return NULL;
	oa_stream_stats(stream, &stats);
	pystream_leave(object);
	return Py_BuildValue(
	    "{sKsKsKsKsKsKsKsKsKsKsIsIsIsKsKsKsKsKsKsKsKss}", "samples", stats.samples, "batches",
	    stats.batches, "epochs", stats.epochs, "skipped", stats.skipped, "substituted",
	    stats.substituted, "copied", stats.copied, "wait_ns", stats.wait_ns, "ready_count",
	    stats.ready_count, "ready_ns_total", stats.ready_ns_total, "reconnects",
	    stats.reconnects, "pins", stats.pins, "chunk", stats.chunk, "grain", stats.grain,
	    "n_samples", stats.n_samples, "epoch", stats.epoch, "outstanding", stats.outstanding,
	    "filtered", stats.filtered, "batch_mixed", stats.batch_mixed, "batch_mixed_ns",
	    stats.batch_mixed_ns, "kept", stats.kept, "written", stats.written, "shares",
	    stats.shares);
}

/* ---- bad samples ---- */

/* Files' names need not be text: as Python reads them. */
static PyObject *pystream_bad_tuple(const struct oa_bad_sample *sample)
{
	return Py_BuildValue(
	    "(LNsN)", (long long)sample->id, PyUnicode_DecodeFSDefault(sample->name), sample->stage,
	    PyUnicode_DecodeUTF8(sample->error, (Py_ssize_t)strlen(sample->error), "replace"));
}

static PyObject *pystream_bad_list(const struct oa_bad_list *list)
{
	uint64_t n = oa_bad_samples_count(list);
	PyObject *all = PyList_New((Py_ssize_t)n);

	for (uint64_t i = 0; all != NULL && i < n; i++) {
		struct oa_bad_sample sample = {.size = sizeof(sample)};
		PyObject *one;

		oa_bad_samples_at(list, i, &sample);
		one = pystream_bad_tuple(&sample);
		if (one == NULL || PyList_SetItem(all, (Py_ssize_t)i, one) != 0)
			Py_CLEAR(all);
	}
	return all;
}

static PyObject *pystream_bad_samples(PyObject *object, PyObject *args)
{
	struct oa_bad_list *list = NULL;
	struct oa_stream *stream;
	PyObject *all = NULL;
	int timeout_ms = 0, r;

	if (!PyArg_ParseTuple(args, "|i:bad_samples", &timeout_ms))
		return NULL;
	stream = pystream_enter(object);
	if (stream == NULL)
		return NULL;
	do {
		Py_BEGIN_ALLOW_THREADS
			r = oa_bad_samples(stream, timeout_ms, &list);
		Py_END_ALLOW_THREADS
	} while (r == OA_E_INTERRUPTED && PyErr_CheckSignals() == 0);
	if (r == 0)
		all = pystream_bad_list(list);
	else if (!PyErr_Occurred())
		pyoutcome_raise(r, oa_error_text(stream));
	oa_bad_samples_free(list);
	pystream_leave(object);
	return all;
}

static PyMethodDef pystream_methods[] = {
    {"next", pystream_next, METH_VARARGS,
     "next(timeout_ms=-1): the next Batch; None at the end of all epochs."},
    {"state", pystream_state, METH_VARARGS,
     "state(): the resume token; state(epoch): the one of that epoch's beginning."},
    {"bad_samples", pystream_bad_samples, METH_VARARGS,
     "bad_samples(timeout_ms=0): oa_bad_samples(3) as a list of (id, name, stage, error)."},
    {"stats", pystream_stats, METH_NOARGS, "oa_stream_stats(3) as a dict."},
    {"close", pystream_close, METH_NOARGS,
     "Gives the stream back; batches that are held stay valid."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot pystream_slots[] = {
    {Py_tp_doc, "Stream(client, *, dataset, pipeline, batch, ...): oa_open(3)."},
    {Py_tp_new, pystream_new},
    {Py_tp_dealloc, pystream_dealloc},
    {Py_tp_methods, pystream_methods},
    {0, NULL},
};

static PyType_Spec pystream_spec = {
    .name = "oneaccess._core.Stream",
    .basicsize = sizeof(struct pystream),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = pystream_slots,
};

int pystream_add_type(PyObject *module)
{
	return pytype_add(module, &pystream_spec, "Stream", &pystream_type);
}
