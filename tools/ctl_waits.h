/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What a job of the status waits for: the words, and the shares of its time lately. */

#include <stdio.h>
#include "base/json.h"

struct ctl_word {
	const char *stage, *word, *means, *helps;
};

enum ctl_pace {                   /* what is to be said of a job */
		CTL_PACE_TRAINS,  /* it hardly waits: its own steps are its pace */
		CTL_PACE_WAITS,   /* for word */
		CTL_PACE_STOPPED, /* it leaves untaken what lies ready for it */
		CTL_PACE_ENDED,   /* it failed or is about to leave */
		CTL_PACE_UNKNOWN, /* the status does not say */
};

/* Less of its time than this and a job is said to train. */
#define CTL_WAITS_LEAST 0.05

/* So much of the samples is kept, or more: all, in the words of people. */
#define CTL_WAITS_ALL 0.995

struct ctl_waits {
	enum ctl_pace pace;
	bool is_now;            /* word is what it waits for this moment, and has for a second */
	double share, window_s; /* of its time lately, 0 to 1; negative: not known */
	/* What it waits for most; NULL: nothing, or a word not known */
	const struct ctl_word *word;
	const char *stage; /* as the status has it, unquoted; NULL: none */
};

void ctl_waits_of(const struct json_in *job, struct ctl_waits *ret);
/* NULL: not known. */
const struct ctl_word *ctl_word_of(const char *stage);
/* A word for a table: what job waits for, with who holds the slots. Not quoted. */
void ctl_waits_text(const struct json_in *status, const struct json_in *job,
		    const struct ctl_waits *waits, char *ret, size_t size);
/* "sample 4711 for 12 s (a/b.jpg)": what keeps it waiting though all that lies behind is there; "": no such one. */
void ctl_waits_late(const struct json_in *job, char *ret, size_t size);
/* What helps job against that word. */
const char *ctl_waits_helps(const struct json_in *status, const struct json_in *job,
			    const struct ctl_word *word);
/* Lines with all words and what they mean, for --help. */
void ctl_waits_help(FILE *out);
/* "decoding 41 %, reading 3 %": of its time lately, the most first; "" if there is none. */
void ctl_waits_shares(const struct json_in *job, char *ret, size_t size);
