/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIBACCESS_INQUIRE_H
#define LIBACCESS_INQUIRE_H

/* Asks accessd what is in a dataset. */

#include "libaccess/dial.h"
#include "shmring/catalog.h"

/* path: absolute. Tells options->progress, if there are options, while it waits. 0 (the caller
 * detaches *ret), OA_E_... or a negative errno with diag. */
int inquire(const struct dial_route *route, const char *path, uint64_t deadline,
	    const struct oa_options *options, struct catalog *ret, struct diag *diag);
/* A path as accessd needs it, which has another working directory. NULL: no memory. */
char *inquire_absolute(const char *path);

#endif
