/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A slot's memory, mapped a second time.
 *
 * A device that has memory registered reads the pages that were there then. libaccess unmaps slots when
 * their session ends, in whatever call that is, and something else may be mapped there next: a
 * registration of its mapping would be of pages that no longer stand behind the address. So what is
 * registered is a mapping of our own, which only we end, after the device has let go of it. mremap()
 * with an old size of 0 makes it, without a descriptor; it is read-only as the first one is.
 *
 * The twin says nothing of pins: whoever reads through it holds a batch that lies in it. Forked
 * children have none, since what a device has registered must not be copied.
 */

#include <stdint.h>
#include <sys/mman.h>
#include "python/core/pybatch.h"
#include "python/core/pytype.h"

struct pytwin {
	PyObject base;
	void *map; /* NULL: closed */
	const void *slot;
	size_t bytes;
};

static PyTypeObject *pytwin_type;

/* NULL, with errno. */
static void *pytwin_map(const void *slot, size_t bytes)
{
	void *map = mremap((void *)(uintptr_t)slot, 0, bytes, MREMAP_MAYMOVE);

	if (map == MAP_FAILED)
		return NULL;
	if (madvise(map, bytes, MADV_DONTFORK) == 0)
		return map;
	munmap(map, bytes);
	return NULL;
}

static PyObject *pytwin_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	static char *names[] = {"batch", NULL};
	struct pytwin *self;
	PyObject *batch;
	const void *slot;
	size_t bytes;
	void *map;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O:Twin", names, &batch) ||
	    !pybatch_slot(batch, &slot, &bytes))
		return NULL;
	map = pytwin_map(slot, bytes);
	if (map == NULL)
		return PyErr_SetFromErrno(PyExc_OSError);
	self = PyObject_New(struct pytwin, type);
	if (self == NULL) {
		munmap(map, bytes);
		return NULL;
	}
	self->map = map;
	self->slot = slot;
	self->bytes = bytes;
	return (PyObject *)self;
}

static void pytwin_end(struct pytwin *self)
{
	if (self->map != NULL)
		munmap(self->map, self->bytes);
	self->map = NULL;
}

static void pytwin_dealloc(PyObject *object)
{
	pytwin_end((struct pytwin *)object);
	pytype_free(object);
}

static PyObject *pytwin_close(PyObject *object, PyObject *unused)
{
	(void)unused;
	pytwin_end((struct pytwin *)object);
	Py_RETURN_NONE;
}

/* Where a field begins in the twin; None: it lies elsewhere. */
static PyObject *pytwin_place(const struct pytwin *self, const struct oa_field *field)
{
	const uintptr_t at = (uintptr_t)field->data - (uintptr_t)self->slot;

	if (at > self->bytes || field->bytes > self->bytes - at)
		Py_RETURN_NONE;
	return PyLong_FromVoidPtr((uint8_t *)self->map + at);
}

static PyObject *pytwin_places(PyObject *object, PyObject *batch)
{
	const struct pytwin *self = (struct pytwin *)object;
	const struct oa_batch *of = pybatch_of(batch);
	PyObject *places;
	struct oa_field field = {.size = sizeof(field)};

	if (of == NULL)
		return NULL;
	if (self->map == NULL) {
		PyErr_SetString(PyExc_ValueError, "the twin was closed");
		return NULL;
	}
	places = PyList_New(0);
	for (uint32_t i = 0; places != NULL && oa_batch_field(of, i, &field) == 0; i++) {
		PyObject *place = pytwin_place(self, &field);

		if (place == NULL || PyList_Append(places, place) != 0)
			Py_CLEAR(places);
		Py_XDECREF(place);
	}
	return places;
}

static PyMemberDef pytwin_members[] = {
    {"address", T_ULONGLONG, offsetof(struct pytwin, map), READONLY,
     "Of its first byte, a page's; 0: it was closed."},
    {"nbytes", T_PYSSIZET, offsetof(struct pytwin, bytes), READONLY, "Whole pages."},
    {NULL, 0, 0, 0, NULL},
};

static PyMethodDef pytwin_methods[] = {
    {"places", pytwin_places, METH_O,
     "places(batch): the addresses of its fields in the twin, of a batch in the same slot; None "
     "for one that "
     "lies elsewhere."},
    {"close", pytwin_close, METH_NOARGS, "Ends the mapping."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot pytwin_slots[] = {
    {Py_tp_doc, "Twin(batch): a mapping of its own of the slot that the batch lies in."},
    {Py_tp_new, pytwin_new},
    {Py_tp_dealloc, pytwin_dealloc},
    {Py_tp_methods, pytwin_methods},
    {Py_tp_members, pytwin_members},
    {0, NULL},
};

int pytwin_add_type(PyObject *module)
{
	return pytype_add(module, "oneaccess._core.Twin", sizeof(struct pytwin), pytwin_slots,
			  &pytwin_type);
}
