"""What an operator can set: options and `TOOLGATE_*` variables end up here, checked before anything opens."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, SecretStr, field_validator, model_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from toolgate import workspace_database
from toolgate.kernel.text.canonical import DEFAULT_LIMITS

LOCAL_HOSTS = ("127.0.0.1", "localhost", "[::1]", "::1")
_HOST = re.compile(r"[A-Za-z0-9.\-\[\]:*]+\Z")

Names = Annotated[tuple[str, ...], NoDecode]


class ServerSettings(BaseSettings):
    """Settings of the server. A list is written with commas."""

    model_config = SettingsConfigDict(env_prefix="TOOLGATE_", extra="ignore", frozen=True, hide_input_in_errors=True)

    database: str = Field(
        default_factory=lambda: str(workspace_database()),
        description="The database: the path of a SQLite file, or a URL (`sqlite:///file.db`, `postgresql://...`, "
        "`memory://`).",
    )
    policy: Path | None = Field(
        default=None, description="The policy file or folder; the working directory by default."
    )
    project_policies: Path | None = Field(
        default=None,
        description="A folder with the policies of projects that have one of their own, each in `<project>.yaml`. They "
        "add to the server's.",
    )
    accept_policy: str | None = Field(
        default=None,
        description="The revision of the policy to follow although its files changed during a sandboxed run that could "
        "write them.",
    )
    tools: Names = Field(default=(), description="Where tools are, such as `my_app.tools:TOOLS`.")
    redis: SecretStr | None = Field(
        default=None, description="URL of a Redis for hints between servers and limits they share."
    )
    client_tools: bool = Field(
        default=True, description="Offer `read_file`, `write_file`, `list_directory`, `execute_command`."
    )
    workspace: str = Field(default=".", description="The folder in which relative paths begin.")
    host: str = Field(default="127.0.0.1", description="Address to listen on.")
    port: int = Field(default=8642, ge=0, le=65535, description="Port to listen on; 0 takes a free one.")
    allowed_hosts: Names = Field(default=(), description="Names the server answers to, besides those of this machine.")
    allowed_origins: Names = Field(
        default=(), description="Origins of web pages that may use the server, besides its own."
    )
    public_origin: str | None = Field(
        default=None, description="The server's own origin as browsers see it behind a proxy."
    )
    max_body_bytes: int = Field(default=16 * 2**20, ge=1024, description="The largest request body.")
    max_argument_bytes: int = Field(
        default=DEFAULT_LIMITS.max_bytes, ge=1024, description="The largest arguments of one call."
    )
    requests_per_second: float = Field(default=200.0, gt=0, description="Sustained requests of one account.")
    request_burst: int = Field(default=400, ge=1, description="Requests of one account at once.")
    failures_per_second: float = Field(default=5.0, gt=0, description="Failed sign-ins of one address.")
    failure_burst: int = Field(default=30, ge=1, description="Failed sign-ins of one address at once.")
    wait_limit_s: float = Field(
        default=55.0, gt=0, le=3600, description="How long `tools/execute` waits before it answers 202."
    )
    heartbeat_s: float = Field(default=15.0, gt=0, description="Silence after which a stream gets a comment.")
    slow_s: float = Field(
        default=20.0, gt=0, description="How long a stream or answer may wait to be taken before it is cut off."
    )
    head_s: float = Field(
        default=10.0, gt=0, le=300, description="How long a connection may take to send the head of a request."
    )
    max_idle_connections: int = Field(
        default=512, ge=1, description="Connections without a request at once; of more, the oldest is closed."
    )
    root_path: str = Field(
        default="",
        pattern=r"^(/[A-Za-z0-9._~-]+)*$",
        description="The prefix browsers and clients see, such as `/toolgate`, where a proxy serves it under one.",
    )
    ring_frames: int = Field(default=2048, ge=1, description="Recent events kept encoded for each project's streams.")
    max_streams: int = Field(default=10_000, ge=1, description="Streams and sockets at once.")
    max_streams_per_account: int = Field(default=1_000, ge=1, description="Streams and sockets of one account at once.")
    ticket_ttl_s: float = Field(default=30.0, gt=0, le=300, description="How long a ticket can be used, once.")
    session_ttl_s: float = Field(default=12 * 3600.0, gt=0, description="How long a browser session lasts.")
    cookie_suffices: bool = Field(
        default=False,
        description="For development only: a session's cookie is enough without its key, though every program that "
        "serves a port of this machine is sent it.",
    )
    drain_s: float = Field(default=10.0, ge=0, description="How long a shutdown waits for requests under way.")
    jwt_issuer: str | None = Field(default=None, description="Issuer of JWTs that are accepted as bearer tokens.")
    jwt_audience: str | None = Field(default=None, description="Audience such a JWT must name.")
    jwt_jwks_url: str | None = Field(default=None, description="Where the issuer's public keys are.")
    jwt_key: SecretStr | None = Field(default=None, description="The issuer's public key in PEM, instead of a URL.")
    jwt_algorithms: Names = Field(default=("RS256", "ES256", "EdDSA"), description="Accepted signature algorithms.")
    jwt_account_claim: str = Field(default="sub", description="The claim that names the account.")

    agent: bool = Field(default=True, description="Answer messages: `false` turns the agent on the server off.")
    agent_model: str = Field(
        default="scripted", description="`scripted`, or a provider and a model, such as `anthropic:claude-sonnet-4-5`."
    )
    agent_base_url: str | None = Field(
        default=None, description="Where the provider is, for OpenAI-compatible and local servers."
    )
    agent_key: SecretStr | None = Field(
        default=None, description="The provider's key; without it the provider's own variable is read."
    )
    agent_instructions: str = Field(default="", description="What the model is told before every conversation.")
    agent_max_steps: int = Field(default=25, ge=1, description="How often one run may ask the model.")
    agent_max_seconds: float = Field(
        default=600.0, gt=0, description="How long one run may work; waiting for calls does not count."
    )
    agent_max_tokens: int = Field(default=400_000, ge=1, description="Tokens one run may use, in and out.")
    agent_max_cost: float | None = Field(
        default=None, gt=0, description="Money one run may cost, in the currency of the provider's prices."
    )
    agent_max_repeats: int = Field(
        default=3, ge=2, description="How often in a row the same call may end the same way before a run stops."
    )
    agent_timeout_s: float = Field(default=120.0, gt=0, description="How long one answer of the model may take.")
    agent_retries: int = Field(
        default=2, ge=0, le=10, description="How often a model that is busy or out of reach is asked again."
    )

    @field_validator("tools", "allowed_hosts", "allowed_origins", "jwt_algorithms", mode="before")
    @classmethod
    def _split(cls, value: Any) -> Any:
        return tuple(part.strip() for part in value.split(",") if part.strip()) if isinstance(value, str) else value

    @field_validator("allowed_hosts")
    @classmethod
    def _hosts(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for host in value:
            if not _HOST.match(host):
                raise ValueError(f"{host!r} is not a host name.")
        return value

    @field_validator("jwt_algorithms")
    @classmethod
    def _asymmetric(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if not value or any(not name.startswith(("RS", "ES", "PS", "EdDSA")) for name in value):
            raise ValueError("Only asymmetric algorithms are accepted, such as RS256, ES256 or EdDSA.")
        return value

    @model_validator(mode="after")
    def _whole_jwt(self) -> ServerSettings:
        given = [self.jwt_issuer, self.jwt_audience, self.jwt_jwks_url or self.jwt_key]
        if any(given) and not all(given):
            raise ValueError("JWTs need jwt_issuer, jwt_audience and one of jwt_jwks_url and jwt_key.")
        return self

    @property
    def accepts_jwt(self) -> bool:
        return self.jwt_issuer is not None

    @property
    def hosts(self) -> frozenset[str]:
        """Every name the server answers to."""
        own = () if self.host in ("0.0.0.0", "::", "") else (self.host,)
        return frozenset(name.lower() for name in (*LOCAL_HOSTS, *own, *self.allowed_hosts))
