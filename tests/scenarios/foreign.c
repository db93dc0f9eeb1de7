/* SPDX-License-Identifier: Apache-2.0 */

#include "tests/scenarios/foreign.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/base.h"

void foreign_send(int sock, const void *data, size_t size, int fd, unsigned n_fds)
{
	_Alignas(struct cmsghdr) char space[CMSG_SPACE(FOREIGN_MOST * sizeof(int))] = {0};
	struct cmsghdr *head = (struct cmsghdr *)space;
	struct iovec part = {.iov_base = (void *)(uintptr_t)data, .iov_len = size};
	struct msghdr message = {.msg_iov = &part,
				 .msg_iovlen = 1,
				 .msg_control = space,
				 .msg_controllen = CMSG_SPACE(n_fds * sizeof(int))};
	int fds[FOREIGN_MOST];

	for (unsigned i = 0; i < n_fds; i++)
		fds[i] = fd;
	*head = (struct cmsghdr){.cmsg_len = CMSG_LEN(n_fds * sizeof(int)),
				 .cmsg_level = SOL_SOCKET,
				 .cmsg_type = SCM_RIGHTS};
	memcpy(CMSG_DATA(head), fds, n_fds * sizeof(int));
	ck_assert_int_eq(sendmsg(sock, &message, MSG_NOSIGNAL), (ssize_t)size);
}

/* ---- a file system that does not answer ---- */

static void fuse_answer(int fuse, const struct fuse_in_header *in, int error, const void *data,
			size_t size)
{
	struct fuse_out_header head = {
	    .len = (uint32_t)(sizeof(head) + size), .error = error, .unique = in->unique};
	struct iovec parts[2] = {{.iov_base = &head, .iov_len = sizeof(head)},
				 {.iov_base = (void *)(uintptr_t)data, .iov_len = size}};

	if (writev(fuse, parts, 2) < 0)
		fprintf(stderr, "fuse: %s\n", strerror(errno));
}

static struct fuse_attr attr_of(uint64_t node)
{
	return (struct fuse_attr){.ino = node,
				  .nlink = 1,
				  .mode = node == FUSE_ROOT_ID ? S_IFDIR | 0755 : S_IFREG | 0444};
}

/* Each name is an empty file; what is asked when one is closed gets no answer. */
static void fuse_serve(int fuse)
{
	static _Alignas(struct fuse_in_header) char buffer[1 << 20];
	const struct fuse_in_header *in = (const struct fuse_in_header *)buffer;
	const struct fuse_init_out init = {
	    .major = FUSE_KERNEL_VERSION, .minor = FUSE_KERNEL_MINOR_VERSION, .max_write = 4096};
	const struct fuse_open_out opened = {.fh = 1};
	struct fuse_entry_out entry = {.nodeid = 2, .attr_valid = 1000, .attr = attr_of(2)};
	struct fuse_attr_out attr = {.attr_valid = 1000};

	while (read(fuse, buffer, sizeof(buffer)) > 0) {
		attr.attr = attr_of(in->nodeid);
		if (in->opcode == FUSE_INIT)
			fuse_answer(fuse, in, 0, &init, sizeof(init));
		else if (in->opcode == FUSE_LOOKUP)
			fuse_answer(fuse, in, 0, &entry, sizeof(entry));
		else if (in->opcode == FUSE_GETATTR)
			fuse_answer(fuse, in, 0, &attr, sizeof(attr));
		else if (in->opcode == FUSE_OPEN)
			fuse_answer(fuse, in, 0, &opened, sizeof(opened));
		else if (in->opcode != FUSE_FLUSH && in->opcode != FUSE_FORGET &&
			 in->opcode != FUSE_BATCH_FORGET && in->opcode != FUSE_INTERRUPT)
			fuse_answer(fuse, in, -ENOSYS, NULL, 0);
	}
	_exit(0);
}

pid_t foreign_files_start(const char *folder)
{
	int fuse = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	char options[128];
	pid_t pid;

	snprintf(options, sizeof(options),
		 "fd=%d,rootmode=40000,user_id=%u,group_id=%u,allow_other", fuse,
		 (unsigned)getuid(), (unsigned)getgid());
	mkdir(folder, 0755);
	if (fuse < 0 || unshare(CLONE_NEWNS) ||
	    mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("slow", folder, "fuse", MS_NOSUID | MS_NODEV, options)) {
		fprintf(stderr, "skipped: no file system in user space here: %s\n",
			strerror(errno));
		base_close(&fuse);
		return -1;
	}
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		fuse_serve(fuse);
	}
	close(fuse);
	return pid;
}
