/*
 * Writes a sample of a process's main thread to a file, as the record that capture would write.
 * tests/golden/stacks/record.py makes the samples of that folder with it.
 *
 * usage: record PID FILE stopped|blocked|PC
 *
 * stopped: the thread is stopped at once, and copied with all registers. blocked: the thread
 * is copied without a stop, while it is blocked in a system call. PC (hexadecimal): the thread
 * is stopped, single-stepped until its pc is PC, and copied.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/oracle/live.h"
#include "lib/capture/ptrace/arch.h"
#include "tests/oracle/thread.h"

/* The threads of the samples run loops of fewer instructions. */
#define STEPS_MAX 10000

static union {
	struct record_sample record;
	uint8_t bytes[THREAD_COPY_MAX];
} buffer;

static int step_to(struct thread_stop *stop, const struct live *live, uint64_t pc, size_t *ret_size)
{
	for (int i = 0; i < STEPS_MAX; i++) {
		int r = thread_copy_stopped(live, stop, 0, &buffer.record, ret_size);

		if (r < 0 || pc == 0 || buffer.record.regs[ARCH_PC] == pc)
			return r;
		r = thread_step(stop);
		if (r < 0)
			return r;
	}
	return -ENOENT;
}

static int record(const struct live *live, const char *how, size_t *ret_size)
{
	struct thread_stop stop;
	uint64_t pc = 0;
	int r;

	if (strcmp(how, "blocked") == 0)
		return thread_copy_blocked(live, live->pid, 0, &buffer.record, ret_size);
	if (strcmp(how, "stopped") != 0)
		pc = strtoull(how, NULL, 16);
	r = thread_stop(live->pid, THREAD_STOP_NS, &stop);
	if (r < 0)
		return r;
	r = step_to(&stop, live, pc, ret_size);
	thread_release(&stop);
	return r;
}

static int write_file(const char *path, size_t size)
{
	FILE *f = fopen(path, "we");
	int r = -EIO;

	if (!f)
		return -errno;
	if (fwrite(buffer.bytes, 1, size, f) == size)
		r = 0;
	return fclose(f) == 0 ? r : -EIO;
}

int main(int argc, char **argv)
{
	struct live live;
	bool changed;
	size_t size;
	int r;

	if (argc != 4) {
		(void)fprintf(stderr, "usage: %s PID FILE stopped|blocked|PC\n", argv[0]);
		return 2;
	}
	r = live_init(&live, (int32_t)strtol(argv[1], NULL, 10));
	if (r == 0)
		r = live_read_maps(&live, &changed);
	if (r == 0)
		r = record(&live, argv[3], &size);
	if (r == 0)
		r = write_file(argv[2], size);
	live_fini(&live);
	if (r < 0)
		(void)fprintf(stderr, "%s: %s\n", argv[0], strerror(-r));
	return r < 0 ? 1 : 0;
}
