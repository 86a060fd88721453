"""The image of `deploy/Dockerfile`: built here, and taken through the contract's main path.

On a base without a shell, read-only, without any capability. `just test-image`; skipped where no
Docker answers.
"""

import subprocess
import tarfile
from contextlib import contextmanager
from itertools import chain

import pytest

from tests.databases import login_url, on, run
from tests.deployed import docker
from tests.deployed.main_path import main_path
from tests.patience import until
from tests.processes import free_port
from tests.world import MASTER_KEY, TEAM

pytestmark = [pytest.mark.server, pytest.mark.timeout(1800)]

OVER_BASE_BYTES_MAX = 180 * 1000**2
UNWANTED = ("gcc", "cc", "cc1", "ld", "postgres", "initdb", "uv", "sh", "bash", "dash")
LEDGERS = ("accounts", "live", "test")
LOADED = """
import ctypes, pathlib
found = list(pathlib.Path("/opt/claim-ledger").rglob("*.so"))
for one in found:
    ctypes.PyDLL(str(one))
print(len(found))
"""


@pytest.fixture(scope="module")
def image():
    """Return the image's name."""
    if not docker.answers():
        pytest.skip("no Docker answers here")
    return docker.built()


def test_it_has_what_the_service_needs_and_no_more(image):
    """No compiler, no PostgreSQL, no shell; not root; labelled; at most 180 MB over its base."""
    made, base = docker.inspected(image), docker.inspected(docker.WITHOUT_SHELL)
    over = made["Size"] - base["Size"]
    print(f"the image is {over / 1e6:.0f} MB over its base of {base['Size'] / 1e6:.0f} MB")  # noqa: T201 - it is what one runs this for
    assert over <= OVER_BASE_BYTES_MAX
    config = made["Config"]
    assert config["User"] == "10001:10001"
    assert config["Healthcheck"]["Test"] == ["CMD", "claim-ledger", "health", "--live"]
    labels = config["Labels"]
    assert labels["org.opencontainers.image.title"] == "claim-ledger"
    assert labels["org.opencontainers.image.revision"] == "of-a-test"
    names = programs_of(image)
    assert not {name for name in names if name.rpartition("/")[2] in UNWANTED}


def programs_of(image):
    """Return the paths of what can be run in the image."""
    name = docker.docker("create", image)
    with (
        subprocess.Popen(["docker", "export", name], stdout=subprocess.PIPE) as exported,
        tarfile.open(fileobj=exported.stdout, mode="r|") as tar,
    ):
        found = [one.name for one in tar if one.mode & 0o111 and not one.isdir()]
    docker.docker("rm", name)
    return found


@contextmanager
def secret_files(directory, url):
    """Yield Docker's words that hand over the settings of a database, secrets in files."""
    secrets = {f"{ledger.upper()}_DATABASE_URL": login_url(url, ledger) for ledger in LEDGERS}
    secrets |= {"DATABASE_URL": url, "MASTER_KEYS": MASTER_KEY}
    words = ["--volume", f"{directory}:/run/secrets:ro"]
    for name, text in secrets.items():
        path = directory / name
        path.write_text(text)
        path.chmod(0o444)
        subprocess.run(["chown", "10001", path], check=True)
        path.chmod(0o400)
        words += ["--env", f"CLAIM_LEDGER_{name}_FILE=/run/secrets/{name}"]
    yield words


def test_one_image_serves_works_migrates_and_does_the_teams_commands(image, postgres_url, folder):
    """From an empty database to a claim and its replay; SIGTERM ends each process in order."""
    run(postgres_url, "create database of_the_image")
    url = on(postgres_url, "of_the_image")
    port, operations = free_port(), (free_port(), free_port())
    settings = {
        "PUBLIC_URL": f"http://127.0.0.1:{port}",
        "HOST": "127.0.0.1",
        "PORT": str(port),
        "SMTP_URL": "file:///tmp/mail",
        "RUN_WORKER": "off",
    }
    given = [("--env", f"CLAIM_LEDGER_{name}={text}") for name, text in settings.items()]
    with secret_files(folder, url) as secrets:
        words = ["--network", "host", *docker.LOCKED_DOWN, *chain(*given), *secrets]
        listens = [["--env", f"CLAIM_LEDGER_OPERATIONS_PORT={one}"] for one in operations]
        docker.docker("run", "--rm", *words, image, "migrate")
        with (
            docker.running(*words, *listens[0], image) as api,
            docker.running(*words, *listens[1], image, "worker") as worker,
        ):
            for name in (api, worker):
                until(lambda name=name: healthy(name), lambda name=name: logs(name), look=0.5)
            staff = ("--env", f"CLAIM_LEDGER_STAFF={TEAM}")
            main_path(lambda words: docker.docker("exec", *staff, api, *words), port)
            for name in (api, worker):
                docker.docker("stop", "--time", "60", name)
                assert docker.inspected(name)["State"]["ExitCode"] == 0, logs(name)
            assert "Killing" not in logs(api)


def healthy(name):
    """Return whether the image's own check finds a container healthy."""
    state = docker.inspected(name)["State"]
    assert state["Running"], logs(name)
    return state["Health"]["Status"] == "healthy"


def logs(name):
    """Return what a container has printed."""
    both = subprocess.run(["docker", "logs", name], capture_output=True, text=True, check=False)
    return both.stdout + both.stderr


def test_its_libraries_load(image):
    """Those too that the main path does not come to: they were changed by `strip`."""
    words = ("run", "--rm", *docker.LOCKED_DOWN, "--entrypoint", "python3")
    assert int(docker.docker(*words, image, "-c", LOADED)) > 20


def test_any_user_can_run_it(image):
    """Whoever the platform chooses, without a name or a home."""
    words = ("run", "--rm", "--user", "54321:54321", *docker.LOCKED_DOWN)
    assert docker.docker(*words, image, "--version") == "claim-ledger, version 0.1.0"
