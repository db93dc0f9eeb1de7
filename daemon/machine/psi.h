/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DAEMON_MACHINE_PSI_H
#define DAEMON_MACHINE_PSI_H

/* Pressure stall information on memory: of our own cgroup where the kernel keeps it there, else of the machine. */

#include "daemon/limits.h"

struct psi {
	char file[LIMITS_PATH]; /* "": there is none */
	int fd;                 /* with a trigger, -1: the kernel does not call us */
	int poll_fd;            /* becomes readable when it does */
	double some, full;      /* percent of the last ten seconds, as read last */
};

/* Never fails: without a file there is no pressure, without a trigger it is seen when it is looked at. */
void psi_open(struct psi *psi);
void psi_close(struct psi *psi);
/* Reads the figures; those of before stay where that cannot be done. */
void psi_read(struct psi *psi);
/* Parses "some avg10=1.23 ...\nfull avg10=...\n". false: it is not that. */
bool psi_parse(const char *text, double *ret_some, double *ret_full);
/* Takes a call of the kernel, so that the next one is heard. */
void psi_take(struct psi *psi);

#endif
