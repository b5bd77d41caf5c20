"""A small recorder with a known promise: it takes line protocol, answers 204, and brings it to a store.

Call: keeper.py MODE PORT STORE DIRECTORY. With `memory` it keeps what it has acknowledged in memory only. With `written` it writes it to a
file before it answers, and with `synced` it syncs this file too. Whatever is in the file at its start is brought to the store first.
"""

import http.server
import os
import socketserver
import sys
import threading
import time
import urllib.request

MODE, PORT, STORE, DIRECTORY = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4]
FILE = os.path.join(DIRECTORY, "kept")
lock = threading.Lock()
waiting = []
kept = None

if MODE != "memory":
    kept = open(FILE, "ab+")
    kept.seek(0)
    waiting = [line for line in kept.read().split(b"\n") if line.startswith(b"durability,") and len(line.split(b" ")) == 3]
    if MODE == "synced":
        os.fsync(kept.fileno())
        directory = os.open(DIRECTORY, os.O_RDONLY)
        os.fsync(directory)


class Intake(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.answer(204)

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        with lock:
            if kept is not None:
                kept.write(body)
                kept.flush()
                if MODE == "synced":
                    os.fsync(kept.fileno())
            waiting.extend(line for line in body.split(b"\n") if line)
        self.answer(204)

    def answer(self, status):
        self.send_response(status)
        self.end_headers()

    def log_message(self, *_):
        pass


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True
    allow_reuse_address = True


def bring():
    while True:
        time.sleep(0.2)
        with lock:
            lines = waiting[:2000]
        if not lines:
            continue
        try:
            urllib.request.urlopen(urllib.request.Request(STORE + "/write", b"\n".join(lines)), timeout=5)
        except OSError:
            continue
        with lock:
            del waiting[: len(lines)]


threading.Thread(target=bring, daemon=True).start()
Server(("127.0.0.1", PORT), Intake).serve_forever()
