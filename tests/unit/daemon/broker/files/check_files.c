/* The queue of requests to the helper, which is a child of the test; files of the test itself. */
#include "daemon/broker/files/files.h"

#include <signal.h>
#include <sys/resource.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "daemon/msg/msg_unwind.h"
#include "daemon/process/open.h"
#include "daemon/process/threads.h"
#include "lib/base/buf.h"
#include "tests/unit/daemon/full.h"
#include "tests/unit/map_files.h"
#include "tests/unit/suite.h"

static struct loop *loop;
static struct files *files;
static int pidfd;
static char one[1], two[1]; /* their addresses are the ctx of two requests */

static struct {
	int n, error;
	struct buf bytes;
} answer;

static void on_answer(void *ctx, const struct msg_file_request *request, int error, int fd,
		      const struct file_label *file)
{
	(void)ctx, (void)request, (void)file;
	answer.n++;
	answer.error = error;
	buf_fini(&answer.bytes);
	buf_init(&answer.bytes, 1u << 20);
	if (fd >= 0)
		OK(buf_read_fd(&answer.bytes, fd));
	close_fd(&fd);
}

static void set_up(void)
{
	OK(loop_new(&loop));
	OK(files_new(loop, &files));
	pidfd = (int)syscall(SYS_pidfd_open, getpid(), 0);
	ck_assert_int_ge(pidfd, 0);
	answer.n = 0;
}

static void tear_down(void)
{
	files_free(files);
	loop_free(loop);
	close_fd(&pidfd);
	buf_fini(&answer.bytes);
}

static int ask_for(enum file_kind kind, char *ctx)
{
	const struct msg_file_request request = {.kind = kind};

	struct owner own;

	OK(owner_read(getpid(), &own));
	return files_request(files, &request, &own, pidfd, false, on_answer, ctx);
}

static int ask(char *ctx)
{
	return ask_for(FILE_KIND_CMDLINE, ctx);
}

static void await(int n)
{
	while (answer.n < n) {
		OK(loop_run_once(loop, 100));
		files_check(files);
	}
}

FIXTURE(set_up, tear_down)

TEST(requests_are_answered_after_the_call)
{
	OK(ask(one));
	OK(ask(two));
	ck_assert_int_eq(answer.n, 0);
	await(2);
	ck_assert_int_eq(answer.error, 0);
}

static void code_of_this_file(void)
{
}

TEST(maps_come_with_the_identities_of_the_files)
{
	const struct mapped_file *files_of_maps;
	const uint64_t here = (uintptr_t)code_of_this_file;
	size_t size, at, n_here = 0;
	struct stat st;

	/* map_files needs CAP_CHECKPOINT_RESTORE. */
	if (map_files_are_closed())
		return;
	OK(ask_for(FILE_KIND_MAPS, one));
	await(1);
	ck_assert_int_eq(answer.error, 0);
	size = strlen(answer.bytes.data);
	at = msg_maps_files(size);
	ck_assert_int_eq(answer.bytes.data[size - 1], '\n');
	ck_assert_uint_gt(answer.bytes.len, at);
	ck_assert_uint_eq((answer.bytes.len - at) % sizeof(*files_of_maps), 0);
	OK(stat("/proc/self/exe", &st));
	files_of_maps = (const void *)(answer.bytes.data + at);
	for (size_t i = 0; i < (answer.bytes.len - at) / sizeof(*files_of_maps); i++) {
		const struct file_identity ours = file_identity_of(&st);

		if (!file_identity_equal(&files_of_maps[i].file, &ours))
			continue;
		n_here++;
		ck_assert_uint_le(files_of_maps[i].start, here);
	}
	ck_assert_uint_eq(n_here, 1);
}

TEST(a_program_comes_with_its_arguments_and_environment)
{
	char exe[PATH_MAX];
	const char *at, *end, *argv0;

	ck_assert_int_gt(readlink("/proc/self/exe", exe, sizeof(exe)), 0);
	OK(ask_for(FILE_KIND_PROGRAM, one));
	await(1);
	ck_assert_int_eq(answer.error, 0);
	at = answer.bytes.data;
	end = at + answer.bytes.len;
	ck_assert_int_eq(strncmp(at, exe, strlen(at)), 0);
	for (int i = 0; i < 2; i++)
		at += strlen(at) + 1;
	ck_assert(at < end);
	argv0 = at;
	at += strlen(at) + 1;
	/* The test may have further arguments. */
	ck_assert_int_eq(strncmp(at, argv0, strlen(argv0)), 0);
	ck_assert(at[strlen(argv0)] == '\0' || at[strlen(argv0)] == ' ');
	at += strlen(at) + 1;
	ck_assert(at <= end);
	ck_assert_ptr_nonnull(memmem(at, (size_t)(end - at), "PATH=", 5));
}

/* Of the test itself the start of another program was read. */
TEST(a_refusal_because_of_another_owner_is_counted)
{
	const struct msg_file_request request = {.kind = FILE_KIND_MAPS};
	struct owner other;

	OK(ask(one));
	await(1);
	ck_assert_uint_eq(files_other_owner(files), 0);
	OK(owner_read(getpid(), &other));
	other.program++;
	OK(files_request(files, &request, &other, pidfd, false, on_answer, one));
	await(2);
	ck_assert_int_eq(answer.error, -EACCES);
	ck_assert_uint_eq(files_other_owner(files), 1);
}

/* files_request() never calls fn itself, since fn could free what the caller still uses. */
TEST(requests_wait_while_no_helper_can_be_started)
{
	struct full full;

	full_but(&full, 2);
	OK(ask(one));
	OK(ask(two));
	ck_assert_int_eq(answer.n, 0);
	/* No helper can be started: the requests wait. */
	files_check(files);
	ck_assert_int_eq(answer.n, 0);
	full_end(&full);
	await(2);
	ck_assert_int_eq(answer.error, 0);
}

static void kill_child(void *ctx, int32_t child)
{
	(void)ctx;
	OK(kill(child, SIGKILL));
}

TEST(the_processor_time_of_helpers_does_not_decrease_when_one_ends)
{
	uint64_t before_ns;

	OK(ask(one));
	await(1);
	before_ns = files_used_ns(files);
	ck_assert_uint_gt(before_ns, 0);
	threads_each_child(getpid(), kill_child, NULL);
	/* The next request has another helper. The first one is not reaped yet. */
	OK(ask(two));
	await(2);
	ck_assert_uint_ge(files_used_ns(files), before_ns);
}

TEST(a_forgotten_request_is_not_answered)
{
	OK(ask(one));
	ck_assert_int_eq(ask(one), -EINVAL);
	files_forget(files, one);
	OK(ask(one));
	OK(ask(two));
	await(2);
	ck_assert_int_eq(answer.n, 2);
}
