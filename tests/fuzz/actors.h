/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Reader and worker parent, played in the process of the accessd that starts them: thousands of sessions a
 * second meet both, honest or captured. child_start() of the program that is linked with this starts no
 * program (-Wl,--wrap=child_start): behind each control socket is an end of ours, and a process that does
 * nothing but end when that hangs up, so that deaths come as they do. And no process is forked to reserve
 * (--wrap=reserve_begin), which would take longer than all the rest.
 */

#include "base/base.h"
#include "base/wire.h"
#include "tests/fuzz/grammar.h"

struct node;

/* world: of the one data set there is; its version is set here. Once. */
void actors_init(struct grammar_world *world);
/* Honest answers to all that was asked; what was to be reserved is. */
void actors_serve(struct node *node);
/* So many tasks of each queue are read and worked on, and end well where no bit of `mishap` says otherwise. */
void actors_work(unsigned tasks, uint8_t mishap);

/* What captured ones can do: any message, any byte in what they share with accessd. */
void actors_say(struct grammar *grammar);
void actors_scribble(struct grammar *grammar);
/* One of them dies. */
void actors_die(bool is_reader);
/* Has any died, as far as that is known here? */
bool actors_died(void);

/* Nothing of a session is left; nothing of a node. */
void actors_forget(void);
void actors_end(void);
