"""Import paths of the papers' era; nothing inside grb imports them. :mod:`grb.compat` has what they name."""

from grb.utils import normalize as normalize
from grb.utils.logger import Logger as Logger
from grb.utils.utils import *
