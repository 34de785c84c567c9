#include "lib/capture/proc/proc.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/suite.h"

static void take_descriptors(struct rlimit *ret_before)
{
	struct rlimit none;

	OK(getrlimit(RLIMIT_NOFILE, ret_before));
	none = (struct rlimit){.rlim_max = ret_before->rlim_max};
	OK(setrlimit(RLIMIT_NOFILE, &none));
}

TEST(a_file_is_read)
{
	char text[64], whole[4096];
	size_t n = 0, rest = 0;
	int fd = -1;

	ck_assert_int_eq(proc_read_text(AT_FDCWD, "/proc/self/status", text, sizeof(text)),
			 PROC_READ);
	ck_assert_uint_eq(strlen(text), sizeof(text) - 1);
	ck_assert_int_eq(strncmp(text, "Name:\t", 6), 0);
	ck_assert_int_eq(proc_open(AT_FDCWD, "/proc/self/status", O_RDONLY, &fd), PROC_READ);
	ck_assert_int_eq(fcntl(fd, F_GETFD), FD_CLOEXEC);
	ck_assert_int_eq(proc_read_at(fd, 0, whole, sizeof(whole), &n), PROC_READ);
	ck_assert_int_eq(proc_read_at(fd, 5, text, sizeof(text), &rest), PROC_READ);
	ck_assert_mem_eq(text, whole + 5, rest);
	ck_assert_int_eq(proc_error(PROC_READ), 0);
	close_fd(&fd);
}

/* Both a file that was opened before the process ended and one that was not. */
TEST(a_process_that_has_ended_is_gone)
{
	char path[64], text[64] = "x";
	pid_t pid = fork();
	int fd = -1;
	size_t n;

	if (pid == 0)
		for (;;)
			(void)pause();
	(void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	ck_assert_int_eq(proc_open(AT_FDCWD, path, O_RDONLY, &fd), PROC_READ);
	OK(kill(pid, SIGKILL));
	ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
	ck_assert_int_eq(proc_read_at(fd, 0, text, sizeof(text), &n), PROC_GONE);
	ck_assert_int_eq(proc_read_text(AT_FDCWD, path, text, sizeof(text)), PROC_GONE);
	ck_assert_str_eq(text, "");
	ck_assert_int_eq(proc_error(PROC_GONE), -ESRCH);
	close_fd(&fd);
}

static const struct {
	const char *path;
	int error;
} failing[] = {
	{"/proc/self/stat/stat", ENOTDIR},
	{"/proc/self", EISDIR},
	{"/proc/self/mem", EIO},
	{"/proc/self/stat", EMFILE},
};

/* Any other error does not mean that the process has ended. */
TESTS(any_other_error_is_a_lack, array_size(failing))
{
	struct rlimit before;
	char text[64] = "x";

	OK(getrlimit(RLIMIT_NOFILE, &before));
	if (failing[_i].error == EMFILE)
		take_descriptors(&before);
	errno = 0;
	ck_assert_int_eq(proc_read_text(AT_FDCWD, failing[_i].path, text, sizeof(text)), PROC_LACK);
	ck_assert_int_eq(errno, failing[_i].error);
	ck_assert_int_eq(proc_error(PROC_LACK), -failing[_i].error);
	ck_assert_str_eq(text, "");
	OK(setrlimit(RLIMIT_NOFILE, &before));
}

TEST(an_invalid_descriptor_is_a_lack)
{
	char text[8];
	size_t n = 7;

	ck_assert_int_eq(proc_read_at(-1, 0, text, sizeof(text), &n), PROC_LACK);
	ck_assert_int_eq(errno, EBADF);
	ck_assert_uint_eq(n, 7);
	ck_assert_int_eq(proc_read(-1, "stat", text, sizeof(text), &n), PROC_LACK);
	ck_assert_uint_eq(n, 7);
}
