/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What users of a town do and have: pictures of their own, runs that must go well or be refused, and what
 * accessd's status says of them. */

#include "tests/scenarios/town.h"

/* As rig_main(), skipped where there can be no town. */
int folk_main(const char *name, void (*add)(TCase *tcase));

#define FOLK_PICTURES 48 /* of each folder, in two classes */

/* A folder of pictures that is this user's alone; the text is good until the fourth next call. */
const char *folk_secret(const char *name, const struct town_user *user);
/* One that everybody may read. */
const char *folk_open(const char *name);

void folk_must_train(const struct town_user *user, const char *dataset, unsigned epochs);
void folk_must_be_refused(const struct town_user *user, const char *dataset, int code,
			  const char *text);
/* What access-ctl cache warm does, for the form `decoded`: its exit status; ret_text (768 bytes) is what it
 * says if that is not 0. */
int folk_warm(const struct town_user *user, const char *dataset, char *ret_text);

/* A number of a tenant's line in the status, -1: he has none. */
pid_t folk_tenant(const struct town_user *user, const char *which);
/* A number of what a user keeps, of data that are open to all with NULL; -1: he has no store. */
double folk_kept(const struct town_user *user, const char *which);
/* Wait until that number is between least and most; false: it never was. */
bool folk_wait_tenant(const struct town_user *user, const char *which, double least, double most);
bool folk_wait_kept(const struct town_user *user, const char *which, double least, double most);
