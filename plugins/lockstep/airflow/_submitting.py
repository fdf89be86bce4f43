"""The provider's SparkSubmitHook with Lockstep's environment for the driver. Imported only when spark-submit is
started."""

from __future__ import annotations

from typing import Any

from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook


class SubmitHook(SparkSubmitHook):
    """Starts spark-submit with `environment` only, plus the user's `env_vars`, and nothing else from the worker.

    The provider's hook uses `os.environ` as soon as there are `env_vars`, whatever `env=` is. Passing `environment` as
    `env_vars` would put passwords into the command line on YARN and Kubernetes.
    """

    environment: dict[str, Any]

    def submit(self, application: str = "", **arguments: Any) -> Any:
        return super().submit(application, **arguments, env=self.environment)

    def _build_spark_submit_command(self, application: str) -> list[str]:
        """Add `env_vars` to the environment: the hook knows them now and hasn't started a process yet."""
        command: list[str] = super()._build_spark_submit_command(application)
        if (
            self._connection["deploy_mode"] != "cluster"
        ):  # the driver runs in this process, also for Kubernetes and YARN
            self.environment |= self._env_vars or {}
        self._env = None
        return command

    def _mask_cmd(self, connection_cmd: str | list[str]) -> str:
        """Mask the value of every setting, as any may be secret: an account's key, a session's token."""
        if isinstance(connection_cmd, list):
            words = zip(["", *connection_cmd], connection_cmd, strict=False)
            connection_cmd = [f"{word.partition('=')[0]}=***" if last == "--conf" else word for last, word in words]
        return str(super()._mask_cmd(connection_cmd))

    def on_kill(self) -> None:
        self._env = self.environment  # the command that ends the job needs the environment, too
        super().on_kill()
