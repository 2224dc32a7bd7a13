from grb.attack.modification.flip import FLIP as FLIP
