/* SPDX-License-Identifier: Apache-2.0 */

#include "tests/storage/tree.h"
#include "tests/suite.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static struct tree tree;

/* openat() of this program: so that a test can do something while the walk is just there, at the
 * first folder whose name begins so. Whoever comes there takes `act`, and does it once. */
static struct at_open {
	char folder;
	bool is_after; /* what is opened is open already */
	void (*act)(void);
} at_open;
static pthread_mutex_t at_open_lock = PTHREAD_MUTEX_INITIALIZER;

#define SCAN_REPLACES(symbol) __asm__(symbol) __attribute__((visibility("default")))

int scan_openat(int fd, const char *path, int flags, ...) SCAN_REPLACES("openat");
int scan_openat64(int fd, const char *path, int flags, ...) SCAN_REPLACES("openat64");

static int act_and_open(int fd, const char *path, int flags, unsigned mode)
{
	struct at_open now = {.act = NULL};
	int opened;

	pthread_mutex_lock(&at_open_lock);
	if ((flags & O_DIRECTORY) && *path == at_open.folder) {
		now = at_open;
		at_open.act = NULL;
	}
	pthread_mutex_unlock(&at_open_lock);
	if (now.act && !now.is_after)
		now.act();
	opened = (int)syscall(SYS_openat, fd, path, flags, mode);
	if (now.act && now.is_after)
		now.act();
	return opened;
}

static unsigned mode_of(int flags, va_list args)
{
	return flags & O_CREAT ? va_arg(args, unsigned) : 0;
}

int scan_openat(int fd, const char *path, int flags, ...)
{
	va_list args;
	unsigned mode;

	va_start(args, flags);
	mode = mode_of(flags, args);
	va_end(args);
	return act_and_open(fd, path, flags, mode);
}

int scan_openat64(int fd, const char *path, int flags, ...)
{
	va_list args;
	unsigned mode;

	va_start(args, flags);
	mode = mode_of(flags, args);
	va_end(args);
	return act_and_open(fd, path, flags, mode);
}

static void setup(void)
{
	tree_new(&tree);
}

static void teardown(void)
{
	tree_remove(&tree);
}

struct expected {
	const char *name;
	uint32_t label;
};

static void expect(const struct dataset *dataset, const struct expected *expected, size_t n)
{
	ck_assert_uint_eq(dataset_count(dataset), n);
	for (size_t i = 0; i < n; i++) {
		ck_assert_str_eq(dataset_name_of(dataset, i), expected[i].name);
		ck_assert_uint_eq(dataset_label_of(dataset, i), expected[i].label);
	}
}

/* ---- order and labels ---- */

/* What torchvision.datasets.ImageFolder(root).samples gives for the same tree. */
START_TEST(samples_are_numbered_as_imagefolder_does)
{
	static const char *const files[] = {
	    "b/2.jpg",    "b/10.jpg", "a/z/1.png",      "a/0.JPEG",  "a/z y/3.tif",
	    "a b/1.webp", "root.jpg", "a/no.txt",       "a/z/2.Bmp", "B/x.pgm",
	    "a/jpg",      "a/.jpg",   "\xc3\xa9/q.ppm", "a/z.jpg",   "b/c/d/e/f.jpeg",
	    "b/c/0.tiff", "a/no.dib", "a/no.gif",
	};
	static const struct expected expected[] = {
	    {"B/x.pgm", 0},        {"a/.jpg", 1},    {"a/0.JPEG", 1},    {"a/z.jpg", 1},
	    {"a/z/1.png", 1},      {"a/z/2.Bmp", 1}, {"a/z y/3.tif", 1}, {"a b/1.webp", 2},
	    {"b/10.jpg", 3},       {"b/2.jpg", 3},   {"b/c/0.tiff", 3},  {"b/c/d/e/f.jpeg", 3},
	    {"\xc3\xa9/q.ppm", 4},
	};
	static const char *const classes[] = {"B", "a", "a b", "b", "\xc3\xa9"};
	struct dataset *dataset;

	for (size_t i = 0; i < BASE_ARRAY_LEN(files); i++)
		tree_file(&tree, files[i], 10 + i);
	dataset = tree_scan(&tree, 3);
	expect(dataset, expected, BASE_ARRAY_LEN(expected));
	ck_assert_uint_eq(dataset_classes(dataset), BASE_ARRAY_LEN(classes));
	for (uint32_t i = 0; i < BASE_ARRAY_LEN(classes); i++)
		ck_assert_str_eq(dataset_class_name(dataset, i), classes[i]);
	dataset_unmap(dataset);
}
END_TEST

START_TEST(flat_folder_has_no_classes)
{
	static const struct expected expected[] = {{"1.jpg", 0}, {"10.jpg", 0}, {"2.jpg", 0}};
	struct dataset *dataset;
	uint64_t bytes = 0;

	tree_file(&tree, "2.jpg", 7);
	tree_file(&tree, "10.jpg", 0);
	tree_file(&tree, "1.jpg", 5);
	tree_file(&tree, "notes/readme.txt", 5);
	tree_folder(&tree, ".cache");
	tree_mtime(&tree, "2.jpg", -5, 123456789);
	dataset = tree_scan(&tree, 1);
	expect(dataset, expected, BASE_ARRAY_LEN(expected));
	ck_assert_uint_eq(dataset_classes(dataset), 0);
	for (uint64_t i = 0; i < 3; i++)
		bytes += dataset_size_of(dataset, i);
	ck_assert_uint_eq(bytes, 12);
	ck_assert_uint_eq(dataset_head(dataset)->sum_bytes, 12);
	ck_assert_int_eq(dataset_mtime_of(dataset, 2), INT64_C(-5000000000) + 123456789);
	ck_assert_uint_eq(dataset_head(dataset)->n_folders, 3);
	dataset_unmap(dataset);
}
END_TEST

START_TEST(sounds_count_where_there_is_no_picture)
{
	static const struct expected sounds[] = {{"no/1.OGG", 0},  {"no/2.flac", 0},
						 {"no/3.mp3", 0},  {"no/4.m4a", 0},
						 {"yes/b.wav", 1}, {"yes/a/1.opus", 1}};
	static const struct expected pictures[] = {
	    {"no/1.png", 0}, {"then/1.jpg", 1}, {"yes/c.jpg", 2}};
	struct dataset *dataset;
	struct diag diag;

	tree_file(&tree, "yes/a/1.opus", 3);
	tree_file(&tree, "yes/b.wav", 3);
	tree_file(&tree, "no/2.flac", 3);
	tree_file(&tree, "no/1.OGG", 3);
	tree_file(&tree, "no/3.mp3", 3);
	tree_file(&tree, "no/4.m4a", 3);
	tree_file(&tree, "no/1.txt", 3);
	tree_file(&tree, "beside.wav", 3);
	dataset = tree_scan(&tree, 2);
	expect(dataset, sounds, BASE_ARRAY_LEN(sounds));
	ck_assert_uint_eq(dataset_classes(dataset), 2);
	dataset_unmap(dataset);
	tree_folder(&tree, "then");
	ck_assert_int_eq(tree_scan_fails(&tree, &diag), DATASET_E_REFUSED);
	ck_assert_ptr_nonnull(strstr(diag.text, "found no sound for the class folder \"then\""));
	ck_assert_ptr_nonnull(strstr(diag.text, ".flac"));
	tree_file(&tree, "then/1.jpg", 3);
	tree_file(&tree, "no/1.png", 3);
	tree_file(&tree, "yes/c.jpg", 3);
	dataset = tree_scan(&tree, 2);
	expect(dataset, pictures, BASE_ARRAY_LEN(pictures));
	dataset_unmap(dataset);
}
END_TEST

START_TEST(videos_count_where_there_is_neither)
{
	static const struct expected videos[] = {
	    {"run/1.mp4", 0},   {"run/2.MOV", 0},  {"run/3.m4v", 0},
	    {"run/4.ogv", 0},   {"swim/b.mkv", 1}, {"swim/c.avi", 1},
	    {"swim/d.m2ts", 1}, {"swim/e.MTS", 1}, {"swim/a/1.webm", 1}};
	static const struct expected sounds[] = {
	    {"run/1.wav", 0}, {"swim/1.wav", 1}, {"then/1.mp3", 2}};
	struct dataset *dataset;
	struct diag diag;

	for (unsigned i = 0; i < BASE_ARRAY_LEN(videos); i++)
		tree_file(&tree, videos[i].name, 3);
	tree_file(&tree, "run/1.ts", 3);
	tree_file(&tree, "run/mp4", 3);
	tree_file(&tree, "beside.mp4", 3);
	dataset = tree_scan(&tree, 2);
	expect(dataset, videos, BASE_ARRAY_LEN(videos));
	dataset_unmap(dataset);
	tree_folder(&tree, "then");
	ck_assert_int_eq(tree_scan_fails(&tree, &diag), DATASET_E_REFUSED);
	ck_assert_ptr_nonnull(strstr(diag.text, "found no video for the class folder \"then\""));
	tree_file(&tree, "run/1.wav", 3);
	ck_assert_int_eq(tree_scan_fails(&tree, &diag), DATASET_E_REFUSED);
	ck_assert_ptr_nonnull(strstr(diag.text, "found no sound for the class folder \"swim\""));
	tree_file(&tree, "swim/1.wav", 3);
	tree_file(&tree, "then/1.mp3", 3);
	dataset = tree_scan(&tree, 2);
	expect(dataset, sounds, BASE_ARRAY_LEN(sounds));
	dataset_unmap(dataset);
}
END_TEST

START_TEST(point_clouds_count_last)
{
	static const struct expected clouds[] = {
	    {"chair/1.ply", 0}, {"chair/2.PCD", 0}, {"chair/3.bin", 0},
	    {"desk/1.xyz", 1},  {"desk/2.npy", 1},  {"desk/3.pts", 1},
	};
	static const struct expected videos[] = {{"chair/1.mp4", 0}, {"desk/1.mov", 1}};
	struct dataset *dataset;
	struct diag diag;

	for (unsigned i = 0; i < BASE_ARRAY_LEN(clouds); i++)
		tree_file(&tree, clouds[i].name, 3);
	tree_file(&tree, "chair/readme.txt", 3);
	dataset = tree_scan(&tree, 2);
	expect(dataset, clouds, BASE_ARRAY_LEN(clouds));
	dataset_unmap(dataset);
	tree_file(&tree, "chair/1.mp4", 3);
	ck_assert_int_eq(tree_scan_fails(&tree, &diag), DATASET_E_REFUSED);
	ck_assert_ptr_nonnull(strstr(diag.text, "found no video for the class folder \"desk\""));
	tree_file(&tree, "desk/1.mov", 3);
	dataset = tree_scan(&tree, 2);
	expect(dataset, videos, BASE_ARRAY_LEN(videos));
	dataset_unmap(dataset);
}
END_TEST

START_TEST(names_are_kept_as_they_are)
{
	static const struct expected expected[] = {
	    {"\x01.jpg", 0}, {"..jpg", 0},       {"...jpg", 0},
	    {"a\nb.jpg", 0}, {"a\"\\ b.jpg", 0}, {"\xff\xfe.jpg", 0},
	};
	struct dataset *dataset;

	for (size_t i = 0; i < BASE_ARRAY_LEN(expected); i++)
		tree_file(&tree, expected[i].name, 1);
	dataset = tree_scan(&tree, 2);
	ck_assert_uint_eq(dataset_count(dataset), BASE_ARRAY_LEN(expected));
	for (uint64_t i = 0; i < BASE_ARRAY_LEN(expected); i++) {
		bool found = false;

		for (uint64_t k = 0; k < BASE_ARRAY_LEN(expected); k++)
			found |= !strcmp(dataset_name_of(dataset, k), expected[i].name);
		ck_assert_msg(found, "name %u is missing", (unsigned)i);
	}
	for (uint64_t i = 1; i < dataset_count(dataset); i++)
		ck_assert_int_lt(
		    strcmp(dataset_name_of(dataset, i - 1), dataset_name_of(dataset, i)), 0);
	dataset_unmap(dataset);
}
END_TEST

START_TEST(links_are_followed_and_specials_ignored)
{
	static const struct expected expected[] = {
	    {"a/1.jpg", 0},
	    {"a/link.jpg", 0},
	    {"b/1.jpg", 1},
	    {"b/link.jpg", 1},
	};
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	const int sock = socket(AF_UNIX, SOCK_STREAM, 0);
	struct dataset *dataset;

	tree_file(&tree, "a/1.jpg", 3);
	tree_link(&tree, "1.jpg", "a/link.jpg");
	tree_link(&tree, "a", "b");
	tree_link(&tree, "nothing", "a/dangling");
	tree_link(&tree, "circle", "a/circle");
	ck_assert_int_eq(mkfifoat(tree.fd, "a/fifo.jpg", 0600), 0);
	tree_link(&tree, "fifo.jpg", "a/to-fifo.jpg");
	snprintf(address.sun_path, sizeof(address.sun_path), "s.jpg");
	ck_assert_int_eq(fchdir(tree.fd), 0);
	ck_assert_int_eq(bind(sock, (struct sockaddr *)&address, sizeof(address)), 0);
	ck_assert_int_eq(chdir(".."), 0);
	dataset = tree_scan(&tree, 2);
	expect(dataset, expected, BASE_ARRAY_LEN(expected));
	dataset_unmap(dataset);
	close(sock);
}
END_TEST

struct left {
	unsigned calls;
	uint64_t count;
	char names[400];
};

static void left_tell(void *arg, uint64_t count, const char *names)
{
	struct left *left = arg;

	left->calls++;
	left->count = count;
	snprintf(left->names, sizeof(left->names), "%s", names);
}

/* Counted, the first three named; what has no picture's name is nobody's loss. */
START_TEST(what_is_no_file_is_told)
{
	static const char *const fifos[] = {"fifo.jpg", "a/fifo\n.png", "a/last.tif", "a/pipe"};
	struct left left = {0};
	const struct scan_progress progress = {.left_out = left_tell, .arg = &left};
	struct diag diag;
	int fd = -1;

	tree_file(&tree, "a/1.jpg", 3);
	ck_assert_int_eq(scan_build(tree.fd, "set", 2, &progress, &fd, &diag), 0);
	ck_assert_uint_eq(left.calls, 0);
	close(fd);
	for (size_t i = 0; i < BASE_ARRAY_LEN(fifos); i++)
		ck_assert_int_eq(mkfifoat(tree.fd, fifos[i], 0600), 0);
	ck_assert_int_eq(scan_build(tree.fd, "set", 2, &progress, &fd, &diag), 0);
	ck_assert_uint_eq(left.calls, 1);
	ck_assert_uint_eq(left.count, 3);
	ck_assert_ptr_nonnull(strstr(left.names, "fifo.jpg"));
	ck_assert_ptr_nonnull(strstr(left.names, "a/fifo\\x0a.png"));
	ck_assert_ptr_nonnull(strstr(left.names, "a/last.tif"));
	close(fd);
	tree_link(&tree, "last.tif", "a/to-last.jpg");
	ck_assert_int_eq(scan_build(tree.fd, "set", 2, &progress, &fd, &diag), 0);
	ck_assert_uint_eq(left.count, 4);
	close(fd);
}
END_TEST

/* ---- refusals ---- */

START_TEST(a_dataset_of_fifos_names_them)
{
	struct diag diag;

	ck_assert_int_eq(mkfifoat(tree.fd, "stream.jpg", 0600), 0);
	ck_assert_int_eq(tree_scan_fails(&tree, &diag), DATASET_E_EMPTY);
	ck_assert_msg(strstr(diag.text, "FIFOs, sockets and devices do not: stream.jpg") != NULL,
		      "%s", diag.text);
}
END_TEST

START_TEST(empty_dataset_names_the_suffixes)
{
	struct diag diag;

	tree_file(&tree, "a/readme.txt", 3);
	ck_assert_int_eq(tree_scan_fails(&tree, &diag), DATASET_E_EMPTY);
	ck_assert_ptr_nonnull(strstr(diag.text, ".webp"));
	ck_assert_ptr_nonnull(strstr(diag.text, ".m2ts"));
	ck_assert_ptr_nonnull(
	    strstr(diag.text, "a list takes files of other names, MPEG's .ts too"));
}
END_TEST

START_TEST(class_without_picture_is_named)
{
	struct diag diag;

	tree_file(&tree, "cat/deep/er/1.jpg", 3);
	tree_file(&tree, "dog/readme.txt", 3);
	tree_file(&tree, "eel/1.jpg", 3);
	ck_assert_int_eq(tree_scan_fails(&tree, &diag), DATASET_E_REFUSED);
	ck_assert_ptr_nonnull(strstr(diag.text, "\"dog\""));
}
END_TEST

START_TEST(last_class_without_picture_is_named)
{
	struct diag diag;

	tree_file(&tree, "cat/1.jpg", 3);
	tree_folder(&tree, "dog/empty/deep");
	ck_assert_int_eq(tree_scan_fails(&tree, &diag), DATASET_E_REFUSED);
	ck_assert_ptr_nonnull(strstr(diag.text, "\"dog\""));
}
END_TEST

START_TEST(loop_of_links_is_refused_with_its_path)
{
	struct diag diag;

	tree_file(&tree, "a/b/1.jpg", 3);
	tree_link(&tree, "../..", "a/b/up");
	ck_assert_int_eq(tree_scan_fails(&tree, &diag), DATASET_E_REFUSED);
	ck_assert_ptr_nonnull(strstr(diag.text, "\"a/b/up\""));
	ck_assert_ptr_nonnull(strstr(diag.text, "remove"));
}
END_TEST

START_TEST(dangling_picture_is_refused)
{
	struct diag diag;

	tree_file(&tree, "a/1.jpg", 3);
	tree_link(&tree, "gone.jpg", "a/2.jpg");
	ck_assert_int_eq(tree_scan_fails(&tree, &diag), DATASET_E_REFUSED);
	ck_assert_ptr_nonnull(strstr(diag.text, "\"a/2.jpg\""));
}
END_TEST

START_TEST(huge_file_is_refused_by_name)
{
	struct diag diag;
	int fd;

	tree_file(&tree, "a/1.jpg", 3);
	tree_file(&tree, "a/huge.png", 3);
	fd = openat(tree.fd, "a/huge.png", O_WRONLY);
	ck_assert_int_eq(ftruncate(fd, (off_t)1 << 32), 0);
	ck_assert_int_eq(tree_scan_fails(&tree, &diag), DATASET_E_REFUSED);
	ck_assert_ptr_nonnull(strstr(diag.text, "\"a/huge.png\""));
	ck_assert_int_eq(ftruncate(fd, ((off_t)1 << 32) - 1), 0);
	close(fd);
	dataset_unmap(tree_scan(&tree, 1));
}
END_TEST

/* Runs fn as a user who is not root; its result comes back. */
static int as_nobody(int (*fn)(void))
{
	int status;
	pid_t child = fork();

	if (child == 0) {
		if (geteuid() == 0 && (setgroups(0, NULL) || setresgid(65534, 65534, 65534) ||
				       setresuid(65534, 65534, 65534)))
			_exit(99);
		_exit(fn());
	}
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static int scan_finds_the_closed_folder(void)
{
	struct diag diag;
	int fd;

	if (scan_build(tree.fd, "the set", 2, NULL, &fd, &diag) != DATASET_E_REFUSED)
		return 1;
	if (!strstr(diag.text, "\"b/closed\"") || !strstr(diag.text, "Permission denied"))
		return 2;
	return strstr(diag.text, "chmod") ? 0 : 3;
}

START_TEST(unreadable_folder_is_refused_with_its_path)
{
	tree_file(&tree, "a/1.jpg", 3);
	tree_file(&tree, "b/closed/1.jpg", 3);
	ck_assert_int_eq(fchmodat(tree.fd, "b/closed", 0, 0), 0);
	ck_assert_int_eq(as_nobody(scan_finds_the_closed_folder), 0);
	ck_assert_int_eq(fchmodat(tree.fd, "b/closed", 0755, 0), 0);
	dataset_unmap(tree_scan(&tree, 2));
}
END_TEST

/* ---- progress, size ---- */

struct watch {
	uint64_t folders, files, calls;
	bool cancel;
	atomic_uint asked;
};

static void watch_tell(void *arg, uint64_t folders, uint64_t files)
{
	struct watch *watch = arg;

	ck_assert_uint_ge(folders, watch->folders);
	ck_assert_uint_ge(files, watch->files);
	watch->folders = folders;
	watch->files = files;
	watch->calls++;
}

static bool watch_cancelled(void *arg)
{
	struct watch *watch = arg;

	watch->asked++;
	return watch->cancel;
}

static void remove_others(void)
{
	for (unsigned i = 0; i < 8; i++) {
		char name[32];

		snprintf(name, sizeof(name), "v%u/1.jpg", i);
		ck_assert_int_eq(unlinkat(tree.fd, name, 0), 0);
		*strchr(name, '/') = 0;
		ck_assert_int_eq(unlinkat(tree.fd, name, AT_REMOVEDIR), 0);
	}
}

/* All folders but "keep" are taken away just before, or just after, the first of them is opened. */
START_TEST(folders_removed_meanwhile_are_no_part_of_it)
{
	struct dataset *dataset;
	struct diag diag = {.text = ""};
	int fd = -1;

	tree_file(&tree, "keep/1.jpg", 10);
	tree_mtime(&tree, "keep", 1000, 1);
	for (unsigned i = 0; i < 8; i++) {
		char name[32];

		snprintf(name, sizeof(name), "v%u/1.jpg", i);
		tree_file(&tree, name, 10);
	}
	tree_mtime(&tree, ".", 1000, 1);
	at_open = (struct at_open){.folder = 'v', .is_after = _i, .act = remove_others};
	ck_assert_msg(scan_build(tree.fd, "set", 1, NULL, &fd, &diag) == 0, "%s", diag.text);
	ck_assert_ptr_null(at_open.act);
	ck_assert_int_eq(dataset_map(fd, &dataset), 0);
	ck_assert_uint_eq(dataset_count(dataset), 1);
	ck_assert_uint_eq(dataset_classes(dataset), 1);
	ck_assert_uint_eq(dataset_head(dataset)->n_folders, 2);
	ck_assert_int_eq(scan_verify(tree.fd, "set", dataset, &diag), DATASET_E_CHANGED);
	dataset_unmap(dataset);
	close(fd);
}
END_TEST

static struct watch watch;

/* Until the walk has surely been stopped: it is asked for the second time after that. */
static void wait_until_cancelled(void)
{
	while (watch.asked < 2)
		usleep(1000);
}

START_TEST(progress_is_told_and_can_cancel)
{
	const struct scan_progress progress = {
	    .tell = watch_tell, .cancelled = watch_cancelled, .arg = &watch};
	struct diag diag;
	int fd = -1;

	for (unsigned i = 0; i < 300; i++) {
		char name[64];

		snprintf(name, sizeof(name), "c%u/%u.jpg", i % 7, i);
		tree_file(&tree, name, 1);
	}
	ck_assert_int_eq(scan_build(tree.fd, "set", 2, &progress, &fd, &diag), 0);
	ck_assert_uint_ge(watch.calls, 1);
	ck_assert_uint_eq(watch.folders, 8);
	ck_assert_uint_eq(watch.files, 300);
	close(fd);
	fd = -1;
	watch = (struct watch){.cancel = true};
	at_open = (struct at_open){.folder = 'c', .act = wait_until_cancelled};
	ck_assert_int_eq(scan_build(tree.fd, "set", 2, &progress, &fd, &diag), DATASET_E_CANCELLED);
	ck_assert_int_eq(fd, -1);
}
END_TEST

struct purse {
	uint64_t most, asked;
};

static bool purse_takes(void *arg, uint64_t bytes)
{
	struct purse *purse = arg;

	purse->asked = BASE_MAX(purse->asked, bytes);
	return bytes <= purse->most;
}

/* Whatever it is given less than it asked for, it asks for all that it has, and takes no more. */
START_TEST(memory_is_asked_for)
{
	struct purse purse = {.most = UINT64_MAX};
	const struct scan_progress progress = {.takes = purse_takes, .arg = &purse};
	struct diag diag;
	struct stat st;
	int fd = -1;

	for (unsigned i = 0; i < 300; i++) {
		char name[64];

		snprintf(name, sizeof(name), "c%u/%u.jpg", i % 7, i);
		tree_file(&tree, name, 1);
	}
	ck_assert_int_eq(scan_build(tree.fd, "set", 2, &progress, &fd, &diag), 0);
	ck_assert_int_eq(fstat(fd, &st), 0);
	ck_assert_uint_gt(purse.asked, (uint64_t)st.st_size);
	close(fd);
	fd = -1;
	purse.most = purse.asked - 1;
	ck_assert_int_eq(scan_build(tree.fd, "set", 2, &progress, &fd, &diag), DATASET_E_ROOM);
	purse.most = 100; /* not even the list */
	ck_assert_int_eq(scan_build(tree.fd, "set", 2, &progress, &fd, &diag), DATASET_E_ROOM);
	ck_assert_int_eq(fd, -1);
}
END_TEST

START_TEST(large_flat_folder_is_the_same_for_any_threads)
{
	enum { FILES = 100000 };
	struct dataset *one, *many;

	for (unsigned i = 0; i < FILES; i++) { /* names of four files: quick to make */
		char name[64], first[64];

		snprintf(first, sizeof(first), "%08x.jpg", i % 4 * 2654435761u);
		snprintf(name, sizeof(name), "%08x.jpg", i * 2654435761u);
		if (i < 4)
			tree_file(&tree, name, i);
		else
			ck_assert_int_eq(linkat(tree.fd, first, tree.fd, name, 0), 0);
	}
	one = tree_scan(&tree, 1);
	many = tree_scan(&tree, 8);
	ck_assert_uint_eq(dataset_count(one), FILES);
	ck_assert_uint_eq(dataset_count(many), FILES);
	ck_assert_mem_eq(dataset_version(one), dataset_version(many), 32);
	for (uint64_t i = 1; i < FILES; i++)
		ck_assert_int_lt(strcmp(dataset_name_of(many, i - 1), dataset_name_of(many, i)), 0);
	dataset_unmap(one);
	dataset_unmap(many);
}
END_TEST

START_TEST(many_folders_are_the_same_for_any_threads)
{
	struct dataset *one, *many;

	for (unsigned i = 0; i < 2000; i++) {
		char name[64];

		snprintf(name, sizeof(name), "%u/%u/%u/%u.jpg", i % 3, i % 11, i % 31, i);
		tree_file(&tree, name, i % 5);
	}
	one = tree_scan(&tree, 1);
	many = tree_scan(&tree, 8);
	ck_assert_uint_eq(dataset_count(one), 2000);
	ck_assert_uint_eq(dataset_classes(many), 3);
	ck_assert_mem_eq(dataset_version(one), dataset_version(many), 32);
	dataset_unmap(one);
	dataset_unmap(many);
}
END_TEST

/* ---- version and verification ---- */

static struct hash_id version_now(void)
{
	struct dataset *dataset = tree_scan(&tree, 2);
	const struct hash_id id = *dataset_version(dataset);

	dataset_unmap(dataset);
	return id;
}

static void make_three(void)
{
	tree_file(&tree, "a/1.jpg", 10);
	tree_file(&tree, "a/2.jpg", 20);
	tree_file(&tree, "b/3.jpg", 30);
	tree_mtime(&tree, "a/1.jpg", 1000, 1);
	tree_mtime(&tree, "a/2.jpg", 1000, 2);
	tree_mtime(&tree, "b/3.jpg", 1000, 3);
}

static void rewrite_same(void)
{
	tree_file(&tree, "a/1.jpg", 10);
	tree_mtime(&tree, "a/1.jpg", 1000, 1);
}
static void add_note(void)
{
	tree_file(&tree, "a/note.txt", 3);
}
static void add_root_file(void)
{
	tree_file(&tree, "root.jpg", 3);
}
static void touch(void)
{
	tree_mtime(&tree, "a/1.jpg", 1000, 2);
}
static void lengthen(void)
{
	tree_file(&tree, "a/1.jpg", 11);
	tree_mtime(&tree, "a/1.jpg", 1000, 1);
}
static void rename_file(void)
{
	ck_assert_int_eq(renameat(tree.fd, "a/1.jpg", tree.fd, "a/0.jpg"), 0);
}
static void rename_class(void)
{
	ck_assert_int_eq(renameat(tree.fd, "a", tree.fd, "c"), 0);
}
static void remove_file(void)
{
	ck_assert_int_eq(unlinkat(tree.fd, "b/3.jpg", 0), 0);
	tree_file(&tree, "b/4.jpg", 30);
	tree_mtime(&tree, "b/4.jpg", 1000, 3);
}
static void add_picture(void)
{
	tree_file(&tree, "b/4.jpg", 3);
}

static const struct change {
	void (*make)(void);
	bool new_version;    /* of the dataset */
	bool folder_changes; /* so that stat of the folders shows it */
} changes[] = {
    {rewrite_same, false, false}, {add_note, false, true},   {add_root_file, false, true},
    {touch, true, false},         {lengthen, true, false},   {rename_file, true, true},
    {rename_class, true, true},   {remove_file, true, true}, {add_picture, true, true},
};

START_TEST(version_follows_names_sizes_and_times)
{
	const struct change *change = &changes[_i];
	struct dataset *dataset;
	struct hash_id before, after;
	struct diag diag;

	make_three();
	dataset = tree_scan(&tree, 2);
	before = *dataset_version(dataset);
	ck_assert_int_eq(scan_verify(tree.fd, tree.path, dataset, &diag), 0);
	change->make();
	ck_assert_int_eq(scan_verify(tree.fd, tree.path, dataset, &diag),
			 change->folder_changes ? DATASET_E_CHANGED : 0);
	dataset_unmap(dataset);
	after = version_now();
	ck_assert_int_eq(memcmp(&before, &after, sizeof(before)) != 0, change->new_version);
}
END_TEST

START_TEST(version_follows_the_label_rule)
{
	struct hash_id below, flat;

	tree_file(&tree, "a/1.jpg", 10);
	tree_mtime(&tree, "a/1.jpg", 1000, 1);
	below = version_now();
	ck_assert_int_eq(renameat(tree.fd, "a/1.jpg", tree.fd, "1.jpg"), 0);
	flat = version_now();
	ck_assert_mem_ne(&below, &flat, sizeof(below));
}
END_TEST

/* SHA-256 over u64 1, u64 1, "a/1.jpg\0", u64 10, i64 1000000000001: never another for the same. */
START_TEST(version_is_frozen)
{
	static const char hex[] =
	    "2a361be5a2c7e322809a60c5ec00b3b8878a375090d06e54150797f1f8324941";
	struct hash_id version;
	char text[65];

	tree_file(&tree, "a/1.jpg", 10);
	tree_mtime(&tree, "a/1.jpg", 1000, 1);
	version = version_now();
	ck_assert_str_eq(hash_hex(&version, text), hex);
}
END_TEST

/* A change within the tick of the listing must not hide behind an equal mtime. */
START_TEST(changes_right_after_the_listing_are_found)
{
	for (unsigned i = 0; i < 10; i++) {
		struct dataset *dataset;
		struct diag diag;
		char name[32];

		snprintf(name, sizeof(name), "%u.jpg", i);
		tree_file(&tree, name, 1);
		dataset = tree_scan(&tree, 2);
		ck_assert_int_eq(scan_verify(tree.fd, tree.path, dataset, &diag), 0);
		snprintf(name, sizeof(name), "%u-more.jpg", i);
		tree_file(&tree, name, 1);
		ck_assert_int_eq(scan_verify(tree.fd, tree.path, dataset, &diag),
				 DATASET_E_CHANGED);
		dataset_unmap(dataset);
	}
}
END_TEST

START_TEST(replaced_folder_is_found)
{
	struct dataset *dataset;
	struct diag diag;
	struct stat st;

	make_three();
	dataset = tree_scan(&tree, 2);
	ck_assert_int_eq(fstatat(tree.fd, "b", &st, 0), 0);
	ck_assert_int_eq(renameat(tree.fd, "b", tree.fd, "a/b"), 0);
	tree_file(&tree, "b/3.jpg", 30);
	tree_mtime(&tree, "b", st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
	ck_assert_int_eq(scan_verify(tree.fd, tree.path, dataset, &diag), DATASET_E_CHANGED);
	dataset_unmap(dataset);
}
END_TEST

/* As cp -a, tar and rsync do it: the folder's inode and mtime are what they were. */
START_TEST(times_that_were_set_back_hide_nothing)
{
	struct dataset *dataset;
	struct diag diag;
	struct stat st;

	make_three();
	dataset = tree_scan(&tree, 2);
	ck_assert_int_eq(fstatat(tree.fd, "b", &st, 0), 0);
	tree_file(&tree, "b/new", 30);
	ck_assert_int_eq(renameat(tree.fd, "b/new", tree.fd, "b/3.jpg"), 0);
	tree_mtime(&tree, "b", st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
	ck_assert_int_eq(scan_verify(tree.fd, tree.path, dataset, &diag), DATASET_E_CHANGED);
	ck_assert_msg(strstr(diag.text, "\"b\"") != NULL, "%s", diag.text);
	dataset_unmap(dataset);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, samples_are_numbered_as_imagefolder_does);
	tcase_add_test(tcase, flat_folder_has_no_classes);
	tcase_add_test(tcase, sounds_count_where_there_is_no_picture);
	tcase_add_test(tcase, videos_count_where_there_is_neither);
	tcase_add_test(tcase, point_clouds_count_last);
	tcase_add_test(tcase, names_are_kept_as_they_are);
	tcase_add_test(tcase, links_are_followed_and_specials_ignored);
	tcase_add_test(tcase, empty_dataset_names_the_suffixes);
	tcase_add_test(tcase, a_dataset_of_fifos_names_them);
	tcase_add_test(tcase, what_is_no_file_is_told);
	tcase_add_test(tcase, class_without_picture_is_named);
	tcase_add_test(tcase, last_class_without_picture_is_named);
	tcase_add_test(tcase, loop_of_links_is_refused_with_its_path);
	tcase_add_test(tcase, dangling_picture_is_refused);
	tcase_add_test(tcase, huge_file_is_refused_by_name);
	tcase_add_test(tcase, unreadable_folder_is_refused_with_its_path);
	tcase_add_loop_test(tcase, folders_removed_meanwhile_are_no_part_of_it, 0, 2);
	tcase_add_test(tcase, progress_is_told_and_can_cancel);
	tcase_add_test(tcase, memory_is_asked_for);
	tcase_add_test(tcase, large_flat_folder_is_the_same_for_any_threads);
	tcase_add_test(tcase, many_folders_are_the_same_for_any_threads);
	tcase_add_loop_test(tcase, version_follows_names_sizes_and_times, 0,
			    BASE_ARRAY_LEN(changes));
	tcase_add_test(tcase, version_follows_the_label_rule);
	tcase_add_test(tcase, version_is_frozen);
	tcase_add_test(tcase, changes_right_after_the_listing_are_found);
	tcase_add_test(tcase, replaced_folder_is_found);
	tcase_add_test(tcase, times_that_were_set_back_hide_nothing);
}

int main(void)
{
	return suite_run("scan", add);
}
