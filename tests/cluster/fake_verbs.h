/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* RDMA devices that are none: queue pairs of one process, connected by their numbers, that do what a device does, in order,
 * and fail where a test says so. Like a device, one sends nothing for which the other end has no receive: it says so, and
 * that is a fault of the credits. */

#include "cluster/verbs.h"

enum fake_fault {
	FAKE_NO_FAULT,
	FAKE_NO_DEVICE,  /* open() finds none */
	FAKE_NO_ADDRESS, /* the port is down */
	FAKE_NO_CONNECT, /* the other end cannot be reached */
	FAKE_BLACK_HOLE, /* what is sent is never done */
	FAKE_SEND_FAILS, /* the next thing that is done is a failure: "transport retry counter exceeded" */
	FAKE_POST_FAILS,  /* nothing can be posted */
	FAKE_NO_RESET,    /* a queue pair is lost when it is reset */
	FAKE_DEVICE_GONE, /* the event descriptor says so */
	FAKE_WILD_CREDITS /* the other end gives more than there are */
};

extern const struct verbs_ops fake_verbs;
/* Of all devices from now on. */
void fake_set(enum fake_fault fault);
/* Of all devices: queue pairs that are connected or ready; messages that met no receive. */
unsigned fake_in_use(void);
unsigned fake_unmet(void);
/* Devices that are open. */
unsigned fake_open_devices(void);
