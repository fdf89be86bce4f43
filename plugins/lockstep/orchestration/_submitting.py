"""The provider's spark-submit, with the environment that Lockstep gives the driver. Loaded where one is started."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook


class SubmitHook(SparkSubmitHook):
    """Starts spark-submit in `environment`, and over it in what `env_vars` says for that process.

    Given `env=` instead, the provider's hook drops it for `os.environ` and `env_vars` as soon as there are any. Handed
    in as `env_vars`, on YARN and Kubernetes a password would stand in the command line.
    """

    environment: Mapping[str, str] = MappingProxyType({})

    def _build_spark_submit_command(self, application: str) -> list[str]:
        command: list[str] = super()._build_spark_submit_command(application)
        of_the_process: dict[str, Any] = self._env or {}
        self._env = {**self.environment, **of_the_process}
        return command
