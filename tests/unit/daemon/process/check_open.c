/*
 * Orders about a process that changes: it takes other ids, or executes a program, before the order
 * is carried out or in the middle of it.
 */
#include "daemon/process/open.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "daemon/msg/msg_unwind.h"
#include "daemon/process/process_root.h"
#include "lib/base/procfs.h"
#include "tests/unit/daemon/process/owned.h"
#include "tests/unit/daemon/process/stopped.h"
#include "tests/unit/suite.h"

#define USER   60001
#define MEMBER 60012

static struct owned process;

static int take(char step)
{
	const gid_t group = MEMBER;

	switch (step) {
	case 'u': /* a user's process, as if it had been executed */
		return setgroups(1, &group) != 0 || setresgid(USER, USER, USER) != 0 ||
		       setresuid(USER, USER, USER) != 0 || prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) != 0;
	case 'p':
		return prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) != 0;
	case 'd': /* as a set-user-ID program, which it would have to execute */
		return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0;
	default:
		return execl("/bin/sleep", "sleep", "1000", NULL);
	}
}

static void begin(void)
{
	owned_start(&process, take);
	if (getuid() == 0)
		owned_go(&process, 'u');
}

static void end(void)
{
	owned_end(&process);
}

FIXTURE(begin, end)

static struct open_order order_of(enum file_kind kind)
{
	struct open_order order = {.kind = kind};

	OK(owner_read(process.pid, &order.owner));
	return order;
}

static int carry_out(const struct open_order *order)
{
	int fd = -1, r = open_by_order(order, &fd);

	if (r == 0) {
		ck_assert_int_ge(fd, 0);
		close_fd(&fd);
	}
	return r;
}

TEST(an_order_about_the_same_program_is_carried_out)
{
	const struct open_order order = order_of(FILE_KIND_MAPS);

	OK(carry_out(&order));
	OK(carry_out(&order));
}

TEST(an_order_from_before_an_exec_is_refused)
{
	const struct open_order order = order_of(FILE_KIND_MAPS);
	struct owner o;

	ck_assert_int_eq(write(process.to, "x", 1), 1);
	do
		OK(owner_read(process.pid, &o));
	while (o.program == order.owner.program);
	ck_assert_int_eq(carry_out(&order), -OPEN_OTHER_OWNER);
}

TEST(an_order_from_before_a_change_of_rights_is_refused)
{
	const struct open_order order = order_of(FILE_KIND_MAPS);

	owned_go(&process, 'd');
	ck_assert_int_eq(carry_out(&order), -OPEN_OTHER_OWNER);
}

static int carry_out_order(const void *order)
{
	return carry_out(order);
}

/* The helper makes the memfd of the copy after it has read whose the process is. */
TEST_IF(a_change_in_the_middle_of_an_order_is_seen, getuid() == 0)
{
	const struct open_order order = order_of(FILE_KIND_MAPS);
	pid_t helper = stopped_at(carry_out_order, &order, SYS_memfd_create);

	owned_go(&process, 'd');
	ck_assert_int_eq(stopped_result(helper), -OPEN_OTHER_OWNER);
	owned_go(&process, 'p');
	helper = stopped_at(carry_out_order, &order, SYS_memfd_create);
	OK(stopped_result(helper));
}

/* Memory of a fork of this process has the same addresses. */
TEST(only_code_of_files_is_copied_from_memory)
{
	struct open_order order = order_of(FILE_KIND_IMAGE);
	char line[PATH_MAX + 128];
	unsigned long start, end;
	bool has_vdso = false;
	FILE *maps;

	maps = fopen(procfs_path(process.pid, "maps").text, "re");
	ck_assert_ptr_nonnull(maps);
	while (fgets(line, sizeof(line), maps) != NULL) {
		char permissions[5];

		ck_assert_int_eq(sscanf(line, "%lx-%lx %4s", &start, &end, permissions), 3);
		order.start = start;
		order.end = end;
		if (strstr(line, "[vdso]") != NULL) {
			has_vdso = true;
			OK(carry_out(&order));
		} else if (strchr(line, '/') == NULL && strstr(line, "[v") == NULL) {
			/* Heap, stack, and other memory without a file. */
			ck_assert_msg(carry_out(&order) == -EACCES, "copied: %s", line);
		}
	}
	(void)fclose(maps);
	ck_assert(has_vdso);
	/* Not a mapping. */
	order.end = end + (end - start);
	ck_assert_int_eq(carry_out(&order), -EACCES);
}

/* Maps a device of its own, like /dev/zero, so that nobody else opens it. */
static void *map_device(const char *path)
{
	void *memory = MAP_FAILED;
	int fd = -1;

	if (mknod(path, S_IFCHR | 0600, makedev(1, 5)) == 0)
		fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd >= 0)
		memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	close_fd(&fd);
	return memory;
}

/* Opening a device can have effects: a tape is rewound, a watchdog started. */
TEST_IF(a_mapped_device_is_not_opened, getuid() == 0)
{
	struct open_order order = order_of(FILE_KIND_IMAGE);
	struct owned other;
	char path[PATH_MAX], event[4096];
	void *memory;
	int fd;

	(void)snprintf(path, sizeof(path), "%s/device", suite_directory());
	memory = map_device(path);
	if (memory == MAP_FAILED)
		return; /* a container may have no devices */
	owned_start(&other, take);
	fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_ge(inotify_add_watch(fd, path, IN_OPEN), 0);
	OK(owner_read(other.pid, &order.owner));
	order.start = (uint64_t)(uintptr_t)memory;
	order.end = order.start + 4096;
	ck_assert_int_eq(carry_out(&order), -ENXIO);
	ck_assert_int_eq(read(fd, event, sizeof(event)), -1);
	ck_assert_int_eq(errno, EAGAIN);
	close_fd(&fd);
	owned_end(&other);
	(void)munmap(memory, 4096);
}

/* The link and what it leads to belong to the test; the target's user may not read the file. */
static void make_link(const char *dir, const char *name, uint32_t uid, uint32_t gid, mode_t mode,
		      char ret[PATH_MAX])
{
	char file[PATH_MAX];
	int fd;

	(void)snprintf(file, sizeof(file), "%s/%s.file", dir, name);
	(void)snprintf(ret, PATH_MAX, "%s/%s", dir, name);
	fd = open(file, O_CREAT | O_WRONLY | O_CLOEXEC, mode);
	ck_assert_int_ge(fd, 0);
	OK(fchown(fd, uid, gid));
	OK(fchmod(fd, mode));
	(void)close(fd);
	OK(symlink(file, ret));
}

/* A debug file is looked for beside the mapped file, by a name that the target chooses. */
TEST_IF(a_file_found_by_name_is_opened_with_the_owners_ids_and_groups, getuid() == 0)
{
	static const struct {
		const char *name;
		uint32_t uid, gid;
		mode_t mode;
		int error;
	} files[] = {
		{"root", 0, 0, 0600, -ENOENT},
		{"user", USER, 0, 0400, 0},
		{"group", 0, MEMBER, 0440, 0},
		{"all", 0, 0, 0444, 0},
	};
	const char *dir = suite_directory();

	OK(chmod(dir, 0755));
	for (size_t i = 0; i < array_size(files); i++) {
		struct open_order order = order_of(FILE_KIND_DEBUG_LINK);
		char path[PATH_MAX];
		int fd = -1;

		make_link(dir, files[i].name, files[i].uid, files[i].gid, files[i].mode, path);
		ck_assert_msg(process_root_open_debug_link(&order.owner, path, files[i].name,
							   &fd) == files[i].error,
			      "%s", files[i].name);
		close_fd(&fd);
	}
}
