/*
 * Calls that cannot go on in the middle: the reader of what is written leaves,
 * or a file has reached the size that it may have. They return what they have
 * moved, and the kernel sends SIGPIPE or SIGXFSZ for it; the next one fails.
 *
 * Usage: life_ends N. Each of these calls N times, with the signal ignored,
 * blocked and handled.
 */
#include "ends.h"
#include "life.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/uio.h>

#define WHOLE  (1u << 20)
#define ENOUGH 300000 /* more than a pipe takes; so many come through */
#define ROOM   65536

/* What does not come, or not always. */
#define EITHER (-1)

static char bytes[WHOLE];
static int to, reader = -1; /* descriptors */
static atomic_int handled;

static void make_pipe(void)
{
	open_pipe(&reader, &to);
}

static void make_unix(void)
{
	open_pair(SOCK_STREAM, &reader, &to);
}

/* Without room for all of it. */
static void make_tcp(void)
{
	const int listener = listen_tcp(1), room = ROOM;

	to = open_tcp();
	must(setsockopt(to, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room)) == 0 &&
		     setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &room,
				sizeof(room)) == 0 &&
		     connect_tcp(to, listener) == 0,
	     "connect");
	reader = accept(listener, NULL, NULL);
	must(reader >= 0, "accept");
	(void)close(listener);
}

static void make_file(void)
{
	to = memfd_create("to", MFD_CLOEXEC);
	must(to >= 0, "memfd_create");
}

static ssize_t call_write(void)
{
	return write(to, bytes, WHOLE);
}

static ssize_t call_writev(void)
{
	const struct iovec iov[] = {{bytes, WHOLE / 4},
				    {bytes + WHOLE / 4, WHOLE - WHOLE / 4}};

	return writev(to, iov, 2);
}

static ssize_t call_send(void)
{
	return send(to, bytes, WHOLE, 0);
}

static ssize_t call_sendmsg(void)
{
	struct iovec iov = {bytes, WHOLE};
	const struct msghdr message = {.msg_iov = &iov, .msg_iovlen = 1};

	return sendmsg(to, &message, 0);
}

/*
 * Of a part: the signals that it brings. Sockets bring none; TCP may tell of a
 * reset instead.
 */
static const struct {
	const char *name;
	void (*make)(void);
	ssize_t (*call)(void);
	int signals;
	int error;
} kinds[] = {
	{"write to a pipe", make_pipe, call_write, 1, EPIPE},
	{"writev to a pipe", make_pipe, call_writev, 1, EPIPE},
	{"write to AF_UNIX", make_unix, call_write, 0, EPIPE},
	{"writev to AF_UNIX", make_unix, call_writev, 0, EPIPE},
	{"send to AF_UNIX", make_unix, call_send, 0, EPIPE},
	{"sendmsg to AF_UNIX", make_unix, call_sendmsg, 0, EPIPE},
	{"write to TCP", make_tcp, call_write, EITHER, EITHER},
	{"send to TCP", make_tcp, call_send, EITHER, EITHER},
	{"write to a file", make_file, call_write, 0, EFBIG},
};

#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

static const char *const treatments[] = {"ignored", "blocked", "handled"};

enum treatment { IGNORED, BLOCKED, HANDLED, TREATMENTS };

static void on_signal(int signal)
{
	(void)signal;
	atomic_fetch_add(&handled, 1);
}

static void treat(int signal, enum treatment how)
{
	handle(signal, how == IGNORED ? SIG_IGN : on_signal, 0);
	mask(how == BLOCKED ? SIG_BLOCK : SIG_UNBLOCK, signal);
}

/* Those that have come since the last time. */
static int take_signals(int signal, enum treatment how)
{
	const struct timespec none = {0};
	const sigset_t set = set_of(signal);

	if (how != BLOCKED)
		return atomic_exchange(&handled, 0);
	return sigtimedwait(&set, NULL, &none) == signal ? 1 : 0;
}

/* Leaves when so much is through that the rest has to wait. */
static void *read_some(void *unused)
{
	static char got[20000];

	(void)unused;
	for (ssize_t left = ENOUGH; left > 0;) {
		ssize_t n = read(reader, got, sizeof(got));

		must(n > 0, "read");
		left -= n;
	}
	(void)close(reader);
	return NULL;
}

static void limit(rlim_t size)
{
	struct rlimit limit;

	must(getrlimit(RLIMIT_FSIZE, &limit) == 0, "getrlimit");
	limit.rlim_cur = size < limit.rlim_max ? size : limit.rlim_max;
	must(setrlimit(RLIMIT_FSIZE, &limit) == 0, "setrlimit");
}

static void check(size_t k, const char *what, int got, int wanted)
{
	if (got != wanted && wanted != EITHER)
		wrong("%s: %s %d, not %d", kinds[k].name, what, got, wanted);
}

static void end_once(size_t k, enum treatment how)
{
	const bool is_file = kinds[k].make == make_file;
	const int signal = is_file ? SIGXFSZ : SIGPIPE;
	const int each = kinds[k].error == EITHER ? EITHER : how != IGNORED;
	pthread_t thread;
	int signals;
	ssize_t n;

	treat(signal, how);
	kinds[k].make();
	if (is_file)
		limit(ENOUGH);
	else
		thread = start(read_some, NULL);
	n = kinds[k].call();
	signals = take_signals(signal, how);
	if (n < ENOUGH || n >= WHOLE || (is_file && n != ENOUGH))
		wrong("%s: %zd", kinds[k].name, n);
	check(k, "signals", signals, how == IGNORED ? 0 : kinds[k].signals);
	if (!is_file)
		join(thread);
	n = kinds[k].call();
	check(k, "error", n < 0 ? errno : 0, kinds[k].error);
	if (n >= 0)
		wrong("%s: %zd, after the end", kinds[k].name, n);
	check(k, "last signals", take_signals(signal, how), each);
	limit(RLIM_INFINITY);
	(void)close(to);
}

int main(int argc, char **argv)
{
	unsigned long rounds = argc > 1 ? strtoul(argv[1], NULL, 10) : 1;

	begin();
	for (size_t k = 0; k < KINDS; k++) {
		for (enum treatment how = IGNORED; how < TREATMENTS; how++) {
			for (unsigned long i = 0; i < rounds; i++)
				end_once(k, how);
			printf("%s, %s: %lu\n", kinds[k].name, treatments[how],
			       rounds);
		}
	}
	return finish();
}
