"""The command line as tests run it: in this process, which saves the imports of several hundred commands."""

import io
import os
import re
import subprocess
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import yaml

from urdf_ident.cli import application


def run(*arguments: object, cwd: Path | None = None, report: bool = False) -> subprocess.CompletedProcess[str]:
    """`urdf-ident ARGUMENTS`: exit code and what it printed; `identify` draws no report unless one is wanted."""
    words, out, err, here = [str(argument) for argument in arguments], io.StringIO(), io.StringIO(), Path.cwd()
    if words[:1] in (["identify"], ["validate"]) and not report:
        words.append("--no-report")
    try:
        os.chdir(cwd or here)
        with redirect_stdout(out), redirect_stderr(err):
            code = application.run(words)
    finally:
        os.chdir(here)
    return subprocess.CompletedProcess(words, code, out.getvalue(), err.getvalue())


def done(*arguments: object, cwd: Path | None = None) -> str:
    """What a command that must end well prints."""
    result = run(*arguments, cwd=cwd)
    assert result.returncode == 0, result.stderr
    return result.stdout


def assert_refused(result: subprocess.CompletedProcess[str], code: int, *words: str) -> None:
    """Exit code, one line, the words in it, no traceback."""
    assert result.returncode == code, result.stderr + result.stdout
    lines = result.stderr.strip().splitlines()
    assert len(lines) == 1, result.stderr
    for word in words:
        assert re.search(word, lines[0]), (word, lines[0])


def write_yaml(path: Path, content: object) -> Path:
    """Writes a project or truth file, and returns its path."""
    path.write_text(yaml.safe_dump(content), encoding="utf-8")
    return path
