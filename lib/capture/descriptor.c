#include "lib/capture/descriptor.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

/* Of the link in /proc: "/proc/", "/fd/", two numbers of 32 bits. */
#define PATH_BYTES 64

static void path_of(uint32_t tid, uint64_t fd, char path[PATH_BYTES])
{
	(void)snprintf(path, PATH_BYTES, "/proc/%u/fd/%u", tid,
		       (unsigned int)fd);
}

static bool starts_with(const char *text, const char *start)
{
	return strncmp(text, start, strlen(start)) == 0;
}

/*
 * The kernel's name for a socket's protocol (net/socket.c, sockfs). Before
 * Linux 5.15 all of AF_UNIX is "UNIX": then it is none of these.
 */
static enum descriptor_kind socket_kind(const char *path)
{
	char name[32] = "";
	ssize_t n =
		getxattr(path, "system.sockprotoname", name, sizeof(name) - 1);

	if (n <= 0)
		return DESCRIPTOR_OTHER;
	if (starts_with(name, "TCP") || starts_with(name, "MPTCP") ||
	    strcmp(name, "UNIX-STREAM") == 0)
		return DESCRIPTOR_STREAM;
	if (strcmp(name, "UDP") == 0 || strcmp(name, "UDPv6") == 0)
		return DESCRIPTOR_DATAGRAM;
	return DESCRIPTOR_OTHER;
}

/* Documentation/admin-guide/devices.txt */
static enum descriptor_kind device_kind(const struct statx *st)
{
	const unsigned int major = st->stx_rdev_major;
	const unsigned int minor = st->stx_rdev_minor;

	if (major == 1 && (minor == 5 || minor == 8 || minor == 9))
		return DESCRIPTOR_SOURCE;
	if (major == 4 || major == 5 || (major >= 136 && major <= 143))
		return DESCRIPTOR_TTY;
	return DESCRIPTOR_OTHER;
}

enum descriptor_kind descriptor_kind(uint32_t tid, uint64_t fd)
{
	char path[PATH_BYTES];
	struct statx st;

	path_of(tid, fd, path);
	if (statx(AT_FDCWD, path, AT_STATX_DONT_SYNC, STATX_TYPE, &st) < 0)
		return DESCRIPTOR_OTHER;
	switch (st.stx_mode & S_IFMT) {
	case S_IFIFO:
		return DESCRIPTOR_PIPE;
	case S_IFREG:
		return DESCRIPTOR_REGULAR;
	case S_IFCHR:
		return device_kind(&st);
	case S_IFSOCK:
		return socket_kind(path);
	default:
		return DESCRIPTOR_OTHER;
	}
}

bool descriptor_is_socket(uint32_t tid, uint64_t fd)
{
	static const char socket[] = "socket:[";
	char path[PATH_BYTES], link[sizeof(socket) - 1];
	ssize_t n;

	path_of(tid, fd, path);
	n = readlink(path, link, sizeof(link));
	return n == (ssize_t)sizeof(link) &&
	       memcmp(link, socket, sizeof(link)) == 0;
}
