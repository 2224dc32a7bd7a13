"""Which datasets behave alike: sensitivity profiles under perturbations, their groups, and how far to trust them.

>>> from grb import taxonomy
>>> found = taxonomy.analyse_published(taxonomy.published("transductive"), draws=19)
>>> found.agreement
1.0
"""

from grb.taxonomy.analysis import Analysis, analyse, analyse_published
from grb.taxonomy.assignment import assign
from grb.taxonomy.attack_sensitivity import AttackSensitivity, StrongestAttack, attack_sensitivity
from grb.taxonomy.calibration import Calibration, Reliability, calibrate, reliability
from grb.taxonomy.cluster import Tree, agreement, as_groups, cut, join, siblings, tree
from grb.taxonomy.compare import Comparison, as_published, compare
from grb.taxonomy.complementarity import complementarity
from grb.taxonomy.components import Components, principal_components, profile_components
from grb.taxonomy.correlation import Correlation, model_correlation, perturbation_correlation
from grb.taxonomy.describe import describe_profile, meaning
from grb.taxonomy.measurement import PerturbationInfo, ProfileMeasurement
from grb.taxonomy.missing import MISSING, complete, drop_datasets, drop_perturbations, fill_with_mean
from grb.taxonomy.model_comparison import ModelComparison, ModelDifference, compare_models
from grb.taxonomy.own_groups import GroupStability, OwnGroups, own_groups, representative_frequency
from grb.taxonomy.placeable import check_placeable, reference_for
from grb.taxonomy.placement import Mark, Neighbour, Placement
from grb.taxonomy.profile import (
    FEATURES,
    ORIGINAL,
    PAPER_ORDER,
    STRUCTURE,
    Profiles,
    comparable_perturbations,
    from_auroc,
    from_runs,
    paper_perturbations,
)
from grb.taxonomy.properties import class_properties, graph_properties
from grb.taxonomy.read import read_groups, read_models, read_profiles
from grb.taxonomy.reference import (
    CITATION,
    PROPERTIES,
    PUBLISHED,
    Reference,
    property_components,
    published,
    published_properties,
    published_seed_study,
)
from grb.taxonomy.representative import Subset, coverage, distances, representatives
from grb.taxonomy.separability import Separability, holm, separability
from grb.taxonomy.stability import (
    BootstrapGroups,
    PermutationTest,
    Stability,
    bootstrap_groups,
    k_means,
    leave_one_out,
    linkages,
    permutation_test,
    silhouettes,
)
from grb.taxonomy.uncertainty import (
    RatioErrors,
    SeedSpread,
    Spread,
    ratio_errors,
    resample,
    seed_study,
    spread,
    student_draws,
)
