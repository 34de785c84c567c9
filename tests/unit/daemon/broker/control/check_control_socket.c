/* The path of the socket: its mode, its lock, and what is at the path before and after. */
#include "daemon/broker/control/control_socket.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/unit/suite.h"

static char dir[] = "/tmp/check_socket.XXXXXX";
static char path[64], lock[80];
static struct control_socket s;

static void set_up(void)
{
	ck_assert_ptr_nonnull(mkdtemp(dir));
	(void)snprintf(path, sizeof(path), "%s/s", dir);
	(void)snprintf(lock, sizeof(lock), "%s.lock", path);
}

static void tear_down(void)
{
	(void)unlink(path);
	(void)unlink(lock);
	OK(rmdir(dir));
}

static int listen_at(int type)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);

	memcpy(address.sun_path, path, strlen(path));
	OK(bind(fd, (struct sockaddr *)&address, sizeof(address)));
	OK(listen(fd, 1));
	return fd;
}

static mode_t mode_of(const char *name)
{
	struct stat st;

	OK(lstat(name, &st));
	return st.st_mode & 07777;
}

FIXTURE(set_up, tear_down)

TEST(the_mode_of_the_socket_is_independent_of_the_umask)
{
	umask(0777);
	OK(control_socket_open(path, true, &s));
	ck_assert_int_eq(mode_of(path), 0666);
	control_socket_close(&s);
	umask(0);
	OK(control_socket_open(path, false, &s));
	ck_assert_int_eq(mode_of(path), 0600);
	ck_assert_int_eq(mode_of(lock) & 0077, 0);
	control_socket_close(&s);
	ck_assert_int_lt(access(path, F_OK), 0);
}

TEST(two_daemons_cannot_use_the_same_path)
{
	struct control_socket other;

	OK(control_socket_open(path, true, &s));
	ck_assert_int_eq(control_socket_open(path, true, &other), -EADDRINUSE);
	ck_assert_int_eq(other.fd, -1);
	OK(access(path, F_OK));
	control_socket_close(&s);
	OK(control_socket_open(path, true, &other));
	control_socket_close(&other);
}

TEST(a_socket_that_no_process_listens_at_is_replaced)
{
	close(listen_at(SOCK_SEQPACKET));
	OK(access(path, F_OK));
	OK(control_socket_open(path, true, &s));
	control_socket_close(&s);
}

TEST(a_socket_that_a_process_listens_at_is_kept)
{
	const int types[] = {SOCK_SEQPACKET, SOCK_STREAM};

	for (size_t i = 0; i < 2; i++) {
		int fd = listen_at(types[i]);

		ck_assert_int_eq(control_socket_open(path, true, &s), -EADDRINUSE);
		OK(access(path, F_OK));
		close(fd);
		unlink(path);
	}
}

TEST(a_file_that_is_no_socket_is_kept)
{
	close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	ck_assert_int_eq(control_socket_open(path, true, &s), -EEXIST);
	OK(access(path, F_OK));
}

TEST(closing_keeps_a_socket_that_replaced_ours)
{
	int fd;

	OK(control_socket_open(path, true, &s));
	unlink(path);
	fd = listen_at(SOCK_SEQPACKET);
	control_socket_close(&s);
	OK(access(path, F_OK));
	close(fd);
}

TEST(a_directory_that_other_users_can_change_is_refused)
{
	OK(chmod(dir, 0777));
	ck_assert_int_eq(control_socket_open(path, true, &s), -EPERM);
	OK(chmod(dir, 0770));
	ck_assert_int_eq(control_socket_open(path, true, &s), -EPERM);
	OK(chmod(dir, 01777));
	OK(control_socket_open(path, true, &s));
	control_socket_close(&s);
	/* A directory of another user is refused, whatever its mode. */
	if (geteuid() == 0) {
		OK(chmod(dir, 0755));
		OK(chown(dir, 1000, 1000));
		ck_assert_int_eq(control_socket_open(path, true, &s), -EPERM);
		OK(chown(dir, 0, 0));
	}
}

TEST(a_path_that_cannot_exist_is_refused)
{
	char name[256];

	(void)snprintf(name, sizeof(name), "%s/a/b/s", dir);
	ck_assert_int_eq(control_socket_open(name, true, &s), -ENOENT);
	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	ck_assert_int_eq(control_socket_open(name, true, &s), -ENAMETOOLONG);
	ck_assert_int_eq(control_socket_open("", true, &s), -ENOENT);
}
