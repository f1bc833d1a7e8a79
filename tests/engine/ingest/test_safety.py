"""Only regular files of this machine are read, whatever a path or a file's name says."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

import duckdb
import pytest

from nbext.engine import storage
from nbext.engine.ingest import files
from nbext.engine.ingest.stage import Stage
from nbext.errors import IngestError
from tests.engine.ingest.conftest import write_csv, write_parquet
from tests.engine.ingest.reading_back import take


@pytest.fixture
def secret(tmp_path, log):
    """A good file outside of the folder that is given."""
    (tmp_path / "outside").mkdir()
    return write_parquet(tmp_path / "outside" / "secret.parquet", [log(0, 1, 10**20)])


@pytest.mark.parametrize(
    "url",
    [
        "https://example.org/a.parquet",
        "s3://bucket/a.parquet",
        "file:///etc/passwd",
        "http://169.254.169.254/latest/",
        "hf://datasets/a/b.parquet",
    ],
)
def test_a_url_is_no_path(data, url):
    with pytest.raises(
        IngestError, match=r"a URL, not a path\. .* nbext ingests only files on this machine"
    ):
        take(data, url)
    assert not data.exists()


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (
            lambda path, secret: path.symlink_to(secret),
            "a symbolic link; only regular files can be ingested",
        ),
        (lambda path, secret: os.mkfifo(path), "a pipe; only regular files can be ingested"),
        (
            lambda path, secret: (
                path.with_name("x").mkdir() or path.symlink_to(path.with_name("x"))
            ),
            "a symbolic link",
        ),
    ],
    ids=["link to a file", "pipe", "link to a folder"],
)
def test_what_is_no_regular_file_is_refused_without_opening_it(data, tmp_path, secret, make, says):
    make(tmp_path / "a.parquet", secret)
    with pytest.raises(IngestError, match=says):
        take(data, tmp_path / "a.parquet")


def test_a_device_is_refused(data):
    with pytest.raises(IngestError, match="a device; only regular files"):
        take(data, "/dev/zero")


def test_a_folder_gives_its_regular_files_and_follows_no_link(data, tmp_path, secret, log):
    folder = tmp_path / "in"
    (folder / "deep").mkdir(parents=True)
    write_parquet(folder / "deep" / "a.parquet", [log(0, 1, 10**20)])
    (folder / "notes.txt").write_text("not data")
    (folder / "link.parquet").symlink_to(secret)
    (folder / "outside").symlink_to(secret.parent)
    report = take(data, folder)
    assert [file.source.name for file in report.files] == [str(folder / "deep" / "a.parquet")]
    assert [str(error) for error in report.refused] == [
        f"{folder / 'link.parquet'}: a symbolic link; only regular files can be ingested."
    ]


NAMES = [
    "a[1]*?.parquet",
    "a'; DROP TABLE x; --.csv",
    "{a,b}.parquet",
    "hive=1.parquet",
    "ü 🦄.csv",
]


@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_a_name_and_never_a_pattern_or_sql(data, tmp_path, log, name):
    (tmp_path / "in").mkdir()
    write_parquet(tmp_path / "in" / "a1b.parquet", [log(0, 7, 10**20)])
    write = write_csv if name.endswith(".csv") else write_parquet
    write(tmp_path / "in" / name, [log(0, 1, 10**20)])
    report = take(data, tmp_path / "in" / name)
    assert ([file.source.name for file in report.files], report.new) == (
        [str(tmp_path / "in" / name)],
        1,
    )


def test_a_glob_gives_the_files_that_match(data, tmp_path, log):
    for n in range(3):
        write_parquet(tmp_path / f"t{n}.parquet", [log(0, n, 10**20)])
    assert take(data, tmp_path / "t[01].parquet").rows == 2


def test_a_pattern_that_matches_nothing_is_said(data, tmp_path):
    with pytest.raises(IngestError, match="no file matches"):
        take(data, tmp_path / "*.parquet")


def test_a_path_with_a_zero_byte_is_refused(data):
    with pytest.raises(IngestError, match="no such file"):
        take(data, "a\0b.parquet")


def test_a_zip_is_not_unpacked(data, tmp_path, log):
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.write(write_csv(tmp_path / "a.csv", [log()]), "../../evil.csv")
    with pytest.raises(IngestError):
        take(data, path)
    assert not list(tmp_path.rglob("evil.csv"))


def test_the_stage_reads_its_sources_and_nothing_else(tmp_path, secret, log):
    path = write_parquet(tmp_path / "a.parquet", [log()])
    building = storage.create_building(tmp_path / "data")
    with Stage(
        tmp_path / "data" / ".stage", building, None, [files.source_of(path)], memory="4GB"
    ) as stage:
        assert stage.value(f"SELECT count(*) FROM read_parquet('{path}')") == 1
        for sql in (
            f"SELECT * FROM read_parquet('{secret}')",
            "SELECT * FROM read_text('/etc/passwd')",
            f"COPY (SELECT 1) TO '{tmp_path}/stolen.csv'",
            "INSTALL httpfs",
            "LOAD httpfs",
            "SELECT * FROM read_csv('https://example.org/a.csv')",
            f"ATTACH '{tmp_path}/other.db'",
            "SET enable_external_access = true",
            "SET allowed_directories = ['/']",
        ):
            with pytest.raises(duckdb.Error):
                stage.run(sql)
    assert not (tmp_path / "stolen.csv").exists()


def test_a_file_that_is_written_to_meanwhile_is_refused(tmp_path, log):
    path = write_csv(tmp_path / "a.csv", [log()])
    source = files.source_of(path)
    write_csv(path, [log(), log()])
    with pytest.raises(IngestError, match="the file changed while it was being read"):
        source.check_unchanged()


def test_a_name_is_put_in_place_of_a_file_only_as_a_file(tmp_path, secret):
    (tmp_path / "a.parquet").symlink_to(secret)
    with pytest.raises(OSError, match="symbolic links"):
        files.open_regular(Path(tmp_path / "a.parquet"))
