"""What users are told to install works: each documented set of extras does its smallest real job."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.docs.install_lines import Extras, documented_sets, known_extras
from tests.postgres import KEY, Cluster
from tests.real.environments import new_environment
from tests.redis_server import RedisServer

JOBS = Path(__file__).parent / "jobs"
BASE = "base"

pytestmark = pytest.mark.real


def jobs_of(extras: Extras) -> list[Path]:
    """Return the jobs of a set of extras; `all` does everybody's."""
    named = set(known_extras()) - {"all"} if "all" in extras else extras
    return [JOBS / f"{name}.py" for name in (BASE, *sorted(named))]


def label(extras: Extras) -> str:
    return ",".join(sorted(extras)) or BASE


SETS = sorted(documented_sets(), key=label)


@pytest.mark.parametrize("extras", SETS, ids=label)
def test_a_documented_install_does_its_job(
    extras: Extras, wheel: Path, tmp_path: Path, postgres_cluster: Cluster, shared_redis: RedisServer
) -> None:
    environment = new_environment(tmp_path / "environment")
    environment.install(f"{wheel}[{','.join(sorted(extras))}]" if extras else str(wheel), cwd=tmp_path)
    database = postgres_cluster.bare_database()
    for job in jobs_of(extras):
        folder = tmp_path / job.stem
        folder.mkdir()
        servers = {"POSTGRESQL": database, "REDIS": shared_redis.url, "TOOLGATE_KEY": KEY}
        environment.run(environment.python, "-I", str(job), cwd=folder, **servers)


def test_every_extra_has_a_job() -> None:
    assert {path.stem for path in JOBS.glob("*.py")} == {BASE, *known_extras()} - {"all"}
