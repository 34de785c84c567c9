"""The tests that are skipped with executables that are built with
AddressSanitizer and UndefinedBehaviorSanitizer (make check-sanitized), and
why.
"""

from programs import BUILD

SLOW_FIRST_STACKS = \
    'unwind is slow with sanitizers: it is still at the first sample when ' \
    'capture takes the next ones'

# Keys are a module, or one test of a module.
LEFT_OUT = {
    'test_bench': 'it measures, by programs of the other build',
    'test_births': 'it runs no daemon',
    'test_convert_large.test_memory': 'it measures memory',
    'test_documents': 'other tests run the same code',
    'test_guides': 'other tests run the same code',
    'test_exceptions': 'it runs no daemon',
    'test_life_storm.test_a_storm': 'it measures the memory of capture',
    'test_many_processes': 'it measures the memory of the broker and of capture',
    'test_privileges.test_unwind_has_resource_limits':
        'RLIMIT_DATA has no room for the shadow of memory',
    'test_second_stacks.test_deep_work_on_one': SLOW_FIRST_STACKS,
    'test_second_stacks.test_many_in_turn': SLOW_FIRST_STACKS,
    'test_second_stacks.test_signal_stacks': SLOW_FIRST_STACKS,
    'test_stats.test_nobody_is_left_out':
        'the sanitizer works on after the last statistics',
    'test_secrets.test_no_cores': 'the sanitizer handles SIGSEGV',
}


def is_sanitized():
    return b'__asan_init' in (BUILD / 'sentry-profd').read_bytes()


def left_out(module, test):
    """Returns the reason, or None."""
    if not is_sanitized():
        return None
    return LEFT_OUT.get(module) or LEFT_OUT.get(f'{module}.{test}')
