/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Command lines of our tools. A program declares its options once, as a table; parsing, checking,
 * --help and the lint that compares it with the man page all come from the table.
 */

#include <stdio.h>
#include "base/base.h"

#define OPTION_LIST_MAX 256

enum { OPTION_E_BAD = 1 };

enum option_kind {
	OPTION_FLAG,   /* bool, takes no value */
	OPTION_TEXT,   /* const char *, borrowed from argv */
	OPTION_COUNT,  /* uint64_t in least .. most */
	OPTION_BYTES,  /* uint64_t, as base_parse_bytes() reads it */
	OPTION_REAL,   /* double in least .. most */
	OPTION_LIST,   /* struct option_list of reals in least .. most, with commas */
	OPTION_CHOICE, /* unsigned: number of the word in choices ("error|skip|substitute") */
	OPTION_MANY,   /* struct option_texts: may be given again and again */
};

struct option_list { /* is dealt round: item i is value[i % n] */
	unsigned n;
	double value[OPTION_LIST_MAX];
};
struct option_texts {
	unsigned n;
	const char *text[OPTION_LIST_MAX]; /* borrowed from argv */
};

struct option {
	const char *name; /* without "--" */
	enum option_kind kind;
	size_t offset; /* of the value in the caller's struct */
	double least, most;
	const char *choices;
	const char *arg; /* what --help calls the value, NULL for a flag */
	const char *help;
	char letter; /* "-x" is the same; 0: there is none */
};

/* Reads "--name value", "--name=value", "-x value", "-xvalue", flags and "-xy" of flags into config; stops at "--" and puts every other
 * word at ret_rest (>= argc words), *ret_n_rest of them. 0, or OPTION_E_BAD: diag says which word,
 * what is expected and where help is. */
int option_parse(const struct option *table, unsigned n, int argc, char **argv, void *config,
		 char **ret_rest, unsigned *ret_n_rest, struct diag *diag);
/* One option a line, help wrapped at 80 columns. */
void option_print(const struct option *table, unsigned n, FILE *out);
/* Prints a text in lines of at most width columns, and a line's end; the lines after the first begin at column left. */
BASE_PRINTF(4, 5) void option_wrap(FILE *out, int left, int width, const char *fmt, ...);
double option_dealt(const struct option_list *list, unsigned index, double otherwise);
