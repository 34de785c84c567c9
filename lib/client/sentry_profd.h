/*
 * libsentry_profd lets a program that sentry-profd profiles talk to the daemon:
 * start and stop the profiler, announce root spans (for profile_lifecycle =
 * trace), get the ids that link a transaction to its profile, and have the
 * daemon detach before a dump.
 *
 *	sentry_profd_connect(NULL);
 *	...
 *	sentry_profd_span span = sentry_profd_root_span_begin(is_sampled);
 *	... the work; then, on the same thread, for the transaction:
 *	n = sentry_profd_profile_context(json, sizeof(json));
 *	sentry_profd_root_span_end(span);
 *
 * Rules for all functions:
 * - Without a daemon they do nothing and return the values given below.
 * - The library connects and reconnects by itself, during the program's calls.
 *   It tries 1 s after a failure, then after 2, 4, 8 and 16 s, then every 30 s.
 *   On a new connection it tells the daemon whether sampled root spans are open,
 *   and repeats the last start or stop.
 * - Only sentry_profd_wait() and sentry_profd_release() block. No function raises
 *   a signal, starts a thread or changes errno.
 * - All functions are thread-safe. All may be called in a signal handler, except
 *   sentry_profd_release(), sentry_profd_thread_id(), sentry_profd_thread_name(),
 *   sentry_profd_trace_data() and sentry_profd_span_data(); in another pid
 *   namespace than the daemon's sentry_profd_root_span_begin(); and any function
 *   as the first call of the process. These can allocate memory.
 * - While a root span is open, the functions that begin and end further spans,
 *   sentry_profd_profiler_id(), sentry_profd_profile_context() and
 *   sentry_profd_thread_id() make no system call. Exceptions: a thread's first
 *   call, and one check every few seconds while the daemon does not respond.
 * - A child of fork(2) starts without open spans, and connects in its first call
 *   if its parent had called sentry_profd_connect(). Ending a span of the parent
 *   in the child has no effect. After exec(2) the new program must call
 *   sentry_profd_connect() itself.
 * - dlclose(3) leaves the shared library loaded, with its connection and spans.
 *
 * All functions are about the calling process only. The kernel tells the daemon
 * which process has connected (SO_PEERCRED).
 */
#ifndef SENTRY_PROFD_H
#define SENTRY_PROFD_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SENTRY_PROFD_API __attribute__((visibility("default")))

/*
 * Sets the path of the daemon's socket, which the library copies, and tries to
 * connect. NULL or "": the environment variable SENTRY_PROFD_SOCKET (ignored in
 * a setuid program), or /run/sentry-profd/profd.sock if that is not set.
 *
 * Returns 0 if connected, also if the library was connected before: then the new
 * path is used for the next connection. Otherwise returns a negative errno:
 * -ENAMETOOLONG, -ENOMEM: nothing has changed.
 * -EAGAIN: another thread uses the connection, or the code that this signal
 *  handler has interrupted. Nothing has changed; call again.
 * Any other (-ENOENT, -ECONNREFUSED, -EACCES, ...): no daemon can be reached
 * now. Later calls of any function try again.
 */
SENTRY_PROFD_API int sentry_profd_connect(const char *path);

/*
 * Closes the connection. The library does not connect again before the next
 * sentry_profd_connect(). Open root spans stay open, and the library announces
 * them on the next connection.
 */
SENTRY_PROFD_API void sentry_profd_disconnect(void);

/*
 * Waits for the daemon's first answer on the connection, at most timeout_ms
 * milliseconds (0 or less: does not wait). Call it once at program start, after
 * sentry_profd_connect(), if the transaction of the first root span must be
 * linked to its profile. Returns 0 if the daemon has answered, -ETIMEDOUT,
 * -ENOTCONN at once if there is no connection, -ENOMEM, or the error of poll(2).
 */
SENTRY_PROFD_API int sentry_profd_wait(int timeout_ms);

/* What the daemon does with this process. */
enum sentry_profd_state {
	/* Not connected, or the daemon has not answered yet. */
	SENTRY_PROFD_NO_DAEMON,
	/* No section of the daemon's configuration matches this process. */
	SENTRY_PROFD_NO_TARGET,
	/* The profiler runs or is starting. */
	SENTRY_PROFD_PROFILING,
	/* The profiler does not run. A start (manual) or a root span (trace) starts it. */
	SENTRY_PROFD_STOPPED,
	/* profile_session_sample_rate has excluded this process. */
	SENTRY_PROFD_UNSAMPLED,
	/*
	 * Not profiled for now, because of the server's rate limit, another tracer, a
	 * crash, or a limit or the CPU budget of the daemon; or the daemon has excluded
	 * the process (sentry-profctl detach). `sentry-profctl status` shows the reason.
	 */
	SENTRY_PROFD_SUSPENDED,
};
SENTRY_PROFD_API enum sentry_profd_state sentry_profd_state(void);

/*
 * start_profiler() and stop_profiler() of Sentry's SDKs, for profile_lifecycle
 * = manual. Both send a request and do not wait for it to be carried out. The
 * library repeats the last request to a daemon that starts later. If a request
 * has no effect, the result is the reason, which the daemon also logs at debug
 * level.
 */
enum sentry_profd_result {
	SENTRY_PROFD_OK, /* sent; if no section matches yet, done when one matches */
	SENTRY_PROFD_RUNS_ALREADY,
	SENTRY_PROFD_NOT_RUNNING,
	SENTRY_PROFD_NOT_SAMPLED, /* excluded by profile_session_sample_rate */
	SENTRY_PROFD_TRACE_MODE,  /* profile_lifecycle = trace: root spans start it */
	SENTRY_PROFD_LATER,	  /* no daemon yet: the request is sent on connection */
};
SENTRY_PROFD_API enum sentry_profd_result sentry_profd_start_profiler(void);
SENTRY_PROFD_API enum sentry_profd_result sentry_profd_stop_profiler(void);

/*
 * Has the daemon detach from all threads of this process, so that another
 * process can attach to them, since a thread has one tracer. Call it before a
 * dump that another process makes (sentry_capture_minidump(), a stack trace by
 * a debugger). Works whatever the section and the lifecycle of this process are.
 *
 * seconds: how long the daemon stays away, from the return of this function on;
 * 0: 30 s; at most a day. After that time, and once no other process traces a
 * thread, the daemon attaches again, with a new profiler id. Meanwhile root spans
 * may begin and end; transactions have no profile. A further call can
 * prolong the time, not shorten it. In the first second of this process
 * (min_age_seconds) the daemon may not know the process yet: then the call has no
 * effect, and the daemon attaches when it discovers the process.
 *
 * Blocks: usually for some tenths of a second, for 25 s if a system call of this
 * process cannot be interrupted, for 30 s at most. The function uses a
 * connection of its own, so no other function waits for it. It is no
 * cancellation point.
 *
 * Returns 0 when no thread of this process has a tracer of the daemon. Otherwise
 * returns a negative errno:
 * -EBUSY: the daemon has detached, but another process traces a thread.
 * -ETIMEDOUT: the daemon still traces a thread (it goes on to detach), or has
 *  not answered.
 * -ECANCELED: a user has attached this process again (sentry-profctl attach).
 * -ENOTCONN: sentry_profd_connect() was not called.
 * -ENOENT, -ECONNREFUSED, -EACCES, ...: no daemon can be reached.
 * -ECONNRESET: the daemon has ended, which detaches from all processes; or this
 *  process has too many connections: 7 calls may wait at a time.
 * -EAGAIN: another thread uses the connection, or the daemon is busy: call again.
 * -EOPNOTSUPP: the daemon is older than this function.
 * -ESRCH: the daemon does not see this process (another pid namespace).
 * -ENOMEM, -EMFILE, -ENFILE, -EPROTO: nothing has changed.
 */
SENTRY_PROFD_API int sentry_profd_release(unsigned int seconds);

/*
 * Call sentry_profd_root_span_begin() when a root span begins, sampled or not.
 * is_sampled: 1 if the SDK's trace sampling keeps the span, else 0. With
 * profile_lifecycle = trace the profiler starts when a sampled root span begins
 * while none is open. When none is open any more, the profiler runs until the end
 * of the current chunk.
 *
 * Returns a handle, with or without a daemon: pass it to
 * sentry_profd_root_span_end() exactly once, from any thread. Returns 0 if
 * is_sampled is 0 or memory cannot be allocated; ending 0 has no effect.
 */
typedef uint64_t sentry_profd_span;
SENTRY_PROFD_API sentry_profd_span sentry_profd_root_span_begin(int is_sampled);
SENTRY_PROFD_API void sentry_profd_root_span_end(sentry_profd_span span);

/*
 * The functions below write a NUL-terminated string to ret, which has size
 * bytes, and return its length without the NUL. They return 0 if there is no
 * value, and -ENOBUFS if size is too small; ret is "" in both cases. A buffer of
 * one of these sizes is always large enough.
 */
#define SENTRY_PROFD_PROFILER_ID_SIZE 33
#define SENTRY_PROFD_THREAD_ID_SIZE   21
#define SENTRY_PROFD_JSON_SIZE	      256 /* a JSON object, or a thread's name */

/*
 * The id of the profiler that runs or is starting. It is known when
 * sentry_profd_root_span_begin(1) (trace) or sentry_profd_start_profiler()
 * (manual) returns. It may change while a span is open (the server refused
 * profiles for a while, the daemon was restarted), so ask for it when the
 * transaction ends. Returns 0 while this process is not profiled.
 */
SENTRY_PROFD_API int sentry_profd_profiler_id(char *ret, size_t size);

/*
 * The calling thread's id and name as in the profile's thread_metadata. By the
 * configured thread_id_format, the id is pthread_self(3), or the thread's id as
 * the daemon sees it, which differs from gettid(2) in another pid namespace.
 * Both return 0 until the daemon has answered. In another pid namespace than the
 * daemon's, sentry_profd_thread_id() returns 0 until the daemon has also told
 * the library the id of this thread.
 */
SENTRY_PROFD_API int sentry_profd_thread_id(char *ret, size_t size);
SENTRY_PROFD_API int sentry_profd_thread_name(char *ret, size_t size);

/*
 * The JSON objects that link a transaction to its profile (Sentry's SDK
 * documentation, "Profiles", "Profile linking"), and their places in the
 * transaction. Those of trace_data and span_data are about the calling thread:
 *   profile_context  contexts.profile     {"profiler_id":"..."}
 *   trace_data       contexts.trace.data  {"thread.id":"...","thread.name":"..."}
 *   span_data        spans[].data         {"thread.id":"...","thread.name":"...",
 *                                          "profiler_id":"..."}
 * A thread without a name has no thread.name. A span has no profiler_id while
 * the process is not profiled.
 */
SENTRY_PROFD_API int sentry_profd_profile_context(char *ret, size_t size);
SENTRY_PROFD_API int sentry_profd_trace_data(char *ret, size_t size);
SENTRY_PROFD_API int sentry_profd_span_data(char *ret, size_t size);

#ifdef __cplusplus
}
#endif

#endif
