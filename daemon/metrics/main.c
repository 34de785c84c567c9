/*
 * sentry-profd-metrics: serves the metrics of the daemon to Prometheus over HTTP.
 *
 * For each request it asks the daemon over the control socket; it keeps no state. It needs
 * the rights to connect to that socket and to listen, no others. libmicrohttpd parses the
 * requests.
 *
 * One thread serves all connections: while the daemon does not answer, all clients wait, up
 * to DAEMON_S.
 */
#include <arpa/inet.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "daemon/common/control_client.h"
#include "daemon/common/log.h"
#include "daemon/common/option_fault.h"
#include "daemon/common/version.h"
#include "lib/base/digits.h"
#include "lib/base/util.h"

/* A scraper needs one connection. More clients wait in the queue of the listening socket. */
#define CONNECTIONS_MAX 16

/* Seconds without traffic after which a connection is closed. */
#define IDLE_S 5

/* Memory for a connection: limits the request line and the headers. */
#define CONNECTION_BYTES 16384

/* Seconds to wait for the daemon. Prometheus gives up after 10 s. */
#define DAEMON_S 5

static const char help[] =
	"usage: sentry-profd-metrics --listen ADDR:PORT [--socket PATH]\n"
	"\n"
	"  --listen ADDR:PORT  serve the metrics of sentry-profd at\n"
	"                      http://ADDR:PORT/metrics; an IPv6 ADDR in [ ]\n"
	"  --socket PATH       socket of the daemon (default: $SENTRY_PROFD_SOCKET,\n"
	"                      then " PROTOCOL_SOCKET ")\n"
	"  --version, --help   print the version, or this text\n"
	"\n"
	"examples:\n"
	"  sentry-profd-metrics --listen 127.0.0.1:9877\n"
	"  curl http://127.0.0.1:9877/metrics\n";

/* Queues the response and drops the reference to it. response is NULL without memory. */
static enum MHD_Result reply(struct MHD_Connection *c, unsigned int status, const char *type,
			     struct MHD_Response *response)
{
	enum MHD_Result r = MHD_NO;

	if (response == NULL)
		return r;
	if (MHD_add_response_header(response, "Content-Type", type) &&
	    (status != MHD_HTTP_METHOD_NOT_ALLOWED ||
	     MHD_add_response_header(response, "Allow", "GET, HEAD")))
		r = MHD_queue_response(c, status, response);
	MHD_destroy_response(response);
	return r;
}

/* Answers with an error status and a line that gives the reason. */
__attribute__((format(printf, 3, 4))) static enum MHD_Result
refuse(struct MHD_Connection *c, unsigned int status, const char *format, ...)
{
	char text[512];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	return reply(c, status, "text/plain; charset=utf-8",
		     MHD_create_response_from_buffer(strlen(text), text, MHD_RESPMEM_MUST_COPY));
}

/* Gets the metrics as a memfd. Returns NULL, or the reason why there are none. */
static const char *get_metrics(const char *socket, enum protocol_type type, uint32_t *ret_size,
			       int *ret_fd)
{
	struct protocol_answer answer;
	struct control_client a;
	int r = control_client_open_briefly(socket, DAEMON_S, true, &a);

	*ret_fd = -1;
	if (r == 0) {
		r = control_client_request(&a, type, 0, NULL, &answer, ret_fd);
		control_client_close(&a);
	}
	if (r != 0)
		return r == -EAGAIN ? "it is stuck or gets no CPU time" : strerror(-r);
	if (answer.result != PROTOCOL_OK || *ret_fd < 0)
		return control_client_result_text((enum protocol_result)answer.result);
	*ret_size = answer.fd_bytes;
	return NULL;
}

static enum MHD_Result serve(struct MHD_Connection *c, const char *socket)
{
	const char *accept = MHD_lookup_connection_value(c, MHD_HEADER_KIND, "Accept");
	const bool is_open =
		accept != NULL && strcasestr(accept, "application/openmetrics-text") != NULL;
	const char *why;
	struct MHD_Response *response;
	uint32_t size = 0;
	int fd;

	why = get_metrics(socket, is_open ? PROTOCOL_OPENMETRICS : PROTOCOL_METRICS, &size, &fd);
	if (why != NULL) {
		close_fd(&fd);
		return refuse(c, MHD_HTTP_SERVICE_UNAVAILABLE,
			      "no answer from sentry-profd at %s: %s\n", socket, why);
	}
	response = MHD_create_response_from_fd(size, fd);
	if (response == NULL)
		close_fd(&fd);
	return reply(c, MHD_HTTP_OK,
		     is_open ? "application/openmetrics-text; version=1.0.0; "
			       "charset=utf-8"
			     : "text/plain; version=0.0.4; charset=utf-8",
		     response);
}

/* An MHD_AccessHandlerCallback. For HEAD libmicrohttpd leaves out the body. */
static enum MHD_Result on_request(void *ctx, struct MHD_Connection *c, const char *url,
				  const char *method, const char *version, const char *body,
				  size_t *body_size, void **state)
{
	const char *const *socket = ctx;

	(void)version, (void)body, (void)body_size, (void)state;
	if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0)
		return refuse(c, MHD_HTTP_METHOD_NOT_ALLOWED, "only GET and HEAD are served\n");
	if (strcmp(url, "/metrics") != 0)
		return refuse(c, MHD_HTTP_NOT_FOUND, "only /metrics is served\n");
	return serve(c, *socket);
}

union address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

/* Parses "127.0.0.1:9877" or "[::1]:9877". */
static bool parse_address(const char *text, union address *ret)
{
	char host[INET6_ADDRSTRLEN];
	uint64_t port;
	int end = 0;

	*ret = (union address){0};
	if (sscanf(text, "[%45[^]]]:%n", host, &end) != 1)
		(void)sscanf(text, "%45[^:]:%n", host, &end);
	if (end == 0 || !digits_number(text + end, 1, UINT16_MAX, &port))
		return false;
	if (text[0] == '[') {
		ret->v6.sin6_family = AF_INET6;
		ret->v6.sin6_port = htons((uint16_t)port);
		return inet_pton(AF_INET6, host, &ret->v6.sin6_addr) == 1;
	}
	ret->v4.sin_family = AF_INET;
	ret->v4.sin_port = htons((uint16_t)port);
	return inet_pton(AF_INET, host, &ret->v4.sin_addr) == 1;
}

static int start_listening(const union address *at, int *ret_fd)
{
	const socklen_t size = at->any.sa_family == AF_INET ? sizeof(at->v4) : sizeof(at->v6);
	const int one = 1;
	int fd = socket(at->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int r = 0;

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) < 0 ||
	    bind(fd, &at->any, size) < 0 || listen(fd, CONNECTIONS_MAX) < 0)
		r = -errno;
	if (r < 0)
		close_fd(&fd);
	else
		*ret_fd = fd;
	return r;
}

/* Serves until a signal ends the process. */
static int run(int fd, const char *where, const char *socket)
{
	struct MHD_Daemon *d;

	(void)signal(SIGPIPE, SIG_IGN);
	d = MHD_start_daemon(MHD_USE_EPOLL, 0, NULL, NULL, on_request, &socket,
			     MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT,
			     (unsigned int)CONNECTIONS_MAX, MHD_OPTION_CONNECTION_TIMEOUT,
			     (unsigned int)IDLE_S, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
			     (size_t)CONNECTION_BYTES, MHD_OPTION_END);
	while (d != NULL && MHD_run_wait(d, -1) == MHD_YES)
		;
	log_error("cannot serve metrics at %s: the HTTP server (libmicrohttpd) %s", where,
		  d == NULL ? "could not be started, for lack of memory or descriptors"
			    : "has failed");
	return EXIT_FAILURE;
}

int main(int argc, char **argv)
{
	enum { LISTEN = OPTION_LONG, SOCKET, VERSION };
	static const struct option options[] = {
		{"listen", required_argument, NULL, LISTEN},
		{"socket", required_argument, NULL, SOCKET},
		{"version", no_argument, NULL, VERSION},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	const char *where = NULL, *socket = NULL;
	union address at;
	int c, fd, r;

	log_init("sentry-profd-metrics", false);
	while ((c = option_next("options", argc, argv, ":h", options, NULL)) != -1) {
		if (c == LISTEN) {
			where = optarg;
		} else if (c == SOCKET) {
			socket = optarg;
		} else if (c == VERSION) {
			printf("sentry-profd-metrics %s\n", version_text);
			return EXIT_SUCCESS;
		} else if (c == 'h') {
			(void)fputs(help, stdout);
			return EXIT_SUCCESS;
		} else {
			return EXIT_USAGE;
		}
	}
	if (where == NULL || optind != argc) {
		(void)fputs(help, stderr);
		return EXIT_USAGE;
	}
	if (!parse_address(where, &at)) {
		log_error("--listen: not an address and a port, such as "
			  "127.0.0.1:9877 or [::1]:9877: '%s'",
			  where);
		return EXIT_USAGE;
	}
	r = start_listening(&at, &fd);
	if (r < 0) {
		log_error("cannot listen at %s: %s", where, strerror(-r));
		return EXIT_FAILURE;
	}
	return run(fd, where, control_client_path(socket));
}
