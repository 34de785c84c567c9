#include "lib/capture/proc/activity.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

#include "lib/capture/proc/proc.h"
#include "lib/capture/ptrace/arch.h"

/* Room for nine numbers of at most 18 digits. */
#define ACTIVITY_LINE_MAX 256

static int open_file(int proc_fd, uint32_t tid, const char *name, int *ret_fd)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "task/%u/%s", tid, name);
	return proc_error(proc_open(proc_fd, path, O_RDONLY, ret_fd));
}

int activity_open(struct activity *a, int proc_fd, uint32_t tid)
{
	int r;

	*a = (struct activity){.schedstat_fd = -1, .syscall_fd = -1};
	r = open_file(proc_fd, tid, "schedstat", &a->schedstat_fd);
	if (r == 0)
		r = open_file(proc_fd, tid, "syscall", &a->syscall_fd);
	if (r < 0)
		activity_close(a);
	return r;
}

void activity_close(struct activity *a)
{
	close_fd(&a->schedstat_fd);
	close_fd(&a->syscall_fd);
}

static enum proc_outcome read_line(int fd, char line[ACTIVITY_LINE_MAX])
{
	enum proc_outcome outcome;
	size_t n = 0;

	outcome = proc_read_at(fd, 0, line, ACTIVITY_LINE_MAX - 1, &n);
	line[n] = '\0';
	return outcome == PROC_READ && n == 0 ? PROC_GONE : outcome;
}

/*
 * Reads the next number of a line, after blanks. Returns the text after the number, or NULL if
 * there is no number. Replaces strtoull(3), which uses the locale and would take a quarter of all
 * instructions that the sampler executes.
 */
static const char *take_decimal(const char *at, uint64_t *ret)
{
	const char *first;
	unsigned int digit;
	uint64_t n = 0;

	while (*at == ' ')
		at++;
	first = at;
	for (; (digit = (unsigned int)*at - '0') < 10; at++)
		n = n * 10 + digit;
	*ret = n;
	return at == first ? NULL : at;
}

/* Does the same for a number that begins with 0x. */
static const char *take_hex(const char *at, uint64_t *ret)
{
	const char *first;
	uint64_t n = 0;

	while (*at == ' ')
		at++;
	if (at[0] != '0' || at[1] != 'x')
		return NULL;
	first = at += 2;
	for (;; at++) {
		const unsigned int digit = (unsigned int)*at - '0',
				   letter = (unsigned int)*at - 'a';

		if (digit >= 10 && letter >= 6)
			break;
		n = n << 4 | (digit < 10 ? digit : letter + 10);
	}
	*ret = n;
	return at == first ? NULL : at;
}

bool activity_mark(const struct activity *a, struct activity_mark *ret)
{
	uint64_t numbers[3] = {0};
	char line[ACTIVITY_LINE_MAX];
	const char *at = line;

	if (read_line(a->schedstat_fd, line) != PROC_READ)
		return false;
	for (size_t i = 0; i < array_size(numbers) && at != NULL; i++)
		at = take_decimal(at, &numbers[i]);
	if (at == NULL || numbers[2] == 0)
		return false;
	*ret = (struct activity_mark){
		.run_ns = numbers[0],
		.wait_ns = numbers[1],
		.slices = numbers[2],
	};
	return true;
}

/* The most by which the scheduler's clock and the tracer's differ. */
#define CLOCKS_NS (20 * NS_PER_US)

/* The most time between a stop and its handling by the tracer. */
#define STOP_LATE_NS (50 * NS_PER_US)

enum activity_at_tick activity_at_tick(const struct activity_readings *r)
{
	const uint64_t since_look = r->stop.slices - r->interrupt.slices;
	const struct activity_mark *before = since_look == 0 ? &r->first : &r->interrupt;
	const uint64_t queued_ns = r->stop_ns - (r->stop.wait_ns - before->wait_ns);

	if (r->was_blocked)
		return r->stopped_waiting ? ACTIVITY_WAITED : ACTIVITY_MAY_HAVE_RUN;
	if (queued_ns + CLOCKS_NS < r->due_ns)
		return ACTIVITY_WAS_READY;
	if (since_look == 0)
		return ACTIVITY_RAN;
	if (since_look > 1)
		return ACTIVITY_MAY_HAVE_RUN;
	if (queued_ns <= r->came_ns + CLOCKS_NS + STOP_LATE_NS)
		return r->woken ? ACTIVITY_WAITED : ACTIVITY_MAY_HAVE_RUN;
	if (queued_ns + CLOCKS_NS >= r->interrupt_ns)
		return ACTIVITY_MAY_HAVE_RUN;
	return r->stopped_waiting ? ACTIVITY_WAITED : ACTIVITY_MAY_HAVE_RUN;
}

enum activity_state activity_parse(const char *line, struct activity_place *ret_place)
{
	struct activity_place place = {0};
	const char *at = line;
	uint64_t number;

	if (strncmp(line, "running", 7) == 0)
		return ACTIVITY_RUNNING;
	if (at[0] == '-')
		at++;
	at = take_decimal(at, &number);
	place.call = line[0] == '-' ? -1 : (long)number;
	/* In a system call, its six arguments precede sp and pc. */
	for (size_t i = 0; place.call != -1 && i < ARCH_ARGUMENTS && at != NULL; i++)
		at = take_hex(at, &place.arguments[i]);
	if (at != NULL)
		at = take_hex(at, &place.sp);
	if (at != NULL)
		at = take_hex(at, &place.pc);
	/* A dying thread has neither sp nor pc. */
	if (at == NULL || place.sp == 0)
		return ACTIVITY_DEAD;
	*ret_place = place;
	return ACTIVITY_BLOCKED;
}

enum activity_state activity_look(const struct activity *a, struct activity_place *ret_place)
{
	char line[ACTIVITY_LINE_MAX];

	if (a->syscall_fd < 0)
		return ACTIVITY_DEAD;
	switch (read_line(a->syscall_fd, line)) {
	case PROC_READ:
		return activity_parse(line, ret_place);
	case PROC_GONE:
		return ACTIVITY_DEAD;
	case PROC_LACK:
		break;
	}
	return ACTIVITY_RUNNING;
}

/* Memory below is not mapped by default (vm.mmap_min_addr). */
#define ADDRESS_MIN 0x10000

/*
 * Returns the set of arguments that are addresses or may be: bit n stands for argument n. Of an
 * unknown call all may be; what /proc shows beyond the call's last argument is anything.
 */
static unsigned int addresses_of(long call)
{
	switch (call) {
	case SYS_nanosleep:
		return 1u << 0 | 1u << 1;
	case SYS_read:
	case SYS_write:
	case SYS_semop:
		return 1u << 1;
	case SYS_semtimedop:
	case SYS_wait4:
		return 1u << 1 | 1u << 3;
	case SYS_futex:
		return 1u << 0 | 1u << 3;
	case SYS_clock_nanosleep:
		return 1u << 2 | 1u << 3;
	case SYS_rt_sigtimedwait:
		return 1u << 0 | 1u << 1 | 1u << 2;
	case SYS_ppoll:
		return 1u << 0 | 1u << 2 | 1u << 3;
	case SYS_waitid:
		return 1u << 2 | 1u << 4;
	case SYS_epoll_pwait:
		return 1u << 1 | 1u << 4;
	case SYS_io_getevents:
		return 1u << 0 | 1u << 3 | 1u << 4;
	default:
		return (1u << ARCH_ARGUMENTS) - 1;
	}
}

bool activity_same_call(const struct activity_place *a, const struct activity_place *b,
			unsigned int first)
{
	const unsigned int addresses = addresses_of(a->call) & addresses_of(b->call);

	if (a->call != b->call && a->call != SYS_restart_syscall && b->call != SYS_restart_syscall)
		return false;
	for (unsigned int i = first; i < ARCH_ARGUMENTS; i++)
		if ((addresses & 1u << i) != 0 && a->arguments[i] != b->arguments[i] &&
		    (a->arguments[i] >= ADDRESS_MIN || b->arguments[i] >= ADDRESS_MIN))
			return false;
	return true;
}

uint64_t activity_regs(const struct activity_place *place, uint64_t *regs)
{
	uint64_t known = UINT64_C(1) << ARCH_SP | UINT64_C(1) << ARCH_PC;

	regs[ARCH_SP] = place->sp;
	regs[ARCH_PC] = place->pc;
	/* glibc's vfork(2) keeps its return address only in this register. */
	if (place->call >= 0) {
		regs[ARCH_FIRST_ARGUMENT] = place->arguments[0];
		known |= UINT64_C(1) << ARCH_FIRST_ARGUMENT;
	}
	return known;
}
