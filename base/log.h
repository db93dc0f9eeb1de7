/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Structured log lines on stderr of our own programs (never of libaccess):
 *   2026-11-21T11:22:33.123Z level event key=value key="value with spaces"
 * Under systemd (JOURNAL_STREAM set) without the time and with a <N> priority prefix. stderr is
 * written non-blocking when it is a pipe or socket: a blocked sink loses lines and counts them,
 * never stops a program. Repeated events are limited to 20 a second an event name, the number
 * left out is told. Not for worker processes after their sandbox is on.
 */

#include "base/base.h"

#define LOG_PLACE_MAX 512 /* bytes of log_place() */

enum log_level { LOG_LEVEL_ERROR = 3, LOG_LEVEL_WARN = 4, LOG_LEVEL_INFO = 6, LOG_LEVEL_DEBUG = 7 };

void log_init(const char *program, enum log_level least);
int log_parse_level(const char *text, enum log_level *ret); /* "error", "warn", "info", "debug" */
/* log_line(LOG_LEVEL_INFO, "stream-open", "dataset=%s slots=%u", ...): values that may hold spaces
 * or quotes are put in "" by the caller's format, which is enough: what would end the quotes is
 * escaped here (base/log_keys.h, which also says which conversions there are). */
void log_line(enum log_level level, const char *event, const char *fmt, ...) BASE_PRINTF(3, 4);
/* hint: what the line that counts the left-out lines of this event says besides. One event may have one;
 * both texts must live as long as the program. */
void log_set_hint(const char *event, const char *hint);
/* Where these lines are found, for texts to people: the file that stderr is, told by the thread that asks, or the
 * journal, or "its stderr". */
void log_set_file(const char *path);
const char *log_place(void);
uint64_t log_lost(void);
