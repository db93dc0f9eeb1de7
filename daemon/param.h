/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Parameters of accessd: defaults, the file accessd.conf, for a private one the environment, --set on the
 * command line (in this order). */

#include <stdio.h>
#include "daemon/tenant/named.h"
#include "daemon/tenant/quota.h"

#define PARAM_TEXT_MAX 1024
enum { PARAM_E_BAD = 1 };

enum cpu_priority { CPU_PRIORITY_NORMAL, CPU_PRIORITY_LOW, CPU_PRIORITY_IDLE };
enum numa_choice { NUMA_AUTO, NUMA_OFF };
enum memory_pressure { MEMORY_PRESSURE_AUTO, MEMORY_PRESSURE_OFF };
enum peer_crypt { PEER_CRYPT_ON, PEER_CRYPT_OFF };
/* As enum carrier_transport. */
enum transport_choice { TRANSPORT_AUTO, TRANSPORT_TCP, TRANSPORT_RDMA };
enum huge_pages { HUGE_PAGES_AUTO, HUGE_PAGES_REQUIRE, HUGE_PAGES_OFF };

struct param {
#define PARAM_BYTES(name, init, least, most, what) uint64_t name;
#define PARAM_COUNT(name, init, least, most, what) uint64_t name;
#define PARAM_TEXT(name, init, what) char name[PARAM_TEXT_MAX];
#define PARAM_PATH(name, init, what) char name[PARAM_TEXT_MAX];
#define PARAM_CHOICE(name, init, choices, what) uint64_t name;
#include "daemon/param_tbl.h"
#undef PARAM_BYTES
#undef PARAM_COUNT
#undef PARAM_TEXT
#undef PARAM_PATH
#undef PARAM_CHOICE
	struct quotas quotas;
	struct named_sets named;
	const struct param *known; /* in force, whose users are looked up; NULL: none are yet */
};

void param_init(struct param *param);
/* "name=value" or "name = value". 0 or PARAM_E_BAD: diag names the parameter, the value, the
 * range. */
int param_set(struct param *param, const char *assignment, struct diag *diag);
/* Reads a file: a line is empty, '#...' or name = value. 0, PARAM_E_BAD (diag: file:line), negative
 * errno. */
int param_read(struct param *param, const char *path, struct diag *diag);
/* What a user says of his private daemon: $XDG_CONFIG_HOME/oneaccess/accessd.conf, if it is there, and then the
 * variables ACCESSD_NAME of the environment. As param_read(). */
int param_read_users(struct param *param, struct diag *diag);
/* What a running accessd takes over of `wanted` (live_tbl.h), and what it leaves as it is, though it differs: their names,
 * with ", " between them. */
struct param_change {
	char taken[1024], left[1024];
};
void param_take(struct param *param, const struct param *wanted, struct param_change *ret);
/* Every parameter with its value, in the table's order; text NULL: number says it. */
void param_show(const struct param *param,
		void (*fn)(void *arg, const char *name, const char *text, uint64_t number),
		void *arg);
/* One line a parameter: name, default, what. For --help and the man page's lint. */
void param_print(FILE *out);
