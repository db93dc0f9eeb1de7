/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Users, groups, capabilities.
 *
 * A system accessd is a user of its own that holds three capabilities: SETUID and SETGID to start
 * readers and workers as the users whose jobs it serves, KILL to end them. They are ambient, so a
 * program that it executes begins with them, and its first act is identity_become(). To do this
 * after the exec and not before it leaves no moment in which the user could trace the process: exec
 * makes a process dumpable, a change of uid makes it undumpable (unless fs.suid_dumpable is 1), and
 * here the change comes last. The user database is asked there, too: it may take its time
 * (LDAP), and nobody waits but the user whose reader it is.
 *
 * The order: groups while the gid may still be changed, the gid while the uid is the old one, the
 * uid, then all capabilities, which a change between two ordinary users does not take away. With
 * no_new_privs set, no exec brings them back, not even to root.
 */

#include "base/identity.h"

#include <grp.h>
#include <linux/capability.h>
#include <pwd.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MOST_GROUPS 65536
#define MOST_ENTRY (1 << 20) /* bytes of a line of the user database */

static const int switching[] = {CAP_SETUID, CAP_SETGID, CAP_KILL};

/* ---- texts ---- */

void identity_format(const struct identity *identity, char ret[IDENTITY_TEXT_MAX])
{
	snprintf(ret, IDENTITY_TEXT_MAX, "%u:%u%s", (unsigned)identity->uid,
		 (unsigned)identity->gid, identity->has_groups ? ":groups" : "");
}

int identity_parse(const char *text, struct identity *ret)
{
	uint64_t uid, gid;

	if (!base_parse_number(&text, IDENTITY_MOST, &uid) || *text++ != ':' ||
	    !base_parse_number(&text, IDENTITY_MOST, &gid) ||
	    (*text && strcmp(text, ":groups") != 0))
		return -EINVAL;
	*ret = (struct identity){(uid_t)uid, (gid_t)gid, .has_groups = *text != '\0'};
	return 0;
}

/* ---- the user database ---- */

/* One entry, by name or (name NULL) by uid; *ret_text holds its texts, the caller frees it. 0, -ENOENT,
 * negative errno. */
static int look_up(const char *name, uid_t uid, struct passwd *ret, char **ret_text)
{
	for (size_t size = 4096; size <= MOST_ENTRY; size *= 2) {
		_cleanup_free_ char *text = malloc(size);
		struct passwd *found = NULL;
		int r;

		if (!text)
			return -ENOMEM;
		r = name ? getpwnam_r(name, ret, text, size, &found)
			 : getpwuid_r(uid, ret, text, size, &found);
		if (r == ERANGE)
			continue;
		if (!found)
			return r && r != ESRCH && r != EBADF && r != EPERM ? -r : -ENOENT;
		*ret_text = base_take_ptr(text);
		return 0;
	}
	return -ERANGE;
}

int identity_of_user(const char *user, struct identity *ret)
{
	_cleanup_free_ char *text = NULL;
	struct passwd entry;
	uint64_t number;
	int r = look_up(user, 0, &entry, &text);

	if (r == 0) {
		*ret = (struct identity){.uid = entry.pw_uid, .gid = entry.pw_gid};
		return 0;
	}
	if (!base_parse_number(&user, IDENTITY_MOST, &number) || *user)
		return r;
	*ret = (struct identity){.uid = (uid_t)number, .gid = (gid_t)number};
	if (look_up(NULL, (uid_t)number, &entry, &text) == 0)
		ret->gid = entry.pw_gid;
	return 0;
}

int identity_of_group(const char *group, gid_t *ret)
{
	uint64_t number;

	for (size_t size = 4096; size <= MOST_ENTRY; size *= 2) {
		_cleanup_free_ char *text = malloc(size);
		struct group entry, *found = NULL;
		int r;

		if (!text)
			return -ENOMEM;
		r = getgrnam_r(group, &entry, text, size, &found);
		if (r == ERANGE)
			continue;
		if (!found)
			break;
		*ret = entry.gr_gid;
		return 0;
	}
	if (!base_parse_number(&group, IDENTITY_MOST, &number) || *group)
		return -ENOENT;
	*ret = (gid_t)number;
	return 0;
}

/* Who is in no database, or in one that does not answer, has the one group that he has. */
static int take_groups(const struct identity *identity)
{
	_cleanup_free_ char *text = NULL;
	_cleanup_free_ gid_t *groups = NULL;
	struct passwd entry;
	int n = MOST_GROUPS;

	if (!identity->has_groups || look_up(NULL, identity->uid, &entry, &text))
		return setgroups(0, NULL) < 0 ? -errno : 0;
	groups = malloc(MOST_GROUPS * sizeof(*groups));
	if (!groups)
		return -ENOMEM;
	if (getgrouplist(entry.pw_name, identity->gid, groups, &n) < 0)
		return -E2BIG;
	return setgroups((size_t)n, groups) < 0 ? -errno : 0;
}

/* ---- capabilities ---- */

static int get_capabilities(struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3])
{
	struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};

	return syscall(SYS_capget, &head, data) < 0 ? -errno : 0;
}

/* permitted, effective and inheritable: these and no others; none of them is ambient. */
static int set_capabilities(const int *capability, size_t n)
{
	struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {{0, 0, 0}, {0, 0, 0}};

	for (size_t i = 0; i < n; i++) {
		struct __user_cap_data_struct *word = &data[CAP_TO_INDEX(capability[i])];

		word->permitted |= CAP_TO_MASK(capability[i]);
		word->effective = word->inheritable = word->permitted;
	}
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
		return -errno;
	return syscall(SYS_capset, &head, data) < 0 ? -errno : 0;
}

int identity_drop_switching(void)
{
	return set_capabilities(NULL, 0);
}

bool identity_can_switch(void)
{
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

	if (get_capabilities(data))
		return false;
	for (size_t i = 0; i < BASE_ARRAY_LEN(switching); i++)
		if (!(data[CAP_TO_INDEX(switching[i])].effective & CAP_TO_MASK(switching[i])))
			return false;
	return true;
}

static int raise_ambient(void)
{
	for (size_t i = 0; i < BASE_ARRAY_LEN(switching); i++)
		if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, switching[i], 0, 0) < 0)
			return -errno;
	return 0;
}

/* ---- becoming ---- */

static int set_ids(const struct identity *identity)
{
	if (setresgid(identity->gid, identity->gid, identity->gid) < 0)
		return -errno;
	return setresuid(identity->uid, identity->uid, identity->uid) < 0 ? -errno : 0;
}

int identity_keep_switching(const struct identity *identity)
{
	int r;

	if (prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) < 0 || setgroups(0, NULL) < 0)
		return -errno;
	r = set_ids(identity);
	r = r ? r : set_capabilities(switching, BASE_ARRAY_LEN(switching));
	r = r ? r : raise_ambient();
	return r || prctl(PR_SET_KEEPCAPS, 0, 0, 0, 0) == 0 ? r : -errno;
}

static bool ids_are(const struct identity *identity)
{
	uid_t uid[3];
	gid_t gid[3];

	if (getresuid(&uid[0], &uid[1], &uid[2]) < 0 || getresgid(&gid[0], &gid[1], &gid[2]) < 0)
		return false;
	for (size_t i = 0; i < 3; i++)
		if (uid[i] != identity->uid || gid[i] != identity->gid)
			return false;
	return true;
}

static bool has_capabilities(void)
{
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

	return get_capabilities(data) || data[0].permitted || data[1].permitted ||
	       data[0].inheritable || data[1].inheritable;
}

/* old: who it was. What must fail is tried. */
static int verify(const struct identity *identity, uid_t old)
{
	if (!ids_are(identity) || has_capabilities())
		return -EPERM;
	if (old != identity->uid && setresuid((uid_t)-1, old, (uid_t)-1) == 0)
		return -EPERM;
	if (identity->uid != 0 && setresuid(0, 0, 0) == 0)
		return -EPERM;
	return 0;
}

int identity_become(const struct identity *identity)
{
	const uid_t old = geteuid();
	int r;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -errno;
	r = take_groups(identity);
	r = r ? r : set_ids(identity);
	r = r ? r : set_capabilities(NULL, 0);
	r = r ? r : verify(identity, old);
	return r || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0 ? r : -errno;
}
