/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the library's outcomes are in Python. */

#include "python/core/py.h"

/* Raises what the outcome is: of oneaccess.errors, with code and text. Returns NULL. */
PyObject *pyoutcome_raise(int code, const char *text);
