#!/usr/bin/python3
"""The alerts and the dashboard in docs/examples use metrics, labels and values that the daemon has,
and Prometheus accepts their expressions."""

import json
import re
import shutil
import subprocess

import harness
import openmetrics
import yaml
from harness import ROOT, Skip, check
from test_control import with_server

RULES = ROOT / 'docs/examples/prometheus_rules.yaml'
DASHBOARD = ROOT / 'docs/examples/grafana_dashboard.json'
# Prometheus adds these.
ADDED = {'instance', 'job'}


def alerts():
    return [rule for group in yaml.safe_load(RULES.read_text())['groups']
            for rule in group['rules']]


def dashboard():
    """Returns the (expression, legend) of the panels, with values for Grafana's variables."""
    found = [(target['expr'], target['legendFormat'])
             for panel in json.loads(DASHBOARD.read_text())['panels']
             for target in panel['targets']]
    return [(expr.replace('$__rate_interval', '5m').replace('$instance', '.*'), legend)
            for expr, legend in found]


def known(box):
    """Returns {metric: {label: values}} of a daemon with a section and a server."""
    profd, ctl = with_server(box)

    def delivered():
        return any(s['delivered_s'] is not None for s in ctl.status()['daemon']['servers'])
    harness.wait_for(delivered, 'a chunk')
    found = {}
    for (name, of), _ in openmetrics.read(ctl.run('metrics').stdout, plain=True).items():
        labels = found.setdefault(name, {})
        for label, value in of:
            labels.setdefault(label, set()).add(value)
    profd.interrupt()
    return found


def check_expression(expr, metrics):
    """Checks names and values. Returns the labels that the result has."""
    names = re.findall(r'\bsentry_profd_\w+|\bup\b', expr)
    check(names and set(names) <= {*metrics, 'up'}, f'{set(names) - set(metrics)}: {expr}')
    labels = {label: values for name in names
              for label, values in metrics.get(name, {}).items()}
    for name, matchers in re.findall(r'(\w+)\{([^}]*)\}', expr):
        for label, value in re.findall(r'(\w+)[=!]~?"([^"]*)"', matchers):
            values = metrics.get(name, {}).get(label, set())
            check(label in ADDED or set(value.split('|')) <= values,
                  f'{label} of {name} is {values}, never {value}')
    by = [set(re.split(', *', group)) for group in re.findall(r'\bby \(([^)]*)\)', expr)]
    check(set().union(*by) <= {*labels, *ADDED}, f'{by}, of {set(labels)}: {expr}')
    # Vectors that are combined have the same labels.
    return by[0] - {'le'} if by else {*labels, *ADDED}


def test_metrics_and_labels_exist(box):
    metrics = known(box)
    for rule in alerts():
        shown = set(re.findall(r'\$labels\.(\w+)', json.dumps(rule['annotations'])))
        has = check_expression(rule['expr'], metrics)
        check(shown <= has, f'{rule["alert"]} shows {shown - has}')
        check(set(rule['annotations']) == {'summary', 'description'} and
              rule['labels']['severity'] in ('info', 'warning'), f'{rule}')
    for expr, legend in dashboard():
        has = check_expression(expr, metrics)
        check(set(re.findall(r'\{\{(\w+)\}\}', legend)) <= has, f'{legend}: {expr}')
    check(len(alerts()) > 8 and len(dashboard()) > 12, 'there are some')


def test_a_wrong_expression_is_found(_):
    metrics = {'sentry_profd_x_total': {'reason': {'a', 'b'}}}
    check(check_expression('sum by (reason) (sentry_profd_x_total{reason=~"a|b"}) > 0', metrics)
          == {'reason'}, 'this one is right')
    for expr in ('sentry_profd_y', '1 > 0', 'sentry_profd_x_total{reason="c"}',
                 'sentry_profd_x_total{why="a"}', 'sum by (why) (sentry_profd_x_total)'):
        try:
            check_expression(expr, metrics)
        except harness.Failure:
            continue
        check(False, f'{expr} is said to be right')


def test_promtool_accepts_them(box):
    """promtool checks the templates of the alerts, too."""
    if not shutil.which('promtool'):
        raise Skip('no promtool (of Prometheus)')
    panels = box.make_dir('rules') / 'panels.yaml'
    panels.write_text(json.dumps({'groups': [{'name': 'panels', 'rules': [
        {'record': f'panel:{n}', 'expr': expr} for n, (expr, _) in enumerate(dashboard())]}]}))
    for path in (RULES, panels):
        done = subprocess.run(['promtool', 'check', 'rules', path], capture_output=True,
                              text=True, check=False)
        check(done.returncode == 0, f'{done.stdout}{done.stderr}')


if __name__ == '__main__':
    harness.main(globals())
