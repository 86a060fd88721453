"""The tutorial of the console is pasted into a shell."""

import os
import subprocess

from service.pages.console.tutorial import steps


def test_the_tutorial_works_when_it_is_pasted(demo, tmp_path):
    """Every command returns what its step says, as far as a claim with a document."""
    key = demo["test_key"]
    tutorial = steps(demo["base_url"], demo["partner_id"], 0)
    found = []
    for step in tutorial:
        shell = subprocess.run(
            ["bash", "-c", step.command],
            capture_output=True,
            text=True,
            check=True,
            cwd=tmp_path,
            env={"PATH": os.environ["PATH"], "CLAIMS_API_KEY": key},
        )
        found.append((step.name, int(shell.stdout.split()[1])))
    assert found == [(step.name, step.status) for step in tutorial]
    assert len(found) == 9
