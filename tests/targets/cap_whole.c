/*
 * Threads whose calls move much at once, and count those that come back with
 * less than they were asked for. What arrives is compared with what was sent.
 *
 * Usage: cap_whole [KIND]: all kinds, or this one.
 *        cap_whole --list
 * Says "ready TID", the number of the thread that makes the (first) calls.
 *
 * Lines on its input, each answered by one: "short", "wrong" by that and the
 * number of calls that came back with a part, and of those whose data was not
 * what it should be; "whole", "least": calls that did all, of all kinds and of
 * the kind with the fewest; "handled": SIGUSR1 handled by the first thread.
 * "names": a line for each kind, with its name and short, wrong, whole.
 * "filter" by "ok 0": from now on all are under a seccomp filter that kills for
 * a sendto(2) with MSG_NOSIGNAL, which nobody here makes. At the input's end it
 * ends.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/io_uring.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <termios.h>
#include <unistd.h>

#define WHOLE	   (1u << 20)
#define TTY_BYTES  (32u << 10)
#define PIECES	   7
#define MESSAGES   16
#define PATTERN	   251 /* prime, so that it does not fit any buffer */
#define RING_SPARE 8

struct ring {
	int fd;
	unsigned int *sq_tail, *sq_mask, *sq_array;
	unsigned int *cq_head, *cq_tail;
	struct io_uring_sqe *sqes;
};

struct work {
	const struct kind *kind;
	int fd, peer; /* of the calls, and of the other thread */
	uint8_t *bytes;
	uint64_t sent, seen; /* bytes or messages, by each side */
	struct ring ring;
	atomic_int tid;
	atomic_ulong shorter, wrong, whole;
};

struct kind {
	const char *name;
	void (*make)(struct work *);
	/* What was asked for, less what came; -1: an error. */
	ssize_t (*call)(struct work *);
	/* The other thread's, again and again; NULL: there is none. */
	void (*other)(struct work *);
};

static void need(bool ok)
{
	if (!ok) {
		perror("cap_whole");
		abort();
	}
}

static uint8_t pattern(uint64_t at)
{
	return (uint8_t)(at % PATTERN);
}

static void fill(uint8_t *to, uint64_t at, size_t n)
{
	for (size_t i = 0; i < n; i++)
		to[i] = pattern(at + i);
}

static void compare(struct work *w, const uint8_t *got, uint64_t at, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (got[i] != pattern(at + i)) {
			atomic_fetch_add(&w->wrong, 1);
			return;
		}
}

/* What is sent begins where the last one ended. */
static uint8_t *next_bytes(struct work *w)
{
	return w->bytes + w->sent % PATTERN;
}

static ssize_t sent(struct work *w, ssize_t n, size_t whole)
{
	if (n < 0)
		return -1;
	w->sent += (uint64_t)n;
	return (ssize_t)whole - n;
}

/* Reads what is there, which is less than what is sent at once. */
static void drain(struct work *w)
{
	uint8_t got[20000];
	ssize_t n = read(w->peer, got, sizeof(got));

	need(n > 0 || errno == EINTR);
	compare(w, got, w->seen, n < 0 ? 0 : (size_t)n);
	w->seen += n < 0 ? 0 : (uint64_t)n;
}

static void make_pipe(struct work *w)
{
	int pair[2];

	need(pipe(pair) == 0);
	w->fd = pair[1];
	w->peer = pair[0];
}

static void make_unix(struct work *w)
{
	int pair[2];

	need(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
	w->fd = pair[0];
	w->peer = pair[1];
}

static void make_tcp(struct work *w)
{
	struct sockaddr_in name = {.sin_family = AF_INET};
	int listener = socket(AF_INET, SOCK_STREAM, 0);
	socklen_t size = sizeof(name);

	name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	w->fd = socket(AF_INET, SOCK_STREAM, 0);
	need(bind(listener, (void *)&name, sizeof(name)) == 0 &&
	     listen(listener, 1) == 0 &&
	     getsockname(listener, (void *)&name, &size) == 0 &&
	     connect(w->fd, (void *)&name, size) == 0);
	w->peer = accept(listener, NULL, NULL);
	need(w->peer >= 0);
	close(listener);
}

/*
 * Who asks for all of TTY_BYTES has to wait for it, however fast the other
 * side is.
 */
static void make_narrow_tcp(struct work *w)
{
	const int size = TTY_BYTES / 8;

	make_tcp(w);
	need(setsockopt(w->fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size)) ==
	     0);
}

static void make_tty(struct work *w)
{
	struct termios t;

	w->peer = posix_openpt(O_RDWR | O_NOCTTY);
	need(w->peer >= 0 && grantpt(w->peer) == 0 && unlockpt(w->peer) == 0);
	w->fd = open(ptsname(w->peer), O_RDWR | O_NOCTTY);
	need(w->fd >= 0 && tcgetattr(w->fd, &t) == 0);
	cfmakeraw(&t);
	need(tcsetattr(w->fd, TCSANOW, &t) == 0);
}

static ssize_t call_write(struct work *w)
{
	return sent(w, write(w->fd, next_bytes(w), WHOLE), WHOLE);
}

static ssize_t call_write_tty(struct work *w)
{
	return sent(w, write(w->fd, next_bytes(w), TTY_BYTES), TTY_BYTES);
}

/* Pieces of several sizes, one of them empty. */
static void cut(uint8_t *from, size_t n, struct iovec iov[PIECES])
{
	size_t at = 0;

	for (unsigned int i = 0; i < PIECES; i++) {
		size_t size = i == 2 ? 0 : n / (2 * PIECES) + i * (n / 64);

		if (i == PIECES - 1)
			size = n - at;
		iov[i] = (struct iovec){from + at, size};
		at += size;
	}
}

static ssize_t call_writev(struct work *w)
{
	struct iovec iov[PIECES];

	cut(next_bytes(w), WHOLE, iov);
	return sent(w, writev(w->fd, iov, PIECES), WHOLE);
}

static ssize_t call_send(struct work *w)
{
	return sent(w, send(w->fd, next_bytes(w), WHOLE, 0), WHOLE);
}

static ssize_t call_sendmsg(struct work *w)
{
	struct iovec iov[PIECES];
	struct msghdr m = {.msg_iov = iov, .msg_iovlen = PIECES};

	cut(next_bytes(w), WHOLE, iov);
	return sent(w, sendmsg(w->fd, &m, MSG_NOSIGNAL), WHOLE);
}

static void make_tcp_and_file(struct work *w)
{
	make_tcp(w);
	w->ring.fd = memfd_create("cap_whole", 0);
	need(w->ring.fd >= 0 &&
	     write(w->ring.fd, w->bytes, WHOLE + PATTERN) == WHOLE + PATTERN);
}

static ssize_t call_sendfile(struct work *w)
{
	off_t at = (off_t)(w->sent % PATTERN);

	return sent(w, sendfile(w->fd, w->ring.fd, &at, WHOLE), WHOLE);
}

static void make_files(struct work *w)
{
	char path[64];

	make_tcp_and_file(w);
	snprintf(path, sizeof(path), "/tmp/cap_whole.XXXXXX");
	w->fd = mkstemp(path);
	need(w->fd >= 0 && write(w->fd, w->bytes, WHOLE) == WHOLE &&
	     unlink(path) == 0);
	snprintf(path, sizeof(path), "/tmp/cap_whole.XXXXXX");
	w->peer = mkstemp(path);
	need(w->peer >= 0 && unlink(path) == 0);
}

static ssize_t compared_file(struct work *w, ssize_t n)
{
	static uint8_t got[WHOLE];

	if (n == WHOLE) {
		need(pread(w->peer, got, WHOLE, 0) == WHOLE);
		compare(w, got, 0, WHOLE);
	}
	return n < 0 ? n : WHOLE - n;
}

static ssize_t call_copy_file_range(struct work *w)
{
	off_t from = 0, to = 0;
	ssize_t n = copy_file_range(w->fd, &from, w->peer, &to, WHOLE, 0);

	return compared_file(w, n);
}

/* The other way round: the thread receives, the other one sends in bits. */
static void send_bit(struct work *w)
{
	ssize_t n = write(w->peer, next_bytes(w), 1 + w->sent % 3000);

	/* SIGSTOP cuts it short. */
	need(n > 0 || errno == EINTR);
	w->sent += n < 0 ? 0 : (uint64_t)n;
}

static ssize_t received(struct work *w, const uint8_t *got, ssize_t n)
{
	if (n < 0)
		return -1;
	compare(w, got, w->seen, (size_t)n);
	w->seen += (uint64_t)n;
	return (ssize_t)TTY_BYTES - n;
}

static ssize_t call_recv(struct work *w)
{
	uint8_t got[TTY_BYTES];

	return received(w, got, recv(w->fd, got, sizeof(got), MSG_WAITALL));
}

static ssize_t call_recvmsg(struct work *w)
{
	uint8_t got[TTY_BYTES];
	struct iovec iov[PIECES];
	struct msghdr m = {.msg_iov = iov, .msg_iovlen = PIECES};

	cut(got, sizeof(got), iov);
	return received(w, got, recvmsg(w->fd, &m, MSG_WAITALL));
}

static void make_datagrams(struct work *w)
{
	int pair[2];

	need(socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) == 0);
	w->fd = pair[0];
	w->peer = pair[1];
}

static void send_number(struct work *w)
{
	need(send(w->peer, &w->sent, sizeof(w->sent), 0) == sizeof(w->sent));
	w->sent++;
}

static ssize_t call_recvmmsg(struct work *w)
{
	struct mmsghdr m[MESSAGES];
	struct iovec iov[MESSAGES];
	uint64_t got[MESSAGES];
	int n;

	memset(m, 0, sizeof(m));
	for (int i = 0; i < MESSAGES; i++) {
		iov[i] = (struct iovec){&got[i], sizeof(got[i])};
		m[i].msg_hdr.msg_iov = &iov[i];
		m[i].msg_hdr.msg_iovlen = 1;
	}
	n = recvmmsg(w->fd, m, MESSAGES, 0, NULL);
	for (int i = 0; i < n; i++)
		if (got[i] != w->seen++ || m[i].msg_len != sizeof(got[i]))
			atomic_fetch_add(&w->wrong, 1);
	return n < 0 ? n : MESSAGES - n;
}

static ssize_t call_getrandom(struct work *w)
{
	ssize_t n = getrandom(w->bytes, WHOLE, 0);

	return n < 0 ? n : WHOLE - n;
}

static void make_urandom(struct work *w)
{
	w->fd = open("/dev/urandom", O_RDONLY);
	need(w->fd >= 0);
}

static void make_zero(struct work *w)
{
	w->fd = open("/dev/zero", O_RDONLY);
	need(w->fd >= 0);
}

static ssize_t call_read(struct work *w)
{
	ssize_t n = read(w->fd, w->bytes, WHOLE);

	return n < 0 ? n : WHOLE - n;
}

/* What it takes out of the pipe is what it says. */
static void make_splice(struct work *w)
{
	int pair[2];

	make_unix(w);
	need(pipe(pair) == 0);
	w->ring.fd = pair[0];
	/* Writes what the first thread splices. */
	w->ring.sq_tail = (void *)(uintptr_t)pair[1];
}

static ssize_t call_splice(struct work *w)
{
	const int in = (int)(uintptr_t)w->ring.sq_tail;
	size_t left = 40000;
	ssize_t n = write(in, next_bytes(w), left);

	need(n == (ssize_t)left);
	w->sent += left;
	n = splice(w->ring.fd, NULL, w->fd, NULL, left, 0);
	if (n < 0)
		return -1;
	for (size_t more = left - (size_t)n; more > 0;) {
		ssize_t r = splice(w->ring.fd, NULL, w->fd, NULL, more, 0);

		need(r > 0 || errno == EINTR);
		more -= r > 0 ? (size_t)r : 0;
	}
	return (ssize_t)left - n;
}

static void make_ring(struct work *w)
{
	struct io_uring_params p = {0};
	struct ring *r = &w->ring;
	uint8_t *rings;

	r->fd = (int)syscall(SYS_io_uring_setup, RING_SPARE, &p);
	/* Refused in many containers. */
	if (r->fd < 0)
		return;
	rings = mmap(NULL, p.cq_off.cqes + p.cq_entries * 16u + 4096,
		     PROT_READ | PROT_WRITE, MAP_SHARED, r->fd,
		     IORING_OFF_SQ_RING);
	need(rings != MAP_FAILED);
	r->sq_tail = (void *)(rings + p.sq_off.tail);
	r->sq_mask = (void *)(rings + p.sq_off.ring_mask);
	r->sq_array = (void *)(rings + p.sq_off.array);
	r->cq_head = (void *)(rings + p.cq_off.head);
	r->cq_tail = (void *)(rings + p.cq_off.tail);
	r->sqes = mmap(NULL, p.sq_entries * sizeof(*r->sqes),
		       PROT_READ | PROT_WRITE, MAP_SHARED, r->fd,
		       IORING_OFF_SQES);
	need(r->sqes != MAP_FAILED);
}

/* Submits a timeout and waits for it: it has to be there. */
static ssize_t call_io_uring(struct work *w)
{
	const struct __kernel_timespec t = {.tv_nsec = 50000};
	struct ring *r = &w->ring;
	unsigned int tail, head;
	long n;

	if (r->fd < 0)
		return call_getrandom(w);
	tail = *r->sq_tail;
	r->sq_array[tail & *r->sq_mask] = tail & *r->sq_mask;
	r->sqes[tail & *r->sq_mask] = (struct io_uring_sqe){
		.opcode = IORING_OP_TIMEOUT,
		.addr = (uintptr_t)&t,
		.len = 1,
	};
	__atomic_store_n(r->sq_tail, tail + 1, __ATOMIC_RELEASE);
	n = syscall(SYS_io_uring_enter, r->fd, 1, 1, IORING_ENTER_GETEVENTS,
		    NULL, 0);
	if (n != 1)
		return -1;
	head = *r->cq_head;
	n = __atomic_load_n(r->cq_tail, __ATOMIC_ACQUIRE) == head;
	/* If it is not there yet, it is waited for. */
	while (__atomic_load_n(r->cq_tail, __ATOMIC_ACQUIRE) == head)
		;
	__atomic_store_n(r->cq_head, head + 1, __ATOMIC_RELEASE);
	return n;
}

static const struct kind kinds[] = {
	{"write_pipe", make_pipe, call_write, drain},
	{"writev_pipe", make_pipe, call_writev, drain},
	{"write_tty", make_tty, call_write_tty, drain},
	{"write_unix", make_unix, call_write, drain},
	{"write_tcp", make_tcp, call_write, drain},
	{"writev_unix", make_unix, call_writev, drain},
	{"send_unix", make_unix, call_send, drain},
	{"send_tcp", make_tcp, call_send, drain},
	{"sendmsg_tcp", make_tcp, call_sendmsg, drain},
	{"sendfile_tcp", make_tcp_and_file, call_sendfile, drain},
	{"copy_file_range", make_files, call_copy_file_range, NULL},
	{"recv_unix", make_unix, call_recv, send_bit},
	{"recv_tcp", make_narrow_tcp, call_recv, send_bit},
	{"recvmsg_tcp", make_narrow_tcp, call_recvmsg, send_bit},
	{"recvmmsg", make_datagrams, call_recvmmsg, send_number},
	{"getrandom", NULL, call_getrandom, NULL},
	{"read_urandom", make_urandom, call_read, NULL},
	{"read_zero", make_zero, call_read, NULL},
	{"splice", make_splice, call_splice, drain},
	{"io_uring", make_ring, call_io_uring, NULL},
};

#define N_KINDS (sizeof(kinds) / sizeof(kinds[0]))

static struct work works[N_KINDS];
static size_t n_works;

static void *call_again(void *arg)
{
	struct work *w = arg;

	atomic_store(&w->tid, (int)syscall(SYS_gettid));
	for (;;) {
		ssize_t missing = w->kind->call(w);

		if (missing == 0)
			atomic_fetch_add(&w->whole, 1);
		else if (missing > 0)
			atomic_fetch_add(&w->shorter, 1);
		else
			atomic_fetch_add(&w->wrong, 1);
	}
	return NULL;
}

static void *other_again(void *arg)
{
	struct work *w = arg;

	for (;;)
		w->kind->other(w);
	return NULL;
}

static void add(const struct kind *kind)
{
	struct work *w = &works[n_works++];

	w->kind = kind;
	w->bytes = malloc(WHOLE + PATTERN);
	need(w->bytes != NULL);
	fill(w->bytes, 0, WHOLE + PATTERN);
	if (kind->make != NULL)
		kind->make(w);
}

static void start(void *(*function)(void *), struct work *w)
{
	pthread_t thread;

	need(pthread_create(&thread, NULL, function, w) == 0);
}

static atomic_ulong handled;

static void on_signal(int number)
{
	(void)number;
	atomic_fetch_add(&handled, 1);
}

static void install_filter(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_sendto, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, args[3])),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, MSG_NOSIGNAL, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = {
		.len = sizeof(code) / sizeof(code[0]), .filter = code};

	need(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
	     syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
		     SECCOMP_FILTER_FLAG_TSYNC, &program) == 0);
	printf("ok 0\n");
}

static void answer(const char *line)
{
	unsigned long shorter = 0, wrong = 0, whole = 0, least = ULONG_MAX;

	for (size_t i = 0; i < n_works; i++) {
		const struct work *w = &works[i];

		shorter += w->shorter;
		wrong += w->wrong;
		whole += w->whole;
		if (w->whole < least)
			least = w->whole;
		if (strcmp(line, "names\n") == 0)
			printf("%s %lu %lu %lu\n", w->kind->name, w->shorter,
			       w->wrong, w->whole);
	}
	if (strcmp(line, "short\n") == 0)
		printf("short %lu\n", shorter);
	else if (strcmp(line, "wrong\n") == 0)
		printf("wrong %lu\n", wrong);
	else if (strcmp(line, "whole\n") == 0)
		printf("whole %lu\n", whole);
	else if (strcmp(line, "least\n") == 0)
		printf("least %lu\n", least);
	else if (strcmp(line, "handled\n") == 0)
		printf("handled %lu\n", handled);
	else if (strcmp(line, "filter\n") == 0)
		install_filter();
}

int main(int argc, char **argv)
{
	const struct sigaction action = {.sa_handler = on_signal,
					 .sa_flags = SA_RESTART};
	char line[64];

	sigaction(SIGUSR1, &action, NULL);
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (size_t i = 0; i < N_KINDS; i++) {
		if (argc > 1 && strcmp(argv[1], "--list") == 0)
			puts(kinds[i].name);
		else if (argc == 1 || strcmp(argv[1], kinds[i].name) == 0)
			add(&kinds[i]);
	}
	if (n_works == 0)
		return argc > 1 && strcmp(argv[1], "--list") == 0 ? 0 : 2;
	for (size_t i = 0; i < n_works; i++) {
		start(call_again, &works[i]);
		if (works[i].kind->other != NULL)
			start(other_again, &works[i]);
	}
	while (atomic_load(&works[0].tid) == 0)
		;
	printf("ready %d\n", atomic_load(&works[0].tid));
	while (fgets(line, sizeof(line), stdin) != NULL)
		answer(line);
	_exit(0);
}
