/*
 * sentry-profd-capture: the process that may ptrace. It drives lib/capture by
 * a timer and by SIGCHLD, and hands rings to the unwind processes.
 *
 * It opens nothing but files of /proc, and nothing while a thread is stopped.
 */
#include <linux/capability.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "daemon/child.h"
#include "daemon/heartbeat.h"
#include "daemon/log.h"
#include "daemon/msg.h"
#include "daemon/privileges.h"
#include "daemon/readers.h"
#include "daemon/realtime.h"
#include "daemon/slots.h"
#include "lib/base/loop.h"
#include "lib/capture/capture.h"

/* At the end: how long stops and credits are waited for. */
#define FINISH_NS (2 * NS_PER_SEC)

static struct {
	struct loop *loop;
	struct capture *capture;
	struct heartbeat *heartbeat;
	struct readers *readers;
	struct slots slots;
	struct loop_source *broker, *signals, *timer;
	sigset_t child_signal;
	int signal_fd;
	int timer_fd; /* -1 until the first target */
	uint64_t epoch_ns, period_ns;
	uint64_t tick;
	bool behind; /* more wait statuses are there than were taken */
	bool finishing;
	struct realtime realtime;
	bool keep_sessions;
} me = {.signal_fd = -1, .timer_fd = -1};

static void beat(void)
{
	me.heartbeat->beat.time_ns = clock_mono_ns();
}

static void die(const char *what, int error)
{
	log_error("%s: %s", what, strerror(error));
	exit(EXIT_FAILURE);
}

static void send_broker(const void *message, size_t size, const int *fds,
			size_t n_fds)
{
	/* The broker is gone: so are we, and the kernel detaches. */
	if (ipc_send(MSG_FD, message, size, fds, n_fds) < 0)
		exit(EXIT_FAILURE);
}

static void send_state(uint32_t target, enum target_state state, int error)
{
	const struct msg_target_state m = {
		.h = MSG_HEADER(MSG_TARGET_STATE, msg_target_state),
		.target = target,
		.state = state,
		.error = error,
	};

	send_broker(&m, sizeof(m), NULL, 0);
}

static void ring_is_broken(uint32_t ring)
{
	const struct msg_ring_broken m = {
		.h = MSG_HEADER(MSG_RING_BROKEN, msg_ring_broken),
		.ring = ring,
	};

	send_broker(&m, sizeof(m), NULL, 0);
}

static int make_ring(void *ctx, struct ipc_message *message)
{
	const struct msg_ring_make *m = (const void *)message->bytes;
	const struct msg_ring_made made = {
		.h = MSG_HEADER(MSG_RING_MADE, msg_ring_made),
		.ring = m->ring,
	};
	int fd, r;

	(void)ctx;
	r = readers_make(me.readers, m->ring, ipc_take_fd(message, 0), &fd);
	if (r < 0)
		return r;
	send_broker(&made, sizeof(made), &fd, 1);
	close_fd(&fd);
	return 0;
}

static uint64_t tick_at(uint64_t now)
{
	return now <= me.epoch_ns ? 0 : (now - me.epoch_ns) / me.period_ns;
}

static void on_timer(void *ctx)
{
	uint64_t expirations, now;

	(void)ctx;
	if (read(me.timer_fd, &expirations, sizeof(expirations)) < 0)
		return;
	beat();
	now = clock_mono_ns();
	/* Ticks that it leaves out are late at the next one. */
	if (tick_at(now) <= me.tick || me.realtime.exceeded)
		return;
	me.tick = tick_at(now);
	capture_tick(me.capture, me.tick, me.epoch_ns + me.tick * me.period_ns,
		     now);
	readers_tick(me.readers, now);
}

static int start_timer(uint64_t epoch_ns, uint64_t period_ns)
{
	uint64_t first;
	struct itimerspec timer;

	if (period_ns == 0)
		return -EPROTO;
	if (me.timer_fd >= 0)
		return epoch_ns == me.epoch_ns && period_ns == me.period_ns
			       ? 0
			       : -EPROTO;
	me.epoch_ns = epoch_ns;
	me.period_ns = period_ns;
	me.tick = tick_at(clock_mono_ns());
	first = epoch_ns + (me.tick + 1) * period_ns;
	timer = (struct itimerspec){
		.it_value = {.tv_sec = (time_t)(first / NS_PER_SEC),
			     .tv_nsec = (long)(first % NS_PER_SEC)},
		.it_interval = {.tv_sec = (time_t)(period_ns / NS_PER_SEC),
				.tv_nsec = (long)(period_ns % NS_PER_SEC)},
	};
	me.timer_fd =
		timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (me.timer_fd < 0 ||
	    timerfd_settime(me.timer_fd, TFD_TIMER_ABSTIME, &timer, NULL) < 0)
		return -errno;
	return loop_add(me.loop, me.timer_fd, on_timer, NULL, &me.timer);
}

static int add_target(void *ctx, struct ipc_message *message)
{
	const struct msg_target_add *m = (const void *)message->bytes;
	struct capture_sink *sink = readers_sink(me.readers, m->ring);
	int r;

	(void)ctx;
	if (m->target == 0 || sink == NULL || m->pid <= 0 ||
	    !slots_is_free(&me.slots, m->slot))
		return -EPROTO;
	r = start_timer(m->epoch_ns, m->period_ns);
	if (r < 0)
		return r;
	/* Somebody else's before. */
	memset(&me.heartbeat->slots[m->slot], 0,
	       sizeof(me.heartbeat->slots[m->slot]));
	r = capture_add(me.capture, m->target, m->pid, message->fds[0], sink,
			&me.heartbeat->slots[m->slot],
			tick_at(clock_mono_ns()));
	if (r < 0) {
		send_state(m->target, TARGET_REFUSED, -r);
		return 0;
	}
	slots_take(&me.slots, m->slot, m->target);
	send_state(m->target, TARGET_ATTACHED, 0);
	return 0;
}

static int set_rate(void *ctx, struct ipc_message *message)
{
	const struct msg_target_rate *m = (const void *)message->bytes;

	(void)ctx;
	if (m->ticks == 0 || m->ticks > m->of_ticks)
		return -EPROTO;
	capture_rate(me.capture, m->target, m->ticks, m->of_ticks);
	return 0;
}

static int stop(void *ctx, struct ipc_message *message)
{
	const struct msg_capture_stop *m = (const void *)message->bytes;

	(void)ctx;
	me.keep_sessions = m->keep_sessions != 0;
	me.finishing = true;
	return 0;
}

static void on_broker(void *ctx)
{
	static const struct msg_rule rules[] = {
		MSG_RULE(MSG_RING_MAKE, msg_ring_make, 1, make_ring),
		MSG_RULE(MSG_TARGET_ADD, msg_target_add, 1, add_target),
		MSG_RULE(MSG_TARGET_RATE, msg_target_rate, 0, set_rate),
		MSG_RULE(MSG_CAPTURE_STOP, msg_capture_stop, 0, stop),
	};
	struct ipc_message m;
	int r = ipc_recv(MSG_FD, &m);

	(void)ctx;
	if (r == 0)
		exit(EXIT_SUCCESS);
	if (r > 0)
		r = msg_handle(rules, array_size(rules), NULL, &m);
	ipc_close_fds(&m);
	if (r < 0 && r != -EAGAIN)
		die("a message of the broker", -r);
}

static void on_signals(void *ctx)
{
	struct signalfd_siginfo info;

	(void)ctx;
	(void)!read(me.signal_fd, &info, sizeof(info));
	me.behind = capture_reap(me.capture);
}

/*
 * As long as threads are on their way to a stop: the next one, or the next
 * tick, whichever comes first. False: nothing has stopped. It takes SIGCHLD as
 * it comes; by epoll and the signalfd a stop would cost three calls.
 */
static bool take_stop(uint64_t now)
{
	const uint64_t next = me.epoch_ns + (me.tick + 1) * me.period_ns;
	const struct timespec timeout = {
		.tv_nsec = (long)min_u64(next - now,
					 HEARTBEAT_EVERY_MS * NS_PER_MS),
	};

	if (capture_pending(me.capture) == 0 || now >= next ||
	    sigtimedwait(&me.child_signal, NULL, &timeout) < 0)
		return false;
	me.behind = capture_reap(me.capture);
	return true;
}

/* One round of events. */
static int run_once(int timeout_ms)
{
	const uint64_t now = clock_mono_ns();
	int r = 0;

	me.heartbeat->beat.time_ns = now;
	realtime_keep_share(&me.realtime, now);
	if (me.behind || !take_stop(now)) {
		r = loop_run_once(me.loop, me.behind ? 0 : timeout_ms);
		if (me.behind)
			me.behind = capture_reap(me.capture);
	}
	/* Whoever waits for an end, or has to look at a new program. */
	if (me.slots.noted)
		readers_tell(me.readers);
	slots_tell(&me.slots, send_state);
	return r;
}

static void set_up(const struct msg_init *init, int heartbeat_fd)
{
	const capability_set keep = CAPABILITY(CAP_SYS_PTRACE) |
				    CAPABILITY(CAP_DAC_READ_SEARCH) |
				    CAPABILITY(CAP_SYS_NICE);
	const struct capture_options options = {
		.now_ns = clock_mono_ns,
		.process_ns = clock_process_ns,
		.switches = clock_switches,
		.beat = &me.heartbeat->beat,
		.event = slots_note,
		.ctx = &me.slots,
	};
	struct rlimit files;
	int r;

	r = privileges_drop(init->uid, init->gid, keep, false);
	if (r < 0)
		die("cannot give up privileges", -r);
	/* A hung capture must not outlive the broker that would kill it. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		die("prctl", errno);
	realtime_start(&me.realtime);
	me.heartbeat->scheduler = me.realtime.scheduler;
	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &files);
	}
	close_fd(&heartbeat_fd);
	sigemptyset(&me.child_signal);
	sigaddset(&me.child_signal, SIGCHLD);
	if (sigprocmask(SIG_BLOCK, &me.child_signal, NULL) < 0)
		die("sigprocmask", errno);
	me.signal_fd =
		signalfd(-1, &me.child_signal, SFD_CLOEXEC | SFD_NONBLOCK);
	if (me.signal_fd < 0)
		die("signalfd", errno);
	r = capture_new(&options, &me.capture);
	if (r == 0)
		r = loop_new(&me.loop);
	if (r == 0)
		r = readers_new(
			&(const struct readers_options){
				.loop = me.loop,
				.capture = me.capture,
				.broken = ring_is_broken,
			},
			&me.readers);
	if (r == 0)
		r = loop_add(me.loop, me.signal_fd, on_signals, NULL,
			     &me.signals);
	if (r == 0)
		r = loop_add(me.loop, MSG_FD, on_broker, NULL, &me.broker);
	if (r < 0)
		die("cannot start", -r);
}

static bool tell_ends(void)
{
	return me.keep_sessions || capture_finish(me.capture);
}

/* Running threads stop within a moment; what does not is given up. */
static void finish(void)
{
	const struct msg_capture_done done = {
		.h = MSG_HEADER(MSG_CAPTURE_DONE, msg_capture_done),
	};
	uint64_t deadline = clock_mono_ns() + FINISH_NS;
	bool told = false;

	loop_remove(me.loop, &me.timer);
	while (clock_mono_ns() < deadline && !told) {
		if (capture_settle(me.capture))
			told = tell_ends();
		readers_tell(me.readers);
		beat();
		if (!told && loop_run_once(me.loop, 10) < 0)
			break;
		(void)capture_reap(me.capture);
	}
	if (!told)
		(void)!tell_ends();
	readers_tell(me.readers);
	send_broker(&done, sizeof(done), NULL, 0);
	exit(EXIT_SUCCESS);
}

int main(int argc, char **argv)
{
	struct ipc_message message;
	const struct msg_init *init =
		child_start(argc, argv, "sentry-profd-capture", &message);
	int heartbeat_fd = ipc_take_fd(&message, 0);
	int r = 0;

	me.heartbeat = mmap(NULL, sizeof(*me.heartbeat), PROT_READ | PROT_WRITE,
			    MAP_SHARED, heartbeat_fd, 0);
	if (me.heartbeat == MAP_FAILED)
		die("the heartbeat page", errno);
	set_up(init, heartbeat_fd);
	ipc_close_fds(&message);
	child_is_ready();
	while (r == 0 && !me.finishing)
		r = run_once(HEARTBEAT_EVERY_MS);
	if (r < 0)
		die("epoll_wait", -r);
	finish();
}
