/*
 * Links the transactions of a program that uses sentry-native (0.11 or newer, tested
 * with 0.16.3) to the profiles of sentry-profd:
 *
 *	cc sentry_native.c $(pkg-config --cflags --libs sentry_profd) -lsentry
 *
 * A request of this example server is two lines of its standard input: a name and the
 * work to do. The section of this program in sentry-profd.conf(5) needs
 * profile_lifecycle = trace and the default thread_id_format (tid).
 */
#include <sentry.h>
#include <sentry_profd.h>
#include <stdio.h>
#include <string.h>

/* A transaction that is not finished, and its root span. */
struct request {
	sentry_transaction_t *transaction;
	sentry_profd_span root;
};

/* The header sentry-trace ends with the sampling decision: TRACE-SPAN-1 or -0. */
static void on_header(const char *key, const char *value, void *is_sampled)
{
	if (strcmp(key, "sentry-trace") == 0)
		*(int *)is_sampled = value[strlen(value) - 1] == '1';
}

static struct request begin(const char *name)
{
	struct request r;
	int is_sampled = 0;

	r.transaction = sentry_transaction_start(
		sentry_transaction_context_new(name, "server"),
		sentry_value_new_null());
	sentry_transaction_iter_headers(r.transaction, on_header, &is_sampled);
	r.root = sentry_profd_root_span_begin(is_sampled);
	return r;
}

/* The root span must be open until before_transaction has been called. */
static void finish(struct request *r)
{
	sentry_transaction_finish(r->transaction);
	sentry_profd_root_span_end(r->root);
}

static sentry_value_t get_or_add(sentry_value_t object, const char *key)
{
	sentry_value_t found = sentry_value_get_by_key(object, key);

	if (!sentry_value_is_null(found))
		return found;
	sentry_value_set_by_key(object, key, sentry_value_new_object());
	return sentry_value_get_by_key(object, key);
}

static void add_thread(sentry_value_t data)
{
	char text[SENTRY_PROFD_JSON_SIZE];

	if (sentry_profd_thread_id(text, sizeof(text)) > 0)
		sentry_value_set_by_key(data, "thread.id",
					sentry_value_new_string(text));
	if (sentry_profd_thread_name(text, sizeof(text)) > 0)
		sentry_value_set_by_key(data, "thread.name",
					sentry_value_new_string(text));
}

/*
 * Adds the profiler id and the thread to the transaction, so that Sentry finds the
 * profile. In this server the thread that handles a request also finishes it.
 */
static sentry_value_t before_transaction(sentry_value_t event, void *user)
{
	sentry_value_t contexts = get_or_add(event, "contexts");
	sentry_value_t spans = sentry_value_get_by_key(event, "spans");
	char id[SENTRY_PROFD_PROFILER_ID_SIZE];

	(void)user;
	if (sentry_profd_profiler_id(id, sizeof(id)) <= 0)
		return event;
	sentry_value_set_by_key(get_or_add(contexts, "profile"), "profiler_id",
				sentry_value_new_string(id));
	add_thread(get_or_add(get_or_add(contexts, "trace"), "data"));
	for (size_t i = 0; i < sentry_value_get_length(spans); i++)
		add_thread(get_or_add(sentry_value_get_by_index(spans, i),
				      "data"));
	return event;
}

/* Samples every request except health checks. */
static double sample(const sentry_transaction_context_t *context,
		     sentry_value_t custom, const int *parent_sampled,
		     void *user)
{
	const char *name = sentry_transaction_context_get_name(context);

	(void)custom;
	(void)parent_sampled;
	(void)user;
	return strncmp(name, "/alive", 6) == 0 ? 0.0 : 1.0;
}

static int read_line(char *line, size_t size)
{
	if (fgets(line, (int)size, stdin) == NULL)
		return 0;
	line[strcspn(line, "\n")] = '\0';
	return 1;
}

int main(void)
{
	sentry_options_t *options = sentry_options_new();
	char name[256], work[256];

	sentry_options_set_traces_sampler(options, sample, NULL);
	sentry_options_set_before_transaction(options, before_transaction,
					      NULL);
	sentry_init(options);
	sentry_profd_connect(NULL);
	/* Wait for the daemon, so that the first request is profiled, too. */
	sentry_profd_wait(1000);
	printf("ready\n");
	fflush(stdout);
	while (read_line(name, sizeof(name))) {
		struct request r = begin(name);
		sentry_span_t *span = sentry_transaction_start_child(
			r.transaction, "read", "what is to be done");

		if (!read_line(work, sizeof(work)))
			work[0] = '\0';
		sentry_span_finish(span);
		finish(&r);
	}
	sentry_close();
	return 0;
}
