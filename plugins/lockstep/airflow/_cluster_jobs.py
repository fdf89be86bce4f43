"""Jobs of spark-submit whose drivers a cluster runs: YARN and Kubernetes, asked through the provider's hook.

A standalone master takes no driver of Python. What a cluster tells of a job is a hint, which ends a wait: a question
that got no answer means that the job may be at work still. `token`: of an execution, by which its job is known in the
cluster, too: what spark-submit says of it depends on how it logs.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from typing import Any, ClassVar

from lockstep.errors import StageFailed
from lockstep.launchers import JobState

_log = logging.getLogger(__name__)
_APPLICATION_ID = re.compile(r"application_\d+_\d+")
_POD_NAME = "spark.kubernetes.driver.pod.name"
MakeHook = Callable[[], Any]  #: of a SparkSubmitHook


class YarnJobs:
    """By the ResourceManager that the Connection's extra names. A handle is an application's id."""

    submitting: ClassVar[dict[str, Any]] = {}

    def __init__(self, make_hook: MakeHook) -> None:
        self._make_hook = make_hook

    @staticmethod
    def settings(token: str) -> dict[str, str]:
        return {
            "spark.yarn.submit.waitAppCompletion": "false",
            "spark.yarn.maxAppAttempts": "1",  # a folder is written once
            "spark.yarn.tags": f"lockstep-{token}",
        }

    def find(self, submitted: Any, token: str) -> str | None:
        """The handle of the job that a hook has handed in. Raises `StageFailed` when nobody can tell."""
        told = str(submitted._yarn_application_id)  # the last word of the log that looked like one
        return told if _APPLICATION_ID.fullmatch(told) else self._ask_for(f"lockstep-{token}")

    def _ask_for(self, tag: str) -> str | None:
        import requests

        hook = self._make_hook()
        page, login = f"{hook._get_yarn_rm_base_url()}/ws/v1/cluster/apps", hook._resolved_yarn_rm_auth
        try:
            answer = requests.get(page, {"applicationTags": tag}, auth=login, timeout=hook._HTTP_TIMEOUT)
            answer.raise_for_status()
            found = ((answer.json().get("apps") or {}).get("app")) or []
            return str(found[0]["id"]) if found else None
        except (requests.RequestException, ValueError) as error:  # whose text has the address, and what stands in it
            raise StageFailed(
                f"spark-submit told no id of its job, and YARN none by tag {tag}: {type(error).__name__}"
            ) from None

    def state(self, handle: str) -> JobState:
        try:
            found = self._make_hook().query_yarn_application_status(handle)
        except RuntimeError as error:
            return JobState.FAILED if "HTTP 404" in str(error) else _unknown(handle, error)
        return {"SUCCEEDED": JobState.SUCCEEDED, "FAILED": JobState.FAILED}.get(found, JobState.RUNNING)

    def cancel(self, handle: str) -> None:
        self._make_hook()._kill_yarn_application(handle)


class KubernetesJobs:
    """By the cluster that the provider's client finds. A handle is the name of a driver's pod."""

    submitting: ClassVar[dict[str, Any]] = {"track_driver_via_k8s_api": True}  # spark-submit doesn't wait

    def __init__(self, make_hook: MakeHook) -> None:
        self._make_hook = make_hook

    @staticmethod
    def settings(token: str) -> dict[str, str]:
        return {_POD_NAME: f"lockstep-{token}-driver"}

    def find(self, submitted: Any, token: str) -> str | None:
        """The handle of the job that a hook has handed in."""
        return str(submitted._conf[_POD_NAME])

    def state(self, handle: str) -> JobState:
        from airflow.providers.apache.spark.hooks.spark_submit import kube_client  # type: ignore[attr-defined]
        from urllib3.exceptions import HTTPError

        namespace = self._make_hook()._connection["namespace"]
        try:
            pod = kube_client.get_kube_client().read_namespaced_pod(handle, namespace)
        except kube_client.ApiException as error:
            return JobState.FAILED if error.status == 404 else _unknown(handle, error)
        except HTTPError as error:  # no connection
            return _unknown(handle, error)
        return {"Succeeded": JobState.SUCCEEDED, "Failed": JobState.FAILED}.get(pod.status.phase, JobState.RUNNING)

    def cancel(self, handle: str) -> None:
        hook = self._make_hook()
        hook._kubernetes_driver_pod = handle
        hook._delete_driver_pod()


def _unknown(handle: str, error: Exception) -> JobState:
    _log.warning("nobody could tell how it stands with job %s: %s", handle, type(error).__name__)
    return JobState.RUNNING
