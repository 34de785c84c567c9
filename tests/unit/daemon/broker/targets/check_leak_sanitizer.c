/* When a process is asked about LeakSanitizer. The test takes the part of the unwind process. */
#include "daemon/broker/targets/leak_sanitizer.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "daemon/process/process.h"
#include "tests/unit/daemon/broker/broker_builder.h"
#include "tests/unit/daemon/process/owned.h"
#include "tests/unit/suite.h"

static struct broker b;
static struct unwind u;
static struct instance i;
static struct owned process;
static int unwind_fd;

static int take(char step)
{
	(void)step;
	return execl("/bin/sleep", "sleep", "1000", NULL);
}

static void set_up(void)
{
	owned_start(&process, take);
	build_broker(&b);
	OK(loop_new(&b.modules.state.loop));
	OK(files_new(b.modules.state.loop, &b.modules.files));
	quarantine_init(&b.modules.quarantine);
	leak_check_init(&b.modules.leak_check, b.modules.files, &b.modules.quarantine);
	b.modules.targets.leak_check = &b.modules.leak_check;
	unwind_fd = build_unwind(&b, &u);
	OK(fcntl(unwind_fd, F_SETFL, O_NONBLOCK));
	i = (struct instance){.pid = process.pid};
	i.pidfd = (int)syscall(SYS_pidfd_open, process.pid, 0);
	(void)build_run(&b, &i, &u);
}

static void tear_down(void)
{
	leak_sanitizer_forget(i.run);
	files_free(b.modules.files);
	quarantine_clear(&b.modules.quarantine);
	loop_free(b.modules.state.loop);
	close_fd(&unwind_fd);
	close_fd(&u.child.fd);
	close_fd(&i.pidfd);
	owned_end(&process);
}

/* Answers the next look at a file, if one has come. */
static void answer_look(enum file_leaks leaks)
{
	struct msg_file_seen seen = {
		.h = MSG_HEADER(MSG_FILE_SEEN), .verdict = FILE_READ, .leaks = leaks};
	struct msg_file_look look;
	struct ipc_message m;

	if (ipc_recv(unwind_fd, &m) != 1)
		return;
	ipc_close_fds(&m);
	memcpy(&look, m.bytes, sizeof(look));
	seen.id = look.id;
	OK(leak_check_seen(&b.modules.leak_check, &u, &seen));
}

/* Returns the verdict. Each file that is looked at has what leaks says. */
static enum leak_sanitizer_verdict await(enum file_leaks leaks)
{
	enum leak_sanitizer_verdict verdict;

	while ((verdict = leak_sanitizer_check(&b.modules.targets, i.run)) == LEAK_SANITIZER_WAIT) {
		leak_check_turn(&b.modules.leak_check);
		files_check(b.modules.files);
		OK(loop_run_once(b.modules.state.loop, 10));
		answer_look(leaks);
	}
	return verdict;
}

static void execute(void)
{
	const struct owner before = i.run->owner;
	struct owner now;

	ck_assert_int_eq(write(process.to, "x", 1), 1);
	do
		OK(owner_read(process.pid, &now));
	while (now.program == before.program);
}

FIXTURE(set_up, tear_down)

TEST(a_process_is_attached_or_left_by_its_files)
{
	ck_assert_int_eq(await(FILE_LEAKS_NONE), LEAK_SANITIZER_ATTACH);
	ck_assert_uint_eq(i.run->leak_questions, 1);
	leak_sanitizer_forget(i.run);
	execute();
	ck_assert_int_eq(await(FILE_LEAKS_ASAN), LEAK_SANITIZER_LEAVE);
}

/* The helper answers nothing about another program than the one of the question. */
TEST(after_an_exec_the_new_program_is_asked_about)
{
	ck_assert_int_eq(leak_sanitizer_check(&b.modules.targets, i.run), LEAK_SANITIZER_WAIT);
	execute();
	ck_assert_int_eq(await(FILE_LEAKS_ASAN), LEAK_SANITIZER_LEAVE);
	ck_assert_uint_eq(i.run->leak_questions, 2);
}
