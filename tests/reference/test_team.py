"""The recipes of the team page work: systemd accepts the unit, and its command serves."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
import yaml

from tests.reference import FOLDER

BLOCKS = re.findall(r"```(\w+)\n(.*?)```", (FOLDER / "team.md").read_text("utf-8"), re.DOTALL)
(UNIT,) = [code for language, code in BLOCKS if language == "ini"]


def test_every_block_of_code_is_of_a_kind_that_is_run():
    # tests/release/test_container.py does what the container recipe says.
    assert {language for language, _ in BLOCKS} == {"ini", "dockerfile"}


@pytest.mark.slow
def test_dashboard_and_alerts_name_metrics_that_the_service_has(tmp_path, monkeypatch):
    from tests.service.process import serve

    monkeypatch.setenv("NBEXT_DATA_DIR", str(tmp_path))
    with serve(tmp_path) as running:
        running.session.get(f"{running.url}/about", timeout=30)
        text = running.session.get(f"{running.url}/metrics", timeout=30).text
    has = set(re.findall(r"^(\w+)", text, re.MULTILINE))
    dashboard = json.loads((FOLDER / "monitoring" / "dashboard.json").read_text("utf-8"))
    asked = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    alerts = (FOLDER / "monitoring" / "alerts.yml").read_text("utf-8")
    asked += re.findall(r"^ +expr: (.*)$", alerts, re.MULTILINE)
    named = {name for each in asked for name in re.findall(r"\b(?:nbext|process)_\w+", each)}
    assert named <= has, named - has
    assert len(asked) > 20
    # Every metric of our own is on the dashboard, but those that Prometheus adds to counters and histograms.
    ours = {
        name
        for name in has
        if name.startswith("nbext_") and not name.endswith(("_created", "_sum", "_count"))
    }
    assert ours <= named, ours - named


def test_the_alert_rules_are_yaml_of_the_form_that_prometheus_reads():
    (group,) = yaml.safe_load((FOLDER / "monitoring" / "alerts.yml").read_text("utf-8"))["groups"]
    for rule in group["rules"]:
        assert {"alert", "expr", "for", "labels", "annotations"} == rule.keys()
        assert "summary" in rule["annotations"]
        assert rule["expr"].count("(") == rule["expr"].count(")")


def test_systemd_takes_the_unit(tmp_path):
    verify = shutil.which("systemd-analyze")
    if not verify:
        pytest.skip("this machine has no systemd-analyze")
    command = Path(sys.executable).with_name("nbext")
    (tmp_path / "nbext.service").write_text(
        UNIT.replace("/opt/nbext/bin/nbext", str(command)), "utf-8"
    )
    ran = subprocess.run(
        [verify, "verify", "--man=no", tmp_path / "nbext.service"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, "nbext.service" in ran.stderr) == (0, False), ran.stderr


@pytest.mark.slow
def test_the_units_command_serves_and_ends_when_systemd_asks_it_to(tmp_path):
    (command,) = re.findall(r"^ExecStart=/opt/nbext/bin/nbext (.*)$", UNIT, re.MULTILINE)
    here = command.replace("/var/lib/nbext", str(tmp_path / "data")).replace("8080", "0")
    words = here.replace("--processes 4", "--processes 2").split()
    environ = os.environ | {"NBEXT_API_KEY": "a key of the unit"}
    with subprocess.Popen(
        [sys.executable, "-m", "nbext.cli", *words],
        env=environ,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as running:
        (url,) = re.findall(r"http://127\.0\.0\.1:\d+", running.stdout.readline())
        headers = {"x-api-key": "a key of the unit", "Host": "segments.example.org"}
        asked = urllib.request.Request(f"{url}/v1/tokens/ethereum/USDC", headers=headers)
        with urllib.request.urlopen(asked, timeout=30) as answer:
            assert json.load(answer)["symbol"] == "USDC"
        running.terminate()
        assert running.wait(timeout=30) == 0
