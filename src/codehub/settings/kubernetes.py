"""Settings of CODEHUB_RUNTIME=kubernetes: a part of `RuntimeConfig`."""

import re
from dataclasses import dataclass

from codehub.settings.fields import at_least, one_of, setting


def _label(text: str) -> str | None:
    return (
        None if re.fullmatch(r"[a-z0-9]([a-z0-9-]{0,18}[a-z0-9])?", text) else "must be a short name of a-z, 0-9 and -"
    )


def _quantity(text: str) -> str | None:
    return None if re.fullmatch(r"[1-9][0-9]*(Ki|Mi|Gi|Ti|k|M|G|T)?", text) else "must be a size, as 10Gi"


@dataclass(frozen=True)
class KubernetesConfig:
    kubernetes_config: str = setting(
        "CODEHUB_KUBERNETES_CONFIG",
        "",
        "Path of a kubeconfig, for CODEHUB_RUNTIME=kubernetes; empty: the service account of the pod we run in.",
    )
    kubernetes_namespace: str = setting(
        "CODEHUB_KUBERNETES_NAMESPACE",
        "",
        "Where workspaces are; empty: the kubeconfig's namespace, or the pod's own.",
    )
    kubernetes_installation: str = setting(
        "CODEHUB_KUBERNETES_INSTALLATION",
        "main",
        "Tells the objects of platforms in one namespace apart. It is part of their names and cannot be changed later.",
        check=_label,
    )
    kubernetes_storage_class: str = setting(
        "CODEHUB_KUBERNETES_STORAGE_CLASS", "", "Of the claims for homes; empty: the cluster's default."
    )
    kubernetes_volume_size: str = setting(
        "CODEHUB_KUBERNETES_VOLUME_SIZE",
        "10Gi",
        "What each home's claim asks for, as Kubernetes writes it.",
        check=_quantity,
    )
    kubernetes_runtime_class: str = setting(
        "CODEHUB_KUBERNETES_RUNTIME_CLASS",
        "",
        "The runtime class of workspaces' pods, as gvisor or kata; empty: the cluster's default.",
    )
    kubernetes_user_namespaces: str = setting(
        "CODEHUB_KUBERNETES_USER_NAMESPACES",
        "no",
        "yes gives each workspace's pod a user namespace of its own, which the cluster has to support.",
        check=one_of("no", "yes"),
    )
    kubernetes_pull_policy: str = setting(
        "CODEHUB_KUBERNETES_PULL_POLICY",
        "IfNotPresent",
        "When nodes pull images: IfNotPresent, Always or Never.",
        check=one_of("IfNotPresent", "Always", "Never"),
    )
    kubernetes_pull_secret: str = setting(
        "CODEHUB_KUBERNETES_PULL_SECRET",
        "",
        "The name of a secret in the namespace for a registry that asks who pulls.",
    )
    kubernetes_node_lost_seconds: int = setting(
        "CODEHUB_KUBERNETES_NODE_LOST_SECONDS",
        30,
        "Seconds after which the cluster gives up workspaces on a node that does not answer.",
        check=at_least(0),
    )
