/*
 * sentry-profd-capture: the process that may ptrace. It drives lib/capture by
 * a timer and by SIGCHLD, and hands rings to the unwind processes.
 *
 * It opens nothing but files of /proc, and nothing while a thread is stopped.
 */
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>
#include <fcntl.h>

#include "daemon/child.h"
#include "daemon/heartbeat.h"
#include "daemon/log.h"
#include "daemon/msg.h"
#include "daemon/privileges.h"
#include "lib/base/loop.h"
#include "lib/capture/capture.h"

/* One for each uid whose processes are profiled. */
#define RINGS_MAX HEARTBEAT_SLOTS

/*
 * 16 MiB: 64 busy threads with 16 KiB of stack each make 1 MiB a tick, so the
 * reader may be away for 150 ms. Memory is only used where records lie.
 */
#define RING_BYTES (16u << 20)

/* The reader is told every so many ticks, or when this much waits for it. */
#define HEAD_TICKS 10
#define HEAD_BYTES (RING_BYTES / 8)

/*
 * Where stops come faster than they can be answered, the targets that make
 * them are left waiting for this long after each portion.
 */
#define BEHIND_PAUSE_NS ((long)NS_PER_MS)

/*
 * A real-time thread that runs this long without a pause has gone wrong: the
 * kernel ends it by SIGXCPU, and the broker starts another.
 */
#define REALTIME_US_MAX 500000

/*
 * Of each window it may use this much of a processor at real-time priority.
 * Beyond, it looks at nobody until the window ends, and answers stops at the
 * priority of everybody else: whatever makes it busy, the machine goes on.
 */
#define SHARE_WINDOW_NS (100 * NS_PER_MS)
#define SHARE_NS	(SHARE_WINDOW_NS / 2)
/* The clock of it costs a system call. */
#define SHARE_LOOK_NS (5 * NS_PER_MS)

/* At the end: how long stops and credits are waited for. */
#define FINISH_NS (2 * NS_PER_SEC)

struct ring_link {
	bool used;
	bool broken;
	uint32_t id;
	int fd; /* to the unwind process; -1: none */
	struct loop_source *source;
	struct capture_sink sink;
	uint64_t told; /* the head that the reader knows */
};

struct slot {
	uint32_t target; /* 0: free */
	bool gone;
	bool exec;
	bool foreign;
};

static struct {
	struct loop *loop;
	struct capture *capture;
	struct heartbeat *heartbeat;
	struct ring_link rings[RINGS_MAX];
	struct slot slots[HEARTBEAT_SLOTS];
	struct loop_source *broker, *signals, *timer;
	int signal_fd;
	int timer_fd; /* -1 until the first target */
	uint64_t epoch_ns, period_ns;
	uint64_t tick;
	uint64_t told_tick; /* when the readers were told of their heads */
	bool behind;	    /* more wait statuses are there than were taken */
	bool finishing;
	struct {
		uint64_t window_ns; /* its start */
		uint64_t look_ns;
		uint64_t used_ns; /* of the processor, at that */
		bool exceeded;
	} share;
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

static struct slot *slot_of(uint32_t target)
{
	for (size_t i = 0; i < HEARTBEAT_SLOTS; i++)
		if (me.slots[i].target == target)
			return &me.slots[i];
	return NULL;
}

/* In the middle of taking stops: only a note. */
static void note_event(void *ctx, uint32_t target, enum capture_event event)
{
	struct slot *slot = slot_of(target);

	(void)ctx;
	if (slot == NULL)
		return;
	switch (event) {
	case CAPTURE_GONE:
		slot->gone = true;
		break;
	case CAPTURE_EXEC:
		slot->exec = true;
		break;
	case CAPTURE_FOREIGN:
		slot->foreign = true;
		break;
	}
}

static void send_notes(void)
{
	for (size_t i = 0; i < HEARTBEAT_SLOTS; i++) {
		struct slot *slot = &me.slots[i];

		if (slot->exec)
			send_state(slot->target, TARGET_EXEC, 0);
		slot->exec = false;
		if (slot->foreign)
			send_state(slot->target, TARGET_REFUSED, ENOEXEC);
		else if (slot->gone)
			send_state(slot->target, TARGET_GONE, 0);
		if (slot->foreign || slot->gone)
			*slot = (struct slot){0};
	}
}

static void tell_head(struct ring_link *ring)
{
	const struct msg_ring_head m = {
		.h = MSG_HEADER(MSG_RING_HEAD, msg_ring_head),
		.head = ring->sink.ring.head,
	};

	if (!ring->used || ring->fd < 0 || ring->told == m.head)
		return;
	/* A reader that is not there, or does not read, is the broker's. */
	if (ipc_send(ring->fd, &m, sizeof(m), NULL, 0) == 0)
		ring->told = m.head;
}

static void tell_heads(bool all)
{
	for (size_t i = 0; i < RINGS_MAX; i++) {
		struct ring_link *ring = &me.rings[i];

		if (ring->used &&
		    (all || ring->sink.ring.head - ring->told >= HEAD_BYTES))
			tell_head(ring);
	}
}

static void close_link(struct ring_link *ring)
{
	loop_remove(me.loop, &ring->source);
	close_fd(&ring->fd);
}

static void ring_is_broken(struct ring_link *ring)
{
	const struct msg_ring_broken m = {
		.h = MSG_HEADER(MSG_RING_BROKEN, msg_ring_broken),
		.ring = ring->id,
	};

	close_link(ring);
	send_broker(&m, sizeof(m), NULL, 0);
}

static int take_credit(void *ctx, struct ipc_message *message)
{
	const struct msg_ring_credit *m = (const void *)message->bytes;
	struct ring_link *ring = ctx;

	return ring_credit(&ring->sink.ring, m->tail);
}

static int take_hint(void *ctx, struct ipc_message *message)
{
	const struct msg_stack_hint *m = (const void *)message->bytes;

	(void)ctx;
	capture_hint(me.capture, m->target, m->tid, m->top);
	return 0;
}

static void on_reader(void *ctx)
{
	static const struct msg_rule rules[] = {
		MSG_RULE(MSG_RING_CREDIT, msg_ring_credit, 0, take_credit),
		MSG_RULE(MSG_STACK_HINT, msg_stack_hint, 0, take_hint),
	};
	struct ring_link *ring = ctx;
	struct ipc_message m;
	int r;

	for (;;) {
		r = ipc_recv(ring->fd, &m);
		if (r == -EAGAIN)
			return;
		if (r == 0) {
			close_link(ring);
			return;
		}
		if (r < 0 || m.n_fds != 0 ||
		    msg_handle(rules, array_size(rules), ring, &m) < 0) {
			if (r > 0)
				ipc_close_fds(&m);
			ring_is_broken(ring);
			return;
		}
	}
}

static struct ring_link *ring_of(uint32_t id)
{
	for (size_t i = 0; i < RINGS_MAX; i++)
		if (me.rings[i].used && me.rings[i].id == id)
			return &me.rings[i];
	return NULL;
}

static int make_ring(void *ctx, struct ipc_message *message)
{
	const struct msg_ring_make *m = (const void *)message->bytes;
	const struct msg_ring_made made = {
		.h = MSG_HEADER(MSG_RING_MADE, msg_ring_made),
		.ring = m->ring,
	};
	struct ring_link *ring = ring_of(m->ring);
	int r;

	(void)ctx;
	for (size_t i = 0; ring == NULL && i < RINGS_MAX; i++)
		if (!me.rings[i].used)
			ring = &me.rings[i];
	if (ring == NULL)
		return -EPROTO;
	if (ring->used) {
		close_link(ring);
		ring_writer_fini(&ring->sink.ring);
		capture_reset(me.capture, &ring->sink);
	}
	*ring = (struct ring_link){
		.used = true, .id = m->ring, .fd = ipc_take_fd(message, 0)};
	r = ring_writer_init(&ring->sink.ring, RING_BYTES);
	if (r == 0 && fcntl(ring->fd, F_SETFL, O_NONBLOCK) < 0)
		r = -errno;
	if (r == 0)
		r = loop_add(me.loop, ring->fd, on_reader, ring, &ring->source);
	if (r < 0)
		return r;
	send_broker(&made, sizeof(made), &ring->sink.ring.fd, 1);
	close_fd(&ring->sink.ring.fd);
	return 0;
}

static uint64_t tick_at(uint64_t now)
{
	return now <= me.epoch_ns ? 0 : (now - me.epoch_ns) / me.period_ns;
}

static void on_timer(void *ctx)
{
	uint64_t expirations, now;
	bool told;

	(void)ctx;
	if (read(me.timer_fd, &expirations, sizeof(expirations)) < 0)
		return;
	beat();
	now = clock_mono_ns();
	/* Ticks that it leaves out are late at the next one. */
	if (tick_at(now) <= me.tick || me.share.exceeded)
		return;
	me.tick = tick_at(now);
	if (capture_tick(me.capture, me.tick,
			 me.epoch_ns + me.tick * me.period_ns, now))
		me.behind = true;
	told = me.tick - me.told_tick >= HEAD_TICKS;
	if (told)
		me.told_tick = me.tick;
	tell_heads(told);
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
	struct ring_link *ring = ring_of(m->ring);
	int r;

	(void)ctx;
	if (m->target == 0 || m->slot >= HEARTBEAT_SLOTS || ring == NULL ||
	    m->pid <= 0 || me.slots[m->slot].target != 0)
		return -EPROTO;
	r = start_timer(m->epoch_ns, m->period_ns);
	if (r < 0)
		return r;
	r = capture_add(me.capture, m->target, m->pid, message->fds[0],
			&ring->sink, &me.heartbeat->slots[m->slot],
			tick_at(clock_mono_ns()));
	if (r < 0) {
		send_state(m->target, TARGET_REFUSED, -r);
		return 0;
	}
	me.slots[m->slot] = (struct slot){.target = m->target};
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
	while (read(me.signal_fd, &info, sizeof(info)) > 0)
		;
	me.behind = capture_reap(me.capture);
}

/* SCHED_FIFO, or everybody's; false if it is refused. */
static bool set_realtime(bool on)
{
	const struct sched_param param = {.sched_priority = on ? 1 : 0};

	return sched_setscheduler(
		       0, (on ? SCHED_FIFO : SCHED_OTHER) | SCHED_RESET_ON_FORK,
		       &param) == 0;
}

/* Where it never was real-time there is nothing to give up. */
static void exceed_share(bool exceeded)
{
	me.share.exceeded = exceeded;
	if (me.heartbeat->scheduler == SCHEDULER_FIFO)
		(void)set_realtime(!exceeded);
}

static void keep_share(void)
{
	uint64_t now = clock_mono_ns(), used;

	if (now - me.share.look_ns < SHARE_LOOK_NS)
		return;
	me.share.look_ns = now;
	used = clock_read_ns(CLOCK_PROCESS_CPUTIME_ID);
	if (now - me.share.window_ns >= SHARE_WINDOW_NS) {
		me.share.window_ns = now;
		me.share.used_ns = used;
		if (me.share.exceeded)
			exceed_share(false);
	} else if (!me.share.exceeded && used - me.share.used_ns > SHARE_NS) {
		exceed_share(true);
		log_debug("more than half a processor is used: nobody is "
			  "looked at for %u ms",
			  (unsigned int)((SHARE_WINDOW_NS -
					  (now - me.share.window_ns)) /
					 NS_PER_MS));
	}
}

/*
 * One round of events. Where there is no end of stops it sleeps all the same:
 * under SCHED_FIFO the others, and RLIMIT_RTTIME, wait for that.
 */
static int run_once(int timeout_ms)
{
	const struct timespec pause = {.tv_nsec = BEHIND_PAUSE_NS};
	int r;

	beat();
	keep_share();
	if (me.behind)
		(void)clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
	r = loop_run_once(me.loop, me.behind ? 0 : timeout_ms);
	if (me.behind)
		me.behind = capture_reap(me.capture);
	send_notes();
	return r;
}

/*
 * SCHED_FIFO, so that a stopped thread does not wait for a processor to be
 * continued, and ticks are not late. Refused in some cgroups: then a high
 * priority among ordinary processes.
 */
static void raise_priority(void)
{
	const struct rlimit limit = {.rlim_cur = REALTIME_US_MAX,
				     .rlim_max = REALTIME_US_MAX};

	(void)prctl(PR_SET_TIMERSLACK, 1UL);
	if (setrlimit(RLIMIT_RTTIME, &limit) == 0 && set_realtime(true)) {
		log_debug("sampling runs under SCHED_FIFO 1");
		me.heartbeat->scheduler = SCHEDULER_FIFO;
		return;
	}
	if (setpriority(PRIO_PROCESS, 0, -20) == 0) {
		log_debug("sampling runs at nice -20: SCHED_FIFO is refused");
		me.heartbeat->scheduler = SCHEDULER_NICE;
	} else {
		log_debug("sampling runs at normal priority: SCHED_FIFO and a "
			  "higher priority are refused");
	}
}

static void set_up(const struct msg_init *init, int heartbeat_fd)
{
	const capability_set keep = CAPABILITY(CAP_SYS_PTRACE) |
				    CAPABILITY(CAP_DAC_READ_SEARCH) |
				    CAPABILITY(CAP_SYS_NICE);
	const struct capture_options options = {
		.now_ns = clock_mono_ns,
		.process_ns = clock_process_ns,
		.beat = &me.heartbeat->beat,
		.event = note_event,
	};
	struct rlimit files;
	sigset_t signals;
	int r;

	r = privileges_drop(init->uid, init->gid, keep, false);
	if (r < 0)
		die("cannot give up privileges", -r);
	/* A hung capture must not outlive the broker that would kill it. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		die("prctl", errno);
	raise_priority();
	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &files);
	}
	close_fd(&heartbeat_fd);
	sigemptyset(&signals);
	sigaddset(&signals, SIGCHLD);
	if (sigprocmask(SIG_BLOCK, &signals, NULL) < 0)
		die("sigprocmask", errno);
	me.signal_fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
	if (me.signal_fd < 0)
		die("signalfd", errno);
	r = capture_new(&options, &me.capture);
	if (r == 0)
		r = loop_new(&me.loop);
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
		tell_heads(true);
		beat();
		if (!told && loop_run_once(me.loop, 10) < 0)
			break;
		(void)capture_reap(me.capture);
	}
	if (!told)
		(void)!tell_ends();
	tell_heads(true);
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
	while (r == 0 && !me.finishing)
		r = run_once(HEARTBEAT_EVERY_MS);
	if (r < 0)
		die("epoll_wait", -r);
	finish();
}
