"""The helpers of THUDM/grb's ``grb.utils``, by their old names."""

from grb.compat.adjacency import adj_preprocess as adj_preprocess
from grb.compat.adjacency import adj_to_tensor as adj_to_tensor
from grb.compat.adjacency import build_adj as build_adj
from grb.compat.evaluation import check_feat_range as check_feat_range
from grb.compat.evaluation import check_symmetry as check_symmetry
from grb.compat.evaluation import evaluate as evaluate
from grb.compat.evaluation import feat_preprocess as feat_preprocess
from grb.compat.evaluation import fix_seed as fix_seed
from grb.compat.evaluation import get_index_induc as get_index_induc
from grb.compat.evaluation import get_num_params as get_num_params
from grb.compat.evaluation import inference as inference
from grb.compat.evaluation import label_preprocess as label_preprocess
from grb.compat.files import download as download
from grb.compat.files import save_adj as save_adj
from grb.compat.files import save_df_to_csv as save_df_to_csv
from grb.compat.files import save_df_to_xlsx as save_df_to_xlsx
from grb.compat.files import save_dict_to_json as save_dict_to_json
from grb.compat.files import save_dict_to_xlsx as save_dict_to_xlsx
from grb.compat.files import save_features as save_features
from grb.compat.files import save_model as save_model
from grb.compat.weights import load_weights as load_weights
