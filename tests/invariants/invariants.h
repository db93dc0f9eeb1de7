/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The rules of our own state that no event may break: tests ask after each. The first one that is broken, or NULL. */

#include <stdint.h>

struct arena;
struct carousel;
struct grant_server;
struct queue;
struct slot_table;

const char *arena_check(const struct arena *arena);
const char *carousel_check(const struct carousel *carousel);
const char *carousel_log_check(const struct carousel *carousel, uint32_t job); /* a part of it */
/* When nobody is at work in it. */
const char *queue_check(const struct queue *queue);
/* Whatever a rank writes into its outbox. */
const char *grant_check(const struct grant_server *server);
const char *slot_table_check(const struct slot_table *table);
