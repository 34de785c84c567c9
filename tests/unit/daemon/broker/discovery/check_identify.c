#include "daemon/broker/discovery/identify.h"

#include <dirent.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "daemon/config/config.h"
#include "daemon/process/process.h"
#include "tests/unit/daemon/full.h"
#include "tests/unit/suite.h"

static struct section_config target;
static struct config config = {.sections = &target, .n_sections = 1};
static struct loop *loop;
static struct files *files;
static struct pid_files *pid_files;
static struct identify *id;

/* The error of memfd_create(2) in the helper, which is forked from this process; 0: none. */
static int memfd_error;

/* How often it fails with EACCES before: shared with the helpers, which are forked. */
static int *refusals;

/* In place of that of libc. */
int memfd_create(const char *name, unsigned int flags)
{
	if (*refusals > 0) {
		--*refusals;
		errno = EACCES;
		return -1;
	}
	if (memfd_error == 0)
		return (int)syscall(SYS_memfd_create, name, flags);
	errno = memfd_error;
	return -1;
}

static struct {
	int n;
	size_t section;
	bool takes; /* the callee takes the pidfd */
	int pidfd;
} answer;

static void on_identified(void *ctx, const struct recheck *s, struct process *process,
			  size_t section)
{
	(void)ctx, (void)s;
	answer.n++;
	answer.section = section;
	if (answer.takes)
		answer.pidfd = process_take_pidfd(process);
}

static void on_pid_file(void *ctx, int32_t pid, int32_t before)
{
	(void)ctx, (void)pid, (void)before;
}

static void set_up(void)
{
	refusals = mmap(NULL, sizeof(*refusals), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			-1, 0);
	ck_assert_ptr_ne(refusals, MAP_FAILED);
	OK(loop_new(&loop));
	OK(files_new(loop, &files));
	OK(pid_files_new(files, on_pid_file, NULL, &pid_files));
	OK(identify_new(files, pid_files, on_identified, NULL, &id));
	target = (struct section_config){.uid = CONFIG_UID_ANY};
	memcpy(target.cmdline, "*", 2);
	identify_configure(id, &config);
	answer.n = 0;
	answer.takes = false;
	answer.pidfd = -1;
}

static void tear_down(void)
{
	pid_files_free(pid_files);
	files_free(files);
	identify_free(id);
	loop_free(loop);
	OK(munmap(refusals, sizeof(*refusals)));
}

/* Asks as discovery does: the caller of process_look() closes the pidfd. */
static void ask(void)
{
	const struct recheck s = {.pid = getpid(), .cause = RECHECK_FORK};
	struct process process;

	ck_assert_int_eq(process_look(getpid(), &process), PROCESS_OK);
	OK(identify(id, &s, &process));
	close_fd(&process.pidfd);
}

static void await(int n)
{
	while (answer.n < n) {
		OK(loop_run_once(loop, 100));
		files_check(files);
	}
	ck_assert_int_eq(answer.n, n);
}

/* Counts the descriptors of this process. */
static int count_descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int n = 0;

	ck_assert_ptr_nonnull(dir);
	while (readdir(dir) != NULL)
		n++;
	(void)closedir(dir);
	return n;
}

FIXTURE(set_up, tear_down)

TEST(a_process_is_identified_by_its_command_line)
{
	ask();
	ck_assert_int_eq(answer.n, 0);
	await(1);
	ck_assert_uint_eq(answer.section, 0);
	memcpy(target.cmdline, "no such", 8);
	ask();
	await(2);
	ck_assert_uint_eq(answer.section, IDENTIFY_NOT_YET);
}

TEST(a_question_waits_while_no_helper_can_be_started)
{
	struct full full;

	/* Room for three: the process's pidfd, the request's copy, and half a socket pair. */
	full_but(&full, 3);
	ask();
	ck_assert_int_eq(answer.n, 0);
	files_check(files);
	ck_assert_int_eq(answer.n, 0);
	full_end(&full);
	await(1);
	ck_assert_uint_eq(answer.section, 0);
}

TESTS(a_shortage_of_the_helper_says_nothing_about_the_process, 2)
{
	memfd_error = (const int[]){ENFILE, ENOMEM}[_i];
	ask();
	await(1);
	ck_assert_uint_eq(answer.section, IDENTIFY_LATER);
}

/* As when a server drops its rights in this moment. */
TEST(an_environment_that_was_not_read_is_read_again)
{
	target = (struct section_config){.uid = CONFIG_UID_ANY};
	memcpy(target.env, "PATH=*", sizeof("PATH=*"));
	*refusals = 1;
	ask();
	await(1);
	ck_assert_int_eq(*refusals, 0);
	ck_assert_uint_eq(answer.section, 0);
}

TEST(without_descriptors_the_answer_is_later)
{
	const struct recheck s = {.pid = getpid(), .cause = RECHECK_FORK};
	struct process process;
	struct full full;

	ck_assert_int_eq(process_look(getpid(), &process), PROCESS_OK);
	full_but(&full, 0);
	OK(identify(id, &s, &process));
	ck_assert_int_eq(process.pidfd, -1);
	full_end(&full);
	ck_assert_int_eq(answer.n, 1);
	ck_assert_uint_eq(answer.section, IDENTIFY_LATER);
}

/* Every descriptor is closed, except those that the callee takes. */
TEST(every_descriptor_is_closed)
{
	int before, asked = 0;

	ask();
	await(1);
	before = count_descriptors();
	for (int turn = 0; turn < 3; turn++) {
		for (; identify_has_room(id); asked++)
			ask();
		await(1 + asked);
	}
	ck_assert_int_ge(asked, 3 * 10);
	ck_assert_int_eq(count_descriptors(), before);
	answer.takes = true;
	ask();
	await(2 + asked);
	ck_assert_int_eq(count_descriptors(), before + 1);
	ck_assert(process_is_alive(answer.pidfd));
	close_fd(&answer.pidfd);
}

/* By the executable alone, if each section names one. */
TEST(processes_with_other_executables_are_excluded)
{
	ck_assert(!identify_excludes(id, getpid()));
	memcpy(target.exe, "/no such", 9);
	ck_assert(identify_excludes(id, getpid()));
	/* No such process: its executable is unknown. */
	ck_assert(identify_excludes(id, INT32_MAX));
	memset(target.exe, 0, sizeof(target.exe));
	ck_assert_int_gt(readlink("/proc/self/exe", target.exe, sizeof(target.exe) - 1), 0);
	ck_assert(!identify_excludes(id, getpid()));
}

TEST(questions_are_dropped_at_the_end)
{
	const int before = count_descriptors();
	struct loop *other_loop;
	struct files *other_files;
	struct identify *mine = id, *other;

	OK(loop_new(&other_loop));
	OK(files_new(other_loop, &other_files));
	OK(identify_new(other_files, pid_files, on_identified, NULL, &other));
	identify_configure(other, &config);
	id = other;
	ask();
	ask();
	id = mine;
	files_free(other_files);
	identify_free(other);
	loop_free(other_loop);
	ck_assert_int_eq(answer.n, 0);
	ck_assert_int_eq(count_descriptors(), before);
}
