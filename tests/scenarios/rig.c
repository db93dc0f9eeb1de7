/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Pictures of one colour. Each channel has one of 16 levels, 16 apart, so that neither JPEG nor a
 * resize can turn one number into another, and a sample under a wrong id is seen at one pixel.
 */

#include "tests/scenarios/rig.h"

#include "base/json.h"

#include <dirent.h>
#include <errno.h>
#include <ftw.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <jpeglib.h>

/* What else runs on this machine may be short of memory: what is kept, or reserved ahead of need, is no test's business then. */
#define AT_EASE "memory_pressure=off"

struct host rig_host;
static char rig_root[128];

void rig_sleep_ms(unsigned ms)
{
	struct timespec pause = {ms / 1000, (long)(ms % 1000) * 1000000};

	while (nanosleep(&pause, &pause) < 0 && errno == EINTR)
		;
}

const char *rig_path(const char *fmt, ...)
{
	static char paths[8][512];
	static unsigned next;
	char *path = paths[next++ % 8];
	int used = snprintf(path, sizeof(paths[0]), "%s/", rig_root);
	va_list args;

	va_start(args, fmt);
	vsnprintf(path + used, sizeof(paths[0]) - (size_t)used, fmt, args);
	va_end(args);
	return path;
}

static void rig_colour(unsigned number, uint8_t rgb[3])
{
	for (unsigned i = 0; i < 3; i++)
		rgb[i] = (uint8_t)(8 + 16 * (number >> (4 * i) & 15));
}

int rig_number_of(const uint8_t rgb[3])
{
	int number = 0;

	for (unsigned i = 0; i < 3; i++) {
		int level = rgb[i] / 16, away = rgb[i] % 16 - 8;

		if (away < -6 || away > 6)
			return -1;
		number |= level << (4 * i);
	}
	return number;
}

/* A row of side pixels in n channels. */
static void rig_row_of_colour(uint8_t *row, const uint8_t *colour, int n, unsigned side)
{
	for (unsigned i = 0; i < side; i++)
		memcpy(row + (size_t)n * i, colour, (size_t)n);
}

/* Waves and noise: as much to code as in a photograph. */
static void rig_row_of_waves(uint8_t *row, unsigned y, unsigned side, uint64_t *noise)
{
	for (unsigned i = 0; i < 3 * side; i++) {
		*noise = *noise * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
		row[i] = (uint8_t)(80 + (i * (i % 3 + 1) / 5 + y / 2) % 90 + (*noise >> 60));
	}
}

/* side x side pixels in n channels, of one colour; NULL: waves of that number. */
static void rig_write_pixels(FILE *file, const uint8_t *colour, int n, unsigned side,
			     uint64_t number, bool is_progressive)
{
	struct jpeg_compress_struct jpeg;
	struct jpeg_error_mgr errors;
	uint8_t *row = malloc((size_t)side * (size_t)n);
	JSAMPROW rows[1] = {row};

	if (colour)
		rig_row_of_colour(row, colour, n, side);
	jpeg.err = jpeg_std_error(&errors);
	jpeg_create_compress(&jpeg);
	jpeg_stdio_dest(&jpeg, file);
	jpeg.image_width = jpeg.image_height = side;
	jpeg.input_components = n;
	jpeg.in_color_space = n == 4 ? JCS_CMYK : JCS_RGB;
	jpeg_set_defaults(&jpeg);
	jpeg_set_quality(&jpeg, 95, TRUE);
	if (is_progressive)
		jpeg_simple_progression(&jpeg);
	jpeg_start_compress(&jpeg, TRUE);
	for (unsigned i = 0; i < side; i++) {
		if (!colour)
			rig_row_of_waves(row, i, side, &number);
		jpeg_write_scanlines(&jpeg, rows, 1);
	}
	jpeg_finish_compress(&jpeg);
	jpeg_destroy_compress(&jpeg);
	free(row);
}

static void rig_write_jpeg(FILE *file, unsigned number, unsigned side)
{
	uint8_t rgb[3];

	rig_colour(number, rgb);
	rig_write_pixels(file, rgb, 3, side, 0, false);
}

int rig_write_cmyk(const char *path)
{
	static const uint8_t ink[4] = {10, 80, 160, 30};
	FILE *file = fopen(path, "w");

	if (!file)
		return errno;
	rig_write_pixels(file, ink, 4, 64, 0, false);
	return fclose(file) == 0 ? 0 : errno;
}

int rig_write_progressive(const char *path, unsigned number, unsigned side)
{
	FILE *file = fopen(path, "w");

	if (!file)
		return errno;
	rig_write_pixels(file, NULL, 3, side, number, true);
	return fclose(file) == 0 ? 0 : errno;
}

int rig_write_pictures(const char *dir, unsigned n, unsigned classes, unsigned side)
{
	char path[512];

	if (mkdir(dir, 0755) < 0 && errno != EEXIST)
		return errno;
	for (unsigned i = 0; i < n; i++) {
		unsigned class = (unsigned)((uint64_t)i * classes / n);
		FILE *file;

		snprintf(path, sizeof(path), "%s/class_%04u", dir, class);
		if (mkdir(path, 0755) < 0 && errno != EEXIST)
			return errno;
		snprintf(path, sizeof(path), "%s/class_%04u/%06u.jpg", dir, class, i);
		file = fopen(path, "w");
		if (!file)
			return errno;
		rig_write_jpeg(file, i, side);
		if (fclose(file) != 0)
			return errno;
	}
	return 0;
}

int rig_write_waves(const char *path, unsigned number, unsigned side)
{
	FILE *file = fopen(path, "w");

	if (!file)
		return errno;
	rig_write_pixels(file, NULL, 3, side, number, false);
	return fclose(file) == 0 ? 0 : errno;
}

int rig_write_bomb(const char *path)
{
	char *data = NULL;
	size_t size = 0;
	FILE *memory = open_memstream(&data, &size), *file;
	int error = 0;

	rig_write_jpeg(memory, 0, 64);
	fclose(memory);
	for (size_t i = 0; i + 9 < size; i++) /* start of frame: marker, length, precision, sizes */
		if ((uint8_t)data[i] == 0xff && (uint8_t)data[i + 1] == 0xc0) {
			memcpy(data + i + 5, "\xff\xdc\xff\xdc", 4);
			break;
		}
	file = fopen(path, "w");
	if (!file || fwrite(data, 1, size, file) != size || fclose(file) != 0)
		error = errno;
	free(data);
	return error;
}

const char *rig_pictures(const char *dir, unsigned n, unsigned classes, unsigned side)
{
	const char *path = rig_path("%s", dir);

	ck_assert_int_eq(rig_write_pictures(path, n, classes, side), 0);
	return path;
}

void rig_start(const char *first, ...)
{
	const char *settings[32] = {AT_EASE};
	struct diag diag = {.text = ""};
	unsigned n = 1;
	va_list args;

	va_start(args, first);
	for (const char *setting = first; setting; setting = va_arg(args, const char *))
		settings[n++] = setting;
	va_end(args);
	ck_assert_msg(host_start(settings, n, &rig_host, &diag) == 0, "%s", diag.text);
	/* it listens before it is whole: its folders are there when it has answered */
	ck_assert(rig_wait_status("node.clients", 0, 100000));
}

void rig_end(void)
{
	host_end(&rig_host);
}

void rig_restart(const char *first, ...)
{
	const char *args[72] = {getenv("ACCESS_DAEMON"), "--private", "--dir", rig_host.dir};
	char cache[PATH_MAX];
	unsigned n = 4;
	va_list settings;

	kill(rig_host.pid, SIGKILL);
	waitpid(rig_host.pid, NULL, 0);
	snprintf(cache, sizeof(cache), "cache_dir=%s", rig_host.dir);
	args[n++] = "--set";
	args[n++] = cache;
	args[n++] = "--set"; /* what is read is counted; who wants to keep things says so */
	args[n++] = "cache_size=0";
	args[n++] = "--set";
	args[n++] = AT_EASE;
	va_start(settings, first);
	for (const char *setting = first; setting; setting = va_arg(settings, const char *)) {
		args[n++] = "--set";
		args[n++] = setting;
	}
	va_end(settings);
	rig_host.pid = fork();
	if (rig_host.pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execv(args[0], (char *const *)(uintptr_t)args);
		_exit(127);
	}
	ck_assert(rig_wait_status("node.clients", 0, 100000));
}

double rig_number_at(const struct json_in *value, const char *path)
{
	char part[64];

	while (*path) {
		size_t length = strcspn(path, ".");

		snprintf(part, sizeof(part), "%.*s", (int)length, path);
		value = json_in_kind_of(value) == JSON_IN_ARRAY
			    ? json_in_item(value, strtoul(part, NULL, 10))
			    : json_in_member(value, part);
		path += length + (path[length] ? 1 : 0);
	}
	if (json_in_kind_of(value) == JSON_IN_BOOL)
		return json_in_bool(value, false);
	if (json_in_kind_of(value) == JSON_IN_ARRAY)
		return (double)json_in_count(value);
	return json_in_double(value, -1);
}

/* As jobs ask it. */
static int rig_ask_status(char **ret, struct oa_error *error)
{
	struct oa_client *client = NULL;
	int r = oa_connect(rig_host.socket, &client, error);

	if (r == 0)
		r = oa_status(client, ret, error);
	oa_disconnect(client);
	return r;
}

struct json_in *rig_whole_status(void)
{
	_cleanup_free_ char *text = NULL;
	struct oa_error error = {.size = sizeof(error)};
	struct json_in *status = NULL;
	struct diag diag = {.text = ""};

	if (rig_ask_status(&text, &error) ||
	    json_in_parse(text, strlen(text), 1 << 24, &status, &diag))
		fprintf(stderr, "no status: %s%s\n", error.text, diag.text);
	return status;
}

double rig_status(const char *path)
{
	struct json_in *status = rig_whole_status();
	double number = status ? rig_number_at(status, path) : -1;

	json_in_free(status);
	return number;
}

bool rig_wait_status(const char *path, double least, double most)
{
	uint64_t end = base_now_ns() + PATIENCE_NS;

	for (;;) {
		double number = rig_status(path);

		if (number >= least && number <= most)
			return true;
		if (base_now_ns() > end) {
			fprintf(stderr, "%s is %g, not %g to %g\n", path, number, least, most);
			return false;
		}
		rig_sleep_ms(20);
	}
}

pid_t rig_pid(const char *path)
{
	const uint64_t end = base_now_ns() + PATIENCE_NS;
	double pid = rig_status(path);

	for (; pid < 2 && base_now_ns() < end; pid = rig_status(path))
		rig_sleep_ms(20);
	ck_assert_msg(pid >= 2, "%s is %g, no process", path, pid);
	return (pid_t)pid;
}

pid_t rig_kill(const char *path, int number)
{
	pid_t pid;

	do
		pid = rig_pid(path);
	while (kill(pid, number) < 0);
	return pid;
}

struct oa_client *rig_connect(void)
{
	struct oa_error error = {.size = sizeof(error)};
	struct oa_client *client = NULL;
	int r = oa_connect(rig_host.socket, &client, &error);

	ck_assert_msg(r == 0, "oa_connect: %d %s", r, error.text);
	return client;
}

struct oa_stream *rig_open(struct oa_client *client, const struct oa_options *options)
{
	struct oa_error error = {.size = sizeof(error)};
	struct oa_stream *stream = NULL;
	int r = oa_open(client, options, &stream, &error);

	ck_assert_msg(r == 0, "oa_open: %d %s", r, error.text);
	return stream;
}

unsigned rig_count_fds(int pid)
{
	char path[64];
	unsigned n = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	dir = opendir(path);
	if (!dir)
		return 0;
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

unsigned rig_count_maps(int pid)
{
	char path[64];
	unsigned n = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	file = fopen(path, "r");
	if (!file)
		return 0;
	for (int c; (c = getc(file)) != EOF;)
		n += c == '\n';
	fclose(file);
	return n;
}

unsigned rig_settled_fds(unsigned most)
{
	unsigned least = UINT32_MAX;

	for (unsigned i = 0; i < (most ? PATIENCE_MS / 20u : 20u) && least > most; i++) {
		unsigned n = rig_count_fds(rig_host.pid);

		least = BASE_MIN(least, n);
		rig_sleep_ms(20);
	}
	return least;
}

static int rig_remove(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	remove(path);
	return 0;
}

int rig_main(const char *name, void (*add)(TCase *tcase))
{
	const char *parent = getenv("TMPDIR");
	Suite *suite = suite_create(name);
	TCase *tcase = tcase_create(name);
	SRunner *runner;
	int failed;

	snprintf(rig_root, sizeof(rig_root), "%.64s/access-rig-XXXXXX", parent ? parent : "/tmp");
	if (!mkdtemp(rig_root)) {
		perror(rig_root);
		return 1;
	}
	setenv("TMPDIR", rig_root, 1);
	signal(SIGPIPE, SIG_IGN);
	tcase_set_timeout(tcase, PATIENCE_OF_A_TEST_S);
	add(tcase);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	nftw(rig_root, rig_remove, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
	return failed == 0 ? 0 : 1;
}
