/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel calls whoever wrote a trigger into the file, by POLLPRI. libevent waits for POLLIN alone, so an epoll
 * descriptor stands between them, which is readable while the file has something to say.
 *
 * A trigger is written only into files that are the kernel's, as the same text would spoil any other one. The window
 * is two seconds, the least that the kernel grants to everybody; where it grants nothing (an older
 * kernel, a read-only mount) the averages say the same some seconds later.
 */
#include "daemon/machine/psi.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/vfs.h>
#include <unistd.h>

#define PSI_NODE "/proc/pressure/memory"
#define PSI_TRIGGER "some 300000 2000000" /* microseconds that somebody waited, of a window */

bool psi_parse(const char *text, double *ret_some, double *ret_full)
{
	const char *full = strstr(text, "full avg10=");
	double some, all = 0;

	if (sscanf(text, "some avg10=%lf", &some) != 1 || !(some >= 0 && some <= 100))
		return false;
	if (full && (sscanf(full, "full avg10=%lf", &all) != 1 || !(all >= 0 && all <= 100)))
		return false;
	*ret_some = some;
	*ret_full = all;
	return true;
}

void psi_read(struct psi *psi)
{
	char text[512];
	ssize_t size;
	_cleanup_close_ int fd = -1;

	if (!psi->file[0])
		return;
	fd = open(psi->file, O_RDONLY | O_CLOEXEC);
	size = fd < 0 ? -1 : pread(fd, text, sizeof(text) - 1, 0);
	if (size < 0 && !limits_passes(errno))
		psi->some = psi->full = 0;
	if (size <= 0)
		return;
	text[size] = '\0';
	psi_parse(text, &psi->some, &psi->full);
}

static bool is_kernels(int fd)
{
	struct statfs status;

	return fstatfs(fd, &status) == 0 &&
	       (status.f_type == CGROUP2_SUPER_MAGIC || status.f_type == PROC_SUPER_MAGIC);
}

static void set_trigger(struct psi *psi)
{
	_cleanup_close_ int fd = open(psi->file, O_RDWR | O_CLOEXEC | O_NONBLOCK);
	_cleanup_close_ int poll_fd = epoll_create1(EPOLL_CLOEXEC);
	struct epoll_event event = {.events = EPOLLPRI};

	if (fd < 0 || poll_fd < 0 || !is_kernels(fd) ||
	    write(fd, PSI_TRIGGER, sizeof(PSI_TRIGGER)) < 0 ||
	    epoll_ctl(poll_fd, EPOLL_CTL_ADD, fd, &event))
		return;
	psi->fd = base_take_fd(&fd);
	psi->poll_fd = base_take_fd(&poll_fd);
}

void psi_open(struct psi *psi)
{
	*psi = (struct psi){.fd = -1, .poll_fd = -1};
	limits_own_file("memory.pressure", psi->file);
	if (!psi->file[0] && access(PSI_NODE, R_OK) == 0)
		strcpy(psi->file, PSI_NODE);
	if (psi->file[0])
		set_trigger(psi);
	psi_read(psi);
}

void psi_close(struct psi *psi)
{
	base_close(&psi->poll_fd);
	base_close(&psi->fd);
}

bool psi_take(struct psi *psi)
{
	struct epoll_event event;

	while (epoll_wait(psi->poll_fd, &event, 1, 0) > 0)
		if (event.events & (EPOLLERR | EPOLLHUP))
			return false;
	return true;
}
