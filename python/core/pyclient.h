/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The daemon that a program talks to. */

#include "libaccess/libaccess.h"
#include "python/core/py.h"

/* NULL, with TypeError, when it is none. Borrowed of the object. */
struct oa_client *pyclient_of(PyObject *object);
