/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Python's limited API, as of 3.11 (the first with buffers): one build serves that and all later. Python 3.10 gets a
 * build of its own. */

#define PY_SSIZE_T_CLEAN
#include <patchlevel.h>
#if PY_VERSION_HEX >= 0x030b0000
#define Py_LIMITED_API 0x030b0000
#endif

#include <Python.h>
#include <structmember.h>
