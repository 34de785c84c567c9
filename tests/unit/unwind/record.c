#include "tests/unit/unwind/record.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "lib/base/buf.h"
#include "lib/capture/ptrace/arch.h"
#include "lib/unwind/cpu.h"
#include "tests/unit/suite.h"

#define MAPS_TEXT_MAX (16u << 20)

static char *read_text(const char *path, size_t *ret_size)
{
	struct buf b;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	ck_assert_msg(fd >= 0, "%s: %s", path, strerror(errno));
	buf_init(&b, MAPS_TEXT_MAX);
	OK(buf_read_fd(&b, fd));
	close_fd(&fd);
	*ret_size = b.len;
	return b.data;
}

char *target_maps_text(const struct target *t)
{
	char path[64];
	size_t size;

	(void)snprintf(path, sizeof(path), "/proc/%d/maps", (int)t->pid);
	return read_text(path, &size);
}

void target_read_maps(struct target *t)
{
	char *text = target_maps_text(t);

	OK(unwind_space_set_maps(t->space, text, strlen(text)));
	free(text);
}

static void make_space(struct target *t)
{
	const struct unwind_cache_options options = {.max_bytes = 64u << 20};

	OK(unwind_cache_new(&options, &t->cache));
	OK(unwind_space_new(t->cache, &target_files, t, &t->space));
	target_read_maps(t);
}

void target_adopt(struct target *t, pid_t pid)
{
	memset(t, 0, sizeof(*t));
	t->pid = pid;
	t->in = -1;
	t->out = -1;
	make_space(t);
}

#define ARGS_MAX 8

void target_start(struct target *t, const char *name, const char *const *args)
{
	char path[PATH_MAX];
	char *argv[ARGS_MAX + 2] = {path};
	int in[2];
	int out[2];
	size_t n = 0;

	memset(t, 0, sizeof(*t));
	suite_target(name, path, sizeof(path));
	for (size_t i = 0; args && args[i] && i < ARGS_MAX; i++) {
		argv[i + 1] = strdup(args[i]);
		ck_assert_ptr_nonnull(argv[i + 1]);
	}
	OK(pipe2(in, O_CLOEXEC));
	OK(pipe2(out, O_CLOEXEC));
	t->pid = fork();
	ck_assert_int_ge(t->pid, 0);
	if (t->pid == 0) {
		if (dup2(in[0], STDIN_FILENO) >= 0 && dup2(out[1], STDOUT_FILENO) >= 0)
			(void)execv(path, argv);
		_exit(127);
	}
	(void)close(in[0]);
	(void)close(out[1]);
	for (size_t i = 1; argv[i]; i++)
		free(argv[i]);
	t->in = in[1];
	t->out = out[0];
	while (!strstr(t->text, "ready\n")) {
		ssize_t got = read(t->out, t->text + n, sizeof(t->text) - 1 - n);

		ck_assert_msg(got > 0, "%s ended before it was ready", name);
		n += (size_t)got;
	}
	make_space(t);
}

void target_stop(struct target *t)
{
	if (t->in >= 0) {
		(void)kill(t->pid, SIGKILL);
		while (waitpid(t->pid, NULL, __WALL) < 0 && errno == EINTR)
			;
	}
	close_fd(&t->in);
	close_fd(&t->out);
	for (size_t i = 0; i < ORACLE_N; i++)
		oracle_free(t->oracles[i]);
	unwind_space_free(t->space);
	unwind_cache_free(t->cache);
}

size_t target_threads(const struct target *t, pid_t *tids, size_t max)
{
	char path[64];
	struct dirent *e;
	size_t n = 0;
	DIR *d;

	(void)snprintf(path, sizeof(path), "/proc/%d/task", (int)t->pid);
	d = opendir(path);
	ck_assert_ptr_nonnull(d);
	while ((e = readdir(d)) && n < max) {
		long tid = strtol(e->d_name, NULL, 10);

		if (tid > 0)
			tids[n++] = (pid_t)tid;
	}
	(void)closedir(d);
	return n;
}

/* False for waits in the kernel (a page, a lock) before the wait in a system call. */
static bool is_wait(long nr)
{
	return nr == SYS_read || nr == RECORD_POLL || nr == SYS_futex ||
	       nr == SYS_clock_nanosleep || nr == SYS_restart_syscall;
}

long target_wait_blocked(const struct target *t, pid_t tid)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%d/task/%d/syscall", (int)t->pid, (int)tid);
	for (;;) {
		size_t size;
		char *text = read_text(path, &size);
		long nr = -1;

		ck_assert_msg(size > 0, "the target has ended");
		if (text[0] >= '0' && text[0] <= '9')
			nr = strtol(text, NULL, 10);
		free(text);
		if (is_wait(nr))
			return nr;
	}
}

/* Copies memory of the target that has no file. */
static int copy_memory(pid_t pid, uint64_t start, uint64_t end, int *ret_fd)
{
	size_t size = (size_t)(end - start);
	int fd = memfd_create("copy", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	void *bytes = malloc(size);
	struct iovec local = {bytes, size};
	struct iovec remote = {.iov_len = size};

	memcpy(&remote.iov_base, &start, sizeof(start));
	ck_assert(fd >= 0 && bytes);
	if (process_vm_readv(pid, &local, 1, &remote, 1, 0) != (ssize_t)size ||
	    write(fd, bytes, size) != (ssize_t)size) {
		free(bytes);
		close_fd(&fd);
		return -EIO;
	}
	free(bytes);
	*ret_fd = fd;
	return 0;
}

static int open_image(void *ctx, uint64_t start, uint64_t end, int *ret_fd)
{
	const struct target *t = ctx;
	char path[128];
	int fd;

	(void)snprintf(path, sizeof(path), "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, (int)t->pid,
		       start, end);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return copy_memory(t->pid, start, end, ret_fd);
	*ret_fd = fd;
	return 0;
}

static int open_debug(void *ctx, const char *build_id, int *ret_fd)
{
	char path[PATH_MAX];
	int fd;

	(void)ctx;
	(void)snprintf(path, sizeof(path), "/usr/lib/debug/.build-id/%.2s/%s.debug", build_id,
		       build_id + 2);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	*ret_fd = fd;
	return 0;
}

const struct unwind_files target_files = {.image = open_image, .debug = open_debug};

/* ptrace takes and returns everything in a pointer. */
static void do_ptrace(int request, pid_t tid, void *data)
{
	ck_assert_msg(ptrace((enum __ptrace_request)request, tid, NULL, data) == 0,
		      "ptrace %d of %d: %s", request, (int)tid, strerror(errno));
}

void thread_seize(pid_t tid)
{
	do_ptrace(PTRACE_SEIZE, tid, NULL);
}

void thread_interrupt(pid_t tid)
{
	int status;

	do_ptrace(PTRACE_INTERRUPT, tid, NULL);
	for (;;) {
		ck_assert_int_eq(waitpid(tid, &status, __WALL), tid);
		ck_assert(WIFSTOPPED(status));
		if (status >> 16 == PTRACE_EVENT_STOP)
			return;
		/* A signal of the target's own is passed on. */
		OK(ptrace(PTRACE_CONT, tid, NULL, (void *)(uintptr_t)WSTOPSIG(status)));
	}
}

void thread_continue(pid_t tid)
{
	do_ptrace(PTRACE_CONT, tid, NULL);
}

void thread_step(pid_t tid, unsigned int n)
{
	int status;

	while (n-- > 0) {
		do_ptrace(PTRACE_SINGLESTEP, tid, NULL);
		ck_assert_int_eq(waitpid(tid, &status, __WALL), tid);
		ck_assert(WIFSTOPPED(status) && WSTOPSIG(status) == SIGTRAP);
	}
}

void thread_detach(pid_t tid)
{
	do_ptrace(PTRACE_DETACH, tid, NULL);
}

/* The end of the mapping that covers addr. */
static uint64_t mapping_end(const struct target *t, uint64_t addr)
{
	char *text = target_maps_text(t);
	uint64_t end = 0;

	for (char *line = text; line && *line; line = strchr(line, '\n') + 1) {
		uint64_t from;
		uint64_t to;

		ck_assert_int_eq(sscanf(line, "%" SCNx64 "-%" SCNx64, &from, &to), 2);
		if (addr >= from && addr < to)
			end = to;
	}
	free(text);
	ck_assert_uint_gt(end, 0);
	return end;
}

struct record_sample *record_thread(const struct target *t, pid_t tid, size_t *ret_size)
{
	struct arch_regs u;
	uint64_t regs[ARCH_REGS];
	struct record_sample *s;
	struct iovec remote = {0};
	struct iovec local;
	uint64_t start;
	size_t size;

	OK(arch_get_regs((uint32_t)tid, &u));
	arch_to_dwarf(&u, regs);
	start = regs[ARCH_SP] - ARCH_RED_ZONE;
	size = (size_t)(mapping_end(t, regs[ARCH_SP]) - start);
	s = calloc(1, sizeof(*s) + size);
	ck_assert_ptr_nonnull(s);
	if (size > SAMPLE_STACK_MAX) {
		size = SAMPLE_STACK_MAX;
		s->flags |= SAMPLE_CAPPED;
	}
	memcpy(&remote.iov_base, &start, sizeof(start));
	remote.iov_len = size;
	local = (struct iovec){s->stack, size};
	ck_assert_int_eq(process_vm_readv(t->pid, &local, 1, &remote, 1, 0), (ssize_t)size);
	s->h.ring.size = (uint32_t)(sizeof(*s) + size);
	s->h.ring.type = RECORD_SAMPLE;
	s->h.tid = (uint32_t)tid;
	s->arch = CPU_SAMPLE_ARCH;
	s->regs_known = ARCH_REGS_ALL;
	memcpy(s->regs, regs, sizeof(regs));
	s->stack_addr = start;
	s->stack_size = (uint32_t)size;
	*ret_size = sizeof(*s) + size;
	return s;
}

void target_oracle(struct target *t, enum oracle_kind kind, pid_t tid, struct oracle_stack *ret)
{
	if (t->oracles[kind] == NULL)
		OK(oracle_new(kind, t->pid, &t->oracles[kind]));
	oracle_walk(t->oracles[kind], tid, ret);
}
