#include "lib/capture/proc/descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "lib/base/clock.h"

/* Room for the path of a descriptor in /proc: "/proc/", "/fd/" and two numbers of 32 bits. */
#define PATH_BYTES 64

/* The longest time that the last close of a socket may wait for unsent data. */
#define LINGER_US 1000

static void path_of(uint32_t tid, uint64_t fd, char path[PATH_BYTES])
{
	(void)snprintf(path, PATH_BYTES, "/proc/%u/fd/%u", tid, (unsigned int)fd);
}

static bool starts_with(const char *text, const char *start)
{
	return strncmp(text, start, strlen(start)) == 0;
}

/*
 * Returns the kind by the kernel's name of the socket's protocol (net/socket.c, sockfs). Before
 * Linux 5.15 all AF_UNIX sockets are named "UNIX", which is DESCRIPTOR_OTHER.
 */
static enum descriptor_kind socket_kind(const char *path)
{
	char name[32] = "";
	ssize_t n = getxattr(path, "system.sockprotoname", name, sizeof(name) - 1);

	if (n <= 0)
		return DESCRIPTOR_OTHER;
	if (starts_with(name, "TCP") || starts_with(name, "MPTCP") ||
	    strcmp(name, "UNIX-STREAM") == 0)
		return DESCRIPTOR_STREAM;
	if (strcmp(name, "UDP") == 0 || strcmp(name, "UDPv6") == 0)
		return DESCRIPTOR_DATAGRAM;
	return DESCRIPTOR_OTHER;
}

/* Major numbers: Documentation/admin-guide/devices.txt */
static bool is_pty(const struct statx *st)
{
	return (st->stx_rdev_major >= 136 && st->stx_rdev_major <= 143) ||
	       (st->stx_rdev_major == 5 && st->stx_rdev_minor == 2);
}

static bool look(const char *path, struct statx *ret)
{
	return statx(AT_FDCWD, path, AT_STATX_DONT_SYNC, STATX_TYPE | STATX_INO, ret) == 0;
}

bool descriptor_is_pty(uint32_t tid, uint64_t fd)
{
	char path[PATH_BYTES];
	struct statx st;

	path_of(tid, fd, path);
	return look(path, &st) && S_ISCHR(st.stx_mode) && is_pty(&st);
}

enum descriptor_kind descriptor_kind(uint32_t tid, uint64_t fd)
{
	char path[PATH_BYTES];
	struct statx st;

	path_of(tid, fd, path);
	if (!look(path, &st))
		return DESCRIPTOR_OTHER;
	switch (st.stx_mode & S_IFMT) {
	case S_IFIFO:
		return DESCRIPTOR_PIPE;
	case S_IFSOCK:
		return socket_kind(path);
	default:
		return DESCRIPTOR_OTHER;
	}
}

struct descriptor_file descriptor_file(uint32_t tid, uint64_t fd)
{
	char path[PATH_BYTES];
	struct statx st;

	path_of(tid, fd, path);
	if (!look(path, &st))
		return (struct descriptor_file){.inode = 0};
	return (struct descriptor_file){
		.major = st.stx_dev_major, .minor = st.stx_dev_minor, .inode = st.stx_ino};
}

/* Returns the number of the socket's inode; 0: not a socket. */
static uint64_t socket_inode(uint32_t tid, uint64_t fd)
{
	static const char start[] = "socket:[";
	char path[PATH_BYTES], link[64];
	ssize_t n;

	path_of(tid, fd, path);
	n = readlink(path, link, sizeof(link) - 1);
	if (n < 0)
		return 0;
	link[n] = '\0';
	return starts_with(link, start) ? strtoull(link + sizeof(start) - 1, NULL, 10) : 0;
}

bool descriptor_is_socket(uint32_t tid, uint64_t fd)
{
	return socket_inode(tid, fd) != 0;
}

static void on_alarm(int signal)
{
	(void)signal;
}

/*
 * Closes a socket with SO_LINGER without a long wait. A signal ends the wait, and the kernel goes
 * on sending the data (net/ipv4/tcp.c, sk_stream_wait_close). The alarm repeats, because one that
 * comes before the wait has no effect.
 */
static void close_lingering(int fd)
{
	const struct sigaction action = {.sa_handler = on_alarm};
	const struct itimerval often = {.it_interval.tv_usec = LINGER_US,
					.it_value.tv_usec = LINGER_US};
	const struct itimerval never = {.it_value.tv_usec = 0};
	struct sigaction action_before;
	sigset_t set, set_before;

	(void)sigaction(SIGALRM, &action, &action_before);
	sigemptyset(&set);
	sigaddset(&set, SIGALRM);
	(void)sigprocmask(SIG_UNBLOCK, &set, &set_before);
	(void)setitimer(ITIMER_REAL, &often, NULL);
	(void)close(fd);
	(void)setitimer(ITIMER_REAL, &never, NULL);
	(void)sigprocmask(SIG_SETMASK, &set_before, NULL);
	(void)sigaction(SIGALRM, &action_before, NULL);
}

void descriptor_close(int fd)
{
	struct linger linger;
	socklen_t size = sizeof(linger);

	if (getsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, &size) == 0 && linger.l_onoff != 0)
		close_lingering(fd);
	else
		(void)close(fd);
}

static bool timeout_of(int fd, int option, uint64_t *ret)
{
	struct timeval tv;
	socklen_t size = sizeof(tv);

	if (getsockopt(fd, SOL_SOCKET, option, &tv, &size) < 0)
		return false;
	if (!clock_duration_ns(tv.tv_sec, tv.tv_usec, NS_PER_US, ret))
		*ret = 0;
	return true;
}

static int ask(int fd, struct descriptor_socket *ret)
{
	struct descriptor_socket s;
	socklen_t size = sizeof(int);
	int domain, mark;

	if (!timeout_of(fd, SO_RCVTIMEO, &s.receive_ns) ||
	    !timeout_of(fd, SO_SNDTIMEO, &s.send_ns) ||
	    getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) < 0)
		return -ENOTSOCK;
	s.is_unix = domain == AF_UNIX;
	s.at_mark = ioctl(fd, SIOCATMARK, &mark) == 0 && mark != 0;
	*ret = s;
	return 0;
}

/* Returns a copy of the socket, for descriptor_close(), or an error of descriptor_socket(). */
static int copy_socket(int32_t pid, uint32_t tid, uint64_t fd)
{
	const uint64_t inode = socket_inode(tid, fd);
	struct stat st;
	int pidfd, copy;

	if (inode == 0)
		return -ENOTSOCK;
	pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (pidfd < 0)
		return -errno;
	copy = (int)syscall(SYS_pidfd_getfd, pidfd, (unsigned int)fd, 0);
	if (copy < 0)
		copy = -errno;
	close_fd(&pidfd);
	if (copy >= 0 && (fstat(copy, &st) < 0 || st.st_ino != inode)) {
		descriptor_close(copy);
		return -ENOTSOCK;
	}
	return copy;
}

int descriptor_socket(int32_t pid, uint32_t tid, uint64_t fd, struct descriptor_socket *ret)
{
	const int copy = copy_socket(pid, tid, fd);
	int r;

	if (copy < 0)
		return copy;
	r = ask(copy, ret);
	descriptor_close(copy);
	return r;
}

void descriptor_clear_error(int32_t pid, uint32_t tid, uint64_t fd)
{
	const int copy = copy_socket(pid, tid, fd);
	socklen_t size = sizeof(int);
	int error;

	if (copy < 0)
		return;
	if ((fcntl(copy, F_GETFL) & O_NONBLOCK) == 0)
		(void)getsockopt(copy, SOL_SOCKET, SO_ERROR, &error, &size);
	descriptor_close(copy);
}
