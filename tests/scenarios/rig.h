/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What scenarios in C share: a folder of their own, pictures that tell their number, an accessd of
 * their own, and its status. Everything lies in one temporary folder that rig_main() removes; an
 * accessd that a failed test leaves dies with the test's process.
 */

#include <check.h>
#include "base/base.h"
#include "base/json.h"
#include "libaccess/libaccess.h"
#include "tests/patience.h"
#include "tools/host.h"

/* Runs the tests that add adds. Returns main()'s status. */
int rig_main(const char *name, void (*add)(TCase *tcase));
/* A path in the scenario's folder; the text is good until the eighth next call. */
const char *rig_path(const char *fmt, ...) BASE_PRINTF(1, 2);

/* Pictures number 0 .. n-1 in classes folders: sample i of the dataset is picture i, label i *
 * classes / n, side * side pixels of one colour, which is its number. Returns the folder. */
const char *rig_pictures(const char *dir, unsigned n, unsigned classes, unsigned side);
/* Same, for programs outside Check. 0 or errno. */
int rig_write_pictures(const char *dir, unsigned n, unsigned classes, unsigned side);
/* side * side pixels of waves and noise, others for each number. 0 or errno. */
int rig_write_waves(const char *path, unsigned number, unsigned side);
/* The same as a progressive JPEG, which has no packed form. */
int rig_write_progressive(const char *path, unsigned number, unsigned side);
/* A small file whose header promises 65,500 x 65,500 pixels. 0 or errno. */
int rig_write_bomb(const char *path);
/* A whole picture in CMYK, as print shops make them. 0 or errno. */
int rig_write_cmyk(const char *path);
/* The number of the picture whose pixel this is; -1 if it is none's. */
int rig_number_of(const uint8_t rgb[3]);

/* Starts an accessd with these settings ("key=value", ended by NULL), its socket in
 * rig_host.socket. */
extern struct host rig_host;
void rig_start(const char *first, ...) __attribute__((sentinel));
void rig_end(void);
/* kill -9; another one in the same place, with these settings. Returns when it serves. */
void rig_restart(const char *first, ...) __attribute__((sentinel));

/* A number of the status: "node.samples_read", "jobs.0.pins"; -1 if it is not there. */
double rig_status(const char *path);
/* All of it, to be ended by json_in_free(), NULL: there is none; and a number of it as above. */
struct json_in *rig_whole_status(void);
double rig_number_at(const struct json_in *status, const char *path);
/* Waits until the number is between least and most; false: it never was. */
bool rig_wait_status(const char *path, double least, double most);
/* The process that is there in the status, once there is one: never what kill() takes for several. */
pid_t rig_pid(const char *path);
/* Sends it the signal, and says who got it: workers may be exchanged between the look and the kill(). */
pid_t rig_kill(const char *path, int number);

struct oa_client *rig_connect(void);
struct oa_stream *rig_open(struct oa_client *client, const struct oa_options *options);
/* A number of every word: fds of a process, mappings of a process. */
unsigned rig_count_fds(int pid);
unsigned rig_count_maps(int pid);
/* accessd's descriptors when it has seen all hang-ups, also of those who asked for the status: what is
 * left after a while, or as soon as there are no more than most. */
unsigned rig_settled_fds(unsigned most);
void rig_sleep_ms(unsigned ms);
