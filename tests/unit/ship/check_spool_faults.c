/*
 * A spool whose disk fails at its first system call, at its second, and so on. The envelopes whose
 * addition was successful are there, and no others.
 */
#include "lib/ship/spool.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/ipc.h"
#include "tests/unit/suite.h"

#define NOW_MS	 UINT64_C(1763755000123)
#define MINE	 UINT64_C(0x1234)
#define ADDED	 3
#define REMOVED	 2
#define ONE_SIZE 50

/* Shared by the process whose disk fails and the test. */
struct progress {
	bool added[ADDED];  /* spool_add has returned 0 */
	bool unexpected;    /* spool_add() has returned an unexpected value */
	unsigned int count; /* spool_count() at the end */
	uint64_t bytes;
};

static const char *path;
static int dir;
static struct progress *progress;
static unsigned int told;

static void on_event(void *ctx, enum spool_event event, const char *name, int error)
{
	(void)ctx;
	(void)event;
	(void)name;
	(void)error;
	told++;
}

static struct spool *open_spool(void)
{
	const struct spool_options options = {
		.dir_fd = dir,
		.limits = {.bytes = 1000, .count = 10, .age_ms = 1000},
		.event = on_event,
	};
	struct spool *s;

	told = 0;
	OK(spool_new(&s, &options, NOW_MS));
	return s;
}

static void set_up(void)
{
	path = suite_directory();
	dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ck_assert_int_ge(dir, 0);
	progress = mmap(NULL, sizeof(*progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			-1, 0);
	ck_assert_ptr_ne(progress, MAP_FAILED);
}

static size_t count_files(void)
{
	DIR *names = opendir(path);
	struct dirent *entry;
	size_t n = 0;

	ck_assert_ptr_nonnull(names);
	while ((entry = readdir(names)) != NULL)
		n += entry->d_type == DT_REG;
	(void)closedir(names);
	return n;
}

static void tear_down(void)
{
	(void)munmap(progress, sizeof(*progress));
	close_fd(&dir);
}

/* Installs a filter: calls that reach the disk wait for the test's decision. */
static int install_filter(void)
{
#define WATCH(call)                                      \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1), \
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF)
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		WATCH(SYS_openat),
		WATCH(SYS_write),
		WATCH(SYS_fsync),
		WATCH(SYS_renameat),
		WATCH(SYS_unlinkat),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = {.len = array_size(code), .filter = code};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -1;
	return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER,
			    &program);
}

static void fill_and_empty(struct spool *s, struct progress *p)
{
	char bytes[ONE_SIZE];

	for (uint8_t n = 0; n < ADDED; n++) {
		const uint8_t id[SPOOL_ID_BYTES] = {n};
		int r;

		memset(bytes, 'a' + n, sizeof(bytes));
		r = spool_add(s, id, MINE, ENVELOPE_CHUNK, bytes, sizeof(bytes), NOW_MS);
		p->added[n] = r == 0;
		p->unexpected = p->unexpected || (r != 0 && r != -ENOSPC);
	}
	for (int n = 0; n < REMOVED; n++)
		spool_remove(s, spool_oldest(s, MINE, ENVELOPE_CHUNK));
	p->count = (unsigned int)spool_count(s);
	p->bytes = spool_bytes(s);
}

/* The process begins when the test closes its end of the socket. */
static void fail_here(struct spool *s, int socket)
{
	const char here = 'x';
	struct ipc_message end;
	int listener = install_filter();

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (listener < 0 || ipc_send(socket, &here, sizeof(here), &listener, 1) < 0)
		_exit(1);
	close_fd(&listener);
	(void)!ipc_recv(socket, &end);
	fill_and_empty(s, progress);
	_exit(0);
}

/* Starts the process. Returns its pid, and the descriptor by which the filter asks the test; 0: the
 * kernel has no such filter. */
static pid_t begin(int *ret_listener)
{
	struct spool *s = open_spool();
	struct ipc_message m;
	int sockets[2], r;
	pid_t child;

	memset(progress, 0, sizeof(*progress));
	OK(ipc_pair(sockets));
	for (size_t i = 0; i < 2; i++)
		OK(fcntl(sockets[i], F_SETFL, 0));
	child = fork();
	ck_assert_int_ge(child, 0);
	if (child == 0) {
		close_fd(&sockets[0]);
		fail_here(s, sockets[1]);
	}
	close_fd(&sockets[1]);
	r = ipc_recv(sockets[0], &m);
	if (r == 1)
		*ret_listener = ipc_take_fd(&m, 0);
	close_fd(&sockets[0]);
	spool_free(s);
	if (r == 1)
		return child;
	ck_assert_int_eq(waitpid(child, NULL, 0), child);
	return 0;
}

/* Lets the n-th call, from 1, fail. Returns its number, or -1 if there were fewer calls. */
static long fail_at(unsigned int n, pid_t child, int listener)
{
	struct pollfd p = {.fd = listener, .events = POLLIN};
	long failed = -1;
	int status;

	for (unsigned int i = 1; poll(&p, 1, -1) == 1 && p.revents & POLLIN; i++) {
		struct seccomp_notif call = {0};
		struct seccomp_notif_resp answer = {0};

		OK(ioctl(p.fd, SECCOMP_IOCTL_NOTIF_RECV, &call));
		answer.id = call.id;
		if (i == n) {
			failed = call.data.nr;
			answer.error = -ENOSPC;
		} else {
			answer.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
		}
		OK(ioctl(p.fd, SECCOMP_IOCTL_NOTIF_SEND, &answer));
	}
	close_fd(&p.fd);
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_int_eq(status, 0);
	return failed;
}

static void check_content(const struct spool *s, const struct spool_entry *e)
{
	char bytes[ONE_SIZE + 1];
	int fd;

	OK(spool_open(s, e, &fd));
	ck_assert_int_eq(read(fd, bytes, sizeof(bytes)), ONE_SIZE);
	for (size_t i = 0; i < ONE_SIZE; i++)
		ck_assert_int_eq(bytes[i], 'a' + e->id[0]);
	close_fd(&fd);
}

/* The other envelopes are complete. */
static void check_what_is_there(long failed)
{
	const struct spool_entry *e;
	struct spool *s = open_spool();
	/* A file that could not be removed is still there. */
	size_t n = failed == SYS_unlinkat;

	for (size_t i = 0; i < ADDED; i++)
		n += progress->added[i] ? 1 : 0;
	n -= REMOVED;
	ck_assert(!progress->unexpected);
	ck_assert_uint_eq(told, 0);
	ck_assert_uint_eq(spool_count(s), n);
	ck_assert_uint_eq(count_files(), n);
	if (failed != SYS_unlinkat) {
		ck_assert_uint_eq(progress->count, n);
		ck_assert_uint_eq(progress->bytes, n * ONE_SIZE);
	}
	while ((e = spool_oldest(s, MINE, ENVELOPE_CHUNK)) != NULL) {
		ck_assert(progress->added[e->id[0]]);
		check_content(s, e);
		spool_remove(s, e);
	}
	spool_free(s);
}

FIXTURE(set_up, tear_down)

TEST(no_added_envelope_is_lost_if_a_system_call_fails)
{
	size_t kinds[5] = {0};
	unsigned int n = 1;
	long failed;

	for (;; n++) {
		int listener = -1;
		pid_t child = begin(&listener);

		if (child == 0) {
			ck_assert_uint_eq(n, 1);
			printf("calls cannot be made to fail here\n");
			return;
		}
		failed = fail_at(n, child, listener);
		check_what_is_there(failed);
		if (failed < 0)
			break;
		kinds[0] += failed == SYS_openat;
		kinds[1] += failed == SYS_write;
		kinds[2] += failed == SYS_fsync;
		kinds[3] += failed == SYS_renameat;
		kinds[4] += failed == SYS_unlinkat;
		/* A failed addition is reported. */
		if (failed != SYS_unlinkat && n <= 5 * ADDED)
			ck_assert(!progress->added[(n - 1) / 5]);
	}
	/* Opening, writing, and synchronising both the file and the directory. */
	ck_assert_uint_eq(n - 1, 5 * ADDED + 2 * REMOVED);
	ck_assert_uint_eq(kinds[0], ADDED);
	ck_assert_uint_eq(kinds[1], ADDED);
	ck_assert_uint_eq(kinds[2], 2 * ADDED + REMOVED);
	ck_assert_uint_eq(kinds[3], ADDED);
	ck_assert_uint_eq(kinds[4], REMOVED);
}
