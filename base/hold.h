/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A mutex that is held to the end of the block, however that is left; what is returned is known before it is let go. */

#include <pthread.h>

static inline pthread_mutex_t *base_lock(pthread_mutex_t *mutex)
{
	pthread_mutex_lock(mutex);
	return mutex;
}

static inline void base_unlockp(pthread_mutex_t *const *mutex)
{
	pthread_mutex_unlock(*mutex);
}

#define BASE_HOLD(mutex) \
	pthread_mutex_t *base_held __attribute__((cleanup(base_unlockp), unused)) = base_lock(mutex)
