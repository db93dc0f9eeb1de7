/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Watchers of the status: they see what STATUS says, newer and newer, without a message; many have one memory; one that
 * outgrew it is told; of several users each has his turn; a private accessd ends though somebody watches.
 */

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/loop.h"
#include "daemon/net/watch.h"
#include "shmring/pane.h"
#include "tests/daemon/raw.h"

static int greeted(void)
{
	struct wire_in welcome;
	int sock = raw_greeted(&welcome);

	wire_in_fini(&welcome);
	return sock;
}

/* The pane's descriptor: the caller's. */
static int watched(int sock, uint64_t period_ms)
{
	struct wire_out out;
	struct wire_in in;
	int fd;

	wire_out_init(&out, PROTO_WATCH);
	wire_put_u64(&out, PROTO_KEY_PERIOD, period_ms);
	ck_assert_int_eq(wire_send(sock, &out, 0), 0);
	wire_out_fini(&out);
	ck_assert_int_eq(raw_hear(sock, PROTO_WATCHED, &in), 0);
	fd = wire_take_fd(&in, 0);
	wire_in_fini(&in);
	ck_assert_int_ge(fd, 0);
	return fd;
}

static struct pane_view attached(int fd)
{
	struct pane_view view;

	ck_assert_int_eq(pane_attach(fd, &view), 0);
	return view;
}

/* The next text, however long that takes; the caller ends it. */
static struct json_in *next_of(struct pane_view *view)
{
	struct json_in *status = NULL;
	struct diag diag = {""};
	char *text = NULL;
	size_t size = 0;
	int r;

	while ((r = pane_read(view, &text, &size)) == PANE_E_OLD || r == PANE_E_BUSY)
		usleep(1000);
	ck_assert_int_eq(r, 0);
	ck_assert_msg(json_in_parse(text, size, PANE_MAX, &status, &diag) == 0, "%s", diag.text);
	free(text);
	return status;
}

static ino_t inode_of(int fd)
{
	struct stat status;

	ck_assert_int_eq(fstat(fd, &status), 0);
	return status.st_ino;
}

START_TEST(what_is_seen_is_the_status)
{
	struct json_in *seen, *asked;
	const char *key = NULL;
	struct pane_view view;
	double uptime_s;
	int sock, fd;

	rig_start("workers=1", NULL);
	sock = greeted();
	fd = watched(sock, 100);
	view = attached(fd);
	seen = next_of(&view);
	asked = rig_whole_status();
	ck_assert_ptr_nonnull(asked);
	ck_assert_uint_eq(json_in_count(seen), json_in_count(asked));
	while (json_in_next(asked, &key))
		ck_assert_msg(json_in_member(seen, key), "who watches does not see %s", key);
	ck_assert_double_eq(rig_number_at(seen, "pid"), rig_number_at(asked, "pid"));
	uptime_s = rig_number_at(seen, "uptime_s");
	json_in_free(seen);
	json_in_free(asked);
	for (int i = 0; i < 3; i++) { /* newer and newer, and nothing is said */
		seen = next_of(&view);
		ck_assert_double_gt(rig_number_at(seen, "uptime_s"), uptime_s);
		uptime_s = rig_number_at(seen, "uptime_s");
		json_in_free(seen);
	}
	ck_assert_int_eq(poll(&(struct pollfd){.fd = sock, .events = POLLIN}, 1, 0), 0);
	pane_detach(&view);
	close(fd);
	close(sock);
	rig_end();
}
END_TEST

START_TEST(many_have_one_memory)
{
	enum { WATCHERS = 20 };
	int sock[WATCHERS], fd[WATCHERS];
	struct pane_view view;

	rig_start("workers=1", NULL);
	for (int i = 0; i < WATCHERS; i++) {
		sock[i] = greeted();
		fd[i] = watched(sock[i], i % 2 ? 100 : 10000);
		ck_assert_uint_eq(inode_of(fd[i]), inode_of(fd[0]));
	}
	view = attached(fd[0]);
	for (int i = 0; i < 3; i++) /* as often as the quickest wishes */
		json_in_free(next_of(&view));
	/* Once for all of them: ten times a second at most, from the first on, however long that was. */
	ck_assert_double_eq(rig_status("node.watchers"), WATCHERS);
	ck_assert_double_le(rig_status("node.watch_renewals"), 10 * rig_status("uptime_s") + 1);
	for (int i = 0; i < WATCHERS; i++) {
		close(fd[i]);
		close(sock[i]);
	}
	ck_assert(rig_wait_status("node.clients", 1, 1)); /* who asks */
	sock[0] = greeted();
	fd[0] = watched(sock[0], 100); /* another one: theirs went with the last of them */
	ck_assert_int_eq(pane_read(&view, &(char *){NULL}, &(size_t){0}), PANE_E_ENDED);
	pane_detach(&view);
	view = attached(fd[0]);
	json_in_free(next_of(&view));
	pane_detach(&view);
	close(fd[0]);
	close(sock[0]);
	rig_end();
}
END_TEST

/* What is said of so many workers and clients is larger than twice what there was at the beginning. */
START_TEST(one_that_is_outgrown_ends)
{
	enum { MOST = 60 };
	const char *dataset = rig_pictures("outgrown", 8, 1, 32);
	const struct raw_open open = {
	    .dataset = dataset, .pipeline = "imagenet-eval-u8", .batch = 2};
	struct wire_in opened[MOST];
	int jobs[MOST], sock, fd, wider, n = 0;
	struct pane_view view;
	bool is_ended = false;

	rig_start("workers=1", NULL);
	sock = greeted();
	fd = watched(sock, 100);
	view = attached(fd);
	while (!is_ended && n < MOST) {
		char *text = NULL;
		size_t size = 0;
		int r;

		jobs[n] = raw_open(&open, &opened[n]);
		n++;
		while ((r = pane_read(&view, &text, &size)) == PANE_E_OLD || r == PANE_E_BUSY)
			usleep(1000);
		is_ended = r == PANE_E_ENDED;
		free(text);
	}
	ck_assert_msg(is_ended, "%d jobs fit", n);
	wider = watched(sock, 100);
	ck_assert_uint_ne(inode_of(wider), inode_of(fd));
	pane_detach(&view);
	view = attached(wider);
	for (size_t jobs_seen = 0; jobs_seen != (size_t)n;) { /* soon */
		struct json_in *seen = next_of(&view);

		jobs_seen = json_in_count(json_in_member(seen, "jobs"));
		json_in_free(seen);
	}
	for (int i = 0; i < n; i++) {
		wire_in_fini(&opened[i]);
		close(jobs[i]);
	}
	pane_detach(&view);
	close(wider);
	close(fd);
	close(sock);
	rig_end();
}
END_TEST

/* Takes so long that after the rest which follows everybody's is overdue. */
static int render_slowly(void *arg, const struct watch_who *who, char **ret, size_t *ret_size)
{
	const uint64_t begun_ns = base_cpu_ns();

	while (base_cpu_ns() - begun_ns < 2000000)
		continue;
	*(uid_t *)arg = who->uid;
	*ret_size = 2;
	*ret = strdup("{}");
	return *ret ? 0 : -ENOMEM;
}

START_TEST(each_has_his_turn)
{
	enum { USERS = 3, RENEWALS = 9 };
	struct watching watching = {.n = 0};
	struct watcher watcher[USERS] = {{.view = NULL}};
	struct loop *loop;
	uid_t last = 0;
	int fd;

	ck_assert_int_eq(loop_new(&loop), 0);
	ck_assert_int_eq(watch_init(&watching, loop, render_slowly, &last), 0);
	for (uid_t uid = 0; uid < USERS; uid++) {
		const struct watch_who who = {.uid = uid};

		ck_assert_int_eq(watch_enter(&watching, &watcher[uid], &who, 100, &fd), 0);
	}
	for (uint64_t n = watching.renewals; n < USERS + RENEWALS; n++) {
		while (watching.renewals == n) {
			ck_assert_int_eq(loop_turn(loop), 0);
			usleep(1000);
		}
		ck_assert_uint_eq(last, n % USERS); /* who was renewed longest ago */
	}
	for (uid_t uid = 0; uid < USERS; uid++)
		watch_leave(&watching, &watcher[uid]);
	watch_fini(&watching);
	loop_free(loop);
}
END_TEST

/* Of two of one user, who may use other data sets has a pane of his own. */
START_TEST(who_is_turned_out_asks_anew)
{
	struct watch_who who = {.uid = 1, .named = 1};
	struct watching watching = {.n = 0};
	struct watcher watcher[2] = {{.view = NULL}};
	struct pane_view view, other;
	struct loop *loop;
	size_t size;
	uid_t last;
	char *text;
	int fd;

	ck_assert_int_eq(loop_new(&loop), 0);
	ck_assert_int_eq(watch_init(&watching, loop, render_slowly, &last), 0);
	ck_assert_int_eq(watch_enter(&watching, &watcher[0], &who, 100, &fd), 0);
	view = attached(fd);
	who.named = 2;
	ck_assert_int_eq(watch_enter(&watching, &watcher[1], &who, 100, &fd), 0);
	other = attached(fd);
	ck_assert_uint_eq(watching.renewals, 2);
	ck_assert_int_eq(pane_read(&view, &text, &size), 0);
	free(text);
	watch_turn_out(&watching);
	ck_assert_int_eq(pane_read(&view, &text, &size), PANE_E_ENDED);
	pane_detach(&view);
	ck_assert_int_eq(watch_enter(&watching, &watcher[0], &who, 100, &fd), 0);
	view = attached(fd);
	ck_assert_int_eq(pane_read(&view, &text, &size), 0);
	free(text);
	ck_assert_uint_eq(watching.n, 2);
	for (unsigned i = 0; i < 2; i++)
		watch_leave(&watching, &watcher[i]);
	pane_detach(&view);
	pane_detach(&other);
	watch_fini(&watching);
	loop_free(loop);
}
END_TEST

START_TEST(watching_is_no_use)
{
	struct pane_view view;
	int sock, fd;
	char byte;

	rig_start("workers=1", "idle_exit_s=1", NULL);
	sock = greeted();
	fd = watched(sock, 100);
	view = attached(fd);
	ck_assert_int_eq(recv(sock, &byte, 1, 0), 0); /* it has ended by itself */
	while (host_is_alive(&rig_host))
		usleep(1000);
	pane_detach(&view);
	close(fd);
	close(sock);
	rig_end();
}
END_TEST

/* It watched before: now a job is there, which accessd does not leave. */
START_TEST(a_job_is_no_watcher)
{
	const struct raw_open open = {.dataset = rig_pictures("watched", 8, 1, 32),
				      .pipeline = "imagenet-eval-u8",
				      .batch = 2};
	struct wire_in welcome, opened;
	int sock, fd;

	rig_start("workers=1", "idle_exit_s=1", NULL);
	sock = raw_greeted(&welcome);
	fd = watched(sock, 100);
	ck_assert_double_eq(rig_status("node.watchers"), 1);
	raw_send_open(sock, &welcome, &open);
	ck_assert_int_eq(raw_hear(sock, PROTO_OPENED, &opened), 0);
	ck_assert_double_eq(rig_status("node.watchers"), 0);
	wire_in_fini(&opened);
	wire_in_fini(&welcome);
	close(fd);
	close(sock);
	rig_end();
}
END_TEST

static void add_tests(TCase *tcase)
{
	tcase_add_test(tcase, what_is_seen_is_the_status);
	tcase_add_test(tcase, many_have_one_memory);
	tcase_add_test(tcase, one_that_is_outgrown_ends);
	tcase_add_test(tcase, each_has_his_turn);
	tcase_add_test(tcase, who_is_turned_out_asks_anew);
	tcase_add_test(tcase, watching_is_no_use);
	tcase_add_test(tcase, a_job_is_no_watcher);
}

int main(void)
{
	return rig_main("watch", add_tests);
}
