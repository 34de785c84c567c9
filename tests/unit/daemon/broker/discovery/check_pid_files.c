#include "daemon/broker/discovery/pid_files.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/config/config.h"
#include "daemon/msg/msg_unwind.h"
#include "tests/unit/suite.h"

static const char *dir;
static char one[64], two[64];
static struct section_config targets[3];
static struct config config = {.sections = targets};
static struct loop *loop;
static struct files *files;
static struct pid_files *p;

static struct {
	int n;
	int32_t pid, before;
} reading;

static void on_reading(void *ctx, int32_t pid, int32_t before)
{
	(void)ctx;
	reading.n++;
	reading.pid = pid;
	reading.before = before;
}

static void set_up(void)
{
	dir = suite_directory();
	(void)snprintf(one, sizeof(one), "%s/one", dir);
	(void)snprintf(two, sizeof(two), "%s/two", dir);
	OK(loop_new(&loop));
	OK(files_new(loop, &files));
	OK(pid_files_new(files, on_reading, NULL, &p));
}

static void tear_down(void)
{
	pid_files_free(p);
	files_free(files);
	loop_free(loop);
}

static void configure(size_t n, const char *first, const char *second)
{
	memcpy(targets[0].pid_file, first, strlen(first) + 1);
	memcpy(targets[1].pid_file, second, strlen(second) + 1);
	config.n_sections = n;
	ck_assert_int_eq(pid_files_configure(p, &config), 0);
}

static void put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	ck_assert_int_eq(write(fd, text, strlen(text)), (int)strlen(text));
	close_fd(&fd);
}

/* Runs the loop until there are n answers. */
static void await(int n)
{
	while (reading.n < n) {
		OK(loop_run_once(loop, 100));
		files_check(files);
	}
	ck_assert_int_eq(reading.n, n);
}

static void read_all(uint64_t now_s, int answers)
{
	reading.n = 0;
	pid_files_read(p, now_s * NS_PER_SEC);
	await(answers);
}

FIXTURE(set_up, tear_down)

TEST(a_pid_file_names_its_process)
{
	configure(2, one, two);
	ck_assert_int_eq(pid_files_pid(p, one), 0);
	read_all(1, 2);
	ck_assert_int_eq(pid_files_pid(p, one), 0);
	put(one, "42\n");
	/* Not known before the file has been read. */
	ck_assert_int_eq(pid_files_pid(p, one), 0);
	read_all(2, 2);
	ck_assert_int_eq(pid_files_pid(p, one), 42);
	ck_assert_int_eq(pid_files_pid(p, two), 0);
	configure(1, one, "");
	put(one, "43\n");
	read_all(3, 1);
	ck_assert_int_eq(reading.pid, 43);
	ck_assert_int_eq(reading.before, 42);
	(void)unlink(one);
	read_all(4, 1);
	ck_assert_int_eq(reading.pid, 0);
	ck_assert_int_eq(reading.before, 43);
}

/* A FIFO and a directory name no process. The helper does not wait for the FIFO's other end. */
TEST(only_a_regular_file_names_a_process)
{
	OK(mkfifo(one, 0600));
	configure(2, one, dir);
	read_all(1, 2);
	ck_assert_int_eq(pid_files_pid(p, one), 0);
	ck_assert_int_eq(pid_files_pid(p, dir), 0);
}

TEST(another_configuration_keeps_known_pids)
{
	put(one, "42\n");
	configure(2, one, one);
	/* A file that two sections name is read once. */
	read_all(1, 1);
	configure(2, two, one);
	ck_assert_int_eq(pid_files_pid(p, one), 42);
	configure(1, two, "");
	ck_assert_int_eq(pid_files_pid(p, one), 0);
	/* The answer is for a file that is no longer configured. */
	configure(1, one, "");
	reading.n = 0;
	pid_files_read(p, NS_PER_SEC);
	configure(1, two, "");
	pid_files_read(p, NS_PER_SEC);
	await(1);
	ck_assert_int_eq(reading.pid, 0);
}

/* Returns the helper, the only child of the test. */
static int32_t helper(void)
{
	char path[64], text[64] = "";
	int fd;

	(void)snprintf(path, sizeof(path), "/proc/self/task/%d/children", getpid());
	fd = open(path, O_RDONLY | O_CLOEXEC);
	ck_assert_int_gt(read(fd, text, sizeof(text) - 1), 0);
	close_fd(&fd);
	return (int32_t)strtol(text, NULL, 10);
}

/*
 * Reads both files while the helper is stopped in the first, as if a file system kept it; another
 * helper reads the second.
 */
static void read_and_hang(uint64_t now_s)
{
	static const struct rusage none;
	const int32_t hung = helper();
	int status;

	OK(kill(hung, SIGSTOP));
	ck_assert_int_eq(waitpid(hung, &status, WUNTRACED), hung);
	ck_assert(WIFSTOPPED(status));
	read_all(now_s, 1);
	ck_assert_int_eq(waitpid(hung, &status, 0), hung);
	ck_assert(WIFSIGNALED(status));
	files_reaped(files, hung, &none);
}

TEST(a_file_that_hangs_is_left_out_after_three_timeouts)
{
	const uint64_t retry_s = PID_FILES_RETRY_NS / NS_PER_SEC;
	uint64_t now_s = 2;

	put(one, "42\n");
	put(two, "7\n");
	configure(2, one, two);
	read_all(1, 2);
	put(one, "43\n");
	read_and_hang(now_s);
	ck_assert_int_eq(pid_files_pid(p, one), 42);
	/* Only the second file is read before the time. */
	read_all(now_s + retry_s - 1, 1);
	now_s += retry_s;
	read_all(now_s, 2);
	ck_assert_int_eq(pid_files_pid(p, one), 43);
	/* Several timeouts in a row; then the file is left out. */
	put(one, "44\n");
	for (int i = 0; i < PID_FILES_TIMEOUTS_MAX; i++) {
		now_s += retry_s;
		read_and_hang(now_s);
	}
	read_all(now_s + 10 * retry_s, 1);
	ck_assert_int_eq(pid_files_pid(p, one), 43);
	configure(2, one, two);
	read_all(now_s + 10 * retry_s, 2);
	ck_assert_int_eq(pid_files_pid(p, one), 44);
}

TEST(unwind_cannot_request_a_pid_file)
{
	struct msg_file_request request = {.kind = FILE_KIND_PID_FILE};
	const struct owner own = {.pid = getpid()};
	int pidfd = dup(STDERR_FILENO);

	memcpy(request.name, one, strlen(one));
	ck_assert_int_eq(
		files_request(files, &request, &own, pidfd, false, (files_fn)NULL, &request),
		-EINVAL);
	close_fd(&pidfd);
}
