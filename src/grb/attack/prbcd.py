from grb.attack.modification.prbcd import PRBCD as PRBCD
