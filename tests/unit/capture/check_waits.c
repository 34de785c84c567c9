#include "lib/capture/waits.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/capture/proc/status.h"
#include "tests/unit/suite.h"

#define SP    UINT64_C(0x7fff00001000)
#define PC    UINT64_C(0x7f0000401000)
#define FUTEX UINT64_C(0x7f0000a00040)

static struct capture capture;
static struct traced_process process;
static struct thread th;
static uint64_t now_ns;

static uint64_t read_clock(void)
{
	return now_ns;
}

static void set_up(void)
{
	memset(&capture, 0, sizeof(capture));
	memset(&process, 0, sizeof(process));
	memset(&th, 0, sizeof(th));
	now_ns = 100 * NS_PER_SEC;
	capture.options.now_ns = read_clock;
	process.capture = &capture;
	th.target = &process;
	th.tid = (uint32_t)getpid();
	th.look.known = true;
	th.look.mark.slices = 100;
}

/* The place at which a thread waits for this futex, with this value. */
static struct activity_place at_futex(uint64_t futex, uint64_t value)
{
	return (struct activity_place){
		.call = SYS_futex,
		.arguments = {futex, 128, value},
		.sp = SP,
		.pc = PC,
	};
}

/* The registers at a stop that has interrupted the call at this place. */
static struct arch_regs stopped_at(const struct activity_place *place)
{
	struct arch_regs raw;

	memset(&raw, 0, sizeof(raw));
#if defined(__x86_64__)
	raw.orig_rax = (unsigned long long)place->call;
	raw.rax = (unsigned long long)-512;
	raw.rsp = place->sp;
	raw.rip = place->pc;
	raw.rdi = place->arguments[0];
	raw.rsi = place->arguments[1];
	raw.rdx = place->arguments[2];
	raw.rbx = 0x1919;
#elif defined(__aarch64__)
	raw.user.regs[8] = (unsigned long long)place->call;
	raw.user.sp = place->sp;
	raw.user.pc = place->pc - ARCH_CALL_BYTES;
	for (unsigned int i = 0; i < ARCH_ARGUMENTS; i++)
		raw.user.regs[i] = place->arguments[i];
	raw.user.regs[19] = 0x1919;
	raw.user.regs[30] = 0x3030;
	raw.stopped = ARCH_BEFORE_CALL;
	arch_set_first_argument(&raw, place->arguments[0]);
#endif
	return raw;
}

/* A sample with these two words at sp. */
static struct record_sample *sample_of(uint64_t first, uint64_t second)
{
	static union {
		struct record_sample record;
		uint8_t bytes[sizeof(struct record_sample) + 16];
	} sample;
	const uint64_t words[] = {first, second};

	memset(&sample, 0, sizeof(sample));
	sample.record.flags = SAMPLE_REMEMBERED;
	sample.record.regs_known = ARCH_REGS_ALL;
	sample.record.regs[ARCH_SP] = sample.record.stack_addr = SP;
	sample.record.stack_size = sizeof(words);
	memcpy(sample.record.stack, words, sizeof(words));
	return &sample.record;
}

static void stop_at(const struct activity_place *place)
{
	const struct arch_regs raw = stopped_at(place);
	uint64_t regs[ARCH_REGS];

	arch_to_dwarf(&raw, regs);
	ck_assert(waits_keep(&th, &raw, regs));
	waits_keep_words(&th, sample_of(1, 2));
}

static bool recalls(const struct activity_place *place)
{
	const unsigned int saved = (unsigned int)__builtin_ctz(ARCH_CALLEE_SAVED);
	uint64_t regs[ARCH_REGS] = {0};
	const uint64_t known = waits_recall(&th, place, regs);

	ck_assert_uint_eq(known, known != 0 ? ARCH_REMEMBERED : 0);
	ck_assert_uint_eq(regs[saved], known != 0 ? 0x1919 : 0);
	return known != 0;
}

FIXTURE(set_up, NULL)

TEST(recalls_the_registers_of_a_stop_in_the_same_call)
{
	struct activity_place place = at_futex(FUTEX, 1);

	ck_assert(!recalls(&place));
	stop_at(&place);
	ck_assert(recalls(&place));
	/* The value of a futex changes at every wait. */
	place = at_futex(FUTEX, UINT64_C(0x80000001));
	ck_assert(recalls(&place));
	/* The kernel restarts a call under this number. */
	place.call = SYS_restart_syscall;
	ck_assert(recalls(&place));
	place = at_futex(FUTEX, 1);
	place.sp += 16;
	ck_assert(!recalls(&place));
	place = at_futex(FUTEX, 1);
	place.pc += 4;
	ck_assert(!recalls(&place));
}

/* Without a link register the return address is on the stack, whoever has called. */
TEST(another_call_at_the_same_place_may_have_another_caller)
{
	struct activity_place place = at_futex(FUTEX, 1);

	stop_at(&place);
	place = at_futex(FUTEX + 4, 1);
	ck_assert(recalls(&place) == !ARCH_LINK_REGISTER);
	place = at_futex(FUTEX, 1);
	place.call = SYS_io_getevents;
	ck_assert(recalls(&place) == !ARCH_LINK_REGISTER);
}

TEST(another_word_at_sp_means_another_caller)
{
	const struct activity_place place = at_futex(FUTEX, 1);
	struct record_sample *record = sample_of(1, 2);

	stop_at(&place);
	record = sample_of(1, 2);
	waits_check(&th, record);
	ck_assert_uint_eq(record->flags, SAMPLE_REMEMBERED);
	ck_assert_uint_eq(record->regs_known, ARCH_REGS_ALL);
	record = sample_of(1, 3);
	waits_check(&th, record);
	if (!ARCH_LINK_REGISTER) {
		ck_assert_uint_eq(record->flags, SAMPLE_REMEMBERED);
		return;
	}
	ck_assert_uint_eq(record->flags, 0);
	ck_assert_uint_eq(record->regs_known, ARCH_REGS_ALL & ~(uint64_t)ARCH_REMEMBERED);
	/* The next stop brings the right ones. */
	ck_assert(!recalls(&place));
}

static bool needs_stop(const struct activity_place *place)
{
	waits_request(&th, place->sp, place->pc);
	return waits_need_stop(&th, place);
}

/* Under a seccomp filter, as in a container, no thread is stopped for its registers. */
static bool is_filtered(void)
{
	return status_is_filtered(th.tid);
}

TEST(a_request_stops_the_thread_once_in_a_wait)
{
	struct activity_place place = at_futex(FUTEX, 1);

	ck_assert(!waits_need_stop(&th, &place));
	ck_assert(needs_stop(&place) == !is_filtered());
	ck_assert(!waits_need_stop(&th, &place));
	/* The stop itself takes two time slices. */
	th.look.mark.slices += 2;
	ck_assert(!needs_stop(&place));
	th.look.mark.slices++;
	ck_assert(needs_stop(&place) == !is_filtered());
	th.look.mark.slices += 3;
	stop_at(&place);
	ck_assert(!needs_stop(&place));
}

TEST(a_request_for_another_place_is_ignored)
{
	struct activity_place place = at_futex(FUTEX, 1);

	waits_request(&th, place.sp + 16, place.pc);
	ck_assert(!waits_need_stop(&th, &place));
	waits_request(&th, place.sp, place.pc + 4);
	ck_assert(!waits_need_stop(&th, &place));
}

/* Of epoll_pwait(2) and recvfrom(2) the first argument may be lost. */
TEST(a_thread_is_stopped_only_in_calls_that_go_on)
{
	static const long harmful[] = {SYS_epoll_pwait, SYS_recvfrom, SYS_read, SYS_accept,
				       SYS_close};
	struct activity_place place = at_futex(FUTEX, 1);

	for (size_t i = 0; i < array_size(harmful); i++) {
		place.call = harmful[i];
		ck_assert_msg(!needs_stop(&place), "call %ld", harmful[i]);
	}
	place.call = SYS_futex;
	ck_assert(needs_stop(&place) == !is_filtered());
}

TEST(stops_of_a_process_are_limited)
{
	struct activity_place place = at_futex(FUTEX, 1);
	unsigned int stops = 0;

	for (unsigned int i = 0; i < 3 * WAITS_STOPS; i++) {
		th.look.mark.slices += 3;
		stops += needs_stop(&place);
	}
	ck_assert_uint_eq(stops, is_filtered() ? 0 : WAITS_STOPS);
	now_ns += NS_PER_SEC;
	ck_assert(needs_stop(&place) == !is_filtered());
}

TEST(a_call_that_a_signal_has_ended_stays_ended)
{
	struct activity_place place = at_futex(FUTEX, 1);
	struct arch_regs raw = stopped_at(&place), other;

	ck_assert(!waits_has_failed(&th, &raw));
	waits_note_failure(&th, &raw, SIGUSR1);
	ck_assert(waits_has_failed(&th, &raw));
	place.sp += 16;
	other = stopped_at(&place);
	ck_assert(!waits_has_failed(&th, &other));
	/* A wait of the handler. */
	waits_seen(&th, &place);
	ck_assert(waits_has_failed(&th, &raw));
	place.sp -= 16;
	waits_seen(&th, &place);
	ck_assert(!waits_has_failed(&th, &raw));
}

/* The registers behind write(2) at this place, with this result. */
static struct arch_regs after_write(const struct activity_place *place, uint64_t result)
{
	struct arch_regs raw = stopped_at(place);

#if defined(__aarch64__)
	raw.stopped = ARCH_AFTER_CALL;
	raw.user.pc = place->pc;
#endif
	arch_regs_set_result(&raw, result);
	return raw;
}

TEST(a_part_that_a_handler_ends_is_noted)
{
	const struct activity_place write = {.call = SYS_write, .sp = SP, .pc = PC};
	const struct activity_place other = {.call = SYS_getpid, .sp = SP, .pc = PC};
	struct arch_regs raw = after_write(&other, 65536);

	/* This result is no part. */
	waits_note_failure(&th, &raw, SIGUSR1);
	ck_assert(!waits_has_failed(&th, &raw));
	raw = after_write(&write, 65536);
	/* No handler runs. */
	waits_note_failure(&th, &raw, SIGWINCH);
	ck_assert(!waits_has_failed(&th, &raw));
	waits_note_failure(&th, &raw, SIGUSR1);
	ck_assert(waits_has_failed(&th, &raw));
}
