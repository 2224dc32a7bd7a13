"""The threat model of an audit in the words of NIST AI 100-2: stage, goal, capability, knowledge.

References:
    Vassilev et al., *Adversarial Machine Learning: A Taxonomy and Terminology of Attacks and Mitigations*, NIST AI 100-2.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from grb.auditing.curve import counted
from grb.threat import Injection, Threat

NOT_TESTED = (
    "privacy: membership inference, reconstruction of data, model extraction",
    "poisoning and backdoors: attacks on the training data or on the training itself",
    "attacks that adapt to a defense by hand, beyond the fixed list of attacks",
    "several graphs, changing graphs, and nodes of several types",
)


def threat_model(threats: Sequence[Threat], targets: str, *, queries: int | None) -> dict[str, Any]:
    """Stage, goal, capability and knowledge of the attackers that an audit considers."""
    return {
        "source": "NIST AI 100-2",
        "stage": "deployment: the model is trained, the attacker changes the graph that it is asked about (evasion)",
        "goal": f"integrity violation: {targets} get a wrong label; availability breakdown where most of them do",
        "capability": [_capability(threat) for threat in threats],
        "knowledge": (
            f"black-box: the attacker asks the model up to {queries} times for every budget and sees its scores (query access)"
            if queries is not None
            else "white-box: the attacker knows graph, model and weights; also gray-box transfers from a model of his own"
        ),
    }


def _capability(threat: Threat) -> str:
    if isinstance(threat, Injection):
        low, high = threat.feature_range
        said = (
            f"testing data control: up to {counted(threat.nodes, 'new nodes')} with up to "
            f"{counted(threat.edges_per_node, 'edges')} each and features "
            f"between {low:g} and {high:g}"
        )
    else:
        kinds = " and ".join(sorted(threat.allow))
        amount = (
            counted(threat.edges, "edges")
            if threat.edges is not None
            else f"{100 * (threat.edge_ratio or 0):g} % of the edges"
        )
        said = f"testing data control: {kinds} up to {amount} between existing nodes"
    limits = getattr(threat, "constraints", None)
    return said + (f"; {limits}" if limits else "")
