"""A private folder for every test, a client per role, and no manifest of static files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from django.test import Client
from pytest_django import Settings

from dashboard.models import Role, TemplateVersion, User
from dashboard.services import templates
from tests.dashboard.template_text import TEXT
from tests.factories import make_platform, make_user


@pytest.fixture(autouse=True)
def _private_folder(tmp_path: Path, settings: Settings) -> None:
    settings.VAR_DIR = tmp_path
    settings.ARTIFACTS_URL = (tmp_path / "artifacts").as_uri()
    settings.FILE_UPLOAD_TEMP_DIR = str(tmp_path / "uploads")
    for folder in ("uploads", "static"):
        (tmp_path / folder).mkdir()
    settings.STATIC_ROOT = tmp_path / "static"
    plain = {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}
    settings.STORAGES = {**settings.STORAGES, "staticfiles": plain}
    # Hashing is Django's and slow by intent; what is tested here is what we do around it.
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


@pytest.fixture
def viewer(db: None) -> User:
    return make_user("vera", role=Role.VIEWER)


@pytest.fixture
def operator(db: None) -> User:
    return make_user("otto", role=Role.OPERATOR)


@pytest.fixture
def admin(db: None) -> User:
    return make_user("ada", role=Role.ADMIN)


@pytest.fixture
def sign_in() -> Callable[[User], Client]:
    """A client on which `user` is signed in."""

    def signed_in(user: User) -> Client:
        client = Client()
        client.force_login(user)
        return client

    return signed_in


@pytest.fixture
def viewer_client(viewer: User, sign_in: Callable[[User], Client]) -> Client:
    return sign_in(viewer)


@pytest.fixture
def operator_client(operator: User, sign_in: Callable[[User], Client]) -> Client:
    return sign_in(operator)


@pytest.fixture
def admin_client(admin: User, sign_in: Callable[[User], Client]) -> Client:
    return sign_in(admin)


@pytest.fixture
def mine(operator: User) -> TemplateVersion:
    """The first version of a person's own template."""
    make_platform("cpu")
    return templates.save_template(TEXT, operator)
