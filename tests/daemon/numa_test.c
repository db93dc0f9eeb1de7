/* SPDX-License-Identifier: Apache-2.0 */

/* Nodes of machines that the test makes up, where a job belongs, and what a refusal of the kernel costs. */

#include "daemon/machine/numa.h"
#include "tests/suite.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MIB (UINT64_C(1) << 20)

static const struct {
	const char *text;
	bool is_good;
	uint64_t bits; /* of 64 */
} lists[] = {
    {"0\n", true, 1},
    {"0-3\n", true, 0xf},
    {"0-1,4,6-7\n", true, 0xd3},
    {"63", true, UINT64_C(1) << 63},
    {"0-63\n", true, UINT64_MAX},
    {"\n", true, 0}, /* a node without CPUs */
    {"", true, 0},
    {"64\n", false, 0},
    {"0-64\n", false, 0},
    {"3-1\n", false, 0},
    {"1-\n", false, 0},
    {"-1\n", false, 0},
    {"1,\n", false, 0},
    {"1,,2\n", false, 0},
    {"1 2\n", false, 0},
    {"99999999999999999999\n", false, 0},
    {"nonsense\n", false, 0},
};

START_TEST(lists_are_the_kernels)
{
	uint64_t bits;

	ck_assert_int_eq(topology_parse_list(lists[_i].text, &bits, 64), lists[_i].is_good);
	if (lists[_i].is_good)
		ck_assert_uint_eq(bits, lists[_i].bits);
}
END_TEST

static char folder[] = "/tmp/access-numa-XXXXXX";

static void write_file(const char *name, const char *text)
{
	char path[256];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	if (strchr(name, '/')) {
		*strrchr(path, '/') = '\0';
		ck_assert(mkdir(path, 0700) == 0 || errno == EEXIST);
		path[strlen(path)] = '/';
	}
	file = fopen(path, "w");
	ck_assert_ptr_nonnull(file);
	fputs(text, file);
	fclose(file);
}

static void remove_folder(void)
{
	char command[64];

	snprintf(command, sizeof(command), "rm -r %s", folder);
	ck_assert_int_eq(system(command), 0);
}

static struct topology_cpus cpus_of(const char *text)
{
	struct topology_cpus cpus;

	ck_assert(topology_parse_list(text, cpus.bits, TOPOLOGY_CPUS));
	return cpus;
}

static int node_of(const struct topology *topology, const char *cpus)
{
	const struct topology_cpus set = cpus_of(cpus);

	return topology_node_of(topology, &set);
}

/* Two sockets, a node with memory alone, one whose files are damaged, and one that is offline. */
START_TEST(a_job_belongs_where_all_its_cpus_are)
{
	struct topology topology;

	ck_assert_ptr_nonnull(mkdtemp(folder));
	write_file("online", "0,2-4\n");
	write_file("node0/cpulist", "0-3,8-11\n");
	write_file("node1/cpulist", "100\n");
	write_file("node2/cpulist", "4-7,12-15,700\n");
	write_file("node3/cpulist", "\n");
	write_file("node4/cpulist", "4-nonsense\n");
	topology_read(&topology, folder);
	remove_folder();
	ck_assert_uint_eq(topology.n_nodes, 3);
	ck_assert_uint_eq(topology.online, 0xd);
	ck_assert_int_eq(node_of(&topology, "0"), 0);
	ck_assert_int_eq(node_of(&topology, "1-2,8"), 0);
	ck_assert_int_eq(node_of(&topology, "4-7,12-15"), 2);
	ck_assert_int_eq(node_of(&topology, "700"), 2);
	ck_assert_int_eq(node_of(&topology, "3-4"), -1); /* of two */
	ck_assert_int_eq(node_of(&topology, "0-15"), -1);
	ck_assert_int_eq(node_of(&topology, "100"), -1); /* of one that is offline */
	ck_assert_int_eq(node_of(&topology, "16"), -1);
	ck_assert_int_eq(node_of(&topology, ""), -1);
}
END_TEST

START_TEST(without_files_nothing_is_known)
{
	struct topology topology;

	topology_read(&topology, "/nonexistent");
	ck_assert_uint_eq(topology.n_nodes, 0);
	ck_assert_int_eq(node_of(&topology, "0"), -1);
}
END_TEST

/* As if there were two nodes, and the kernel knew nothing of the second, to which this process is held. */
static struct numa two_nodes(int own)
{
	struct numa numa = {.is_on = true, .topology = {.n_nodes = 2, .online = 3}};

	memset(&numa.topology.cpus[own], 0xff, sizeof(numa.topology.cpus[own]));
	return numa;
}

START_TEST(a_refusal_is_of_one_node)
{
	struct numa numa = two_nodes(63);
	int fd = base_memfd("slots", MIB), node = numa_node_of(&numa, getpid());

	ck_assert_int_eq(node, 63);
	numa_prefer(&numa, fd, MIB, -1);
	ck_assert_int_eq(numa.refused, 0);
	numa_prefer(&numa, fd, MIB, node);
	ck_assert_int_ne(numa.refused, 0);
	ck_assert_uint_eq(numa.told, UINT64_C(1) << 63);
	ck_assert_int_eq(pwrite(fd, "x", 1, MIB - 1), 1); /* it is memory as any other */
	numa.topology = two_nodes(0).topology;
	numa_prefer(&numa, fd, MIB, 0);
	if (numa.refused == EINVAL)
		ck_assert_uint_eq(numa.placed, 1);
	else
		fprintf(stderr, "not tested: mbind() is refused here: %s\n",
			strerror(numa.refused));
	close(fd);
}
END_TEST

START_TEST(a_refusal_of_the_call_is_the_last_question)
{
	static const int of_all[] = {EPERM, ENOSYS};
	struct numa numa = two_nodes(0);
	int fd = base_memfd("slots", MIB);

	numa.refused = of_all[_i];
	numa_prefer(&numa, fd, MIB, 0); /* would be granted */
	ck_assert_uint_eq(numa.placed, 0);
	close(fd);
}
END_TEST

START_TEST(memory_is_placed)
{
	struct numa numa = two_nodes(0);
	int fd = base_memfd("slots", MIB);

	numa_prefer(&numa, fd, MIB, numa_node_of(&numa, getpid()));
	if (numa.refused)
		fprintf(stderr, "not tested: mbind() is refused here: %s\n",
			strerror(numa.refused));
	else
		ck_assert_uint_eq(numa.placed, 1);
	close(fd);
}
END_TEST

START_TEST(off_asks_nothing)
{
	struct numa numa;

	numa_init(&numa, false);
	ck_assert(!numa.is_on);
	ck_assert_int_eq(numa_node_of(&numa, getpid()), -1);
	numa = two_nodes(63);
	ck_assert_int_eq(numa_node_of(&numa, 0), -1); /* of another pid namespace */
	numa.is_on = false;
	ck_assert_int_eq(numa_node_of(&numa, getpid()), -1);
	numa_prefer(&numa, -1, MIB, 63);
	ck_assert_int_eq(numa.refused, 0);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_loop_test(tcase, lists_are_the_kernels, 0, BASE_ARRAY_LEN(lists));
	tcase_add_test(tcase, a_job_belongs_where_all_its_cpus_are);
	tcase_add_test(tcase, without_files_nothing_is_known);
	tcase_add_test(tcase, a_refusal_is_of_one_node);
	tcase_add_loop_test(tcase, a_refusal_of_the_call_is_the_last_question, 0, 2);
	tcase_add_test(tcase, memory_is_placed);
	tcase_add_test(tcase, off_asks_nothing);
}

int main(void)
{
	return suite_run("numa", add);
}
