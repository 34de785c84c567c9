#include "daemon/files.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/unit/daemon/full.h"
#include "tests/unit/suite.h"

static struct loop *loop;
static struct files *files;
static int pidfd;
static char one[1], two[1]; /* the ctx of two requests */

static struct {
	int n, error;
} answer;

static void on_answer(void *ctx, const struct msg_want *want, int error, int fd,
		      const struct file_shown *file)
{
	(void)ctx, (void)want, (void)file;
	answer.n++;
	answer.error = error;
	close_fd(&fd);
}

static void set_up(void)
{
	ck_assert_int_eq(loop_new(&loop), 0);
	ck_assert_int_eq(files_new(loop, &files), 0);
	pidfd = (int)syscall(SYS_pidfd_open, getpid(), 0);
	ck_assert_int_ge(pidfd, 0);
	answer.n = 0;
}

static void tear_down(void)
{
	files_free(files);
	loop_free(loop);
	close_fd(&pidfd);
}

static int ask(char *ctx)
{
	const struct msg_want want = {.kind = WANT_CMDLINE};

	return files_request(files, &want, getpid(), pidfd, on_answer, ctx);
}

static void await(int n)
{
	while (answer.n < n) {
		ck_assert_int_eq(loop_run_once(loop, 100), 0);
		files_check(files);
	}
}

START_TEST(answered_by_a_helper)
{
	ck_assert_int_eq(ask(one), 0);
	ck_assert_int_eq(ask(two), 0);
	ck_assert_int_eq(answer.n, 0);
	await(2);
	ck_assert_int_eq(answer.error, 0);
}
END_TEST

/* The caller still works with what an answer may free. */
START_TEST(no_answer_within_the_request)
{
	struct full full;

	full_but(&full, 2);
	ck_assert_int_eq(ask(one), 0);
	ck_assert_int_eq(ask(two), 0);
	ck_assert_int_eq(answer.n, 0);
	/* No helper can be started: the requests wait. */
	files_check(files);
	ck_assert_int_eq(answer.n, 0);
	full_end(&full);
	await(2);
	ck_assert_int_eq(answer.error, 0);
}
END_TEST

START_TEST(forgotten)
{
	ck_assert_int_eq(ask(one), 0);
	ck_assert_int_eq(ask(one), -EINVAL);
	files_forget(files, one);
	ck_assert_int_eq(ask(one), 0);
	ck_assert_int_eq(ask(two), 0);
	await(2);
	ck_assert_int_eq(answer.n, 2);
}
END_TEST

Suite *suite(void)
{
	Suite *s = suite_create("files");
	TCase *c = tcase_create("files");

	tcase_set_timeout(c, 120);
	tcase_add_checked_fixture(c, set_up, tear_down);
	tcase_add_test(c, answered_by_a_helper);
	tcase_add_test(c, no_answer_within_the_request);
	tcase_add_test(c, forgotten);
	suite_add_tcase(s, c);
	return s;
}
