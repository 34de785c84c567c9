/* The spool: order, limits, damaged files, and what is left after a kill at any call. */
#include "lib/ship/spool.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/ptrace.h>

#include "tests/unit/suite.h"

#define NOW_MS	 UINT64_C(1763755000123)
#define AGE_MS	 UINT64_C(1000)
#define BYTES	 1000
#define COUNT	 5
#define ONE_SIZE 100
#define MINE	 UINT64_C(0x1234)
#define OTHER	 UINT64_C(0xfedcba9876543210)

#define EVENTS (SPOOL_IGNORED + 1)

static const char *path;
static int dir;
static struct spool *spool;
static unsigned int events[EVENTS];
static char last_name[NAME_MAX + 1];

static void on_event(void *ctx, enum spool_event event, const char *name, int error)
{
	ck_assert_ptr_eq(ctx, &spool);
	ck_assert_int_ge(error, 0);
	events[event]++;
	(void)snprintf(last_name, sizeof(last_name), "%s", name);
}

static void open_at(uint64_t now_ms)
{
	const struct spool_options options = {
		.dir_fd = dir,
		.dsn = MINE,
		.limits = {.bytes = BYTES, .count = COUNT, .age_ms = AGE_MS},
		.event = on_event,
		.ctx = &spool,
	};

	spool_free(spool);
	memset(events, 0, sizeof(events));
	OK(spool_new(&spool, &options, now_ms));
}

static void set_up(void)
{
	path = suite_directory();
	dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ck_assert_int_ge(dir, 0);
	spool = NULL;
	open_at(NOW_MS);
}

static unsigned int each_name(void (*what)(const char *name))
{
	DIR *names = opendir(path);
	struct dirent *entry;
	unsigned int n = 0;

	ck_assert_ptr_nonnull(names);
	while ((entry = readdir(names)) != NULL) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		n++;
		if (what != NULL)
			what(entry->d_name);
	}
	(void)closedir(names);
	return n;
}

static void remove_name(const char *name)
{
	if (unlinkat(dir, name, 0) < 0)
		OK(unlinkat(dir, name, AT_REMOVEDIR));
}

static void tear_down(void)
{
	spool_free(spool);
	close_fd(&dir);
}

static const struct spool_entry *oldest(uint64_t dsn)
{
	return spool_oldest(spool, dsn, ENVELOPE_CHUNK);
}

static int add_kind(enum envelope_kind kind, unsigned int n, uint64_t dsn, size_t size,
		    uint64_t now_ms)
{
	uint8_t id[SPOOL_ID_BYTES] = {(uint8_t)n};
	char bytes[2 * BYTES];

	memset(bytes, 'a' + (int)n, sizeof(bytes));
	return spool_add(spool, id, dsn, kind, bytes, size, now_ms);
}

/* Adds an envelope of size bytes whose id is n. */
static int add(unsigned int n, uint64_t dsn, size_t size, uint64_t now_ms)
{
	return add_kind(ENVELOPE_CHUNK, n, dsn, size, now_ms);
}

static void check_oldest(uint64_t dsn, unsigned int n)
{
	const struct spool_entry *e = oldest(dsn);
	char bytes[2 * BYTES];
	int fd;

	ck_assert_ptr_nonnull(e);
	ck_assert_uint_eq(e->id[0], n);
	OK(spool_open(spool, e, &fd));
	ck_assert_int_eq(read(fd, bytes, sizeof(bytes)), (ssize_t)e->size);
	for (size_t i = 0; i < e->size; i++)
		ck_assert_int_eq(bytes[i], 'a' + (int)n);
	close_fd(&fd);
}

FIXTURE(set_up, tear_down)

TEST(the_oldest_envelope_is_returned_first)
{
	for (unsigned int n = 0; n < 4; n++)
		OK(add(n, n % 2 == 0 ? MINE : OTHER, ONE_SIZE, NOW_MS + n));
	/* A new process finds the envelopes of the last one. */
	for (unsigned int round = 0; round < 2; round++) {
		ck_assert_uint_eq(spool_count(spool), 4);
		ck_assert_uint_eq(spool_bytes(spool), 4 * ONE_SIZE);
		check_oldest(MINE, 0);
		check_oldest(OTHER, 1);
		open_at(NOW_MS + 4);
	}
	ck_assert_int_eq(add(3, OTHER, ONE_SIZE, NOW_MS), -EEXIST);
	spool_remove(spool, oldest(OTHER));
	check_oldest(OTHER, 3);
	check_oldest(MINE, 0);
	spool_remove(spool, oldest(MINE));
	spool_remove(spool, oldest(MINE));
	ck_assert_ptr_null(oldest(MINE));
	spool_remove(spool, oldest(OTHER));
	ck_assert_uint_eq(spool_count(spool), 0);
	ck_assert_uint_eq(spool_bytes(spool), 0);
	ck_assert_uint_eq(each_name(NULL), 0);
}

/* The order of each kind is independent of the other; the name has the kind. */
TEST(kinds_have_separate_orders)
{
	struct spool_entry e;

	for (unsigned int n = 0; n < 4; n++)
		OK(add_kind(n % 2 == 0 ? ENVELOPE_CHUNK : ENVELOPE_V1, n, MINE, 1, NOW_MS + n));
	open_at(NOW_MS + 4);
	ck_assert_uint_eq(events[SPOOL_SET_ASIDE], 0);
	ck_assert_uint_eq(spool_count(spool), 4);
	ck_assert_uint_eq(oldest(MINE)->id[0], 0);
	ck_assert_uint_eq(spool_oldest(spool, MINE, ENVELOPE_V1)->id[0], 1);
	spool_remove(spool, spool_oldest(spool, MINE, ENVELOPE_V1));
	ck_assert_uint_eq(spool_oldest(spool, MINE, ENVELOPE_V1)->id[0], 3);
	spool_expire(spool, NOW_MS + AGE_MS + 4);
	ck_assert_str_eq(last_name + strlen(last_name) - 6, ".v1.gz");
	OK(spool_name_parse(last_name, &e));
	ck_assert_uint_eq(e.kind, ENVELOPE_V1);
	ck_assert_uint_eq(e.id[0], 3);
}

TEST(the_span_is_the_time_from_the_oldest_to_the_newest)
{
	uint64_t ms;

	ck_assert_uint_eq(spool_span(spool, MINE, &ms), 0);
	ck_assert_uint_eq(ms, 0);
	for (unsigned int n = 0; n < 4; n++)
		OK(add(n, n == 0 ? OTHER : MINE, 1, NOW_MS + 10 * n));
	ck_assert_uint_eq(spool_span(spool, MINE, &ms), 3);
	ck_assert_uint_eq(ms, 20);
	ck_assert_uint_eq(spool_span(spool, OTHER, &ms), 1);
	ck_assert_uint_eq(ms, 0);
	spool_remove(spool, oldest(MINE));
	ck_assert_uint_eq(spool_span(spool, MINE, &ms), 2);
	ck_assert_uint_eq(ms, 10);
}

TEST(many_envelopes_are_added_and_removed)
{
	unsigned int next = 0;

	for (unsigned int n = 0; n < 250; n++) {
		OK(add(n, MINE, 1, NOW_MS));
		if (n % 3 != 0)
			continue;
		while (oldest(MINE)->id[0] < next)
			spool_remove(spool, oldest(MINE));
		next = n;
	}
	ck_assert_uint_le(spool_count(spool), COUNT);
	ck_assert_uint_eq(each_name(NULL), spool_count(spool));
	ck_assert_uint_eq(spool_bytes(spool), spool_count(spool));
}

TEST(the_oldest_is_removed_at_the_limit_of_bytes)
{
	for (unsigned int n = 0; n < 3; n++)
		OK(add(n, MINE, 300, NOW_MS));
	OK(add(3, MINE, 700, NOW_MS));
	ck_assert_uint_eq(events[SPOOL_OVERFLOW], 2);
	check_oldest(MINE, 2);
	ck_assert_uint_eq(spool_bytes(spool), 1000);
	ck_assert_int_eq(add(4, MINE, BYTES + 1, NOW_MS), -E2BIG);
	ck_assert_uint_eq(spool_count(spool), 2);
	ck_assert_uint_eq(each_name(NULL), 2);
}

TEST(the_oldest_is_removed_at_the_limit_of_count)
{
	for (unsigned int n = 0; n < COUNT + 2; n++)
		OK(add(n, MINE, 1, NOW_MS));
	ck_assert_uint_eq(events[SPOOL_OVERFLOW], 2);
	check_oldest(MINE, 2);
	ck_assert_uint_eq(each_name(NULL), COUNT);
}

TEST(old_envelopes_are_removed)
{
	OK(add(0, MINE, 1, NOW_MS));
	OK(add(1, MINE, 1, NOW_MS + 1));
	spool_expire(spool, NOW_MS + AGE_MS);
	ck_assert_uint_eq(spool_count(spool), 2);
	spool_expire(spool, NOW_MS + AGE_MS + 1);
	ck_assert_uint_eq(events[SPOOL_EXPIRED], 1);
	check_oldest(MINE, 1);
	/* spool_new() removes old envelopes, too. */
	open_at(NOW_MS + AGE_MS + 2);
	ck_assert_uint_eq(events[SPOOL_EXPIRED], 1);
	ck_assert_uint_eq(each_name(NULL), 0);
}

static void put(const char *name, size_t size)
{
	char bytes[2 * BYTES] = {0};
	int fd = openat(dir, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, bytes, size), (ssize_t)size);
	close_fd(&fd);
}

static void remove_file(uint64_t dsn)
{
	char name[SPOOL_NAME_SIZE];

	spool_name_format(oldest(dsn), name);
	OK(unlinkat(dir, name, 0));
}

TEST(moved_envelopes_are_forgotten)
{
	for (unsigned int n = 0; n < 3; n++)
		OK(add(n, n == 1 ? MINE : OTHER, 100, NOW_MS));
	remove_file(OTHER);
	remove_file(MINE);
	spool_forget_moved(spool);
	check_oldest(OTHER, 2);
	ck_assert_uint_eq(spool_count(spool), 2);
	ck_assert_uint_eq(spool_bytes(spool), 200);
	/* A missing file of the own DSN is a loss, reported when the envelope is opened. */
	ck_assert_uint_eq(oldest(MINE)->id[0], 1);
	remove_file(OTHER);
	spool_forget_moved(spool);
	ck_assert_ptr_null(oldest(OTHER));
	ck_assert_uint_eq(spool_count(spool), 1);
	/* The last entry, after some that were removed. */
	spool_remove(spool, oldest(MINE));
	for (unsigned int n = 3; n < 6; n++)
		OK(add(n, OTHER, 100, NOW_MS));
	spool_remove(spool, oldest(OTHER));
	spool_remove(spool, oldest(OTHER));
	remove_file(OTHER);
	spool_forget_moved(spool);
	ck_assert_uint_eq(spool_count(spool), 0);
	ck_assert_uint_eq(spool_bytes(spool), 0);
	for (int i = 0; i < EVENTS; i++)
		ck_assert_uint_eq(events[i], 0);
}

/* OTHER was the first DSN before a restart, and its ship starts after that of MINE. */
TEST(files_that_will_be_moved_are_not_removed_at_the_start)
{
	char name[SPOOL_NAME_SIZE];

	for (unsigned int n = 0; n < COUNT + 2; n++) {
		const struct spool_entry e = {
			.time_ms = NOW_MS + n,
			.dsn = n < 3 ? OTHER : MINE,
			.id = {(uint8_t)n},
		};

		spool_name_format(&e, name);
		put(name, 1);
	}
	open_at(NOW_MS);
	ck_assert_uint_eq(spool_count(spool), COUNT + 2);
	/* If they are not moved, they make room. */
	OK(add(COUNT + 2, MINE, 1, NOW_MS));
	ck_assert_uint_eq(events[SPOOL_OVERFLOW], 3);
	ck_assert_uint_eq(oldest(MINE)->id[0], 3);
}

/*
 * The ship of the first DSN removes old files in the directories of others, and is faster if a
 * machine has slept for a day.
 */
TEST(an_envelope_whose_file_was_removed_is_lost)
{
	OK(add(0, OTHER, 1, NOW_MS));
	OK(add(1, MINE, 1, NOW_MS));
	remove_file(OTHER);
	remove_file(MINE);
	spool_expire(spool, NOW_MS + AGE_MS + 2);
	ck_assert_uint_eq(events[SPOOL_EXPIRED], 1);
	ck_assert_uint_eq(spool_count(spool), 0);
}

/* The ids of chunks are random, so only times give an order that a new process finds. */
TEST(the_order_of_one_moment_is_kept_over_a_restart)
{
	for (unsigned int n = 0; n < COUNT; n++)
		OK(add(COUNT - n, MINE, 1, NOW_MS - n));
	open_at(NOW_MS);
	for (unsigned int n = 0; n < COUNT; n++) {
		check_oldest(MINE, COUNT - n);
		spool_remove(spool, oldest(MINE));
	}
}

/* No time is later than the last one that a name can have. */
TEST(the_last_time_is_followed_by_itself)
{
	const struct spool_entry e = {.time_ms = UINT64_MAX, .dsn = MINE};
	char name[SPOOL_NAME_SIZE];

	spool_name_format(&e, name);
	put(name, 1);
	open_at(NOW_MS);
	OK(add(1, MINE, 1, NOW_MS));
	ck_assert_uint_eq(oldest(MINE)->id[0], 0);
	spool_remove(spool, oldest(MINE));
	ck_assert_uint_eq(oldest(MINE)->time_ms, UINT64_MAX);
}

/* Envelopes stay in order; they expire when the clock has reached their time again. */
TEST(the_order_is_kept_if_the_clock_is_set_back)
{
	OK(add(0, MINE, 1, NOW_MS + 10 * AGE_MS));
	OK(add(1, MINE, 1, NOW_MS));
	check_oldest(MINE, 0);
	open_at(NOW_MS);
	ck_assert_uint_eq(spool_count(spool), 2);
	check_oldest(MINE, 0);
	open_at(NOW_MS + 11 * AGE_MS + 2);
	ck_assert_uint_eq(events[SPOOL_EXPIRED], 2);
}

/* A machine without a clock that runs while it is off starts in 1970. */
TEST(a_clock_that_is_behind_at_the_start_expires_nothing)
{
	OK(add(0, MINE, 1, NOW_MS));
	OK(add(1, MINE, 1, NOW_MS + 1));
	open_at(1000);
	OK(add(2, MINE, 1, 2000));
	/* The clock is set. */
	spool_expire(spool, NOW_MS + AGE_MS);
	ck_assert_uint_eq(events[SPOOL_EXPIRED], 0);
	check_oldest(MINE, 0);
	open_at(NOW_MS + AGE_MS + 3);
	ck_assert_uint_eq(events[SPOOL_EXPIRED], 2 + 1);
}

TEST(foreign_files_are_set_aside)
{
	struct stat st;

	put("notes.txt", 10);
	put("0000000000000001-00000000000000000000000000000002-"
	    "000000000000000g.gz",
	    10);
	OK(mkdirat(dir, "lost+found", 0700));
	OK(symlinkat("/etc/passwd", dir, "link"));
	open_at(NOW_MS);
	ck_assert_uint_eq(events[SPOOL_SET_ASIDE], 2);
	ck_assert_uint_eq(events[SPOOL_IGNORED], 1);
	ck_assert_uint_eq(spool_count(spool), 0);
	ck_assert_uint_eq(spool_bytes(spool), 20);
	OK(fstatat(dir, "notes.txt.bad", &st, 0));
	/* Each is reported once. Its bytes count against the limit. */
	open_at(NOW_MS);
	ck_assert_uint_eq(events[SPOOL_SET_ASIDE], 0);
	OK(add(0, MINE, BYTES - 20, NOW_MS));
	/* No envelope is removed for one that does not fit all the same. */
	ck_assert_int_eq(add(1, MINE, BYTES - 19, NOW_MS), -ENOTEMPTY);
	ck_assert_uint_eq(events[SPOOL_OVERFLOW], 0);
	OK(add(1, MINE, BYTES - 20, NOW_MS));
	ck_assert_uint_eq(events[SPOOL_OVERFLOW], 1);
}

/* The user follows the line of the log while the spool is open. */
TEST(files_that_were_set_aside_and_removed_leave_their_room)
{
	put("notes.txt", BYTES - 1);
	put("more.txt", 1);
	open_at(NOW_MS);
	ck_assert_int_eq(add(0, MINE, 1, NOW_MS), -ENOTEMPTY);
	ck_assert_int_eq(spool_try(spool, 1), -ENOTEMPTY);
	OK(unlinkat(dir, "more.txt.bad", 0));
	OK(spool_try(spool, 1));
	OK(add(0, MINE, 1, NOW_MS));
	ck_assert_uint_eq(spool_bytes(spool), BYTES);
	/* No envelope is removed to make room if there is room. */
	OK(unlinkat(dir, "notes.txt.bad", 0));
	OK(add(1, MINE, BYTES - 1, NOW_MS));
	ck_assert_uint_eq(events[SPOOL_OVERFLOW], 0);
	ck_assert_uint_eq(spool_bytes(spool), BYTES);
}

/* Files with a valid name and wrong contents or type, and two with one id. */
TEST(files_with_valid_names_and_wrong_contents_are_not_sent)
{
	struct spool_entry entry = {.time_ms = NOW_MS, .dsn = MINE};
	char name[1 + SPOOL_NAME_SIZE] = ".";
	const struct spool_entry *e;
	int fd;

	spool_name_format(&entry, name + 1);
	put(name, 10); /* left by a process that was killed while it wrote */
	OK(mkfifoat(dir, name + 1, 0600));
	open_at(NOW_MS);
	ck_assert_uint_eq(spool_count(spool), 0);
	ck_assert_uint_eq(events[SPOOL_IGNORED], 1);
	ck_assert_uint_eq(each_name(NULL), 1);
	(void)each_name(remove_name);

	put(name + 1, 10);
	open_at(NOW_MS);
	e = oldest(MINE);
	ck_assert_ptr_nonnull(e);
	put(name + 1, 20);
	ck_assert_int_eq(spool_open(spool, e, &fd), -EBADMSG);
	spool_set_aside(spool, e, EBADMSG);
	ck_assert_str_eq(last_name, name + 1);
	ck_assert_uint_eq(events[SPOOL_SET_ASIDE], 1);
	ck_assert_ptr_null(oldest(MINE));
	/* Another process has removed the file. */
	OK(add(1, MINE, 10, NOW_MS));
	(void)each_name(remove_name);
	e = oldest(MINE);
	ck_assert_int_eq(spool_open(spool, e, &fd), -ENOENT);
	spool_set_aside(spool, e, ENOENT);
	ck_assert_uint_eq(spool_count(spool), 0);
	ck_assert_uint_eq(spool_bytes(spool), 10);
}

/* A file that cannot be written leaves nothing behind. */
TEST(an_addition_that_fails_leaves_no_file)
{
	const struct spool_options nowhere = {.dir_fd = -1,
					      .limits = {.bytes = BYTES, .count = COUNT}};
	struct spool *none = NULL;

	ck_assert_int_eq(spool_new(&none, &nowhere, NOW_MS), -EBADF);
	ck_assert_ptr_null(none);
	OK(rmdir(path));
	ck_assert_int_eq(add(0, MINE, 10, NOW_MS), -ENOENT);
	ck_assert_uint_eq(spool_count(spool), 0);
	ck_assert_uint_eq(spool_bytes(spool), 0);
	OK(mkdir(path, 0700));
}

/* Progress of the process that is killed, in shared memory. */
struct progress {
	unsigned int added;   /* calls of spool_add() that have returned 0 */
	unsigned int removed; /* calls of spool_remove() that have returned */
};

static void fill_and_empty(struct progress *p)
{
	for (unsigned int n = 0; n < 3; n++)
		p->added += add(n, MINE, 50, NOW_MS) == 0;
	for (unsigned int n = 0; n < 2; n++) {
		spool_remove(spool, oldest(MINE));
		p->removed++;
	}
}

/* Returns the system call that the traced child is about to make. */
static long next_call(pid_t child)
{
	struct ptrace_syscall_info info;
	int status;

	for (;;) {
		OK(ptrace(PTRACE_SYSCALL, child, NULL, NULL));
		ck_assert_int_eq(waitpid(child, &status, 0), child);
		if (!WIFSTOPPED(status))
			return -1;
		ck_assert_int_gt(ptrace(PTRACE_GET_SYSCALL_INFO, child, sizeof(info), &info), 0);
		if (info.op == PTRACE_SYSCALL_INFO_ENTRY)
			return (long)info.entry.nr;
	}
}

static pid_t begin_fill(struct progress *p)
{
	pid_t child = fork();
	int status;

	ck_assert_int_ge(child, 0);
	if (child == 0) {
		if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) == 0)
			(void)raise(SIGSTOP);
		fill_and_empty(p);
		_exit(0);
	}
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert(WIFSTOPPED(status));
	/* Distinguishes a stop at a system call from other stops. */
	OK(ptrace(PTRACE_SETOPTIONS, child, NULL, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL));
	return child;
}

static struct progress *shared_progress(void)
{
	struct progress *p =
		mmap(NULL, sizeof(*p), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	ck_assert_ptr_ne(p, MAP_FAILED);
	return p;
}

/* Files are complete and in order, and every envelope that was added is there. */
static void check_after_death(const struct progress *p)
{
	unsigned int n = p->removed;
	const struct spool_entry *e;

	open_at(NOW_MS);
	ck_assert_uint_eq(each_name(NULL), spool_count(spool));
	ck_assert_uint_eq(events[SPOOL_SET_ASIDE], 0);
	e = oldest(MINE);
	/* The envelope that was being removed is gone. */
	if (e != NULL && e->id[0] == n + 1)
		n++;
	ck_assert_uint_ge(spool_count(spool), p->added - n);
	/* The envelope that was being added is there. */
	ck_assert_uint_le(spool_count(spool), p->added - n + 1);
	while (spool_count(spool) > 0) {
		check_oldest(MINE, n++);
		spool_remove(spool, oldest(MINE));
	}
}

/* The process is killed before its first system call, its second, and so on. */
TEST(no_added_envelope_is_lost_if_the_process_is_killed)
{
	struct progress *p = shared_progress();
	unsigned int calls = 0;
	bool killed;

	do {
		pid_t child = begin_fill(p);

		calls++;
		killed = true;
		for (unsigned int n = 0; killed && n < calls; n++)
			killed = next_call(child) >= 0;
		if (killed) {
			OK(kill(child, SIGKILL));
			ck_assert_int_eq(waitpid(child, NULL, 0), child);
		}
		check_after_death(p);
		*p = (struct progress){0};
	} while (killed);
	ck_assert_uint_gt(calls, 3 * 6 + 2 * 2);
	(void)munmap(p, sizeof(*p));
}

static bool touches_disk(long call)
{
	return call == SYS_openat || call == SYS_write || call == SYS_fsync ||
	       call == SYS_renameat || call == SYS_unlinkat;
}

/*
 * For power failures: a file is synchronised before it is renamed, and the directory before the
 * function returns.
 */
TEST(files_are_synchronised_before_success)
{
	static const long order[] = {
		SYS_openat,   SYS_write, SYS_fsync,    SYS_renameat, SYS_fsync,
		SYS_openat,   SYS_write, SYS_fsync,    SYS_renameat, SYS_fsync,
		SYS_openat,   SYS_write, SYS_fsync,    SYS_renameat, SYS_fsync,
		SYS_unlinkat, SYS_fsync, SYS_unlinkat, SYS_fsync,
	};
	struct progress *p = shared_progress();
	pid_t child = begin_fill(p);
	size_t at = 0;
	long call;

	while ((call = next_call(child)) >= 0) {
		/* Calls of the allocator. */
		if (!touches_disk(call))
			continue;
		ck_assert_uint_lt(at, array_size(order));
		ck_assert_int_eq(call, order[at++]);
		/* The results so far are true. */
		ck_assert_uint_eq(p->added, min_size((at - 1) / 5, 3));
	}
	ck_assert_uint_eq(at, array_size(order));
	ck_assert_uint_eq(p->removed, 2);
	(void)munmap(p, sizeof(*p));
}
