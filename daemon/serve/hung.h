/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Finds workers that hang (daemon/proc/hang.h) over tasks of the domain's streams. */

#include "base/base.h"

struct domain;

/* Every tick: finds workers of the domain that hang and has them killed. true: one has a task. */
bool hung_find(struct domain *domain, uint64_t now_ns);
