/* SPDX-License-Identifier: Apache-2.0 */

#include "tests/scenarios/folk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tools/ctl_warm.h"

static void (*folk_add)(TCase *tcase);

static void add_if_possible(TCase *tcase)
{
	const char *why;

	if (town_can(&why)) {
		folk_add(tcase);
		return;
	}
	printf("skipped: %s\n", why);
	rmdir(rig_path("%s", ""));
	exit(77);
}

int folk_main(const char *name, void (*add)(TCase *tcase))
{
	folk_add = add;
	return rig_main(name, add_if_possible);
}

/* ---- pictures ---- */

const char *folk_secret(const char *name, const struct town_user *user)
{
	static char paths[4][512];
	static unsigned next;
	char *path = paths[next++ % 4];

	snprintf(path, sizeof(paths[0]), "%s", rig_path("%s", name));
	if (access(path, F_OK) < 0) /* else of an earlier test */
		rig_pictures(name, FOLK_PICTURES, 2, 40);
	town_give(path, user, user->gid, 0700, 0600);
	return path;
}

const char *folk_open(const char *name)
{
	const char *path = folk_secret(name, &town_anna);

	town_give(path, &town_anna, town_anna.gid, 0755, 0644);
	return path;
}

/* ---- runs ---- */

void folk_must_train(const struct town_user *user, const char *dataset, unsigned epochs)
{
	struct town_errand *errand = town_errand_new(dataset, FOLK_PICTURES, epochs);

	ck_assert_int_eq(town_do(user, town_train, errand), 0);
	ck_assert_msg(errand->saw_all && !errand->wrong, "user %u, %s: %d %s, %u wrong",
		      (unsigned)user->uid, dataset, errand->code, errand->text, errand->wrong);
	town_errand_free(errand);
}

void folk_must_be_refused(const struct town_user *user, const char *dataset, int code,
			  const char *text)
{
	struct town_errand *errand = town_errand_new(dataset, FOLK_PICTURES, 1);

	ck_assert_int_eq(town_do(user, town_train, errand), 0);
	ck_assert_msg(errand->code == code && strstr(errand->text, text),
		      "user %u, %s: %s \"%s\", not %s \"%s\"", (unsigned)user->uid, dataset,
		      oa_error_name(errand->code), errand->text, oa_error_name(code), text);
	town_errand_free(errand);
}

/* ---- warming ---- */

struct warm { /* shared with the process that does it */
	const char *dataset;
	struct diag diag;
};

static int warm(void *arg)
{
	struct warm *warm = arg;
	const struct ctl_warm how = {
	    .dataset = warm->dataset, .pipeline = "imagenet-eval-u8", .form = "decoded"};

	return ctl_warm_run(&how, rig_host.socket, &warm->diag);
}

int folk_warm(const struct town_user *user, const char *dataset, char *ret_text)
{
	struct warm *shared =
	    mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int status;

	ck_assert_ptr_ne(shared, MAP_FAILED);
	shared->dataset = dataset;
	status = town_do(user, warm, shared);
	snprintf(ret_text, 768, "%.767s", shared->diag.text);
	munmap(shared, sizeof(*shared));
	return status;
}

/* ---- the status ---- */

/* Number `which` of the line of `list` whose member `key` has that value. All of one answer: lines move. */
static double number_of(const char *list, const char *key, double value, const char *which)
{
	struct json_in *status = rig_whole_status();
	double number = -1;

	for (unsigned i = 0; status && rig_number_at(status, list) > i; i++) {
		char path[64];

		snprintf(path, sizeof(path), "%s.%u.%s", list, i, key);
		if (rig_number_at(status, path) != value)
			continue;
		snprintf(path, sizeof(path), "%s.%u.%s", list, i, which);
		number = rig_number_at(status, path);
		break;
	}
	json_in_free(status);
	return number;
}

static bool wait_for(double (*number)(const struct town_user *user, const char *which),
		     const struct town_user *user, const char *which, double least, double most)
{
	const uint64_t end = base_now_ns() + PATIENCE_NS;
	double is = number(user, which);

	for (; (is < least || is > most) && base_now_ns() < end; is = number(user, which))
		rig_sleep_ms(20);
	if (is >= least && is <= most)
		return true;
	fprintf(stderr, "%s is %g, not %g to %g\n", which, is, least, most);
	return false;
}

static double of_tenant(const struct town_user *user, const char *which)
{
	return number_of("tenants", "uid", user->uid, which);
}

pid_t folk_tenant(const struct town_user *user, const char *which)
{
	return (pid_t)of_tenant(user, which);
}

double folk_kept(const struct town_user *user, const char *which)
{
	return user ? number_of("caches", "uid", user->uid, which)
		    : number_of("caches", "public", true, which);
}

bool folk_wait_tenant(const struct town_user *user, const char *which, double least, double most)
{
	return wait_for(of_tenant, user, which, least, most);
}

bool folk_wait_kept(const struct town_user *user, const char *which, double least, double most)
{
	return wait_for(folk_kept, user, which, least, most);
}
