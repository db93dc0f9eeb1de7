/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* One field of a batch as an object that NumPy, PyTorch, JAX and others take without a copy. */

#include "python/core/py.h"
#include "python/core/pyhold.h"

/* A new reference, or NULL with an exception. The field is of hold's batch; a reference is taken. */
PyObject *pyfield_new(struct pyhold *hold, const struct oa_field *field);
