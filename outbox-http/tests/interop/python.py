"""Both directions between this crate and the Python library. Argument: the example's binary."""

import datetime
import subprocess
import sys

from standardwebhooks.webhooks import Webhook, WebhookVerificationError

KEY = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
OTHER = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"
BODY = '{"after": "4f1c", "text": "Ünï ♥"}'
binary = sys.argv[1]


def run(*arguments):
    return subprocess.run([binary, *arguments], input=BODY.encode(), capture_output=True)


signed = run("sign", KEY)
assert signed.returncode == 0, signed
headers = dict(line.split(": ", 1) for line in signed.stdout.decode().splitlines())
assert Webhook(KEY).verify(BODY, headers)["after"] == "4f1c"
try:
    Webhook(OTHER).verify(BODY, headers)
    raise SystemExit("another key verified")
except WebhookVerificationError:
    pass

now = datetime.datetime.now(tz=datetime.timezone.utc)
signature = Webhook(KEY).sign("msg_1", now, BODY)
lines = [
    "webhook-id: msg_1",
    f"webhook-timestamp: {int(now.timestamp())}",
    f"webhook-signature: {signature}",
]
good = run("verify", KEY, *lines)
assert good.returncode == 0, good
bad = run("verify", OTHER, *lines)
assert bad.returncode == 1, bad
print("Python and Rust agree")
