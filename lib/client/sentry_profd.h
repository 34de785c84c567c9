/*
 * libsentry_profd: what a program says to sentry-profd, which profiles it from
 * outside, and asks it: start and stop the profiler, root spans (for
 * profile_lifecycle = trace), and what links a transaction to its profile.
 *
 *	sentry_profd_connect(NULL);
 *	...
 *	sentry_profd_span span = sentry_profd_root_span_begin(is_sampled);
 *	... the work; then, on the same thread, for the transaction:
 *	n = sentry_profd_profile_context(json, sizeof(json));
 *	sentry_profd_root_span_end(span);
 *
 * What holds for all of it:
 * - It does no harm where there is no daemon: calls have no effect then. A
 *   daemon that comes, goes and comes back is found again by itself (it is
 *   looked for in a call, at most once a second, and at most twice a minute
 *when it has been away for long), and is told what is open and what was asked
 *for.
 * - No call waits, for the daemon or for another thread; sentry_profd_wait is
 *   the exception. None raises a signal, starts a thread, or changes errno. All
 *   may be called from any thread at any time; those that do not tell of the
 *   calling thread, from signal handlers, too.
 * - While root spans are open, the beginning and the end of others, and asking
 *   for the profiler's id or the thread's, are some reads and writes of memory:
 *   no system call, but one in some seconds when the daemon seems to be gone.
 * - A child of fork(2) is a process of its own: nothing is open in it, the end
 *   of its parent's spans has no effect, and it connects anew in its first
 *   call. After exec(2) nothing is left.
 *
 * The daemon knows from the kernel which process speaks; one can speak for
 * itself alone.
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
 * From now on there is a daemon to be spoken to, at this path of a socket.
 * NULL: the environment's SENTRY_PROFD_SOCKET (not in a setuid program), else
 * /run/sentry-profd/profd.sock. Returns 0 if one listens there, or a negative
 * errno: -ENAMETOOLONG, -ENOMEM: no effect; any other (-ENOENT, -ECONNREFUSED,
 * -EACCES, ...): not now, and it will be tried again. A second call changes the
 * path for connections to come.
 */
SENTRY_PROFD_API int sentry_profd_connect(const char *path);

/* Says nothing any more until the next sentry_profd_connect. */
SENTRY_PROFD_API void sentry_profd_disconnect(void);

/*
 * Waits until the daemon has answered, so that its first span's transaction can
 * be linked: for the start of a program. Returns 0, -ETIMEDOUT after so many
 * milliseconds, or another negative errno: there is nobody.
 */
SENTRY_PROFD_API int sentry_profd_wait(int timeout_ms);

/* What the daemon does with this process. */
enum sentry_profd_state {
	SENTRY_PROFD_NO_DAEMON, /* not connected, or not answered yet */
	SENTRY_PROFD_NO_TARGET, /* it is none of those that are profiled */
	SENTRY_PROFD_PROFILING, /* the profiler runs, or is about to */
	SENTRY_PROFD_STOPPED,	/* it can be started */
	SENTRY_PROFD_UNSAMPLED, /* profile_session_sample_rate said no */
	SENTRY_PROFD_SUSPENDED, /* there is a reason not to: see its status */
};
SENTRY_PROFD_API enum sentry_profd_state sentry_profd_state(void);

/*
 * start_profiler() and stop_profiler() of Sentry's SDKs, for profile_lifecycle
 * = manual. They are asked for, not waited for; the last one holds also for a
 * daemon that comes later. What has no effect says why; the daemon notes the
 * same at debug level.
 */
enum sentry_profd_result {
	SENTRY_PROFD_OK,
	SENTRY_PROFD_RUNS_ALREADY,
	SENTRY_PROFD_NOT_RUNNING,
	SENTRY_PROFD_NOT_SAMPLED, /* the session's decision */
	SENTRY_PROFD_TRACE_MODE,  /* profile_lifecycle = trace */
	SENTRY_PROFD_LATER,	  /* there is no daemon yet */
};
SENTRY_PROFD_API enum sentry_profd_result sentry_profd_start_profiler(void);
SENTRY_PROFD_API enum sentry_profd_result sentry_profd_stop_profiler(void);

/*
 * A root span begins; is_sampled: what the tracing's sampling has decided for
 * it, 0 or 1. The first sampled one that is open starts the profiler where
 * profile_lifecycle is trace. Returns what sentry_profd_root_span_end takes,
 * once, from any thread; 0, for which that has no effect, if it is not sampled.
 */
typedef uint64_t sentry_profd_span;
SENTRY_PROFD_API sentry_profd_span sentry_profd_root_span_begin(int is_sampled);
SENTRY_PROFD_API void sentry_profd_root_span_end(sentry_profd_span span);

/*
 * The texts below are written with a NUL. Each returns its length without that;
 * 0, and an empty text, if there is none; -ENOBUFS if size is too small.
 */
#define SENTRY_PROFD_PROFILER_ID_SIZE 33
#define SENTRY_PROFD_THREAD_ID_SIZE   21
#define SENTRY_PROFD_JSON_SIZE	      256 /* enough for each */

/*
 * The id of the profiler that runs, or that is about to: known from the moment
 * at which a root span has begun. It may change while a span is open (the
 * server took no profiles for a while, the daemon was restarted): ask when the
 * transaction ends. None while this process is not profiled.
 */
SENTRY_PROFD_API int sentry_profd_profiler_id(char *ret, size_t size);

/*
 * The calling thread, as thread_metadata in the profile has it: the id by the
 * target's thread_id_format (gettid(2), of which the daemon may see another
 * number, or pthread_self(3)), and the name. None as long as the daemon has not
 * said which.
 */
SENTRY_PROFD_API int sentry_profd_thread_id(char *ret, size_t size);
SENTRY_PROFD_API int sentry_profd_thread_name(char *ret, size_t size);

/*
 * The JSON objects that link a transaction to its profile (Sentry's SDK
 * documentation, "Profiles", "Profile linking"), about the calling thread:
 *   contexts.profile     {"profiler_id":"..."}
 *   contexts.trace.data  {"thread.id":"...","thread.name":"..."}
 *   spans[].data         {"thread.id":"...","thread.name":"...",
 *                         "profiler_id":"..."}
 * thread.name is left out where there is none, profiler_id of a span as well.
 */
SENTRY_PROFD_API int sentry_profd_profile_context(char *ret, size_t size);
SENTRY_PROFD_API int sentry_profd_trace_data(char *ret, size_t size);
SENTRY_PROFD_API int sentry_profd_span_data(char *ret, size_t size);

#ifdef __cplusplus
}
#endif

#endif
