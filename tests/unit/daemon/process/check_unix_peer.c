#include "daemon/process/unix_peer.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/suite.h"

static int fd;
static int pair[2];

static void set_up(void)
{
	OK(unix_peer_open(&fd));
	OK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair));
}

static void tear_down(void)
{
	close_fd(&fd);
	close_fd(&pair[0]);
	close_fd(&pair[1]);
}

FIXTURE(set_up, tear_down)

static uint32_t inode(int of)
{
	struct stat st;

	OK(fstat(of, &st));
	return (uint32_t)st.st_ino;
}

TEST(ends_of_a_pair_find_each_other)
{
	uint32_t peer = 0;

	OK(unix_peer_find(fd, inode(pair[0]), &peer));
	ck_assert_uint_eq(peer, inode(pair[1]));
	OK(unix_peer_find(fd, inode(pair[1]), &peer));
	ck_assert_uint_eq(peer, inode(pair[0]));
}

TEST(a_socket_without_a_peer)
{
	uint32_t peer = 1;

	close_fd(&pair[1]);
	OK(unix_peer_find(fd, inode(pair[0]), &peer));
	ck_assert_uint_eq(peer, 0);
}

TEST(a_socket_of_another_family)
{
	int udp = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	uint32_t peer = 1;

	ck_assert_int_ge(udp, 0);
	ck_assert_int_eq(unix_peer_find(fd, inode(udp), &peer), -ENOENT);
	ck_assert_uint_eq(peer, 1);
	close_fd(&udp);
}

TEST(no_answer_is_mistaken_for_one)
{
	uint32_t peer = 1;
	int other = pair[0];

	/* Nobody answers here. */
	ck_assert_int_eq(unix_peer_find(other, inode(pair[1]), &peer), -EAGAIN);
	ck_assert_int_eq(send(pair[1], "short", 5, 0), 5);
	ck_assert_int_eq(unix_peer_find(other, inode(pair[1]), &peer), -EPROTO);
	ck_assert_uint_eq(peer, 1);
}
