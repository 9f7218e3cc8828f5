"""axe-core, the accessibility checker: fetched once by npm where that is possible, and used if its digest is known.

It is under the Mozilla Public License 2.0 and part of no file of this project.
"""

import hashlib
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

VERSION = "4.14.0"
DIGEST = "20c09fe157a8a34a30e241aaa1fcdade657734f08ab379ecfbeb7d45cc46e878"
FOLDER = Path(tempfile.gettempdir()) / f"oodscope-axe-{VERSION}"
GRAVE = ("serious", "critical")

RUN = """async () => {
  const found = await axe.run(document, { resultTypes: ["violations"] });
  const where = (nodes) => nodes.map((node) => node.html.slice(0, 160));
  return found.violations.map(({ id, impact, help, nodes }) => ({ id, impact, help, where: where(nodes) }));
}"""


@cache
def script() -> tuple[str, str]:
    """The script and nothing, or nothing and why it is not there."""
    path = FOLDER / "node_modules" / "axe-core" / "axe.min.js"
    if not path.is_file():
        npm = shutil.which("npm")
        if npm is None:
            return "", "axe-core is fetched by npm, which is not here"
        FOLDER.mkdir(exist_ok=True)
        command = [npm, "install", "--ignore-scripts", "--no-audit", "--no-fund", f"axe-core@{VERSION}"]
        try:
            done = subprocess.run(command, cwd=FOLDER, capture_output=True, text=True, timeout=120, check=False)
        except subprocess.TimeoutExpired:
            return "", "npm did not fetch axe-core within two minutes"
        if done.returncode:
            return "", f"npm could not fetch axe-core: {done.stderr.strip().splitlines()[-1:]}"
    text = path.read_bytes()
    found = hashlib.sha256(text).hexdigest()
    assert found == DIGEST, f"{path} is not the axe-core {VERSION} that these tests know: sha256 {found}"
    return text.decode(), ""


def findings(page) -> list[dict[str, object]]:
    """What axe calls serious or critical on a page as it stands."""
    source, reason = script()
    assert source, reason
    # by the debugger, because the policy of a page lets no script in
    session = page.context.new_cdp_session(page)
    session.send("Runtime.evaluate", {"expression": source})
    return [each for each in page.evaluate(RUN) if each["impact"] in GRAVE]
