/* SPDX-License-Identifier: Apache-2.0 */

/*
 * HELLO, then questions, each with one answer, PROGRESS before it maybe. accessd passes on what other users'
 * processes say, so no text of it reaches the terminal unquoted.
 */

#include "tools/ctl_ask.h"

#include <poll.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "shmring/proto.h"

static int ask_fail(struct diag *diag, const char *what, int error)
{
	return diag_fail(diag, 1, "%s: %s", what, strerror(error));
}

/* 0: no time is left. */
static int ask_left_ms(const struct ctl_ask *ask)
{
	const uint64_t now = base_now_ns();

	return now < ask->until_ns
		   ? (int)BASE_MIN((ask->until_ns - now + 999999) / 1000000, (uint64_t)INT32_MAX)
		   : 0;
}

static int ask_connect(struct ctl_ask *ask, const char *path, struct diag *diag)
{
	const int left_ms = BASE_MAX(ask_left_ms(ask), 1); /* 0 would be without end */
	const struct timeval patience = {left_ms / 1000, left_ms % 1000 * 1000};
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	ask->sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (ask->sock < 0 || strlen(path) >= sizeof(address.sun_path))
		return ask_fail(diag, "socket", ask->sock < 0 ? errno : ENAMETOOLONG);
	strcpy(address.sun_path, path);
	/* One that is stopped accepts nobody, and takes in no more than fits. */
	setsockopt(ask->sock, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	if (connect(ask->sock, (struct sockaddr *)&address, sizeof(address)))
		return ask_fail(diag, path, errno == EAGAIN ? ETIMEDOUT : errno);
	return 0;
}

static void ask_progress(struct ctl_ask *ask, const struct wire_in *in)
{
	uint64_t done = 0, total = 0;

	wire_get_u64(in, PROTO_KEY_DONE, &done);
	wire_get_u64(in, PROTO_KEY_TOTAL, &total);
	if (!ask->counts || !isatty(STDERR_FILENO))
		return;
	fprintf(stderr, "\r%llu of %llu %s\033[K", (unsigned long long)done,
		(unsigned long long)total, ask->counts);
	ask->drew = true;
}

void ctl_ask_renew(struct ctl_ask *ask)
{
	ask->until_ns = base_now_ns() + ask->patience_ns;
}

/* The next message that is no progress. 0; else 1 with diag. */
static int ask_receive(struct ctl_ask *ask, struct wire_in *ret, struct diag *diag)
{
	for (;;) {
		struct pollfd pollfd = {.fd = ask->sock, .events = POLLIN};
		int r = poll(&pollfd, 1, ask_left_ms(ask));

		if (r < 0 && errno == EINTR)
			continue;
		if (r == 0)
			return diag_fail(diag, 1, "accessd has not answered in time");
		wire_in_init(ret);
		r = wire_recv(ask->sock, ret, 0);
		if (r == -ECONNRESET) /* before it read us: it may have said why */
			r = wire_recv(ask->sock, ret, 0);
		if (r == 0 && ret->type != PROTO_PROGRESS)
			return 0;
		if (r == 0) {
			ctl_ask_renew(ask);
			ask_progress(ask, ret);
		}
		wire_in_fini(ret);
		if (r && r != -EINTR)
			return ask_fail(diag, "accessd hung up", r < 0 ? -r : ECONNRESET);
	}
}

int ctl_ask_of(struct ctl_ask *ask, uint16_t answer, struct wire_in *ret, struct diag *diag,
	       uint16_t type, const struct wire_part *parts)
{
	const char *text = "accessd's answer makes no sense";
	int r = wire_tell_of(ask->sock, 0, type, parts);
	uint64_t code = 0;

	ask->is_lost = true;
	if (r < 0 && r != -EPIPE && r != -ECONNRESET)
		return ask_fail(diag, "asking accessd", r == -EAGAIN ? ETIMEDOUT : -r);
	if (ask_receive(ask, ret, diag)) /* also where it hung up: it may have said why before */
		return 1;
	ask->is_lost = false;
	wire_get_string(ret, PROTO_KEY_TEXT, &text);
	wire_get_u64(ret, PROTO_KEY_CODE, &code);
	if (ret->type == answer && code == 0)
		return 0;
	diag_set(diag, "%s", BASE_QUOTED(text, 512));
	wire_in_fini(ret);
	return 1;
}

int ctl_ask_begin(struct ctl_ask *ask, const char *socket, uint64_t until_ns, struct diag *diag)
{
	struct wire_in in;
	const uint64_t now = base_now_ns();

	ask->until_ns = until_ns;
	ask->patience_ns = now < until_ns ? until_ns - now : 0;
	if (ask_connect(ask, socket, diag))
		return 1;
	if (ctl_ask(ask, PROTO_WELCOME, &in, diag, PROTO_HELLO,
		    WIRE_U64(PROTO_KEY_MAJOR, PROTO_MAJOR), WIRE_U64(PROTO_KEY_MINOR, PROTO_MINOR),
		    WIRE_STRING(PROTO_KEY_PROGRAM, ask->program ? ask->program : "access-ctl")))
		return 1;
	wire_get_u64(&in, PROTO_KEY_MINOR, &ask->minor);
	wire_in_fini(&in);
	return 0;
}

char *ctl_ask_text(struct wire_in *in, uint64_t most)
{
	_cleanup_close_ int fd = wire_take_fd(in, 0);
	_cleanup_free_ char *text = NULL;
	struct stat st;

	wire_in_fini(in);
	if (fd < 0 || fstat(fd, &st) || st.st_size < 0 || (uint64_t)st.st_size > most)
		return NULL;
	text = calloc((size_t)st.st_size + 1, 1);
	if (!text || base_read_at(fd, text, (uint64_t)st.st_size, 0))
		return NULL;
	return base_take_ptr(text);
}

int ctl_ask_status(struct ctl_ask *ask, char **ret, struct diag *diag)
{
	struct wire_in in;
	char *text;

	if (ctl_ask(ask, PROTO_STATUS_REPLY, &in, diag, PROTO_STATUS, WIRE_NOTHING))
		return 1;
	text = ctl_ask_text(&in, CTL_ASK_MOST);
	if (!text)
		return diag_fail(diag, 1, "accessd's status cannot be read");
	*ret = text;
	return 0;
}

int ctl_status(const char *socket, uint64_t until_ns, char **ret, struct diag *diag)
{
	struct ctl_ask ask = {.program = program_invocation_short_name};
	int r = ctl_ask_begin(&ask, socket, until_ns, diag);

	r = r ? r : ctl_ask_status(&ask, ret, diag);
	base_close(&ask.sock);
	return r;
}
