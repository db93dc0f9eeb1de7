/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What every room may use: cleanup attributes, little arithmetic, the clock, texts of errors; and the C library's headers that
 * nearly every file wants, which are not included again where this one is.
 *
 * Two kinds of error everywhere: a negative errno means that something broke and is forwarded
 * unchanged; a positive ROOM_E_... is a documented outcome that the caller handles. Where a person
 * will read the outcome, the function also fills a struct diag: what, where, how to mend it.
 */

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>

#define BASE_ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))
#define BASE_MIN(a, b) ((a) < (b) ? (a) : (b))
#define BASE_MAX(a, b) ((a) > (b) ? (a) : (b))
/* For each item of a list of <sys/queue.h>; which stays in the list, or may leave it. */
#define BASE_EACH(item, list, link)                                                \
	for (__typeof__(&*LIST_FIRST(list)) item = LIST_FIRST(list); item != NULL; \
	     item = LIST_NEXT(item, link))
#define BASE_EACH_LEAVING(item, list, link)                                        \
	for (__typeof__(&*LIST_FIRST(list)) item = LIST_FIRST(list), item##_next_; \
	     item != NULL && (item##_next_ = LIST_NEXT(item, link), true); item = item##_next_)
/* Where in [from, to) those places `at` end of which is_before is true, and which come first; from, where there are none. */
#define BASE_SEARCH(at, from, to, is_before)                           \
	({                                                             \
		uint64_t low_ = (from), high_ = (to);                  \
		while (low_ < high_) {                                 \
			const uint64_t at = low_ + (high_ - low_) / 2; \
			if (is_before)                                 \
				low_ = at + 1;                         \
			else                                           \
				high_ = at;                            \
		}                                                      \
		low_;                                                  \
	})
/* The last of n such places, whether or not it is true of the first one. */
#define BASE_LAST(at, n, is_before) (BASE_SEARCH(at, 1, n, is_before) - 1)
#define BASE_ORDER(a, b) (((a) > (b)) - ((a) < (b))) /* as qsort() wants it */
#define BASE_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
/* On the path of a batch, or never there: the first kind lies together, on few pages of code. */
#define BASE_HOT __attribute__((hot))
#define BASE_COLD __attribute__((cold))
#define BASE_CACHE_LINE 64

/* base/cleanup.c: owning locals. Use as: _cleanup_free_ char *p = NULL; _cleanup_close_ int fd =
 * -1; */
void base_freep(void *pointer_to_pointer);
void base_closep(const int *fd);
void base_wipe(char **text); /* of a secret: nothing of it stays in memory; NULL after it */
#define _cleanup_free_ __attribute__((cleanup(base_freep)))
#define _cleanup_wipe_ __attribute__((cleanup(base_wipe)))
#define _cleanup_close_ __attribute__((cleanup(base_closep)))
#define _cleanup_(fn) __attribute__((cleanup(fn)))

/* Ownership leaves a cleanup local by an explicit take. */
#define base_take_ptr(p)                    \
	({                                  \
		__typeof__(p) taken_ = (p); \
		(p) = NULL;                 \
		taken_;                     \
	})
static inline int base_take_fd(int *fd)
{
	int taken = *fd;
	*fd = -1;
	return taken;
}

/* base/cleanup.c: an array of *room items of `each` bytes gets room for `needed`, if it has less: twice as much, or more.
 * false: there is no memory, and all is as it was. */
bool base_grow(void *pointer_to_pointer, size_t *room, size_t needed, size_t each);

/* Closes *fd if it is open and sets it to -1; errno is kept. */
void base_close(int *fd);

static inline uint64_t base_align_up(uint64_t value, uint64_t power_of_two)
{
	return (value + power_of_two - 1) & ~(power_of_two - 1);
}
uint64_t base_page_size(void);
/* For qsort() and bsearch(). */
int base_compare_u32(const void *a, const void *b);
int base_compare_u64(const void *a, const void *b);
int base_compare_texts(const void *a, const void *b); /* of an array of char * */
int base_compare_times(const struct timespec *a, const struct timespec *b);

/* CLOCK_MONOTONIC in ns, the only clock that decides anything. */
uint64_t base_now_ns(void);
/* CPU time that this thread has used, in ns. */
uint64_t base_cpu_ns(void);
uint64_t base_clock_ns(clockid_t clock); /* 0: there is no such clock any more */
struct rusage;
uint64_t base_usage_ns(const struct rusage *usage); /* its CPU time */
static inline int64_t base_time_ns(const struct timespec *time)
{
	return (int64_t)time->tv_sec * 1000000000 + time->tv_nsec;
}
static inline struct timespec base_timespec(uint64_t ns)
{
	return (struct timespec){.tv_sec = (time_t)(ns / 1000000000),
				 .tv_nsec = (long)(ns % 1000000000)};
}

/* A text for a person. Truncated, always terminated, control characters made visible ("\x0a"). */
struct diag {
	char text[768];
};
BASE_COLD void diag_set(struct diag *diag, const char *fmt, ...) BASE_PRINTF(2, 3);
/* The same, and is code, so that one line refuses. A macro, so that the compiler knows that it is no success. */
#define diag_fail(diag, code, ...)                                     \
	({                                                             \
		__attribute__((unused)) const int diag_code_ = (code); \
		diag_set((diag), __VA_ARGS__);                         \
		diag_code_;                                            \
	})

/* base/text.c: what printf() would print, the caller's; NULL: there is no memory. */
char *base_format(const char *fmt, ...) BASE_PRINTF(1, 2);
/* The path, from the working directory on where it is relative, the caller's; NULL: there is no memory, or no such directory. It need
 * not be there. */
char *base_absolute(const char *path);
/* The first of these variables of the environment that is set, and not to ""; NULL: none is. */
#define base_variable(...) base_variable_of((const char *const[]){__VA_ARGS__, NULL})
const char *base_variable_of(const char *const *names);

/* Fills size bytes at ret from the kernel's random source. 0 or negative errno. */
int base_random(void *ret, size_t size);

/* The decimal digits at *text, at least one and up to `most`: *text moves past them. false: both are untouched. */
bool base_parse_number(const char **text, uint64_t most, uint64_t *ret);
/* Formats bytes as "1.5 GiB" into ret (>= 32 bytes) and returns it; parses "4096", "64M", "1.5G",
 * "2GiB" (powers of 1024; no sign). 0, or -EINVAL / -ERANGE and *ret_bytes untouched. */
char *base_format_bytes(uint64_t bytes, char *ret, size_t size);
int base_parse_bytes(const char *text, uint64_t *ret_bytes);

/* Bytes of the UTF-8 character at text, beyond ASCII; 0 if there is none that may be shown as it is
 * (C1 controls may not). */
size_t base_utf8(const unsigned char *text);
/* Copies a UTF-8-or-not name so that it can stand in one line of text: control bytes, '"', '\\' and
 * invalid UTF-8 become \xNN. Truncated with "..." ; ret always terminated. Returns ret. */
char *base_quote(const char *name, char *ret, size_t size);
/* Both, in room that lives as long as the block which they stand in. */
#define BASE_QUOTED(name, size) base_quote(name, (char[size]){0}, size)
#define BASE_BYTES(bytes) base_format_bytes(bytes, (char[32]){0}, 32)

/* memfd of size bytes: CLOEXEC, sealable, mode 0400 for reopening, sparse (no fallocate).
 * Returns the descriptor (caller owns) or negative errno. */
int base_memfd(const char *name, uint64_t size);
/* The same with a text in it, that nobody can change any more. */
int base_memfd_of(const char *name, const void *text, size_t size);
/* Is it memory with these seals (F_SEAL_...), of pages that the kernel finds when they are touched? Of huge pages
 * there may be none left: that would be SIGBUS. */
bool base_is_sealed(int fd, int seals);
/* Reads so many bytes at that place of the file. 0; -ENODATA: it has fewer; negative errno. */
int base_read_at(int fd, void *ret, uint64_t bytes, uint64_t at);
/* Writes all of it at that place of the file. 0 or negative errno. */
int base_write_at(int fd, const void *from, uint64_t bytes, uint64_t at);
/* Writes all of it to a pipe. 0 or negative errno. */
int base_write_all(int fd, const void *from, uint64_t bytes);
/* Kills a child that was not reaped yet and waits for its end: *pid is 0 then. Its wait status; 0 if *pid is none. */
int base_kill(pid_t *pid);
