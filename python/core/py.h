/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Python's limited API, as of 3.11 (the first with buffers): one build serves that and all later. */

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030b0000

#include <Python.h>
#include <structmember.h>
