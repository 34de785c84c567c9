/* Watched parts of the memory of a real process, which the test changes. */
#include "lib/capture/watched_parts.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>

#include "lib/base/watch_part.h"
#include "lib/capture/proc/memory.h"
#include "lib/capture/state.h"
#include "tests/unit/capture/live.h"
#include "tests/unit/suite.h"

static struct live l;
static uint64_t heap;	/* 64 bytes at the end of the heap: malloc() does not use them */
static uint64_t unused; /* the first page of the stack, which is not in memory */

/* Returns the start or the end of the mapping of this name. */
static uint64_t find(const char *name, bool is_end)
{
	char path[64], line[512];
	uint64_t start = 0, end = 0;
	FILE *maps;

	(void)snprintf(path, sizeof(path), "/proc/%d/maps", l.pid);
	maps = fopen(path, "re");
	ck_assert_ptr_nonnull(maps);
	while (fgets(line, sizeof(line), maps))
		if (strstr(line, name)) {
			ck_assert_int_eq(sscanf(line, "%" SCNx64 "-%" SCNx64, &start, &end), 2);
			break;
		}
	(void)fclose(maps);
	ck_assert_uint_ne(end, 0);
	return is_end ? end : start;
}

static void write_heap(const char *text)
{
	const struct iovec local = {(void *)(uintptr_t)text, strlen(text)};
	const struct iovec remote = {(void *)(uintptr_t)heap, strlen(text)};

	ck_assert_int_eq(process_vm_writev(l.pid, &local, 1, &remote, 1, 0), (ssize_t)strlen(text));
}

static uint64_t hash(const char *text)
{
	return watch_part_hash(text, strlen(text));
}

static void set_up(void)
{
	memset(&l, 0, sizeof(l));
	live_begin(&l, "cap_threads", NULL, NULL);
	(void)live_ask(&l, "busy 1", "ok");
	heap = find("[heap]", true) - 64;
	unused = find("[stack]", false);
	write_heap("alpha");
}

static void tear_down(void)
{
	live_end(&l);
}

static void watch(uint32_t list, const struct watch_part *parts, size_t n)
{
	capture_watch(l.capture, &l.sink, LIVE_TARGET, list, parts, n);
}

/* Gives a tick. Returns the number of records about watched parts. */
static uint64_t records(void)
{
	const uint64_t before = l.records[RECORD_WATCHED];

	live_ticks(&l, 1);
	live_read(&l);
	return l.records[RECORD_WATCHED] - before;
}

FIXTURE(set_up, tear_down)

TEST(only_a_change_is_reported)
{
	const struct watch_part parts[] = {{heap, 5, 1}, {heap + 8, 8, 1}};

	watch(7, parts, 2);
	ck_assert_uint_eq(records(), 2);
	ck_assert_uint_eq(records(), 0);
	write_heap("beta!");
	ck_assert_uint_eq(records(), 1);
	ck_assert_uint_eq(l.watched.list, 7);
	ck_assert_uint_eq(l.watched.number, 0);
	ck_assert_uint_eq(l.watched.hash, hash("beta!"));
	write_heap("alpha");
	ck_assert_uint_eq(records(), 1);
	ck_assert_uint_eq(l.watched.hash, hash("alpha"));
	ck_assert_uint_eq(records(), 0);
}

/* A longer list does not repeat what the reader knows; another list does. */
TEST(a_new_list_repeats_nothing)
{
	const struct watch_part parts[] = {{heap, 5, 1}, {heap + 8, 8, 1}};

	watch(7, parts, 1);
	ck_assert_uint_eq(records(), 1);
	watch(7, parts, 2);
	ck_assert_uint_eq(records(), 1);
	ck_assert_uint_eq(l.watched.number, 1);
	watch(8, parts, 2);
	ck_assert_uint_eq(records(), 2);
	ck_assert_uint_eq(l.watched.list, 8);
	/* The reader is another one: it has sent no list. */
	capture_reset(l.capture, &l.sink);
	write_heap("gamma");
	ck_assert_uint_eq(records(), 0);
}

TEST(parts_that_are_not_often_read_are_eight_ticks_apart)
{
	const struct watch_part parts[] = {{heap, 5, 0}};

	watch(7, parts, 1);
	ck_assert_uint_eq(records(), 1);
	write_heap("beta!");
	for (int i = 1; i < 8; i++)
		ck_assert_uint_eq(records(), 0);
	ck_assert_uint_eq(records(), 1);
}

/* Nothing is fetched, and parts behind such a page are read. */
TEST(a_page_that_is_not_in_memory_is_not_read)
{
	const struct watch_part parts[] = {
		{unused, 8, 1}, {0, 8, 1}, {UINT64_MAX - 3, 8, 1}, {heap, 5, 1}};
	struct traced_process *t = l.capture->targets->target;
	int pagemap_fd = t->pagemap_fd;

	watch(7, parts, 4);
	ck_assert_uint_eq(records(), 1);
	ck_assert_uint_eq(l.watched.number, 3);
	ck_assert(!memory_is_there(pagemap_fd, unused, 8));
	ck_assert(memory_is_there(pagemap_fd, heap, 8));
	/* Without pagemap the kernel refuses what is not mapped. */
	t->pagemap_fd = -1;
	ck_assert_uint_eq(records(), 1);
	ck_assert_uint_eq(l.watched.number, 0);
	ck_assert_uint_eq(l.watched.hash, watch_part_hash((char[8]){0}, 8));
	t->pagemap_fd = pagemap_fd;
	/* The page is in memory now, as zeros. Swapped out or unmapped, it has hash 0. */
	watch(7, (struct watch_part[]){{0, 8, 1}, {0, 8, 1}, {0, 8, 1}, {0, 8, 1}}, 4);
	ck_assert_uint_eq(records(), 0);
}

TEST(lost_records_are_written_again)
{
	const struct watch_part parts[] = {{heap, 5, 1}};

	watch(7, parts, 1);
	ck_assert_uint_eq(records(), 1);
	l.capture->targets->target->reader.needs_reset = true;
	ck_assert_uint_eq(records(), 1);
	ck_assert_uint_eq(l.watched.hash, hash("alpha"));
}

/* A list for the old program says nothing of the new one. */
TEST(another_sinks_reader_has_no_say)
{
	const struct watch_part parts[] = {{heap, 5, 1}};
	const struct capture_sink other = {.watched = 0};

	capture_watch(l.capture, &other, LIVE_TARGET, 7, parts, 1);
	ck_assert_uint_eq(records(), 0);
	watch(7, parts, 1);
	watched_parts_clear(l.capture->targets->target);
	ck_assert_uint_eq(records(), 0);
}
