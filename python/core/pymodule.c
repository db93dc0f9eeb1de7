/* SPDX-License-Identifier: Apache-2.0 */

/*
 * oneaccess._core: libaccess as it is, in Python's types. What users meet is oneaccess/.
 */

#include "libaccess/libaccess.h"
#include "python/core/py.h"
#include "python/core/pyguard.h"
#include "python/core/pytype.h"

static PyObject *pymodule_guard(PyObject *module, PyObject *unused)
{
	(void)module;
	(void)unused;
	pyguard_begin();
	Py_RETURN_NONE;
}

static PyMethodDef pymodule_methods[] = {
    {"guard", pymodule_guard, METH_NOARGS,
     "Lets programs write to batches, also when they handle SIGSEGV themselves since."},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef pymodule_def = {
    PyModuleDef_HEAD_INIT,
    .m_name = "oneaccess._core",
    .m_doc = "libaccess as it is; use oneaccess.",
    .m_size = -1,
    .m_methods = pymodule_methods,
};

PyMODINIT_FUNC PyInit__core(void);

PyMODINIT_FUNC PyInit__core(void)
{
	PyObject *module = PyModule_Create(&pymodule_def);

	if (module == NULL)
		return NULL;
	if (pyclient_add_type(module) != 0 || pyfield_add_type(module) != 0 ||
	    pybatch_add_type(module) != 0 || pystream_add_type(module) != 0 ||
	    pymix_add_type(module) != 0 || pydataset_add_type(module) != 0 ||
	    pytwin_add_type(module) != 0 ||
	    PyModule_AddStringConstant(module, "version", oa_version()) != 0)
		Py_CLEAR(module);
	return module;
}
