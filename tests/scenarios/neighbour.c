/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A process of root's forks the neighbour's: each becomes bert with a gid of its own, does some attacks and ends, or
 * dies of what it did, and another one takes its place. Attacks are numbered through, and a process that
 * takes a number draws the attack by it. A process that hangs, as it might if accessd hung, ends with the
 * test's limit.
 */

#include "tests/scenarios/neighbour.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/scenarios/foe.h"
#include "tests/scenarios/folk.h"

#define AT_ONCE 4
#define GIDS 24
#define MOST_OF_A_LIFE 40 /* attacks */

static const struct kind {
	const char *name;
	foe_attack_fn *fn;
	unsigned weight;
} kinds[] = {
    {"nonsense", foe_nonsense, 6},
    {"any-order", foe_any_order, 6},
    {"odd-open", foe_odd_open, 12},
    {"largest", foe_largest, 6},
    {"half-talk", foe_half_talk, 6},
    {"crowd", foe_crowd, 4},
    {"uninvited", foe_uninvited, 6},
    {"lingers", foe_lingers, 4},
    {"many-fds", foe_many_fds, 4},
    {"unread-fds", foe_unread_fds, 4},
    {"odd-part", foe_odd_part, 8},
    {"right-part", foe_right_part, 6},
    {"log", foe_log, 6},
    {"list", foe_list, 6},
    {"oads", foe_oads, 6},
    {"note", foe_note, 6},
    {"odd-folder", foe_odd_folder, 6},
    {"many-folders", foe_many_folders, 6},
    {"changes", foe_changes, 4},
    {"flood", foe_flood, 6},
    {"chores", foe_chores, 4},
    {"ranks", foe_ranks, 4},
    {"hoards", foe_hoards, 4},
    {"breaks", foe_breaks, 4},
    {"holds", foe_holds, 4},
    {"outbox", foe_outbox, 6},
    {"stops", foe_stops, 3},
    {"dies", foe_dies, 6},
    {"kills", foe_kills, 2},
    {"named", foe_named, 12},
    {"asks", foe_asks, 6},
};
_Static_assert(BASE_ARRAY_LEN(kinds) <= NEIGHBOUR_MOST_KINDS, "each is counted");

/* ---- which attack ---- */

static bool is_listed(const char *list, const char *name)
{
	size_t length = strlen(name);

	for (const char *at = list; at && (at = strstr(at, name)); at += length)
		if ((at == list || at[-1] == ',') && (!at[length] || at[length] == ','))
			return true;
	return false;
}

static unsigned weight_of(const struct kind *kind)
{
	const char *only = getenv("NEIGHBOUR_ONLY"), *not = getenv("NEIGHBOUR_NOT");

	if ((only && !is_listed(only, kind->name)) || (not &&is_listed(not, kind->name)))
		return 0;
	return kind->weight;
}

static unsigned draw_kind(struct foe *foe)
{
	unsigned sum = 0, i = 0;
	uint64_t at;

	for (unsigned k = 0; k < BASE_ARRAY_LEN(kinds); k++)
		sum += weight_of(&kinds[k]);
	at = foe_below(foe, BASE_MAX(sum, 1u));
	while (i + 1 < BASE_ARRAY_LEN(kinds) && at >= weight_of(&kinds[i]))
		at -= weight_of(&kinds[i++]);
	return i;
}

/* ---- his processes ---- */

#define NO_MORE 3 /* exit status: all was done */

static int live(void *arg)
{
	struct neighbour *neighbour = arg;
	struct foe *foe = calloc(1, sizeof(*foe));
	const char *verbose = getenv("NEIGHBOUR_VERBOSE");

	signal(SIGPIPE, SIG_IGN);
	signal(SIGCHLD, SIG_DFL);
	/* EACCES: who runs the tests is nicer. */
	if (!foe || (setpriority(PRIO_PROCESS, 0, (int)neighbour->nice) < 0 && errno != EACCES))
		return 1;
	foe->data = neighbour->data;
	foe->folder = neighbour->folder;
	for (unsigned i = 0; i < MOST_OF_A_LIFE && !foe->is_over; i++) {
		uint64_t number = atomic_fetch_add(&neighbour->toll->next, 1);
		unsigned kind;

		if (neighbour->attacks && number >= neighbour->first + neighbour->attacks)
			return NO_MORE;
		foe_begin(foe, neighbour->seed, number);
		kind = draw_kind(foe);
		if (verbose)
			fprintf(stderr, "attack %llu: %s\n", (unsigned long long)number,
				kinds[kind].name);
		kinds[kind].fn(foe);
		atomic_fetch_add(&neighbour->toll->count[kind], 1);
		if (!foe->is_over)
			foe_end(foe);
	}
	return 0;
}

/* Each life has another gid: his own, and some of a list of his. */
static pid_t send_one(struct neighbour *neighbour)
{
	uint64_t life = atomic_fetch_add(&neighbour->toll->lives, 1);
	struct town_user user = neighbour->user;

	if (life % 2)
		user.gid += 1000 + (gid_t)(life / 2 % neighbour->gids);
	return town_send(&user, live, neighbour);
}

static void keep_them_coming(struct neighbour *neighbour)
{
	bool is_done = false;
	unsigned alive = 0;
	int status;

	while (!is_done || alive > 0) {
		for (; !is_done && alive < neighbour->at_once; alive++)
			send_one(neighbour);
		if (wait(&status) < 0)
			return;
		is_done |= WIFEXITED(status) && WEXITSTATUS(status) == NO_MORE;
		alive--;
	}
}

/* ---- from outside ---- */

static uint64_t setting(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);

	return text ? strtoull(text, NULL, 0) : otherwise;
}

void neighbour_names(void)
{
	static char path[512];
	const char *carls = folk_secret("named", &town_carl);
	FILE *file;

	snprintf(path, sizeof(path), "%s", rig_path("names.conf"));
	file = fopen(path, "w");
	ck_assert_ptr_nonnull(file);
	fprintf(file,
		"dataset.open.path = %s\ndataset.open.owner = %u\ndataset.open.users = *\n"
		"dataset.closed.path = %s\ndataset.closed.owner = %u\ndataset.closed.users = %u\n",
		carls, (unsigned)town_carl.uid, carls, (unsigned)town_carl.uid,
		(unsigned)town_anna.uid);
	ck_assert_int_eq(fclose(file), 0);
	ck_assert_int_eq(chmod(path, 0644), 0);
	town_config = path;
}

void neighbour_init(struct neighbour *neighbour, uint64_t attacks)
{
	*neighbour = (struct neighbour){
	    .user = town_bert,
	    .gids = GIDS,
	    .data = folk_secret("bert", &town_bert),
	    .seed = setting("NEIGHBOUR_SEED", 20261123),
	    .attacks = setting("NEIGHBOUR_ATTACKS", attacks),
	    .first = setting("NEIGHBOUR_FIRST", 0),
	    .at_once = AT_ONCE,
	};
	snprintf(neighbour->folder, sizeof(neighbour->folder), "%s", rig_path("berts"));
	mkdir(neighbour->folder, 0700);
	town_give(neighbour->folder, &town_bert, town_bert.gid, 0700, 0600);
	neighbour->toll = mmap(NULL, sizeof(*neighbour->toll), PROT_READ | PROT_WRITE,
			       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne(neighbour->toll, MAP_FAILED);
	atomic_init(&neighbour->toll->next, neighbour->first);
}

void neighbour_start(struct neighbour *neighbour)
{
	neighbour->pid = fork();
	ck_assert_int_ge(neighbour->pid, 0);
	if (neighbour->pid > 0)
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	keep_them_coming(neighbour);
	_exit(0);
}

void neighbour_wait(struct neighbour *neighbour)
{
	ck_assert_int_eq(town_wait(neighbour->pid), 0);
	neighbour->pid = 0;
}

void neighbour_end(struct neighbour *neighbour)
{
	if (neighbour->pid > 0) {
		kill(neighbour->pid, SIGKILL); /* his processes die with it */
		town_wait(neighbour->pid);
	}
	neighbour->pid = 0;
}

static void tell_turns(const char *of_what, const char *us, const char *what)
{
	struct json_in *status = rig_whole_status();
	const struct json_in *loop = json_in_member(json_in_member(status, "node"), "loop");

	if (loop)
		printf("| longest turn of the loop, %s | <= 5 ms | %.2f ms (%s) |\n", of_what,
		       json_in_double(json_in_member(loop, us), 0) / 1000,
		       json_in_string(json_in_member(loop, what), "?"));
	json_in_free(status);
}

void neighbour_tell(const struct neighbour *neighbour)
{
	const struct neighbour_toll *toll = neighbour->toll;

	printf("NEIGHBOUR_SEED=%llu: %llu processes;", (unsigned long long)neighbour->seed,
	       (unsigned long long)toll->lives);
	for (unsigned i = 0; i < BASE_ARRAY_LEN(kinds); i++)
		printf(" %s %llu", kinds[i].name, (unsigned long long)toll->count[i]);
	puts("");
	tell_turns("CPU time", "longest_turn_cpu_us", "longest_turn_cpu_what");
	tell_turns("of the clock", "longest_turn_us", "longest_turn_what");
}
