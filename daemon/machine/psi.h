/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

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
/* Reads the figures. Where the file is gone there is no pressure; those of before stay where it cannot be read just now. */
void psi_read(struct psi *psi);
/* Parses "some avg10=1.23 ...\nfull avg10=...\n". false: it is not that. */
bool psi_parse(const char *text, double *ret_some, double *ret_full);
/* Takes a call of the kernel, so that the next one is heard. false: that was the last one, as the cgroup is gone, or keeps no
 * figures any more (cgroup.pressure), and poll_fd stays readable for ever: it is to be closed. */
bool psi_take(struct psi *psi);
