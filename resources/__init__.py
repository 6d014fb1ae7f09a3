"""What the pipelines run on, chosen by environment: local and embedded, a server, or a cluster.

No resources are declared yet.
"""

from __future__ import annotations

from collections.abc import Mapping


def resources_for_environment() -> Mapping[str, object]:
    """The resources by the name that assets ask for them."""
    return {}
