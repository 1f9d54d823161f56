"""The artifact store on an S3 bucket, against a server that speaks S3."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import boto3
import pytest
from moto.server import ThreadedMotoServer
from pytest_django.fixtures import Settings

from dashboard.models import Artifact
from dashboard.services import artifacts

pytestmark = pytest.mark.django_db


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch, settings: Settings) -> Iterator[str]:
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", f"http://{host}:{port}")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "tests")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "tests")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    name = f"daybreak-{port}"
    boto3.client("s3").create_bucket(Bucket=name)
    settings.ARTIFACTS_URL = f"s3://{name}/artifacts"
    yield name
    server.stop()


def a_file(tmp_path: Path) -> Path:
    path = tmp_path / "file"
    path.write_bytes(b"\x00bytes\xff")
    return path


def test_it_stores_and_gives_back(bucket: str, tmp_path: Path) -> None:
    row = artifacts.keep(a_file(tmp_path))
    assert artifacts.read(row.sha256) == b"\x00bytes\xff"
    artifacts.fetch(row.sha256, tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == b"\x00bytes\xff"


def test_it_stores_the_same_bytes_under_one_key(bucket: str, tmp_path: Path) -> None:
    for _ in range(2):
        artifacts.keep(a_file(tmp_path))
    assert len(boto3.client("s3").list_objects_v2(Bucket=bucket)["Contents"]) == 1


def test_it_collects_what_no_row_names(
    bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    artifacts.keep(a_file(tmp_path))
    Artifact.objects.all().delete()
    assert artifacts.collect_garbage() == 0
    monkeypatch.setattr(artifacts, "GRACE", timedelta(seconds=-60))
    assert artifacts.collect_garbage() == 1
    assert "Contents" not in boto3.client("s3").list_objects_v2(Bucket=bucket)
