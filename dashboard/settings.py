"""Django settings: everything variable comes from the environment."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

from csp.constants import NONE, SELF, UNSAFE_INLINE
from django.core.exceptions import ImproperlyConfigured

from dashboard import environ, mail, sqlite, viewer

sqlite.use_bundled()

import dj_database_url  # noqa: E402 - loads a database back-end, so after the SQLite switch

BASE_DIR = Path(__file__).resolve().parent.parent
VAR_DIR = Path(environ.text("VAR_DIR", str(BASE_DIR / "var"))).resolve()

DEBUG = environ.flag("DEBUG")
SECRET_KEY = environ.text("SECRET_KEY") or environ.private_secret(VAR_DIR / "secret_key")
ALLOWED_HOSTS = environ.names("ALLOWED_HOSTS", "127.0.0.1,localhost,[::1]")
CSRF_TRUSTED_ORIGINS = environ.names("CSRF_TRUSTED_ORIGINS", "")
HTTPS = environ.flag("HTTPS")

INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django_htmx",
    "dashboard",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "csp.middleware.CSPMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.auth.middleware.LoginRequiredMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "dashboard.middleware.BusyDatabaseMiddleware",
]
ROOT_URLCONF = "dashboard.urls"
WSGI_APPLICATION = "dashboard.wsgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "dashboard.context.site",
            ],
        },
    },
]

DATABASE_URL = environ.text("DATABASE_URL") or f"sqlite:///{VAR_DIR / 'daybreak.sqlite3'}"
try:
    DATABASES = {"default": dj_database_url.parse(DATABASE_URL, conn_max_age=60)}
except ValueError:
    scheme = DATABASE_URL.partition(":")[0]
    raise ImproperlyConfigured(
        f"DATABASE_URL: scheme {scheme!r} is not known; use postgres:// or sqlite:///"
    ) from None
if DATABASES["default"]["ENGINE"].endswith("sqlite3"):
    DATABASES["default"]["OPTIONS"] = {
        "transaction_mode": "IMMEDIATE",
        "timeout": 20,
        "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;",
    }
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

BROKER_URL = environ.text("BROKER_URL")
ARTIFACTS_URL = environ.text("ARTIFACTS_URL") or (VAR_DIR / "artifacts").as_uri()
if urlsplit(ARTIFACTS_URL).scheme not in {"file", "s3"}:
    raise ImproperlyConfigured(f"ARTIFACTS_URL={ARTIFACTS_URL}: use file:///folder or s3://bucket")

AUTH_USER_MODEL = "dashboard.User"
LOGIN_URL = "sign-in"
LOGIN_REDIRECT_URL = "overview"
LOGOUT_REDIRECT_URL = "sign-in"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {
        "NAME": "django.contrib.auth.password_validation.MinimumLengthValidator",
        "OPTIONS": {"min_length": 10},
    },
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
SESSION_COOKIE_NAME = "daybreak_session"
SESSION_COOKIE_AGE = 12 * 3600
SESSION_SAVE_EVERY_REQUEST = False
SESSION_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_SECURE = HTTPS
CSRF_COOKIE_NAME = "daybreak_csrf"
CSRF_COOKIE_SECURE = HTTPS
CSRF_FAILURE_VIEW = "dashboard.views.errors.csrf_failure"
SECURE_SSL_REDIRECT = HTTPS
SECURE_HSTS_SECONDS = int(environ.number("HSTS_SECONDS", 0))
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if HTTPS else None
SECURE_CROSS_ORIGIN_OPENER_POLICY = "same-origin"
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [NONE],
        "script-src": [SELF],
        # Plotly writes style elements of its own; scripts never get this.
        "style-src": [SELF, UNSAFE_INLINE],
        "img-src": [SELF, "data:", "blob:"],
        "font-src": [SELF],
        "connect-src": [SELF],
        "frame-src": [SELF],
        "object-src": [NONE],
        "base-uri": [NONE],
        "form-action": [SELF],
        "frame-ancestors": [NONE],
    }
}

UPLOAD_LIMIT_BYTES = int(environ.number("UPLOAD_LIMIT_BYTES", 2 * 2**30, low=1024))
DATA_UPLOAD_MAX_MEMORY_SIZE = 1 << 20
DATA_UPLOAD_MAX_NUMBER_FIELDS = 200
DATA_UPLOAD_MAX_NUMBER_FILES = 64
FILE_UPLOAD_MAX_MEMORY_SIZE = 1 << 20
FILE_UPLOAD_TEMP_DIR = environ.folder(VAR_DIR / "uploads")
FILE_UPLOAD_PERMISSIONS = 0o600

STATIC_URL = "/static/"
STATIC_ROOT = VAR_DIR / "static"
STATICFILES_DIRS = [BASE_DIR / "static"]
STATICFILES_FINDERS = [
    "django.contrib.staticfiles.finders.FileSystemFinder",
    "django.contrib.staticfiles.finders.AppDirectoriesFinder",
    "dashboard.assets.PlotlyFinder",
]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"},
}
WHITENOISE_ADD_HEADERS_FUNCTION = viewer.viewer_headers
WHITENOISE_MAX_AGE = 600

# Times of the run state machine, in seconds; one divisor shortens them all for tests.
TIME_SCALE = environ.number("TIME_SCALE", 1, low=1, high=1000)
HEARTBEAT_S = 15 / TIME_SCALE
LEASE_S = 120 / TIME_SCALE
SELF_FENCE_S = 90 / TIME_SCALE
SWEEP_S = 15 / TIME_SCALE
GRACE_S = 30 / TIME_SCALE
RECONCILE_S = 60 / TIME_SCALE
CANCEL_TIMEOUT_S = 60 / TIME_SCALE
QUEUE_TTL_S = 7 * 86400
MAX_ATTEMPTS = 3
RUN_LIMIT_S = environ.number("RUN_LIMIT_S", 3600, low=1)
RUN_MEMORY_BYTES = int(environ.number("RUN_MEMORY_BYTES", 0))
INGEST_LIMIT_S = environ.number("INGEST_LIMIT_S", 300, low=1)
INGEST_MEMORY_BYTES = int(environ.number("INGEST_MEMORY_BYTES", 3 * 2**30, low=2**28))
PLATFORM = environ.text("PLATFORM", "cpu")

# Announcements: without a mail server no mail leaves, without an address mails carry no link.
BASE_URL = environ.text("BASE_URL").rstrip("/")
if BASE_URL and urlsplit(BASE_URL).scheme not in {"http", "https"}:
    raise ImproperlyConfigured(f"BASE_URL={BASE_URL}: use https://host")
_MAIL = mail.parse_mail_url(environ.text("EMAIL_URL"))
EMAIL_ON = _MAIL.on
EMAIL_BACKEND = _MAIL.backend
EMAIL_HOST, EMAIL_PORT = _MAIL.host, _MAIL.port
EMAIL_HOST_USER, EMAIL_HOST_PASSWORD = _MAIL.user, _MAIL.password
EMAIL_USE_TLS, EMAIL_USE_SSL = _MAIL.starttls, _MAIL.tls
EMAIL_TIMEOUT = 10
DEFAULT_FROM_EMAIL = environ.text("EMAIL_FROM", "daybreak@localhost")
CONFIRM_CHANGES = environ.flag("CONFIRM_CHANGES", default=True)

TIME_ZONE = "UTC"
USE_TZ = True
USE_I18N = False
LANGUAGE_CODE = "en"
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"()": "dashboard.logs.LineFormatter"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["stderr"], "level": environ.text("LOG_LEVEL", "INFO")},
}
