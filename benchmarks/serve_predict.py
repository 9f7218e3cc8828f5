"""How soon does ``oodscope serve predict`` answer fifty clients at once, and is every answer right?

    OODSCOPE_DATA=path/to/packs python benchmarks/serve_predict.py [docs/results/serve-predict.md]

A ResNet-18 for CIFAR-10 with MSP, served by a process of its own on loopback; fifty threads send PNG images one after
the other. Every answer is compared with what the scorer says of the image in this process.
"""

import http.client
import json
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path

import numpy as np
from PIL import Image

import oodscope as oods

sys.path.insert(0, str(Path(__file__).parent.parent))
from tests.realdata.packs import CIFAR10, pack, resnet18

CLIENTS, EACH = 50, int(os.environ.get("EACH", "10"))


def client(port: int, files: list[bytes], number: int) -> list[tuple[int, float, int, dict]]:
    """Row, seconds, status and answer of each request of one client, over one connection."""
    connection, found = http.client.HTTPConnection("127.0.0.1", port, timeout=300), []
    for turn in range(EACH):
        row = (number * EACH + turn) % len(files)
        started = time.perf_counter()
        connection.request("POST", "/predict", files[row])
        answer = connection.getresponse()
        content = json.loads(answer.read())
        found.append((row, time.perf_counter() - started, answer.status, content))
    connection.close()
    return found


def main() -> None:
    folder = Path(os.environ["OODSCOPE_DATA"]).resolve()
    images = pack(folder, "cifar10_test")
    scorer = oods.fit_scorer(resnet18(folder, "cifar10", CIFAR10), "msp", images.take(np.arange(200)))
    pictures = images.images(range(1000, 1100))
    expected, files = scorer.predict(list(pictures)), []
    for picture in pictures:
        stream = BytesIO()
        Image.fromarray(picture).save(stream, "PNG")
        files.append(stream.getvalue())
    rows = []
    with tempfile.TemporaryDirectory() as home:
        scorer.save(Path(home) / "msp.oodscope", include_weights=True)
        weights = folder.parent / "models" / "cifar10_resnet18_s0.safetensors"
        own = Path(home) / "served.py"
        own.write_text(
            "from oodscope.models.zoo.zoo import create_model\n"
            f"def build():\n    return create_model('resnet18_32', weights={str(weights)!r})[0]\n"
        )
        for together in (16, 1):
            command = [sys.executable, "-m", "oodscope", "serve", "predict", "msp.oodscope", "--port", "0"]
            command += ["--model", "python:served:build", "--together", str(together)]
            process = subprocess.Popen(command, cwd=home, stderr=subprocess.PIPE, text=True)
            assert process.stderr is not None
            address = next(line for line in process.stderr if line.startswith("http://"))
            port = int(address.split(":")[2].split("/")[0])
            client(port, files, 0)  # the first pass builds what later ones share
            started = time.perf_counter()
            with ThreadPoolExecutor(CLIENTS) as crowd:
                parts = list(crowd.map(client, [port] * CLIENTS, [files] * CLIENTS, range(CLIENTS)))
            answers = [each for part in parts for each in part]
            wall = time.perf_counter() - started
            process.terminate()
            process.wait()
            wrong = sum(
                status != 200
                or (content["class_name"], content["accepted"]) != (expected[row].class_name, expected[row].accepted)
                or abs(content["score"] - expected[row].score) > 1e-4 * max(1.0, abs(expected[row].score))
                for row, _, status, content in answers
            )
            seconds = np.array([each[1] for each in answers])
            p50, p95 = np.quantile(seconds, [0.5, 0.95])
            rows.append((together, len(answers), wrong, p50, p95, len(answers) / wall))
    verdict = "no wrong answer" if not any(row[2] for row in rows) else "wrong answers"
    text = "\n".join(
        [
            "# How soon does `serve predict` answer?",
            "",
            f"**Question.** {CLIENTS} concurrent clients, CIFAR-10 ResNet-18 with MSP: latency, and are answers right?",
            "",
            f"**Answer.** {verdict} in {sum(row[1] for row in rows):,} requests; p95 {rows[0][4]:.2f} s by default.",
            "",
            "**Command.** `OODSCOPE_DATA=PACKS python benchmarks/serve_predict.py docs/results/serve-predict.md`",
            "",
            f"**Machine.** 2 cores shared with the clients and other work (load {os.getloadavg()[0]:.0f}), CPU",
            "",
            f"**Date.** {datetime.now(UTC):%Y-%m-%d}",
            "",
            "| images together | requests | wrong | median s | p95 s | answers a second |",
            "|---|---|---|---|---|---|",
            *(f"| {a} | {b} | {c} | {d:.3f} | {e:.3f} | {f:.1f} |" for a, b, c, d, e, f in rows),
            "",
            "Right: class and verdict equal, score within 1e-4 of the scorer's own.",
            "",
        ]
    )
    if len(sys.argv) > 1:
        Path(sys.argv[1]).write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
