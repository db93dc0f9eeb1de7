/* SPDX-License-Identifier: Apache-2.0 */

/* Data sets that are none: files that claim, notes that claim, folders of what is no picture, folders without end, and
 * pictures that change while they are read. */

#include "tests/scenarios/foe.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/hash.h"
#include "storage/oads.h"
#include "storage/wrapped.h"

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	remove(path);
	return 0;
}

static void remove_all(const char *path)
{
	nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* Opens or describes it, and perhaps hears what comes of it. */
static void use(struct foe *foe, const char *dataset)
{
	int sock = foe_greet(foe);
	struct wire_out out;
	struct wire_in in;

	if (sock < 0)
		return;
	foe_begin_open(foe, &out, foe_below(foe, 2) ? PROTO_OPEN : PROTO_DESCRIBE);
	foe_end_open(foe, &out, dataset);
	foe_send(sock, &out);
	foe_hear(foe, sock, &in);
	wire_in_fini(&in);
}

static void write_file(const char *path, const void *bytes, size_t size, off_t length)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	if (fd >= 0 && (pwrite(fd, bytes, size, 0) < 0 || ftruncate(fd, length) < 0))
		unlink(path);
	base_close(&fd);
}

/* Some kilobytes that claim to be a converted data set of any size; the file is as long as it says, of holes. */
void foe_oads(struct foe *foe)
{
	const char *path = foe_path(foe, ".oads");
	struct oads_head head = {
	    .magic = OADS_MAGIC,
	    .version = OADS_VERSION,
	    .head_bytes = sizeof(head),
	    .forms = OADS_FORMS,
	};

	head.n_samples = foe_below(foe, 3) ? UINT64_C(1) << foe_below(foe, 48) : foe_number(foe);
	head.index_bytes =
	    foe_below(foe, 3) ? head.n_samples * (8 + foe_below(foe, 120)) : foe_number(foe);
	head.index_at = OADS_FIRST;
	head.bytes = head.index_at + head.index_bytes + 8 * (head.n_samples / OADS_GROUP + 1);
	head.bytes = BASE_MIN(head.bytes, (uint64_t)INT64_MAX);
	head.head_checksum = hash_checksum(&head, sizeof(head));
	write_file(path, &head, sizeof(head),
		   foe_below(foe, 2) ? (off_t)head.bytes : (off_t)(OADS_FIRST + sizeof(head)));
	use(foe, path);
	unlink(path);
}

void foe_note(struct foe *foe)
{
	struct wrapped_note note = {
	    .magic = WRAPPED_MAGIC,
	    .count = UINT64_C(1) << foe_below(foe, 34),
	    .room = (uint32_t)BASE_MIN(foe_number(foe), (uint64_t)WRAPPED_MAX_ROOM),
	    .workers = 1 + (uint32_t)foe_below(foe, 64),
	    .seconds = 1 + (uint32_t)foe_below(foe, 1000),
	};
	const char *path = foe_path(foe, ".wrapped");

	raw_nonsense(0, &foe->noise, note.id.bytes, sizeof(note.id.bytes));
	if (mkdir(path, 0700) < 0)
		return;
	write_file(foe_path(foe, ".wrapped/" WRAPPED_NOTE), &note, sizeof(note), sizeof(note));
	use(foe, path);
	remove_all(path);
}

/* ---- folders ---- */

static void make_socket(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd >= 0 && strlen(path) < sizeof(address.sun_path)) {
		strcpy(address.sun_path, path);
		bind(fd, (struct sockaddr *)&address, sizeof(address));
	}
	base_close(&fd);
}

static void make_deep(const char *path, unsigned depth)
{
	char deep[PATH_MAX];
	size_t n = (size_t)snprintf(deep, sizeof(deep), "%s", path);

	while (depth-- > 0 && n + 3 < sizeof(deep) && mkdir(deep, 0700) == 0)
		n += (size_t)snprintf(deep + n, sizeof(deep) - n, "/d");
}

static void make_odd(struct foe *foe, const char *path)
{
	static const char *const ends[] = {"/dev/zero", "/proc/self/mem", "..", "/dev/full",
					   "/",         "self.jpg"};
	static const char claim[] = "\xff\xd8\xff\xc0\x00\x11\x08\xff\xdc\xff\xdc\x03";

	switch (foe_below(foe, 7)) {
	case 0:
		mkfifo(path, 0600);
		break;
	case 1:
		make_socket(path);
		break;
	case 2:
		if (symlink(ends[foe_below(foe, BASE_ARRAY_LEN(ends))], path) < 0)
			unlink(path);
		break;
	case 3:
		make_deep(path, (unsigned)foe_below(foe, 300));
		break;
	case 4:
		write_file(path, claim, sizeof(claim), (off_t)foe_below(foe, UINT64_C(1) << 40));
		break;
	case 5:
		rig_write_bomb(path);
		break;
	default:
		write_file(path, "", 0, 0);
		chmod(path, 0);
	}
}

void foe_odd_folder(struct foe *foe)
{
	const char *path = foe_path(foe, ".odd");
	char name[256];

	if (mkdir(path, 0700) < 0 || mkdir(foe_path(foe, ".odd/class"), 0700) < 0)
		return;
	for (unsigned i = 0, n = 1 + (unsigned)foe_below(foe, 12); i < n; i++) {
		memset(name, foe_below(foe, 2) ? '\n' : '\x9b', sizeof(name));
		snprintf(name + foe_below(foe, 200), 40, "%u.jpg", i);
		make_odd(foe, foe_path(foe, ".odd/class/%s", name));
	}
	if (foe_below(foe, 2))
		rig_write_waves(foe_path(foe, ".odd/class/good.jpg"), 1, 32);
	use(foe, path);
	remove_all(path);
}

/* Data sets without end, each of which has an index to be kept. */
void foe_many_folders(struct foe *foe)
{
	for (unsigned i = 0, n = 1 + (unsigned)foe_below(foe, 5); i < n; i++) {
		const char *path = foe_path(foe, ".many");

		if (mkdir(path, 0700) < 0 || mkdir(foe_path(foe, ".many/%u", i), 0700) < 0)
			break;
		for (unsigned k = 0; k < 3; k++)
			rig_write_waves(foe_path(foe, ".many/%u/%u.jpg", i, k), k, 16);
		use(foe, path);
		remove_all(path);
	}
}

/* ---- changes ---- */

static void change(struct foe *foe, const char *path)
{
	switch (foe_below(foe, 4)) {
	case 0:
		unlink(path);
		break;
	case 1:
		if (truncate(path, (off_t)foe_below(foe, 200)) < 0)
			unlink(path);
		break;
	case 2:
		unlink(path);
		mkfifo(path, 0600);
		break;
	default:
		rig_write_waves(path, (unsigned)foe_below(foe, 100),
				16 + (unsigned)foe_below(foe, 100));
	}
}

void foe_changes(struct foe *foe)
{
	const char *path = foe_path(foe, ".changing");
	struct wire_in opened;

	if (mkdir(path, 0700) < 0 || mkdir(foe_path(foe, ".changing/class"), 0700) < 0)
		return;
	for (unsigned i = 0; i < 20; i++)
		rig_write_waves(foe_path(foe, ".changing/class/%u.jpg", i), i, 32);
	if (foe_open(foe, path, &opened) >= 0)
		for (unsigned n = 1 + (unsigned)foe_below(foe, 10); n > 0; n--) {
			change(foe, foe_path(foe, ".changing/class/%u.jpg",
					     (unsigned)foe_below(foe, 20)));
			foe_rest(foe, 10);
		}
	wire_in_fini(&opened);
	remove_all(path);
}
