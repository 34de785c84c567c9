#include "daemon/broker/control/control_socket.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

/* Connections that may wait for accept(2); net.core.somaxconn limits it. */
#define BACKLOG 128

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83
#endif

static int make_address(const char *path, struct sockaddr_un *ret)
{
	size_t n = strlen(path);

	if (n == 0)
		return -ENOENT;
	if (n >= sizeof(ret->sun_path))
		return -ENAMETOOLONG;
	*ret = (struct sockaddr_un){.sun_family = AF_UNIX};
	memcpy(ret->sun_path, path, n + 1);
	return 0;
}

/*
 * Refuses a directory of another user, and one that others may write into without a sticky bit:
 * they could replace the socket.
 */
static int check_directory(const char *path)
{
	char parent[PATH_MAX] = ".";
	const char *slash = strrchr(path, '/');
	struct stat st;

	if (slash != NULL)
		(void)snprintf(parent, sizeof(parent), "%.*s",
			       slash == path ? 1 : (int)(slash - path), path);
	/* 0755: a service manager may have made it with another mode. */
	if (mkdir(parent, 0755) < 0 && errno != EEXIST)
		return -errno;
	if (stat(parent, &st) < 0)
		return -errno;
	if (!S_ISDIR(st.st_mode))
		return -ENOTDIR;
	if (st.st_uid != 0 && st.st_uid != geteuid())
		return -EPERM;
	if ((st.st_mode & (S_IWGRP | S_IWOTH)) && !(st.st_mode & S_ISVTX))
		return -EPERM;
	return 0;
}

/* Locks PATH.lock, so that no other daemon starts to listen between check_stale() and bind(2). */
static int lock_path(const char *path, int *ret_fd)
{
	char name[PATH_MAX];
	int fd, r = 0;

	(void)snprintf(name, sizeof(name), "%s.lock", path);
	/* 0600: every process that can open the file can lock it. */
	fd = open(name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		r = errno == EWOULDBLOCK ? -EADDRINUSE : -errno;
	if (r < 0)
		close_fd(&fd);
	else
		*ret_fd = fd;
	return r;
}

/*
 * Returns 0 if no process listens at the socket; -EADDRINUSE if one does: a daemon without this
 * lock, or another program.
 */
static int check_stale(const struct sockaddr_un *address)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int r;

	if (fd < 0)
		return -errno;
	r = connect(fd, (const struct sockaddr *)address, sizeof(*address)) < 0 ? -errno
										: -EADDRINUSE;
	close_fd(&fd);
	if (r == -ECONNREFUSED || r == -ENOENT)
		return 0;
	/* The queue of a listener is full, or its socket has another type. */
	return r == -EAGAIN || r == -EPROTOTYPE ? -EADDRINUSE : r;
}

static int remove_stale(const char *path, const struct sockaddr_un *address)
{
	struct stat st;
	int r;

	if (lstat(path, &st) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISSOCK(st.st_mode))
		return -EEXIST;
	r = check_stale(address);
	if (r == 0 && unlink(path) < 0 && errno != ENOENT)
		r = -errno;
	return r;
}

static int bind_with_mode(int fd, const struct sockaddr_un *address, mode_t mode)
{
	/* By the umask, so that the file never has another mode. There are no other threads. */
	mode_t mask = umask(0777 & ~mode);
	int r = bind(fd, (const struct sockaddr *)address, sizeof(*address)) < 0 ? -errno : 0;

	(void)umask(mask);
	return r;
}

static int start_listening(const struct sockaddr_un *address, bool public, struct control_socket *s)
{
	struct stat st;
	int off = 0, r;

	s->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (s->fd < 0)
		return -errno;
	/* Since Linux 6.16; connections inherit it. */
	s->refuses_fds = setsockopt(s->fd, SOL_SOCKET, SO_PASSRIGHTS, &off, sizeof(off)) == 0;
	r = bind_with_mode(s->fd, address, public ? 0666 : 0600);
	if (r == 0 && stat(s->path, &st) < 0)
		r = -errno;
	if (r != 0)
		return r;
	s->device = st.st_dev;
	s->inode = st.st_ino;
	return listen(s->fd, BACKLOG) < 0 ? -errno : 0;
}

int control_socket_open(const char *path, bool public, struct control_socket *ret)
{
	struct sockaddr_un address;
	int r;

	*ret = (struct control_socket){.fd = -1, .lock_fd = -1};
	r = make_address(path, &address);
	if (r == 0)
		r = check_directory(path);
	if (r < 0)
		return r;
	(void)snprintf(ret->path, sizeof(ret->path), "%s", path);
	r = lock_path(path, &ret->lock_fd);
	if (r == 0)
		r = remove_stale(path, &address);
	if (r == 0)
		r = start_listening(&address, public, ret);
	if (r < 0)
		control_socket_close(ret);
	return r;
}

void control_socket_close(struct control_socket *s)
{
	struct stat st;

	if (s->inode != 0 && lstat(s->path, &st) == 0 && st.st_dev == s->device &&
	    st.st_ino == s->inode)
		(void)unlink(s->path);
	s->inode = 0;
	close_fd(&s->fd);
	close_fd(&s->lock_fd);
}
