/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PYTHON_CORE_PYGUARD_H
#define PYTHON_CORE_PYGUARD_H

/* Says so when a program writes to a batch that others see, before that ends it. */

#include <stddef.h>

/* From the first call on SIGSEGV is looked at; whoever handled it before does so after us. */
void pyguard_begin(void);
/* Memory that must not be written to. A number for pyguard_forget(); -1: there was no room. */
int pyguard_watch(const void *start, size_t size);
void pyguard_forget(int number); /* -1 is fine */

#endif
