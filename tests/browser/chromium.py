"""Where the browser is: Debian's chromium, fetched once where that is possible."""

import os
import shutil
import subprocess

COMMANDS = {  # each with the seconds it may take
    ("apt-get", "update"): 120,
    ("apt-get", "install", "-y", "--no-install-recommends", "-o", "DPkg::Lock::Timeout=60", "chromium"): 420,
}
ARGUMENTS = (
    "--no-sandbox",  # root, as in a container of CI, has none
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",  # containers have a small /dev/shm
    "--hide-scrollbars",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",  # what asks for the world does not get it
)


def find() -> str | None:
    """The path of chromium, if there is one."""
    return shutil.which("chromium")


def fetch() -> str:
    """Install chromium where this user may; why it is still missing, or nothing."""
    if os.name != "posix" or os.geteuid() != 0 or shutil.which("apt-get") is None:
        return "there is no chromium, and apt-get install chromium is not for this user"
    for command, seconds in COMMANDS.items():
        try:
            subprocess.run(
                command,
                check=True,
                timeout=seconds,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
            )
        except (OSError, subprocess.SubprocessError) as error:
            return f"there is no chromium, and `{' '.join(command[:2])}` failed: {error}"
    return "" if find() else "apt-get installed chromium, but it is not on the path"
