/*
 * The sanitizers' options in executables that are built with them: the broker
 * hands no ASAN_OPTIONS on to its children.
 *
 * LeakSanitizer is off: it looks for leaks at the end of a process by ptrace,
 * which unwind and ship may not call, and which would stop capture's threads.
 * A fault ends a process by a signal, as it does without the sanitizers.
 */
const char *__asan_default_options(void);
const char *__ubsan_default_options(void);

const char *__asan_default_options(void)
{
	return "detect_leaks=0:abort_on_error=1:allocator_may_return_null=1";
}

const char *__ubsan_default_options(void)
{
	return "print_stacktrace=1:abort_on_error=1";
}
