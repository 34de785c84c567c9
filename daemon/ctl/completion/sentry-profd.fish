# Completion of sentry-profd and sentry-profctl in fish: the options and commands
# that --help-all lists.

function __sentry_profd_options
    $argv[1] --help-all 2>/dev/null |
        string replace -rf '^  (--[a-z0-9-]+).*?(?:  +(.*))?$' '$1\t$2'
end

function __sentry_profd_commands
    sentry-profctl --help-all 2>/dev/null |
        string match -rv '^usage' |
        string replace -rf '^([a-z][a-z-]*)\b.*?(?:  +(.*))?$' '$1\t$2'
end

function __sentry_profd_wants_pid
    set -l words (commandline -poc)
    test "$words[-2]" = --for
    or string match -qr -- '^(-p|--pid|stack|record|top|attach|detach|start|stop|doctor|profiler-id)$' \
        $words[-1]
end

for program in sentry-profd sentry-profctl
    complete -c $program -n 'string match -q -- "-*" (commandline -ct)' \
        -a "(__sentry_profd_options $program)"
    complete -c $program -n __sentry_profd_wants_pid -f -a '(__fish_complete_pids)'
end
complete -c sentry-profctl -n '__fish_is_nth_token 1' -f -a '(__sentry_profd_commands)'
