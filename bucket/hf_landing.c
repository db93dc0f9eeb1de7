/* SPDX-License-Identifier: Apache-2.0 */

/* A table in which a name has one place, so it takes no more than so many: who comes later has it. */

#include "bucket/hf_landing.h"

#include "base/hash.h"
#include "base/hold.h"
#include "bucket/bearer.h"

#define HF_LANDING_MOST 4096
#define HF_LANDING_MOST_URL 4096
#define HF_LANDING_NS (UINT64_C(300) * 1000000000)

struct hf_landing {
	char *name, *url; /* NULL, both; url alone: it ended with another one's */
	uint64_t until_ns;
};

struct hf_landings {
	pthread_mutex_t mutex; /* covers all */
	struct hf_landing landing[HF_LANDING_MOST];
};

int hf_landings_new(struct hf_landings **ret)
{
	*ret = calloc(1, sizeof(**ret));
	if (!*ret)
		return -ENOMEM;
	pthread_mutex_init(&(*ret)->mutex, NULL);
	return 0;
}

static void hf_landing_clear(struct hf_landing *landing)
{
	free(landing->name);
	base_wipe(&landing->url);
	*landing = (struct hf_landing){.name = NULL};
}

void hf_landings_free(struct hf_landings *landings)
{
	if (!landings)
		return;
	for (size_t i = 0; i < HF_LANDING_MOST; i++)
		hf_landing_clear(&landings->landing[i]);
	pthread_mutex_destroy(&landings->mutex);
	free(landings);
}

static struct hf_landing *hf_landing_of(struct hf_landings *landings, const char *name)
{
	return &landings->landing[hash_checksum(name, strlen(name)) % HF_LANDING_MOST];
}

/* Its own, with the mutex; NULL: it has none. */
static struct hf_landing *hf_landing_find(struct hf_landings *landings, const char *name)
{
	struct hf_landing *landing = hf_landing_of(landings, name);

	return landing->name && strcmp(landing->name, name) == 0 ? landing : NULL;
}

void hf_landings_put(struct hf_landings *landings, const char *name, const char *url)
{
	struct hf_landing *landing;
	BASE_HOLD(&landings->mutex);

	landing = hf_landing_find(landings, name);
	if (strlen(url) > HF_LANDING_MOST_URL || (landing && landing->url))
		return; /* what is there stays until it ends */
	landing = hf_landing_of(landings, name);
	hf_landing_clear(landing);
	landing->name = strdup(name);
	landing->url = strdup(url);
	landing->until_ns = base_now_ns() + HF_LANDING_NS;
	if (!landing->name || !landing->url)
		hf_landing_clear(landing);
}

char *hf_landings_get(struct hf_landings *landings, const char *name)
{
	struct hf_landing *landing;
	BASE_HOLD(&landings->mutex);

	landing = hf_landing_find(landings, name);
	if (landing && base_now_ns() >= landing->until_ns)
		hf_landing_clear(landing);
	return landing && landing->url ? strdup(landing->url) : NULL;
}

bool hf_landings_drop(struct hf_landings *landings, const char *name)
{
	struct hf_landing *landing;
	BASE_HOLD(&landings->mutex);

	landing = hf_landing_find(landings, name);
	if (!landing)
		return false;
	for (size_t i = 0; i < HF_LANDING_MOST && landing->url; i++)
		if (&landings->landing[i] != landing)
			base_wipe(&landings->landing[i].url);
	hf_landing_clear(landing);
	return true;
}
