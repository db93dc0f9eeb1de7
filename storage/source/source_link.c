/* SPDX-License-Identifier: Apache-2.0 */

#include "storage/source/source_link.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static bool peer_is_own(int fd)
{
	struct ucred peer;
	socklen_t size = sizeof(peer);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == geteuid();
}

/* Below the folder that has the path now: it may have been made anew. The address of a socket is short, that of a folder is
 * not. */
int source_link_connect(const char *folder, const char *name, int *ret_folder)
{
	_cleanup_close_ int root = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
	_cleanup_close_ int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct stat st;

	if (root < 0 || fd < 0 || fstat(root, &st) < 0)
		return -errno;
	if (st.st_uid != geteuid())
		return -EPERM;
	snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/%s", root, name);
	if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
		return -errno;
	if (!peer_is_own(fd))
		return -EPERM;
	*ret_folder = base_take_fd(&root);
	return base_take_fd(&fd);
}

bool source_link_may_come(int error)
{
	return error == -ENOENT || error == -ECONNREFUSED || error == -EAGAIN || error == -EPIPE ||
	       error == -ECONNRESET;
}

int source_link_memory(const char *name, uint64_t bytes, bool is_whole, uint8_t **ret)
{
	_cleanup_close_ int fd = base_memfd(name, bytes);
	void *memory;

	if (fd < 0)
		return fd;
	if ((is_whole && fallocate(fd, 0, 0, (off_t)bytes) < 0) ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
		return -errno;
	memory = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, 0);
	if (memory == MAP_FAILED)
		return -errno;
	*ret = memory;
	return base_take_fd(&fd);
}

int source_link_send(int fd, const struct iovec *part, unsigned n, int pass)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = {.bytes = ""};
	struct msghdr message = {.msg_iov = (struct iovec *)(uintptr_t)part, .msg_iovlen = n};
	struct cmsghdr *head;

	if (pass >= 0) {
		message.msg_control = control.bytes;
		message.msg_controllen = sizeof(control.bytes);
		head = CMSG_FIRSTHDR(&message);
		head->cmsg_level = SOL_SOCKET;
		head->cmsg_type = SCM_RIGHTS;
		head->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(head), &pass, sizeof(int));
	}
	return sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -errno : 0;
}
