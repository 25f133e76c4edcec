#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A bucket of S3 in memory, which checks signatures, counts requests and makes the faults that real servers make rarely.

Usage: stub_server.py    prints its port, and ends when the process that started it does

The bucket is "bucket", the keys are AKTEST and secret, AKOLD, whose token has expired, and AKROLE, which STS gives to roles.
Requests to /_control are not signed:
  POST /_control/fault?operation=PutObject&fault=slowdown&times=1[&skip=0]    the next times requests of this kind
  POST /_control/heal     no faults any more
  POST /_control/reset    no objects, no uploads, no faults, counts of nought
  GET  /_control/counts   {"PutObject": 1, ...}, without the requests of wrong signature
  POST /_control/tls?certificate=FILE&key=FILE    the port of the same bucket over TLS
  POST /_control/end
It also answers what credentials are asked from: /_imds (instance), /_container, /_sts and /_sso; and it is a proxy for
itself, which counts what came through it as "proxied" and "CONNECT".
"""

import hashlib
import hmac
import http.server
import json
import os
import select
import socket
import ssl
import struct
import threading
import time
import urllib.parse
from xml.sax.saxutils import escape

SECRETS = {"AKTEST": "secret", "AKOLD": "old", "AKROLE": "role-secret"}
# role -> whose keys may assume it, and what else must be asked
ROLES = {
    "arn:first": ("AKTEST", {"RoleSessionName": "run-7", "ExternalId": "x & y", "DurationSeconds": "900"}),
    "arn:second": ("AKROLE", {"RoleSessionName": "sealpoint"}),
    "arn:brief": ("AKTEST", {"RoleSessionName": "sealpoint"}),
    "arn:long": ("AKTEST", {"RoleSessionName": "sealpoint", "DurationSeconds": "43200"}),
}
LATER = "2099-01-01T00:00:00Z"
EMPTY = b""

# fault -> (status, code, message, further elements and headers)
REFUSALS = {
    "slowdown": (503, "SlowDown", "Please reduce your request rate.", {}),
    "too_many": (429, "TooManyRequests", "", {}),
    "internal": (500, "InternalError", "We encountered an internal error.", {}),
    "conflict": (409, "ConditionalRequestConflict", "", {}),
    "denied": (403, "AccessDenied", "Access Denied", {}),
    "no_bucket": (404, "NoSuchBucket", "The specified bucket does not exist", {}),
    "region": (301, "PermanentRedirect", "", {"Region": "eu-west-1"}),
    "region_header": (400, "AuthorizationHeaderMalformed", "the region 'us-east-1' is wrong", {"Region": "eu-west-1"}),
    "skew": (403, "RequestTimeTooSkewed", "The difference is too large.",
             {"RequestTime": "20200101T000000Z", "ServerTime": "2026-01-02T03:04:05Z"}),
    "key_too_long": (400, "KeyTooLongError", "Your key is too long", {}),
    "quota": (507, "InsufficientStorage", "", {}),
    "bad_key": (403, "InvalidAccessKeyId", "", {}),
    "not_implemented": (501, "NotImplemented", "A header you provided implies functionality", {}),
    "not_implemented_400": (400, "NotImplemented", "", {}),
    "status_501": (501, "Other", "", {}),
    "no_key": (404, "NoSuchKey", "The specified key does not exist.", {}),
    "expired": (400, "ExpiredToken", "The provided token has expired.", {}),
}


class Bucket:
    def __init__(self):
        self.lock = threading.Lock()
        self.objects, self.uploads, self.counts, self.faults = {}, {}, {}, []

    def fault_of(self, operation):
        """The fault of this request, counting it."""
        with self.lock:
            self.counts[operation] = self.counts.get(operation, 0) + 1
            for fault in self.faults:
                if fault["operation"] in (operation, "any") and fault["times"] > 0:
                    if fault["skip"] > 0:
                        fault["skip"] -= 1
                        continue
                    fault["times"] -= 1
                    return fault["fault"]
        return None


BUCKET = Bucket()


def etag_of(data):
    return f'"{hashlib.md5(data).hexdigest()}"'


def document(name, *elements):
    return f'<?xml version="1.0" encoding="UTF-8"?><{name}>{"".join(elements)}</{name}>'.encode()


def element(name, text):
    return f"<{name}>{escape(str(text))}</{name}>"


def operation_of(method, key, query, is_copy):
    if method == "GET" and not key:
        return "ListMultipartUploads" if "uploads" in query else "ListObjectsV2"
    if method == "POST":
        return ("DeleteObjects" if "delete" in query else
                "CreateMultipartUpload" if "uploads" in query else "CompleteMultipartUpload")
    if method == "PUT":
        return "UploadPart" if "partNumber" in query else "CopyObject" if is_copy else "PutObject"
    if method == "DELETE":
        return "AbortMultipartUpload" if "uploadId" in query else "DeleteObject"
    return {"GET": "GetObject", "HEAD": "HeadObject"}[method]


def signature_of(secret, scope, text):
    key = ("AWS4" + secret).encode()
    for part in scope.split("/"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_):
        pass

    def reply(self, status, body=EMPTY, **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        if "Content_Length" not in headers:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def refuse(self, status, code, message="", further=None):
        further = further or {}
        headers = {"x_amz_bucket_region": further["Region"]} if "Region" in further else {}
        self.reply(status, document("Error", element("Code", code), element("Message", message),
                                    *(element(k, v) for k, v in further.items())), **headers)

    def hang_up(self):
        """Ends the connection as a crash does, by a reset."""
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close_connection = True
        self.wfile.flush()
        self.connection.close()

    def serve(self):
        split = urllib.parse.urlsplit(self.path)
        if split.netloc:
            BUCKET.fault_of("proxied")
        self.query = dict(urllib.parse.parse_qsl(split.query, keep_blank_values=True))
        self.body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if split.path.startswith("/_"):
            return self.serve_beside(split.path)
        bucket, _, key = urllib.parse.unquote(split.path)[1:].partition("/")
        if bucket != "bucket":
            return self.refuse(404, "NoSuchBucket", "The specified bucket does not exist")
        wrong = self.check_signature(split)
        if wrong:
            return self.refuse(*wrong)
        operation = operation_of(self.command, key, self.query, "x-amz-copy-source" in self.headers)
        fault = BUCKET.fault_of(operation)
        if fault in REFUSALS:
            return self.refuse(*REFUSALS[fault])
        if fault == "reset":
            return self.hang_up()
        if fault in ("late_denied", "later_quota"):  # in this order
            time.sleep(0.2 if fault == "late_denied" else 0.5)
            return self.refuse(*REFUSALS[fault.partition("_")[2]])
        if fault == "garbage":
            return self.reply(200, b"<html>a login page")
        if fault == "ok_error":
            return self.reply(200, document("Error", element("Code", "InternalError"), element("Message", "too late")))
        self.fault = fault
        with BUCKET.lock:
            answer = getattr(self, operation)(key)
        if fault == "lost":
            return self.hang_up()
        if fault in ("short", "cut", "slow"):
            return self.reply_in_part(fault, *answer[:2], **answer[2])
        return self.reply_as(fault or "", *answer)

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = serve

    def do_CONNECT(self):
        BUCKET.fault_of("CONNECT")
        host, _, port = self.path.partition(":")
        with socket.create_connection((host, int(port))) as far:
            self.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n")
            other = {self.connection: far, far: self.connection}
            while True:
                for item in select.select(list(other), [], [])[0]:
                    data = item.recv(65536)
                    if not data:
                        self.close_connection = True
                        return
                    other[item].sendall(data)

    def reply_in_part(self, fault, status, body, **headers):
        """Half of the body: then the end, a reset, or nothing for long."""
        self.reply(status, body[:len(body) // 2], **{"Content_Length": str(len(body)), **headers})
        self.wfile.flush()
        if fault == "slow":
            time.sleep(3)
        if fault == "cut":
            return self.hang_up()
        self.close_connection = True

    def reply_as(self, fault, status, body, headers):
        """With other headers, or another body: "range=TEXT", "resize=N", "no_length", "silent"."""
        what, _, value = fault.partition("=")
        if what == "range":
            headers = {**headers, "Content_Range": value}
        if what == "resize":
            body = (body + b"more than was asked")[: len(body) + int(value)]
        if what not in ("no_length", "silent"):
            return self.reply(status, body, **headers)
        self.send_response(200)
        self.send_header("ETag", headers["ETag"])
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        return None

    def check_signature(self, split):
        given = self.headers.get("Authorization", "")
        if not given.startswith("AWS4-HMAC-SHA256 "):
            return 403, "AccessDenied", "not signed"
        fields = dict(part.strip().split("=", 1) for part in given[17:].split(","))
        key, scope = fields["Credential"].split("/", 1)
        names = fields["SignedHeaders"].split(";")
        if key not in SECRETS:
            return 403, "InvalidAccessKeyId", key
        payload = self.headers.get("x-amz-content-sha256", hashlib.sha256(self.body).hexdigest())
        if payload not in ("UNSIGNED-PAYLOAD", hashlib.sha256(self.body).hexdigest()):
            return 400, "XAmzContentSHA256Mismatch", payload
        pairs = sorted(part if "=" in part else part + "=" for part in split.query.split("&") if part)
        headers = "".join(f"{name}:{self.headers[name].strip()}\n" for name in names)
        canonical = "\n".join([self.command, split.path, "&".join(pairs), headers, ";".join(names), payload])
        text = "\n".join(["AWS4-HMAC-SHA256", self.headers["x-amz-date"], scope,
                          hashlib.sha256(canonical.encode()).hexdigest()])
        missing = [n for n in self.headers if n.lower().startswith("x-amz-") and n.lower() not in names]
        if missing or "host" not in names or signature_of(SECRETS[key], scope, text) != fields["Signature"]:
            return 403, "SignatureDoesNotMatch", " ".join(missing)
        if key == "AKROLE" and self.headers.get("x-amz-security-token") != "role-token":
            return 403, "InvalidAccessKeyId", "without its token"
        self.signer = key, scope.split("/")[1:3]
        return (400, "ExpiredToken", "The provided token has expired.") if key == "AKOLD" else None

    def PutObject(self, key):
        if self.headers.get("If-None-Match") == "*" and key in BUCKET.objects:
            return self.error(412, "PreconditionFailed")
        BUCKET.objects[key] = self.body
        return 200, EMPTY, {"ETag": etag_of(self.body)}

    def CopyObject(self, key):
        bucket, _, source = urllib.parse.unquote(self.headers["x-amz-copy-source"]).removeprefix("/").partition("/")
        if bucket != "bucket" or source not in BUCKET.objects:
            return self.error(404, "NoSuchKey")
        data = BUCKET.objects[source]
        if self.headers.get("x-amz-copy-source-if-match") not in (None, etag_of(data)):
            return self.error(412, "PreconditionFailed")
        BUCKET.objects[key] = data[:-1] if self.fault == "shorter" else data
        if self.fault == "put_of_nothing":  # by a server that does not know the header
            BUCKET.objects[key] = EMPTY
            return 200, EMPTY, {"ETag": etag_of(EMPTY)}
        return 200, document("CopyObjectResult", element("ETag", etag_of(data)), element("LastModified", LATER)), {}

    def error(self, status, code, **headers):
        return status, document("Error", element("Code", code)), headers

    def HeadObject(self, key):
        if key not in BUCKET.objects:
            return 404, EMPTY, {}
        data = BUCKET.objects[key]
        return 200, EMPTY, {"ETag": etag_of(data), "Content_Length": str(len(data))}

    def GetObject(self, key):
        if key not in BUCKET.objects:
            return self.error(404, "NoSuchKey")
        data = BUCKET.objects[key]
        headers = {"ETag": etag_of(data)}
        if self.headers.get("If-Match") not in (None, headers["ETag"]):
            return self.error(412, "PreconditionFailed")
        wanted = self.headers.get("Range")
        if not wanted or self.fault == "no_range":
            return 200, data, headers
        first, last = wanted.removeprefix("bytes=").split("-")
        first, last = int(first), min(int(last), len(data) - 1)
        if first >= len(data):
            return self.error(416, "InvalidRange", Content_Range=f"bytes */{len(data)}")
        first += self.fault == "shifted"
        return 206, data[first:last + 1], {**headers, "Content_Range": f"bytes {first}-{last}/{len(data)}"}

    def ListObjectsV2(self, _):
        prefix, after = self.query.get("prefix", ""), self.query.get("continuation-token", "")
        entries = {}
        for key in BUCKET.objects:
            if key.startswith(prefix):
                name, slash, _ = key[len(prefix):].partition("/")
                entries[prefix + name + slash] = slash
        page = sorted(name for name in entries if name > after)
        more = len(page) > int(self.query["max-keys"])
        page = page[:int(self.query["max-keys"])]
        if self.fault == "endless":
            page, more = ["again"], True
        quote = urllib.parse.quote if self.query.get("encoding-type") == "url" else str
        out = [element("EncodingType", "url"), element("IsTruncated", str(more).lower())]
        if more:
            out.append(element("NextContinuationToken", page[-1]))
        for name in page if self.fault != "endless" else []:
            if entries[name]:
                out.append(f"<CommonPrefixes>{element('Prefix', quote(name))}</CommonPrefixes>")
            else:
                data = BUCKET.objects[name]
                out.append("<Contents>" + element("Key", quote(name)) + element("ETag", etag_of(data)) +
                           element("Size", len(data)) + "</Contents>")
        return 200, document("ListBucketResult", *out), {}

    def DeleteObject(self, key):
        BUCKET.objects.pop(key, None)
        return 204, EMPTY, {}

    def DeleteObjects(self, _):
        left = []
        for part in self.body.decode().split("<Key>")[1:]:
            key = part.partition("</Key>")[0].replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
            if self.fault == "locked":
                left.append("<Error>" + element("Key", key) + element("Code", "AccessDenied") + "</Error>")
            else:
                BUCKET.objects.pop(key, None)
        return 200, document("DeleteResult", *left), {}

    def CreateMultipartUpload(self, key):
        upload = f"upload-{len(BUCKET.uploads)}-{time.monotonic_ns()}"
        BUCKET.uploads[upload] = (key, {})
        return 200, document("InitiateMultipartUploadResult", element("UploadId", upload)), {}

    def UploadPart(self, _):
        upload = BUCKET.uploads.get(self.query["uploadId"])
        if not upload:
            return self.error(404, "NoSuchUpload")
        upload[1][int(self.query["partNumber"])] = self.body
        return 200, EMPTY, {"ETag": etag_of(self.body)}

    def CompleteMultipartUpload(self, key):
        upload = BUCKET.uploads.pop(self.query["uploadId"], None)
        if not upload:
            return self.error(404, "NoSuchUpload")
        numbers = [int(p.partition("<")[0]) for p in self.body.decode().split("<PartNumber>")[1:]]
        BUCKET.objects[key] = b"".join(upload[1][number] for number in numbers)
        return 200, document("CompleteMultipartUploadResult", element("ETag", '"whole"')), {}

    def AbortMultipartUpload(self, _):
        if not BUCKET.uploads.pop(self.query["uploadId"], None):
            return self.error(404, "NoSuchUpload")
        return 204, EMPTY, {}

    def ListMultipartUploads(self, _):
        after = self.query.get("upload-id-marker", "")
        ids = sorted(i for i, (key, _) in BUCKET.uploads.items() if key.startswith(self.query["prefix"]) and i > after)
        out = [element("IsTruncated", str(len(ids) > 2).lower())]
        if self.fault == "stuck":
            more = [element("IsTruncated", "true"), element("NextKeyMarker", "k"), element("NextUploadIdMarker", "u")]
            return 200, document("ListMultipartUploadsResult", *more), {}
        for i in ids[:2]:
            out.append("<Upload>" + element("Key", BUCKET.uploads[i][0]) + element("UploadId", i) +
                       element("Initiated", "2026-01-02T03:04:05.000Z") + "</Upload>")
        if len(ids) > 2:
            out += [element("NextKeyMarker", BUCKET.uploads[ids[1]][0]), element("NextUploadIdMarker", ids[1])]
        return 200, document("ListMultipartUploadsResult", *out), {}

    def serve_beside(self, path):
        keys = {"AccessKeyId": "AKTEST", "SecretAccessKey": "secret", "Expiration": LATER}
        if path.startswith("/_imds"):
            kind, _, rest = path.removeprefix("/_imds").partition("/")
            return self.serve_instance(kind, "/" + rest, keys)
        if path == "/_container":
            good = self.headers.get("Authorization") == "container-token"
            return self.reply(200 if good else 401, json.dumps(keys).encode())
        if path == "/_sts":
            return self.serve_sts(keys)
        if path == "/_sso/federation/credentials":
            good = self.headers.get("x-amz-sso_bearer_token") == "sso-token" and self.query == {
                "role_name": "Reader", "account_id": "123"}
            found = {"accessKeyId": "AKTEST", "secretAccessKey": "secret", "expiration": 4070908800000}
            if self.query["role_name"] == "Empty":
                return self.reply(200, b"{}")
            return self.reply(200 if good else 401, json.dumps({"roleCredentials": found}).encode())
        with BUCKET.lock:
            if path == "/_control/end":
                os._exit(0)
            if path == "/_control/tls":
                return self.reply(200, str(serve_tls(self.query["certificate"], self.query["key"])).encode())
            if path == "/_control/reset":
                BUCKET.objects, BUCKET.uploads, BUCKET.counts, BUCKET.faults = {}, {}, {}, []
            elif path == "/_control/heal":
                BUCKET.faults = []
            elif path == "/_control/fault":
                BUCKET.faults.append({"operation": self.query["operation"], "fault": self.query["fault"],
                                      "times": int(self.query.get("times", 1)), "skip": int(self.query.get("skip", 0))})
            return self.reply(200, json.dumps(BUCKET.counts).encode())

    def serve_sts(self, keys):
        asked = dict(urllib.parse.parse_qsl(self.body.decode()))
        action, role = asked.pop("Action"), asked.pop("RoleArn")
        fault = BUCKET.fault_of(action)
        if fault in REFUSALS:
            return self.refuse(*REFUSALS[fault])
        if asked.pop("Version") != "2011-06-15":
            return self.reply(400)
        if action == "AssumeRoleWithWebIdentity":
            good = role == "arn:role" and asked == {"RoleSessionName": "sealpoint", "WebIdentityToken": "web-token"}
        else:
            wrong = self.check_signature(urllib.parse.urlsplit(self.path))
            if wrong:
                return self.refuse(*wrong)
            good = (self.signer[0], asked) == ROLES.get(role) and self.signer[1] == ["eu-north-1", "sts"]
            keys = {**keys, "AccessKeyId": "AKROLE", "SecretAccessKey": "role-secret", "SessionToken": "role-token"}
        if role == "arn:brief":
            keys["Expiration"] = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 300))
        if not good:
            return self.refuse(403, "AccessDenied", f"{role} is not for you")
        inner = document("Credentials", *(element(k, v) for k, v in keys.items())).partition(b"?>")[2].decode()
        return self.reply(200, document(action + "Response", inner))

    def serve_instance(self, kind, path, keys):
        """`kind`: "", or where it fails: "_no_role", "_no_list", "_no_keys"."""
        if self.command == "PUT" and path == "/latest/api/token":
            return self.reply(200, b"imds-token")
        if self.headers.get("x-aws-ec2-metadata-token") != "imds-token":
            return self.reply(401)
        roles = "/latest/meta-data/iam/security-credentials/"
        if path == roles and kind in ("_no_role", "_no_list"):
            return self.reply(404 if kind == "_no_role" else 500)
        if path != roles and kind == "_no_keys":
            return self.reply(500, json.dumps(keys).encode())
        return self.reply(200, b"role" if path == roles else json.dumps(keys).encode())


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256

    def handle_error(self, *_):
        pass  # what hung up here, or there


def serve_tls(certificate, key):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server = Server(("127.0.0.1", 0), Handler)
    # The handshake is that of the first read, on the connection's own thread.
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_port


def main():
    server = Server(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.server_port, flush=True)
    parent = os.getppid()
    while os.getppid() == parent:
        time.sleep(0.5)


if __name__ == "__main__":
    main()
