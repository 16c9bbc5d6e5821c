"""A bank, a store and what judges them: what every test of endings begins and ends with."""

from __future__ import annotations

import asyncio

from tests.faults.bank import Bank
from tests.faults.judge import judge
from tests.faults.stage import Stage
from tests.faults.world import World
from tests.postgres import KEY, Cluster

from toolgate.adapters.postgres.upkeep import verify_chains as postgres_chains
from toolgate.adapters.sqlite.upkeep import verify_chains as sqlite_chains
from toolgate.interfaces.cli.audit import differences_of


class Theatre:
    """A bank, a store, and a stage for each ending."""

    def __init__(self, world: World, bank: Bank, cluster: Cluster | None, url: str) -> None:
        self.world, self.bank, self.cluster, self.url = world, bank, cluster, url

    def stage(self, place: str, *, keyed: bool) -> Stage:
        key = "" if self.cluster is None else KEY
        return Stage(place, keyed, self.url, self.bank.port, str(self.world.folder), key)

    async def bury(self) -> None:
        """Let everybody know that the process that died is dead; on a file its lock says so."""
        if self.cluster is not None:
            dead = "UPDATE owners SET alive_until=now() - interval '1 min'"
            await self.cluster.as_admin(dead, database=self.url.rpartition("/")[2])

    async def judge(self) -> None:
        """What `toolgate audit verify` looks at; and on a file, what the independent reader does."""
        if self.cluster is None:
            judge(self.world.file, self.world.ledger)
            reports = sqlite_chains(self.world.file)
        else:
            reports = await asyncio.to_thread(postgres_chains, self.url)
        assert [report.problem for report in reports if report.problem is not None] == []
        assert await asyncio.to_thread(differences_of, self.url.removeprefix("sqlite:///")) == []
