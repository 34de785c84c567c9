/* Questions about this process. The test takes the part of the unwind process. */
#include "daemon/broker/children/leak_check.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/unit/daemon/broker/broker_builder.h"
#include "tests/unit/suite.h"

#define LONG_NS (600 * NS_PER_SEC)

static struct broker b;
static struct leak_check *lc;
static struct unwind u;
static struct loop *loop;
static struct leak_question *q;
static int unwind_fd, pidfd;

static void set_up(void)
{
	build_broker(&b);
	lc = &b.modules.leak_check;
	OK(loop_new(&loop));
	OK(files_new(loop, &b.modules.files));
	quarantine_init(&b.modules.quarantine);
	leak_check_init(lc, b.modules.files, &b.modules.quarantine);
	unwind_fd = build_unwind(&b, &u);
	OK(fcntl(unwind_fd, F_SETFL, O_NONBLOCK));
	u.key.uid = 1;
	pidfd = (int)syscall(SYS_pidfd_open, getpid(), 0);
	ck_assert_int_ge(pidfd, 0);
	q = NULL;
}

static void tear_down(void)
{
	leak_question_free(&q);
	files_free(b.modules.files);
	quarantine_clear(&b.modules.quarantine);
	loop_free(loop);
	close_fd(&unwind_fd);
	close_fd(&u.child.fd);
	close_fd(&pidfd);
}

static void ask_within(uint64_t timeout_ns, struct leak_question **ret)
{
	struct owner own;

	OK(owner_read(getpid(), &own));
	OK(leak_check_process(lc, &u, &own, pidfd, false, timeout_ns, ret));
}

static void ask(void)
{
	leak_question_free(&q);
	ask_within(LONG_NS, &q);
}

static void turn(void)
{
	leak_check_turn(lc);
	files_check(b.modules.files);
	OK(loop_run_once(loop, 10));
}

/* Takes the next MSG_FILE_LOOK, if one has come. */
static bool take_look(struct msg_file_look *ret)
{
	struct ipc_message m;

	if (ipc_recv(unwind_fd, &m) != 1)
		return false;
	ck_assert_uint_eq(m.size, sizeof(*ret));
	ck_assert_uint_eq(m.n_fds, 1);
	ipc_close_fds(&m);
	memcpy(ret, m.bytes, sizeof(*ret));
	return true;
}

static int see(uint32_t id, enum file_leaks leaks)
{
	const struct msg_file_seen m = {
		.h = MSG_HEADER(MSG_FILE_SEEN), .id = id, .verdict = FILE_READ, .leaks = leaks};

	return leak_check_seen(lc, &u, &m);
}

static struct msg_file_look await_look(void)
{
	struct msg_file_look look;

	while (!take_look(&look))
		turn();
	return look;
}

/* Answers each look with leaks, up to the answer. Returns the number of looks. */
static size_t await(enum file_leaks leaks)
{
	struct msg_file_look look;
	size_t n = 0;

	while (leak_question_answer(q) == LEAK_ANSWER_AWAITED) {
		turn();
		if (!take_look(&look))
			continue;
		ck_assert_uint_ne(look.number, 0);
		OK(see(look.id, leaks));
		n++;
	}
	return n;
}

FIXTURE(set_up, tear_down)

TEST(all_files_are_looked_at_once)
{
	ask();
	/* This program and the C library, at least. */
	ck_assert_uint_ge(await(FILE_LEAKS_NONE), 2);
	ck_assert_int_eq(leak_question_answer(q), LEAK_ANSWER_NO);
	ask();
	ck_assert_uint_eq(await(FILE_LEAKS_NONE), 0);
	ck_assert_int_eq(leak_question_answer(q), LEAK_ANSWER_NO);
}

/* The process has another key, and then the first one again. */
TEST(the_answers_of_a_user_are_for_that_user)
{
	ask();
	ck_assert_uint_eq(await(FILE_LEAKS_ASAN), 1);
	ck_assert_int_eq(leak_question_answer(q), LEAK_ANSWER_ASAN);
	u.key.uid = 2;
	ask();
	ck_assert_uint_ge(await(FILE_LEAKS_NONE), 2);
	ck_assert_int_eq(leak_question_answer(q), LEAK_ANSWER_NO);
	u.key.uid = 1;
	ask();
	ck_assert_uint_eq(await(FILE_LEAKS_NONE), 0);
	ck_assert_int_eq(leak_question_answer(q), LEAK_ANSWER_ASAN);
}

TEST(the_cache_knows_what_has_leak_sanitizer)
{
	ask();
	ck_assert_uint_eq(await(FILE_LEAKS_LSAN), 1);
	ask();
	ck_assert_uint_eq(await(FILE_LEAKS_NONE), 0);
	ck_assert_int_eq(leak_question_answer(q), LEAK_ANSWER_LSAN);
}

TEST(questions_at_a_time_share_the_looks)
{
	struct leak_question *other[2 * LEAK_CHECK_ACTIVE_MAX];
	size_t n;

	for (size_t i = 0; i < array_size(other); i++)
		ask_within(LONG_NS, &other[i]);
	ask();
	n = await(FILE_LEAKS_NONE);
	for (size_t i = 0; i < array_size(other); i++) {
		ck_assert_int_eq(leak_question_answer(other[i]), LEAK_ANSWER_NO);
		leak_question_free(&other[i]);
	}
	memset(lc->cache, 0, sizeof(lc->cache));
	ask();
	ck_assert_uint_eq(await(FILE_LEAKS_NONE), n);
}

TEST(another_unwind_process_gets_the_file_again)
{
	struct msg_file_look first, second;

	ask();
	first = await_look();
	u.child.pid = 2;
	second = await_look();
	ck_assert_uint_ne(second.id, first.id);
	ck_assert_uint_eq(second.number, first.number);
	/* The first one has no effect any more. */
	OK(see(first.id, FILE_LEAKS_ASAN));
	ck_assert_int_eq(leak_question_answer(q), LEAK_ANSWER_AWAITED);
	OK(see(second.id, FILE_LEAKS_NONE));
	(void)await(FILE_LEAKS_NONE);
	ck_assert_int_eq(leak_question_answer(q), LEAK_ANSWER_NO);
}

TEST(a_file_at_which_unwind_dies_counts_as_without)
{
	uint32_t number;

	ask();
	number = await_look().number;
	for (int i = 0; i < QUARANTINE_DEATHS; i++)
		(void)quarantine_count_death(&b.modules.quarantine, &u.key, number);
	u.child.pid = 2;
	(void)await(FILE_LEAKS_NONE);
	ck_assert_int_eq(leak_question_answer(q), LEAK_ANSWER_NO);
}

/* The broker sees the end of the socket before it counts the death. */
TEST(a_file_is_not_looked_at_again_after_the_last_death)
{
	int fd = u.child.fd;
	uint32_t number;

	ask();
	number = await_look().number;
	u.child.fd = -1;
	turn();
	for (int i = 0; i < QUARANTINE_DEATHS; i++)
		(void)quarantine_count_death(&b.modules.quarantine, &u.key, number);
	u.child.fd = fd;
	u.child.pid = 2;
	ck_assert_uint_ne(await_look().number, number);
}

TEST(the_timeout_ends_a_question)
{
	ask_within(0, &q);
	turn();
	ck_assert_int_eq(leak_question_answer(q), LEAK_ANSWER_UNKNOWN);
}

TEST(a_question_can_be_cancelled)
{
	struct msg_file_look look;

	ask();
	leak_check_turn(lc);
	leak_question_free(&q);
	turn();
	ask();
	look = await_look();
	leak_question_free(&q);
	leak_question_free(&q);
	/* unwind had sent its answer before it could know. */
	OK(see(look.id, FILE_LEAKS_ASAN));
	turn();
	ck_assert_ptr_null(lc->first);
}

TEST(invalid_answers_are_refused)
{
	struct msg_file_look look;

	ck_assert_int_eq(see(0, FILE_LEAKS_NONE), -EPROTO);
	ck_assert_int_eq(see(1, FILE_LEAKS_NONE), -EPROTO);
	ask();
	look = await_look();
	ck_assert_int_eq(see(look.id, FILE_LEAKS_END), -EPROTO);
	ck_assert_int_eq(see(look.id + 1, FILE_LEAKS_NONE), -EPROTO);
}

/* A program that is to be executed: the file, and the options. */
TEST(a_file_is_looked_at_with_its_options)
{
	static const struct {
		struct leak_options options;
		enum file_leaks leaks;
		enum leak_answer answer;
	} v[] = {
		{{.asan_off = false}, FILE_LEAKS_NONE, LEAK_ANSWER_NO},
		{{.asan_off = false}, FILE_LEAKS_ASAN, LEAK_ANSWER_ASAN},
		{{.asan_off = true}, FILE_LEAKS_ASAN, LEAK_ANSWER_OFF},
		{{.asan_off = true}, FILE_LEAKS_LSAN, LEAK_ANSWER_LSAN},
		{{.lsan_off = true}, FILE_LEAKS_LSAN, LEAK_ANSWER_OFF},
		{{.preloads = FILE_LEAKS_ASAN}, FILE_LEAKS_NONE, LEAK_ANSWER_ASAN},
		{{.asan_off = true, .preloads = FILE_LEAKS_ASAN}, FILE_LEAKS_NONE, LEAK_ANSWER_OFF},
	};
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	for (size_t i = 0; i < array_size(v); i++) {
		OK(leak_check_file(lc, &u, fd, &v[i].options, LONG_NS, &q));
		OK(see(await_look().id, v[i].leaks));
		ck_assert_int_eq(leak_question_answer(q), v[i].answer);
		leak_question_free(&q);
	}
	close_fd(&fd);
	OK(leak_check_file(lc, &u, -1, &v[0].options, LONG_NS, &q));
	turn();
	ck_assert_int_eq(leak_question_answer(q), LEAK_ANSWER_NO);
}
