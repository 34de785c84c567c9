#include "daemon/ship/certificates.h"

#include <string.h>
#include <unistd.h>

#include "daemon/common/log.h"
#include "daemon/common/pem.h"
#include "daemon/msg/msg_ship.h"

/* Uses pread(2), because an earlier ship has moved the offset, which the descriptors share. */
static int read_file(struct buf *b, int fd)
{
	char bytes[8192];
	off_t at = 0;
	ssize_t n;
	int r = 0;

	while (r == 0 && (n = pread(fd, bytes, sizeof(bytes), at)) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			r = -errno;
		else
			r = buf_add(b, bytes, (size_t)n);
		at += n;
	}
	explicit_bzero(bytes, sizeof(bytes));
	return r;
}

static int read_option(struct certificates *c, struct buf *b, int fd, const char *option)
{
	int r = fd < 0 ? 0 : buf_reserve(b);

	if (r == 0 && fd >= 0)
		r = read_file(b, fd);
	if (r == 0 && fd >= 0 && b->len == 0)
		c->empty = option;
	if (r < 0)
		log_error("cannot read the file of %s: %s", option, strerror(-r));
	return r;
}

int certificates_read(struct certificates *c, const int fds[INIT_FILE_N])
{
	int r;

	buf_init(&c->authorities, MSG_CA_CERTS_BYTES_MAX);
	buf_init(&c->client, MSG_CLIENT_CERT_BYTES_MAX);
	buf_init(&c->key, MSG_CLIENT_CERT_BYTES_MAX);
	c->empty = NULL;
	r = read_option(c, &c->authorities, fds[INIT_CA_CERTS], "ca_certs");
	if (r == 0)
		r = read_option(c, &c->client, fds[INIT_CLIENT_CERT], "client_cert");
	if (r == 0)
		r = read_option(c, &c->key, fds[INIT_CLIENT_KEY], "client_key");
	return r;
}

static bool is_good(const struct buf *b, const char *label)
{
	return pem_check(buf_string(b), label) == PEM_OK;
}

const char *certificates_problem(const struct certificates *c)
{
	const struct buf *key = c->key.len > 0 ? &c->key : &c->client;

	if (c->empty != NULL)
		return c->empty;
	if (c->authorities.len > 0 && !is_good(&c->authorities, "CERTIFICATE"))
		return "ca_certs";
	if (c->client.len > 0 && !is_good(&c->client, "CERTIFICATE"))
		return "client_cert";
	if (c->client.len > 0 && !is_good(key, "PRIVATE KEY"))
		return "client_key";
	return NULL;
}

void certificates_fini(struct certificates *c)
{
	buf_fini(&c->authorities);
	/* The file of the client certificate may have the key, too. */
	buf_wipe(&c->client);
	buf_wipe(&c->key);
}

void certificates_set_options(const struct certificates *c, struct transport_options *ret)
{
	const struct buf *key = c->key.len > 0 ? &c->key : &c->client;

	if (c->authorities.len > 0) {
		ret->authorities = c->authorities.data;
		ret->authorities_size = c->authorities.len;
	}
	if (c->client.len > 0) {
		ret->client_cert = c->client.data;
		ret->client_cert_size = c->client.len;
		ret->client_key = key->data;
		ret->client_key_size = key->len;
	}
}
