"""The provider's spark-submit, with the environment that Lockstep gives the driver. Loaded where one is started."""

from __future__ import annotations

from typing import Any

from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook


class SubmitHook(SparkSubmitHook):
    """Starts spark-submit in `environment` and nothing else of the worker's, and over it in what `env_vars` says for
    that process.

    The provider's hook starts it in `os.environ` as soon as there are `env_vars`, whatever `env=` it is given. Handed
    in as `env_vars`, on YARN and Kubernetes a password would stand in the command line.
    """

    environment: dict[str, Any]

    def submit(self, application: str = "", **arguments: Any) -> Any:
        return super().submit(application, **arguments, env=self.environment)

    def _build_spark_submit_command(self, application: str) -> list[str]:
        """By then the hook knows its `env_vars`, and has started nothing."""
        command: list[str] = super()._build_spark_submit_command(application)
        if self._connection["deploy_mode"] != "cluster":  # the driver is this process's; on Kubernetes and YARN, too
            self.environment |= self._env_vars or {}
        self._env = None
        return command

    def _mask_cmd(self, connection_cmd: str | list[str]) -> str:
        """Show no value of a setting, which may be secret under any name: an account's key, a session's token."""
        if isinstance(connection_cmd, list):
            words = zip(["", *connection_cmd], connection_cmd, strict=False)
            connection_cmd = [f"{word.partition('=')[0]}=***" if last == "--conf" else word for last, word in words]
        return str(super()._mask_cmd(connection_cmd))

    def on_kill(self) -> None:
        self._env = self.environment  # a command that ends the job runs in the worker's own, too
        super().on_kill()
