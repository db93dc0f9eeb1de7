/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A stream: what oa_open(), oa_next(), oa_state() and their like do, with exceptions for outcomes.
 * The interpreter's lock is given up in every call that may wait or copy (pycall.h).
 */

#include <stdbool.h>
#include <string.h>
#include "python/core/pycall.h"
#include "python/core/pyclient.h"
#include "python/core/pynames.h"
#include "python/core/pyoutcome.h"
#include "python/core/pyrequest.h"
#include "python/core/pytype.h"

static PyTypeObject *pystream_type;

/* ---- opening ---- */

struct pystream_ask {
	struct oa_client *client;
	struct pyrequest request;
};

static int pystream_open(void *asked, void **ret, struct oa_error *error)
{
	const struct pystream_ask *ask = asked;
	struct oa_stream *stream = NULL;
	int r = oa_open(ask->client, &ask->request.options, &stream, error);

	*ret = stream;
	return r;
}

static void pystream_end(void *stream)
{
	oa_close(stream);
}

static int pystream_next(void *stream, int timeout_ms, struct oa_batch **ret)
{
	return oa_next(stream, timeout_ms, ret);
}

static const char *pystream_text(void *stream)
{
	return oa_error_text(stream);
}

static const struct pycall_kind pystream_kind = {"stream", pystream_end, pystream_next,
						 pystream_text};

static PyObject *pystream_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	struct pystream_ask ask = {.client = NULL};
	void *stream = NULL;
	bool is_writable;
	PyObject *object;

	if (!PyArg_ParseTuple(args, "O:Stream", &object))
		return NULL;
	if (pyrequest_init(&ask.request, kwargs) == 0)
		ask.client = pyclient_of(object);
	if (ask.client != NULL)
		stream = pycall_open(pystream_open, &ask, pystream_end);
	is_writable = ask.request.options.flags & OA_COPY;
	pyrequest_fini(&ask.request);
	return stream == NULL ? NULL : pycall_new(type, &pystream_kind, stream, is_writable);
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

static PyObject *pystream_state(PyObject *object, PyObject *args)
{
	struct pystream_place place = {NULL, NULL};
	unsigned long long number = 0;
	uint64_t epoch;
	PyObject *token;

	if (!PyArg_ParseTuple(args, "|K:state", &number))
		return NULL;
	place.stream = pycall_enter(object);
	if (place.stream == NULL)
		return NULL;
	epoch = number;
	if (PyTuple_Size(args) > 0)
		place.epoch = &epoch;
	token = pycall_state(object, pystream_token, &place);
	pycall_leave(object);
	return token;
}

static PyObject *pystream_stats(PyObject *object, PyObject *unused)
{
	struct oa_stream *stream = pycall_enter(object);
	struct oa_stats stats = {.size = sizeof(stats)};

	(void)unused;
	if (stream == NULL)
		return NULL;
	oa_stream_stats(stream, &stats);
	pycall_leave(object);
	return Py_BuildValue(
	    "{sKsKsKsKsKsKsKsKsKsKsIsIsIsKsKsKsKsKsKsKsKsKss}", "samples", stats.samples, "batches",
	    stats.batches, "epochs", stats.epochs, "skipped", stats.skipped, "substituted",
	    stats.substituted, "copied", stats.copied, "wait_ns", stats.wait_ns, "ready_count",
	    stats.ready_count, "ready_ns_total", stats.ready_ns_total, "reconnects",
	    stats.reconnects, "pins", stats.pins, "chunk", stats.chunk, "block", stats.block,
	    "n_samples", stats.n_samples, "epoch", stats.epoch, "outstanding", stats.outstanding,
	    "filtered", stats.filtered, "batch_mixed", stats.batch_mixed, "batch_mixed_ns",
	    stats.batch_mixed_ns, "kept", stats.kept, "written", stats.written, "late_ns",
	    stats.late_ns, "shares", stats.shares);
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
	stream = pycall_enter(object);
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
	pycall_leave(object);
	return all;
}

static int pystream_ask_names(void *stream, const struct pynames_ask *ask, char ***ret)
{
	return oa_sample_names(stream, ask->ids, ask->count, ask->timeout_ms, ret);
}

static PyObject *pystream_names(PyObject *object, PyObject *args)
{
	struct pynames_ask ask = {.timeout_ms = 0};
	Py_buffer ids;

	if (!PyArg_ParseTuple(args, "y*|i:names", &ids, &ask.timeout_ms))
		return NULL;
	return pynames_call(object, &ask, &ids, pystream_ask_names);
}

static PyMethodDef pystream_methods[] = {
    {"next", pycall_next, METH_VARARGS,
     "next(timeout_ms=-1): the next Batch; None at the end of all epochs."},
    {"state", pystream_state, METH_VARARGS,
     "state(): the resume token; state(epoch): the one of that epoch's beginning."},
    {"bad_samples", pystream_bad_samples, METH_VARARGS,
     "bad_samples(timeout_ms=0): oa_bad_samples(3) as a list of (id, name, stage, error)."},
    {"names", pystream_names, METH_VARARGS,
     "names(ids, timeout_ms=0): oa_sample_names(3) as a list; ids: memory of int64."},
    {"stats", pystream_stats, METH_NOARGS, "oa_stream_stats(3) as a dict."},
    {"close", pycall_close, METH_NOARGS,
     "Gives the stream back; batches that are held stay valid."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot pystream_slots[] = {
    {Py_tp_doc, "Stream(client, *, dataset, pipeline, batch, ...): oa_open(3)."},
    {Py_tp_new, pystream_new},
    {Py_tp_dealloc, pycall_dealloc},
    {Py_tp_methods, pystream_methods},
    {0, NULL},
};

int pystream_add_type(PyObject *module)
{
	return pytype_add(module, "oneaccess._core.Stream", sizeof(struct pycall_object),
			  pystream_slots, &pystream_type);
}
