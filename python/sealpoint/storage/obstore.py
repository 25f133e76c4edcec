# SPDX-License-Identifier: Apache-2.0
"""Object stores via obstore: S3 and compatible stores, Google Cloud Storage, and Azure, with all of their kinds of credentials."""

from __future__ import annotations

import asyncio
import atexit
import configparser
import contextlib
import importlib
import os
import queue
import re
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import obstore
from obstore.store import from_url

from sealpoint import storage
from sealpoint._errors import AlreadyExistsError, IncompleteError, InvalidArgumentError, IoError, UnsupportedError
from sealpoint._sealpoint import copy_into
from sealpoint._paths import OBSTORE_SCHEMES
from sealpoint.storage import ObjectPage, ObjectStore, ObjectUpload, StoredObject, one_line
from sealpoint.storage._requests import REQUESTS_MAX, call_each, fill

__all__ = ["ObstoreStore", "for_hosts", "register_all"]

# Maximum number of objects in one deletion request to S3.
_DELETE_MAX = 1000
_END = object()
# Timeout for one listing. obstore itself requests one page after another, even if a faulty server never sends a last page.
LISTING_SECONDS = 600.0
_RETURN_SECONDS = 0.1
_listed_at = float("-inf")  # when the last listing ended
# Address of a proxy that does not exist: no process listens on the port "discard".
_NOWHERE = "127.0.0.1:9"
# Requests for credentials instead of objects: from the machine, from the container, or with a token.
_FOR_CREDENTIALS = re.compile(
    r"/latest/api/token|/latest/meta-data|https?://169\.254\.170\.|computeMetadata/|/metadata/identity|token request|"
    r"https://sts\.|Account must be specified"
)
# By scheme: groups of environment variables that give obstore credentials. All variables of a group must be set.
_S3 = (
    ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"), ("AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_ROLE_ARN"),
    ("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",), ("AWS_CONTAINER_CREDENTIALS_FULL_URI",),
)
_AZURE = (
    ("AZURE_STORAGE_ACCOUNT_NAME", "AZURE_STORAGE_ACCOUNT_KEY"), ("AZURE_STORAGE_ACCOUNT_NAME", "AZURE_STORAGE_SAS_TOKEN"),
    ("AZURE_CLIENT_ID", "AZURE_TENANT_ID", "AZURE_CLIENT_SECRET"),
    ("AZURE_CLIENT_ID", "AZURE_TENANT_ID", "AZURE_FEDERATED_TOKEN_FILE"),
)
_SOURCES = {
    "s3": _S3, "gs": (("GOOGLE_APPLICATION_CREDENTIALS",), ("GOOGLE_SERVICE_ACCOUNT",), ("GOOGLE_SERVICE_ACCOUNT_KEY",)),
    "az": _AZURE, "abfs": _AZURE, "abfss": _AZURE,
}
# Names of the permissions that each action needs, on S3, Google Cloud Storage and Azure.
_ACTIONS = {
    "write": "s3:PutObject and s3:AbortMultipartUpload, storage.objects.create, or blobs/write",
    "read": "s3:GetObject, storage.objects.get, or blobs/read",
    "list": "s3:ListBucket, storage.objects.list, or blobs/read",
    "delete": "s3:DeleteObject, storage.objects.delete, or blobs/delete",
}


class ObstoreStore(ObjectStore):
    """An obstore store for use by sealpoint.

    Args:
        store: A store such as ``obstore.store.S3Store("bucket", …)``, with its own options and credentials.
        uri: URL prefix of all paths in the store, such as ``s3://bucket``.
        part_size_bytes: Size of each part of an upload. S3 limits an object to 10,000 parts.
        parts_max: Maximum number of parts that an upload sends concurrently. Each upload also keeps two further parts in memory.

    Examples:
        >>> from obstore.store import MemoryStore
        >>> from sealpoint.storage.obstore import ObstoreStore
        >>> store = ObstoreStore(MemoryStore(), uri="memory://bucket", part_size_bytes=16 << 20)
        >>> store.put("a/key", memoryview(b"content"))
        >>> store.head("a/key").size_bytes
        7
    """

    def __init__(self, store: Any, *, uri: str, part_size_bytes: int = 32 << 20, parts_max: int = 4) -> None:
        if not 5 << 20 <= part_size_bytes <= 5 << 30:
            raise InvalidArgumentError(f"part_size_bytes is {part_size_bytes}, expected 5 MiB to 5 GiB")
        if parts_max < 1:
            raise InvalidArgumentError(f"parts_max is {parts_max}, expected at least 1")
        self.uri = uri
        self.part_size_bytes = part_size_bytes
        self._store, self._parts_max = store, parts_max
        self._reads = threading.BoundedSemaphore(REQUESTS_MAX)

    def put(self, key: str, content: memoryview) -> None:
        # Makes a copy, because a store in memory keeps a reference to the content.
        with _permission("write", self.uri):
            obstore.put(self._store, key, bytes(content), use_multipart=False)

    def put_if_absent(self, key: str, content: memoryview) -> None:
        try:
            with _permission("write", self.uri):
                obstore.put(self._store, key, bytes(content), mode="create", use_multipart=False)
        except (obstore.exceptions.AlreadyExistsError, obstore.exceptions.PreconditionError) as error:
            raise AlreadyExistsError(one_line(error), path=f"{self.uri}/{key}") from error
        except obstore.exceptions.NotSupportedError as error:
            raise UnsupportedError(one_line(error), path=f"{self.uri}/{key}") from error

    def start_upload(self, key: str) -> ObjectUpload:
        return _Upload(self._store, key, self.part_size_bytes, self._parts_max, self.uri)

    def copy(self, stored: StoredObject, key: str) -> str:
        with _permission("write", self.uri):
            obstore.copy(self._store, stored.key, key)
        return ""

    def get_first(self, key: str, size_max: int) -> tuple[StoredObject, bytes | memoryview]:
        try:
            with _permission("read", self.uri):
                found = obstore.get(self._store, key, options={"range": (0, size_max)})
        except (FileNotFoundError, IoError):
            raise
        except Exception:
            stored = self.head(key)
            if stored.size_bytes > 0:  # an empty object has no range
                raise
            return stored, b""
        return _stored(found.meta), memoryview(found.bytes())

    def get_ranges(self, stored: StoredObject, ranges: Sequence[tuple[int, memoryview]]) -> None:
        fill(partial(self._get, stored), ranges)

    def _get(self, stored: StoredObject, offset: int, memory: memoryview) -> None:
        end = offset + len(memory)
        if end > stored.size_bytes:
            raise IncompleteError(f"the object has {stored.size_bytes} bytes, expected at least {end}", offset=offset)
        options: Any = {"range": (offset, end)}
        if stored.etag and not stored.etag.startswith("W/"):  # a weak ETag never matches
            options["if_match"] = stored.etag
        try:
            with self._reads, _permission("read", self.uri):
                got = memoryview(obstore.get(self._store, stored.key, options=options).bytes())
        except obstore.exceptions.PreconditionError as error:
            raise IoError(
                f"the object was replaced since it was examined, expected ETag {stored.etag}: {one_line(error)}",
                offset=offset,
            ) from error
        if len(got) != len(memory):
            raise IncompleteError(f"{len(got)} bytes were received, expected {len(memory)}", offset=offset)
        copy_into(got, memory)

    def head(self, key: str) -> StoredObject:
        with _permission("read", self.uri):
            return _stored(obstore.head(self._store, key))

    def list(self, prefix: str, next: str) -> ObjectPage:
        try:
            with _permission("list", self.uri):
                found = self._list(prefix)
        except FileNotFoundError as error:  # must not look like an empty bucket, or training would start over
            raise IoError(f"the bucket cannot be listed, expected one that exists: {one_line(error)}") from error
        objects = [_stored(item) for item in found["objects"]]
        prefixes = [item.rstrip("/") + "/" for item in found["common_prefixes"]]
        return ObjectPage(sorted(item for item in objects if item.key.startswith(prefix)), sorted(prefixes))

    def _list(self, prefix: str) -> Any:
        """Lists a prefix. Raises IoError if the listing takes too long, and the errors of obstore."""

        async def in_time() -> Any:
            listing = obstore.list_with_delimiter_async(self._store, prefix or None)
            return await asyncio.wait_for(listing, LISTING_SECONDS)  # cancels the listing

        global _listed_at
        try:
            return call_each([lambda: asyncio.run(in_time())])[0]  # the caller's thread may run an asyncio loop
        except TimeoutError as error:
            raise IoError(f"the listing did not end within {LISTING_SECONDS:.4g} s", path=f"{self.uri}/{prefix}") from error
        finally:
            _listed_at = time.monotonic()

    def delete(self, keys: Sequence[str]) -> None:
        for begin in range(0, len(keys), _DELETE_MAX):
            batch = list(keys[begin : begin + _DELETE_MAX])
            try:
                with _permission("delete", self.uri):
                    obstore.delete(self._store, batch)
            except FileNotFoundError:  # raised by local stores; later objects may still exist
                for key in batch:
                    with contextlib.suppress(FileNotFoundError):
                        obstore.delete(self._store, key)


@atexit.register
def _let_obstore_return() -> None:
    """Waits for the thread of obstore that woke the loop of the last listing.

    This thread takes the interpreter once more, to return. If the interpreter ended first, the process would abort.
    """
    time.sleep(max(0.0, _listed_at + _RETURN_SECONDS - time.monotonic()))


class _Upload:
    """One ``obstore.put`` call on its own thread.

    The call receives the parts as they arrive, and sends several parts at the same time.
    """

    def __init__(self, store: Any, key: str, part_size_bytes: int, parts_max: int, uri: str = "") -> None:
        self._uri = uri
        self._parts: queue.Queue[Any] = queue.Queue(1)
        self._failure: BaseException | None = None
        self._thread = threading.Thread(
            target=self._send, args=(store, key, part_size_bytes, parts_max), name="sealpoint-upload", daemon=True
        )
        self._thread.start()

    def _send(self, store: Any, key: str, part_size_bytes: int, parts_max: int) -> None:
        try:
            with _permission("write", self._uri):
                obstore.put(
                    store, key, self._take(), use_multipart=True, chunk_size=part_size_bytes, max_concurrency=parts_max
                )
        except _AbandonedError:
            return
        except BaseException as error:
            self._failure = error
            while not self._is_over(self._parts.get()):  # append() must not wait for space
                pass

    def _take(self) -> Iterator[bytes]:
        while not self._is_over(part := self._parts.get()):
            yield part

    def _is_over(self, part: Any) -> bool:
        if isinstance(part, _AbandonedError) and self._failure is None:
            raise part  # obstore aborts the upload
        return part is _END or isinstance(part, _AbandonedError)

    def append(self, part: bytes) -> None:
        if self._failure is None:
            self._parts.put(part)
        if self._failure is not None:
            raise self._failure

    def complete(self) -> None:
        self._end(_END)
        if self._failure is not None:
            raise self._failure

    def abort(self) -> None:
        self._end(_AbandonedError("the upload was aborted"))

    def _end(self, last: Any) -> None:
        if self._thread.is_alive():
            self._parts.put(last)
        self._thread.join()


class _AbandonedError(Exception):
    """Raised in the iterator of parts to end an abandoned upload."""


@contextlib.contextmanager
def _permission(action: str, uri: str) -> Iterator[None]:
    """Wraps a request.

    If the store denies the request, raises an IoError that names the missing permission or says that there are no credentials.
    """
    _check_process()
    try:
        yield
    except obstore.exceptions.BaseError as error:
        kinds = (obstore.exceptions.PermissionDeniedError, obstore.exceptions.UnauthenticatedError)
        text = one_line(error)
        if _NOWHERE in str(error):
            raise IoError(f"the response redirects to another host, which would receive the credentials; not followed: {text}; "
                          "set the endpoint of the host that has the bucket") from error  # fmt: skip
        if _FOR_CREDENTIALS.search(text):
            raise IoError(_no_credentials(uri, text)) from error
        if not isinstance(error, kinds) and " 403 " not in text and " 401 " not in text:  # errors of listings have only this number
            raise
        raise IoError(f"{text}; the credentials need {_ACTIONS[action]}") from error


_used_in = 0  # the process that made the first request


def _check_process() -> None:
    """Raises IoError in a forked child: the threads of obstore do not exist there, so a request would never end."""
    global _used_in
    if _used_in not in (0, os.getpid()):
        raise IoError("this process was forked after obstore was used, and its requests would hang; start processes by spawn: "
                      "multiprocessing.set_start_method('spawn')")  # fmt: skip
    _used_in = os.getpid()


def _no_credentials(uri: str, text: str) -> str:
    scheme = uri.partition("://")[0]
    looked_for = ", ".join(
        f"{' with '.join(names)} ({'set' if all(map(os.environ.get, names)) else 'not set'})"
        for names in _SOURCES.get(scheme, ())
    )
    return (
        f"no credentials: looked for {looked_for or 'those of the store'}, and those of the machine: {text}; "
        "set one of these, or pass a provider (docs/guides/object-stores.md)"
    )


def _stored(meta: Any) -> StoredObject:
    return StoredObject(meta["path"], meta["size"], meta["e_tag"] or "")


def for_hosts(*hosts: str) -> dict[str, Any]:
    """Returns ``client_options`` for an obstore store that contacts only these hosts and their subdomains.

    If these options are not set, obstore follows redirects to any host, and sends the S3 session token to that host. These options
    override a configured proxy. Behind a proxy, do not set them; let the proxy decide which hosts are allowed. Not collective.
    Raises nothing.

    Args:
        hosts: Host names, such as "amazonaws.com".

    Examples:
        >>> from obstore.store import S3Store
        >>> from sealpoint.storage.obstore import ObstoreStore, for_hosts
        >>> store = S3Store("bucket", region="eu-central-1", client_options=for_hosts("amazonaws.com"))
        >>> ObstoreStore(store, uri="s3://bucket").uri
        's3://bucket'
    """
    return {"proxy_url": f"http://{_NOWHERE}", "proxy_excludes": ",".join(hosts)}


# Environment variables that may give the address of an S3 store, or of a service that issues credentials.
_ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT", "AWS_ENDPOINT_URL_STS", "AWS_METADATA_ENDPOINT",
              "AWS_CONTAINER_CREDENTIALS_FULL_URI")  # fmt: skip
_LINK_LOCAL = "169.254.0.0/16"  # addresses of the services that issue credentials to machines and containers


# Settings that give a profile credentials.
_OF_PROFILE = {"aws_access_key_id", "role_arn", "sso_session", "sso_start_url", "credential_process"}


def _profile() -> dict[str, str]:
    """Returns the settings of the profile AWS_PROFILE, or of the default profile, from the same files as lib/s3."""
    parser = configparser.RawConfigParser(strict=False)
    names = ("AWS_CONFIG_FILE", "~/.aws/config"), ("AWS_SHARED_CREDENTIALS_FILE", "~/.aws/credentials")
    parser.read([os.environ.get(name) or os.path.expanduser(path) for name, path in names], encoding="utf-8")
    name = os.environ.get("AWS_PROFILE")
    sections = [item for item in (f"profile {name or 'default'}", name or "default") if parser.has_section(item)]
    if name and not sections:
        raise InvalidArgumentError(f"profile {name!r} of AWS is in neither ~/.aws/config nor ~/.aws/credentials, expected there")
    return {key: value for section in sections for key, value in parser.items(section)}


def _options_of_profile() -> dict[str, Any]:
    """Returns options from the AWS profile (docs/guides/object-stores.md, "Credentials"), because obstore does not read profiles.

    The C++ client reads the same options. Environment variables take precedence. Raises InvalidArgumentError if the profile does
    not exist. boto3 reads the credentials in a profile. If boto3 is not installed, raises UnsupportedError instead of using a
    different identity.
    """
    profile, options = _profile(), dict[str, Any]()
    if "region" in profile and not {"AWS_REGION", "AWS_DEFAULT_REGION"} & os.environ.keys():
        options["region"] = profile["region"]
    if "endpoint_url" in profile and not {*_ENDPOINTS[:3]} & os.environ.keys():
        options["endpoint"] = profile["endpoint_url"]
    if os.environ.get("AWS_ACCESS_KEY_ID") or not _OF_PROFILE & profile.keys():
        return options
    try:
        auth = importlib.import_module("obstore.auth.boto3")
    except ImportError:
        raise UnsupportedError(
            "the credentials are in an AWS profile, which requires boto3: pip install boto3, or set AWS_ACCESS_KEY_ID and "
            "AWS_SECRET_ACCESS_KEY"
        ) from None
    return {**options, "credential_provider": auth.Boto3CredentialProvider()}


def _hosts_of_s3(endpoint: str | None) -> list[str]:
    hosts = [urllib.parse.urlsplit(os.environ[name]).hostname or "" for name in _ENDPOINTS if os.environ.get(name)]
    if endpoint:
        hosts.append(urllib.parse.urlsplit(endpoint).hostname or "")
    if endpoint or any(os.environ.get(name) for name in _ENDPOINTS[:3]):
        region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or "us-east-1"
        hosts += ["sts.amazonaws.com", f"sts.{region}.amazonaws.com", f"sts.{region}.amazonaws.com.cn"]
    else:  # hosts of AWS redirect clients to the region of a bucket
        hosts += ["amazonaws.com", "amazonaws.com.cn"]
    return [*filter(None, hosts), _LINK_LOCAL]


def _has_proxy() -> bool:
    return "AWS_PROXY_URL" in os.environ or not {"http", "https", "all"}.isdisjoint(urllib.request.getproxies_environment())


def _from_url(uri: str) -> ObjectStore:
    """Creates a store configured by the environment and the AWS profile.

    Allows ``http://`` endpoints, for tests and private networks.
    """
    names = (*_ENDPOINTS[:3], "AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT")
    of_profile = _options_of_profile() if uri.startswith("s3://") else {}
    endpoint = of_profile.get("endpoint")
    is_plain = any(item.startswith("http://") for item in (endpoint or "", *(os.environ.get(name, "") for name in names)))
    options: Any = {"allow_http": is_plain}
    # Other stores send credentials in headers, which are removed from a request that is redirected to another host.
    if uri.startswith("s3://") and not _has_proxy():
        options.update(for_hosts(*_hosts_of_s3(endpoint)))
    with _permission("read", uri):
        return ObstoreStore(from_url(uri, client_options=options, **of_profile), uri=uri)


def register_all(factory: Callable[[str], ObjectStore] = _from_url) -> None:
    """Registers the schemes supported by obstore, in this process. Call it on all ranks.

    Args:
        factory: As for ``sealpoint.storage.register``. Default: stores configured by the environment and the AWS profile.

    Raises:
        InvalidArgumentError: an argument is invalid.

    Examples:
        >>> from sealpoint.storage.obstore import register_all
        >>> register_all()  # paths such as "gs://bucket/run" now use obstore
    """
    for scheme in OBSTORE_SCHEMES:
        storage.register(scheme, factory)
