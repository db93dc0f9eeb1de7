/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file "programs" has a line for each: uid, pid. It is written when a program's first job begins and when its last one
 * ends, and is gone when there is none; not synced, since no program outlives the machine. It is written as a whole, and not
 * appended to: it has only programs that run, some tens of lines, and a log of them would have to be made shorter now and
 * then. A program that has ended while no accessd ran leaves the list when it is written next. A later process with its uid
 * and pid is taken for it until then, and gains no more than being served where `closed` refuses others.
 */
#include "daemon/tenant/programs.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "base/log.h"

#define PROGRAMS_MOST 65536 /* read; more than there are connections */

static struct program *find(const struct programs *programs, uid_t uid, pid_t pid)
{
	for (unsigned i = 0; pid > 0 && i < programs->n; i++)
		if (programs->program[i].uid == uid && programs->program[i].pid == pid)
			return &programs->program[i];
	return NULL;
}

bool programs_have(const struct programs *programs, uid_t uid, pid_t pid)
{
	return find(programs, uid, pid);
}

/* NULL: there is no memory. */
static struct program *add(struct programs *programs, uid_t uid, pid_t pid)
{
	struct program *grown =
	    realloc(programs->program, (programs->n + 1) * sizeof(*programs->program));

	if (!grown)
		return NULL;
	programs->program = grown;
	grown[programs->n] = (struct program){.uid = uid, .pid = pid};
	return &grown[programs->n++];
}

/* ---- the file ---- */

static void drop_dead(struct programs *programs)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < programs->n; i++)
		if (programs->program[i].n_jobs || !kill(programs->program[i].pid, 0) ||
		    errno != ESRCH)
			programs->program[kept++] = programs->program[i];
	programs->n = kept;
}

/* 0 or negative errno. */
static int write_all(const struct programs *programs, const char *path)
{
	FILE *file = fopen(path, "we");
	int r = file ? 0 : -errno;

	for (unsigned i = 0; !r && i < programs->n; i++)
		if (fprintf(file, "%u %d\n", (unsigned)programs->program[i].uid,
			    (int)programs->program[i].pid) < 0)
			r = -EIO;
	if (file && fclose(file) && !r)
		r = -errno;
	return r;
}

static void save(struct programs *programs)
{
	char path[PATH_MAX], written[PATH_MAX];
	int r = 0;

	if (!programs->folder)
		return;
	drop_dead(programs);
	snprintf(path, sizeof(path), "%.4000s/programs", programs->folder);
	snprintf(written, sizeof(written), "%.4000s/programs.new", programs->folder);
	if (programs->n)
		r = write_all(programs, written);
	if (!r && (programs->n ? rename(written, path) : unlink(path)) && errno != ENOENT)
		r = -errno;
	if (r)
		log_line(LOG_LEVEL_WARN, "programs-not-written", "path=\"%.400s\" error=\"%s\"",
			 path, strerror(-r));
}

void programs_load(struct programs *programs, const char *folder)
{
	struct program *program;
	char path[PATH_MAX];
	unsigned uid;
	int pid;
	FILE *file;

	programs->folder = folder;
	snprintf(path, sizeof(path), "%.4000s/programs", folder);
	file = fopen(path, "re");
	while (file && programs->n < PROGRAMS_MOST && fscanf(file, "%u %d\n", &uid, &pid) == 2)
		if (pid > 0 && !find(programs, uid, pid) && (program = add(programs, uid, pid)))
			program->is_awaited = true;
	if (file)
		fclose(file);
}

void programs_fini(struct programs *programs)
{
	free(programs->program);
	*programs = (struct programs){.folder = NULL};
}

/* ---- jobs ---- */

void programs_begin(struct programs *programs, uid_t uid, pid_t pid, bool is_back)
{
	struct program *program = find(programs, uid, pid);
	const bool is_new = pid > 0 && !program;

	if (is_new)
		program = add(programs, uid, pid);
	if (program) {
		program->n_jobs++;
		program->is_awaited = program->is_awaited && !is_back;
	}
	if (is_new)
		save(programs);
}

void programs_end(struct programs *programs, uid_t uid, pid_t pid)
{
	struct program *program = find(programs, uid, pid);

	if (!program || --program->n_jobs || program->is_awaited)
		return;
	*program = programs->program[--programs->n];
	save(programs);
}
