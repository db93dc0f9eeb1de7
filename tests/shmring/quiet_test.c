/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Taking a ready grant and giving it back makes no system call: a child forbids itself all of them
 * but exit by a seccomp filter and then does both a thousand times. Any call kills it.
 */

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shmring/slot_table.h"
#include "shmring/grant.h"
#include "tests/shmring/suite.h"

enum { ROUNDS = 1000, NO_FILTER = 77, WRONG = 2, RIGHT = 0 };

static void forbid_all_calls(void)
{
	struct sock_filter filter[] = {
	    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit, 0, 1),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	};
	struct sock_fprog program = {.len = BASE_ARRAY_LEN(filter), .filter = filter};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0)
		_exit(NO_FILTER);
}

/* Both sides' whole way of a batch, in one process. */
static int exchange(struct grant_server *server, struct grant_rank *rank)
{
	struct grant given = {.instance = 1, .count = 8}, taken, ended;
	enum grant_fate fate;
	uint64_t number;

	if (grant_post(server, &given, &number) || !grant_is_posted(rank) ||
	    grant_take(rank, &taken) || taken.number != number)
		return WRONG;
	if (grant_take(rank, &ended) != GRANT_E_NONE)
		return WRONG;
	grant_arm(rank);
	grant_disarm(rank);
	grant_release(rank, number);
	if (grant_wants_kick(rank) || grant_wants_wake(server))
		return WRONG;
	if (grant_poll(server, &ended, &fate, NULL) || grant_poll(server, &ended, &fate, NULL))
		return WRONG;
	return fate == GRANT_DONE ? RIGHT : WRONG;
}

static void child(struct grant_server *server, struct grant_rank *rank, bool cheat)
{
	int result = RIGHT;

	forbid_all_calls();
	for (int i = 0; i < ROUNDS && result == RIGHT; i++)
		result = exchange(server, rank);
	if (cheat)
		syscall(SYS_getppid);
	syscall(SYS_exit, result);
}

/* _i = 1: the child makes one call, to see that the filter bites. */
START_TEST(take_and_release_make_no_system_call)
{
	const struct layout_inbox *rank_inbox;
	const struct layout_outbox *outbox;
	struct layout_inbox *inbox;
	struct layout_outbox *rank_outbox;
	struct grant_server server;
	struct grant_rank rank;
	int inbox_fd, outbox_fd, status;
	pid_t pid;

	ck_assert_int_eq(grant_memory_new(&inbox, &inbox_fd, &outbox, &outbox_fd), 0);
	ck_assert_int_eq(grant_memory_attach(inbox_fd, outbox_fd, &rank_inbox, &rank_outbox), 0);
	grant_server_init(&server, inbox, outbox);
	grant_rank_init(&rank, rank_inbox, rank_outbox);
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0)
		child(&server, &rank, _i == 1);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == NO_FILTER)
		printf("no seccomp filters here: not tested\n");
	else if (_i == 1)
		ck_assert(WIFSIGNALED(status));
	else
		ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == RIGHT,
			      "the child ended with status %#x", (unsigned)status);
	grant_memory_detach(rank_inbox, rank_outbox);
	grant_memory_free(inbox, outbox);
	close(inbox_fd);
	close(outbox_fd);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_loop_test(tcase, take_and_release_make_no_system_call, 0, 2);
}

int main(void)
{
	return suite_run("quiet", add);
}
